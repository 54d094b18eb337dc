//! The first half of a round on a device: the check before it begins, and training.

use super::{
    Round,
    own_noise::NoNoise,
    sent_bit::SentBit,
    stage::{Covering, Keep, Source, Stage},
};
use crate::{
    personal::{
        Before, PersonalRequest, Place,
        store::{PersonalStore, StateId, StoreError},
    },
    samples::Samples,
    secrets::Secrets,
    session::{
        build,
        device::{Device, streams_of, unusable},
        last_round::{LastRound, Outcome},
        masks::DeviceMasks,
        trainable::{Learned, LocalRound, Trainable},
    },
    train::Kept,
    wire::message::Decline,
};

/// Whether a device may have silent rounds: rounds with a request, which not every device reads.
const fn may_be_silent<M: Trainable, K: PersonalStore>() -> bool {
    M::HAS_REQUESTS || K::IS_PRESENT
}

/// Whether a device may have rounds that reveal nothing about its data.
const fn may_hide_data<M: Trainable, K: PersonalStore>() -> bool {
    build::HAS_NOISE || DeviceMasks::HAS_MASKS || may_be_silent::<M, K>()
}

impl<D: Copy> Round<D> {
    /// Checks that the round may begin, before it is recorded.
    #[inline(never)]
    pub(in super::super) fn check<M, F, K, V, S>(
        &mut self,
        device: &Device<'_, M, F, K, V>,
        samples: &S,
    ) -> Result<(), Decline>
    where
        M: Trainable<Descent = D>,
        K: PersonalStore,
        S: Samples<Target = M::Target>,
    {
        // A device without usable data loses no participation. If its update is covered, it must
        // not reveal that it lacks such data, so it takes part with an update of zeros. The noise
        // of a matrix covers one sample only, so no sample may decide about the others: a damaged
        // one adds nothing to the sum, but still counts.
        let is_of_samples = M::HAS_REQUESTS && self.invitation.is_matrix();
        let checked = match is_of_samples {
            true => device.check_count(samples.len()),
            // An answer needs no samples, and no memory for their order.
            #[cfg(feature = "questions")]
            false if self.invitation.question().is_some() => device.check_each(samples),
            false => device.check_samples(samples),
        };
        if let Err(error) = checked {
            if !self.hides_data::<M, K>() {
                return Err(unusable(error));
            }
            self.is_unusable = !is_of_samples;
        }
        let global = &device.memory.global;
        device.model.check(&self.invitation, global, samples.len())
    }

    /// Trains on up to `most` more samples.
    ///
    /// Not inlined, so its stack is gone when the noise is drawn.
    #[inline(never)]
    pub(in super::super) fn train<M, F, K, V, S>(
        &mut self,
        device: &mut Device<'_, M, F, K, V>,
        last: &mut Option<LastRound>,
        samples: &S,
        most: usize,
    ) -> Result<(), Decline>
    where
        M: Trainable<Descent = D>,
        K: PersonalStore,
        V: Secrets,
        S: Samples<Target = M::Target>,
    {
        match self.learn(device, samples, most).transpose() {
            None => Ok(()),
            Some(learned) => self.ends(learned, device, last),
        }
    }

    /// Ends training, with an update or without.
    #[inline(always)]
    fn ends<M: Trainable<Descent = D>, F, K: PersonalStore, V>(
        &mut self,
        learned: Result<Source, Decline>,
        device: &mut Device<'_, M, F, K, V>,
        last: &mut Option<LastRound>,
    ) -> Result<(), Decline> {
        let (source, outcome) = match learned {
            Ok(source) => (source, Outcome::Updated),
            // Whether there are samples and whether training diverges depends on the data, and a
            // coordinator could choose a model for which it reveals something about them. An update
            // of zeros hides it under the noise or masks.
            Err(reason) if self.hides_data::<M, K>() => (Source::Zeros, Outcome::Zero(reason)),
            Err(reason) => return Err(reason),
        };
        *last = Some(LastRound::of(self.number, outcome, self.report));
        let keep = match (self.kept(device), source) {
            (None, _) => {
                self.cover_from(source, device)?;
                return Ok(());
            }
            (Some(PersonalRequest { last: None, .. }), Source::Zeros) => Keep::As(NO_ROUND),
            (Some(_), Source::Zeros) => Keep::Unchanged,
            // Integers come from encoders, which have no personal model.
            (Some(_), Source::Update(_) | Source::Integers) => Keep::New,
        };
        if matches!(source, Source::Zeros) {
            // Saved all the same, so that the flash is erased and written as with an update.
            device.memory.work.local.fill(0.0);
        }
        self.stage = Stage::Keeping(source, keep);
        Ok(())
    }

    /// Whether noise or masks cover the update, or none is sent. The device then reports no reason
    /// that depends on the data.
    ///
    /// Only requests make a round silent, and only devices that read them take part in such rounds.
    #[inline(always)]
    const fn hides_data<M: Trainable, K: PersonalStore>(&self) -> bool {
        let invitation = &self.invitation;
        let is_covered = invitation.own_noise().is_some() || invitation.own_masks().is_some();
        is_covered || (may_be_silent::<M, K>() && invitation.is_silent())
    }

    /// Returns the request for a personal model, if the device has a store for one.
    fn personal<K: PersonalStore>(&self) -> Option<&PersonalRequest> {
        self.invitation.personal().filter(|_| K::IS_PRESENT)
    }

