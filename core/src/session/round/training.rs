//! The first half of a round on a device: may it begin, and training.

use super::{
    Round,
    stage::{Covering, Halves, Source, Stage},
};
use crate::{
    bit::clip_bit,
    personal::{
        PersonalRequest,
        store::{PersonalStore, StateId, StoreError},
    },
    samples::Samples,
    secrets::Secrets,
    session::{
        device::{Device, streams_of},
        trainable::{Learned, LocalRound, Trainable},
    },
    wire::message::Decline,
};

impl<D: Copy> Round<D> {
    /// Whether the round may begin, before it is recorded.
    #[inline(never)]
    pub(in super::super) fn check<M, F, K, V, S>(
        &self,
        device: &Device<'_, M, F, K, V>,
        samples: &S,
    ) -> Result<(), Decline>
    where
        M: Trainable<Descent = D>,
        S: Samples<Target = M::Target>,
    {
        // A device without usable data loses no participation. One whose update is covered does
        // not reveal that it has no data.
        let usable = M::MIN_SAMPLES..=device.memory.work.order.len();
        if !usable.contains(&samples.len()) && !self.hides_data() {
            return Err(Decline::NoSamples);
        }
        let global = &device.memory.global;
        device.model.check(&self.invitation, global, samples.len())
    }

    /// Trains on up to `most` samples more.
    ///
    /// Its stack is gone when the noise is drawn.
    #[inline(never)]
    pub(in super::super) fn train<M, F, K, V, S>(
        &mut self,
        device: &mut Device<'_, M, F, K, V>,
        samples: &S,
        most: usize,
    ) -> Result<(), Decline>
    where
        M: Trainable<Descent = D>,
        K: PersonalStore,
        V: Secrets,
        S: Samples<Target = M::Target>,
    {
        let source = match self.learn(device, samples, most) {
            Ok(None) => return Ok(()),
            Ok(Some(source)) => source,
            // Whether there are samples and whether training diverges depends on the data, and a
            // coordinator could choose a model for which it reveals something about them. What
            // covers an update hides that as well: an update of zeros.
            Err(_) if self.hides_data() => {
                self.save_unchanged(device);
                Source::Zeros
            }
            Err(reason) => return Err(reason),
        };
        self.stage = Stage::Covering(Covering::new(source, &self.invitation));
        self.leave_out_personal(device);
        Ok(())
    }

    /// Whether noise or masks cover the update, or none is sent: then nothing is a reason to say
    /// anything about the data.
    const fn hides_data(&self) -> bool {
        let invitation = &self.invitation;
        invitation.noise.is_some() || invitation.masks.is_some() || invitation.is_silent()
    }

    /// Trains and clips; where what is to be covered comes from, once training has ended.
    #[inline(always)]
    fn learn<M, F, K, V, S>(
        &mut self,
        device: &mut Device<'_, M, F, K, V>,
        samples: &S,
        most: usize,
    ) -> Result<Option<Source>, Decline>
    where
        M: Trainable<Descent = D>,
        K: PersonalStore,
        V: Secrets,
        S: Samples<Target = M::Target>,
    {
        let Self {
            number,
            invitation,
            stage: Stage::Training(course),
            ..
        } = self
        else {
            return Ok(None);
        };
        let streams = streams_of(&device.identity, *number);
        let owner = *device.ledger.nonce();
        let round = LocalRound {
            streams,
            invitation,
            owner,
            global: device.memory.global,
            work: device.memory.work.reborrow(),
            store: &mut device.store,
        };
        let norm = match device.model.train(samples, round, course, most)? {
            Learned::Unfinished => return Ok(None),
            Learned::Integers => return Ok(Some(Source::Integers)),
            Learned::Update { norm } => norm,
        };
        let update = &mut *device.memory.work.update;
        let update = update.get_mut(..invitation.update_length());
        let repair = invitation.grid.round_in_place(update.unwrap_or_default());
        let repair = repair.map_err(|_| Decline::Diverged)?;
        if let Some(personal) = invitation.personal().filter(|_| K::IS_PRESENT) {
            let id = personal.after(owner, *number);
            save(personal, &id, device).map_err(|_| Decline::Storage)?;
        }
        self.bit = Halves::of(clip_bit(&self.invitation.grid, norm));
        Ok(Some(Source::Update(repair)))
    }

    /// Saves the state before as that of this round, of a device that does not say that it has no
    /// update: it goes on from there. The flash takes as long as with an update.
    fn save_unchanged<M: Trainable, F, K: PersonalStore, V>(
        &self,
        device: &mut Device<'_, M, F, K, V>,
    ) {
        let personal = self.invitation.personal();
        let Some(request) = personal.filter(|_| K::IS_PRESENT) else {
            return;
        };
        let owner = *device.ledger.nonce();
        let local = &mut *device.memory.work.local;
        local.fill(0.0);
        let range = request.new_state(local.len());
        let state = local.get_mut(range).unwrap_or_default();
        let before = request.before(owner);
        let has_state = before.is_some_and(|before| device.store.load(&before, state) == Ok(true));
        let round = match has_state {
            true => self.number,
            // Without a state before there is none after: no invitation names this round.
            false => u32::MAX,
        };
        // If it fails, the device begins anew.
        let _ = save(request, &request.after(owner, round), device);
    }

    /// What is personal lies behind what is shared, and is not sent.
    #[inline(always)]
    fn leave_out_personal<M: Trainable, F, K: PersonalStore, V>(
        &self,
        device: &mut Device<'_, M, F, K, V>,
    ) {
        if K::IS_PRESENT {
            let length = self.invitation.update_length();
            let work = &mut device.memory.work;
            for vector in [&mut *work.update, &mut *work.local] {
                vector.get_mut(length..).unwrap_or_default().fill(0.0);
            }
        }
    }
}

/// Saves the state in the local model, if the method has one.
fn save<M: Trainable, F, K: PersonalStore, V>(
    request: &PersonalRequest,
    id: &StateId,
    device: &mut Device<'_, M, F, K, V>,
) -> Result<(), StoreError> {
    let local = &device.memory.work.local;
    let state = local.get(request.new_state(local.len()));
    let state = state.unwrap_or_default();
    let before = request.before(id.owner);
    match state.is_empty() {
        true => Ok(()),
        false => device.store.save(id, state, before.as_ref()),
    }
}