    /// [`Self::personal`], if the request leads to a state.
    fn kept<M: Trainable, F, K: PersonalStore, V>(
        &self,
        device: &Device<'_, M, F, K, V>,
    ) -> Option<&PersonalRequest> {
        let parameters = device.memory.work.local.len();
        let leads_to_state = |request: &&PersonalRequest| request.state_length(parameters) > 0;
        self.personal::<K>().filter(leads_to_state)
    }

    /// Trains and clips. Returns the source of the integers to cover once training has ended.
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
        if may_hide_data::<M, K>() && self.is_unusable {
            let counted = device.check_count(samples.len());
            return Err(counted.err().map_or(Decline::SAMPLES, unusable));
        }
        let Self {
            number,
            invitation,
            stage: Stage::Training(course),
            ..
        } = self
        else {
            return Ok(None);
        };
        let round = LocalRound {
            streams: streams_of(&device.identity, *number),
            invitation,
            personal: invitation.personal().filter(|_| K::IS_PRESENT),
            global: device.memory.global,
            work: device.memory.work.reborrow(),
        };
        let report = match device.model.train(samples, round, course, most)? {
            Learned::Unfinished => return Ok(None),
            Learned::Integers => return Ok(Some(Source::Integers)),
            Learned::Update(report) => report,
        };
        let update = &mut *device.memory.work.update;
        let update = update.get_mut(..invitation.update_length());
        let repair = invitation.grid.round_in_place(update.unwrap_or_default());
        let repair = repair.map_err(|_| Decline::Diverged)?;
        self.bit = SentBit::of(&self.invitation.grid, report.norm);
        self.report = Kept::of(report);
        Ok(Some(Source::Update(repair)))
    }

    /// Starts to cover the result of training. Personal values lie after the shared ones, and are
    /// not sent.
    #[inline(always)]
    fn cover_from<M: Trainable, F, K: PersonalStore, V>(
        &mut self,
        source: Source,
        device: &mut Device<'_, M, F, K, V>,
    ) -> Result<(), NoNoise> {
        if K::IS_PRESENT {
            let length = self.invitation.update_length();
            let work = &mut device.memory.work;
            for vector in [&mut *work.update, &mut *work.local] {
                vector.get_mut(length..).unwrap_or_default().fill(0.0);
            }
        }
        self.stage = Stage::Covering(Covering::new(source, &self.invitation)?);
        Ok(())
    }

    /// Whether the round waits for the device's store.
    pub(in super::super) const fn is_asking(&self) -> bool {
        match &self.stage {
            Stage::Training(course) => course.wants.is_some(),
            Stage::Keeping(..) => true,
            _ => false,
        }
    }

    /// Returns the request to the device's store that the round waits for, if any.
    pub(in super::super) fn asks<'d, M: Trainable, F, K: PersonalStore, V>(
        &self,
        device: &'d mut Device<'_, M, F, K, V>,
    ) -> Option<(&'d mut K, Asked<'d>)> {
        let request = self.personal::<K>()?;
        let Device {
            memory,
            ledger,
            store,
            ..
        } = device;
        let (owner, work) = (*ledger.nonce(), &mut memory.work);
        let before = request.before(owner);
        let own = request.new_state(work.local.len());
        let (place, save) = match &self.stage {
            Stage::Training(course) => (course.wants?, None),
            Stage::Keeping(_, Keep::Unchanged) => (Place::Local, None),
            Stage::Keeping(_, Keep::New) => (Place::Local, Some(self.number)),
            Stage::Keeping(_, Keep::As(round)) => (Place::Local, Some(*round)),
            _ => return None,
        };
        let state = match place {
            Place::Local => work.local.get_mut(own),
            Place::Update => Some(&mut *work.update),
        };
        let state = state.unwrap_or_default();
        let asked = match save {
            None => Asked::Load(before?, state),
            Some(round) => Asked::Save(request.after(owner, round), state, before),
        };
        Some((store, asked))
    }

    /// Handles the store's answer: whether it found the state, or that it saved it.
    pub(in super::super) fn answered<M: Trainable<Descent = D>, F, K: PersonalStore, V>(
        &mut self,
        answer: Result<bool, StoreError>,
        device: &mut Device<'_, M, F, K, V>,
        last: &mut Option<LastRound>,
    ) -> Result<(), Decline> {
        match (&mut self.stage, answer) {
            (Stage::Training(course), Ok(found)) => {
                course.wants = None;
                course.before = match (course.before, found) {
                    (Before::Unknown, false) => Before::Missing,
                    (Before::Unknown, true) => Before::Found,
                    (_, true) => Before::Again,
                    // The state has not changed in the meantime.
                    (_, false) => return self.ends(Err(Decline::Storage), device, last),
                };
            }
            (Stage::Keeping(_, keep @ Keep::Unchanged), found) => {
                *keep = Keep::As(match found {
                    Ok(true) => self.number,
                    // Without a previous state there is none afterwards: no invitation names this
                    // round.
                    _ => NO_ROUND,
                });
            }
            (Stage::Keeping(_, Keep::New) | Stage::Training(_), Err(_)) => {
                // As without an update, including the bit.
                self.bit = SentBit::ZERO;
                return self.ends(Err(Decline::Storage), device, last);
            }
            // If an unchanged state is not saved, the device starts over.
            (Stage::Keeping(source, _), _) => {
                let source = *source;
                self.cover_from(source, device)?;
            }
            _ => {}
        }
        Ok(())
    }
}

/// A request to the device's store.
pub(in super::super) enum Asked<'a> {
    /// Read a state.
    Load(StateId, &'a mut [f32]),
    /// Save a state, and leave another one as it is.
    Save(StateId, &'a [f32], Option<StateId>),
}

/// Round number of a state that no invitation names.
const NO_ROUND: u32 = u32::MAX;
