//! A round from the model to the update: train, clip, quantise, add the device's noise, pack.

use core::slice;

use embedded_storage::nor_flash::NorFlash;

use super::{
    device::Device,
    masks::Tagged,
    memory::Memory,
    trainable::{Learned, LocalRound, Trainable},
};
use crate::{
    bit::clip_bit,
    mask::Tag,
    participation::Participation,
    personal::{
        PersonalRequest,
        store::{PersonalStore, StateId, StoreError},
    },
    quantize::Quantizer,
    release::{add_noise, halves, patterns, patterns_mut, quantise},
    samples::Samples,
    stream::Purpose,
    train::Workspace,
    wire::message::{Decline, Invitation, Packed, UpdateChunk, UpdatePart},
};

/// A round that the device takes part in.
#[derive(Clone, Copy)]
pub(super) struct Round {
    pub(super) number: u32,
    pub(super) invitation: Invitation,
    /// What tags cover of it: writing it again would take more flash than this takes RAM.
    pub(super) tagged: Tagged,
    /// The chunk of the model that is awaited, or of the update that is being sent.
    pub(super) chunk: u16,
    /// The first chunk of the update that may not have arrived.
    pub(super) first: u16,
    /// Behind the last chunk of the model that was asked for, or of the update that is sent before
    /// an answer.
    pub(super) end: u16,
    /// See [`UpdateChunk::negated`](crate::wire::message::UpdateChunk::negated).
    pub(super) negated: bool,
    /// The bit of adaptive clipping as it is sent.
    pub(super) bit: Halves,
}

/// An integer as it is sent, in two halves.
#[derive(Clone, Copy)]
pub(super) struct Halves {
    low: u32,
    high: u32,
}

/// What training leaves for [`Round::finish`].
pub(super) enum Unreleased {
    /// An update, with how to quantise it and its bit.
    Update { quantizer: Quantizer, bit: i64 },
    /// Integers where they are sent from.
    Integers,
}

impl Round {
    /// A round whose model is to come.
    pub(super) const fn new(number: u32, invitation: Invitation, tagged: Tagged) -> Self {
        Self {
            number,
            invitation,
            tagged,
            chunk: 0,
            first: 0,
            end: 0,
            negated: false,
            bit: Halves { low: 0, high: 0 },
        }
    }

    /// Goes on with this chunk, up to so many before the next answer.
    pub(super) fn goes_on_at(&mut self, chunk: u16, window: u8, chunks: usize) {
        // A model, and an update, has fewer chunks than a u16 can count.
        let chunks = u16::try_from(chunks).unwrap_or(u16::MAX);
        self.first = chunk;
        self.chunk = chunk;
        self.end = chunk.saturating_add(window.into()).min(chunks);
    }

    /// The current chunk of the update, once training has ended.
    pub(super) fn update_chunk<'a, M: Trainable, F, K>(
        &'a self,
        device: &'a Device<'_, M, F, K>,
    ) -> UpdateChunk<'a> {
        let packed = match self.invitation.update_part(self.chunk.into()) {
            Some(UpdatePart::Entries(range)) => {
                let Workspace { update, local, .. } = &device.memory.work;
                let part =
                    |vector: &'a [f32]| patterns(vector.get(range.clone()).unwrap_or_default());
                Packed::Halves {
                    low: part(update),
                    high: part(local),
                    width: self.invitation.width(),
                }
            }
            Some(UpdatePart::Tag(helper)) => Packed::Tag(self.tag(device, helper)),
            Some(UpdatePart::Bit) | None => Packed::Halves {
                low: slice::from_ref(&self.bit.low),
                high: slice::from_ref(&self.bit.high),
                width: self.invitation.bit_width().unwrap_or(0),
            },
        };
        UpdateChunk {
            index: self.chunk,
            negated: self.negated,
            more: self.chunk.saturating_add(1) < self.end,
            packed,
        }
    }

    /// The tag of a masked update for a helper.
    #[inline(never)]
    fn tag<M: Trainable, F, K>(&self, device: &Device<'_, M, F, K>, helper: u8) -> Tag {
        let Invitation {
            grid, masks, shape, ..
        } = &self.invitation;
        let (Some(masks), Some(model)) = (masks, device.memory.global.get(..shape.parameters()))
        else {
            return Tag::default();
        };
        let name = (self.number, helper);
        let terms = masks.terms(grid);
        device.masks.tag(name, &terms, &self.tagged, model)
    }

    /// Trains, and puts the update where it is sent from.
    #[inline(never)]
    pub(super) fn prepare<M, F, K, S>(
        &mut self,
        device: &mut Device<'_, M, F, K>,
        samples: &S,
    ) -> Result<(), Decline>
    where
        M: Trainable,
        F: NorFlash,
        K: PersonalStore,
        S: Samples<Target = M::Target>,
    {
        // What is covered by noise or masks, or not sent, is no reason to say anything about the
        // data.
        let invitation = &self.invitation;
        let is_covered =
            invitation.noise.is_some() || invitation.masks.is_some() || invitation.is_silent();
        // A device without usable data loses no participation. One whose update is covered does
        // not reveal that it has no data.
        let usable = M::MIN_SAMPLES..=device.memory.work.order.len();
        let is_usable = usable.contains(&samples.len());
        if !is_usable && !is_covered {
            return Err(Decline::NoSamples);
        }
        let Memory { global, .. } = &device.memory;
        device
            .model
            .check(&self.invitation, global, samples.len())?;
        let participation = device.begin(self.number, &self.invitation)?;
        let trained = self.trained(device, samples, &participation);
        // Whether there are samples and whether training diverges depends on the data, and a
        // coordinator could choose a model for which it reveals something about them. The device's
        // own noise, or the masks, hide that as well: an update of zeros.
        let trained = match &trained {
            Ok(trained) => Some(trained),
            Err(_) if is_covered => {
                self.save_unchanged(device);
                None
            }
            Err(reason) => return Err(*reason),
        };
        self.finish(device, trained, &participation);
        Ok(())
    }

    /// Trains and clips; what is to be sent, if there is an update.
    ///
    /// Its stack is gone when the noise is drawn.
    #[inline(never)]
    fn trained<M, F, K, S>(
        &self,
        device: &mut Device<'_, M, F, K>,
        samples: &S,
        participation: &Participation,
    ) -> Result<Unreleased, Decline>
    where
        M: Trainable,
        F: NorFlash,
        K: PersonalStore,
        S: Samples<Target = M::Target>,
    {
        let invitation = &self.invitation;
        let Memory { global, work } = &mut device.memory;
        let learned = device.model.train(
            samples,
            LocalRound {
                participation,
                invitation,
                owner: *device.ledger.nonce(),
                global,
                work: work.reborrow(),
                store: &mut device.store,
            },
        )?;
        let Learned::Update(report) = learned else {
            return Ok(Unreleased::Integers);
        };
        let update = &device.memory.work.update;
        let update = update.get(..invitation.update_length()).unwrap_or_default();
        let quantizer = invitation.grid.quantizer(update);
        let quantizer = quantizer.map_err(|_| Decline::Diverged)?;
        if let Some(personal) = invitation.personal().filter(|_| K::IS_PRESENT) {
            let id = personal.after(*device.ledger.nonce(), self.number);
            self.save(personal, &id, device)
                .map_err(|_| Decline::Storage)?;
        }
        Ok(Unreleased::Update {
            quantizer,
            bit: clip_bit(&invitation.grid, report.norm),
        })
    }

    /// Saves the state in the local model, if the method has one.
    fn save<M: Trainable, F, K: PersonalStore>(
        &self,
        request: &PersonalRequest,
        id: &StateId,
        device: &mut Device<'_, M, F, K>,
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

    /// Saves the state before as that of this round, of a device that does not say that it has no
    /// update: it goes on from there. The flash takes as long as with an update.
    fn save_unchanged<M: Trainable, F: NorFlash, K: PersonalStore>(
        &self,
        device: &mut Device<'_, M, F, K>,
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
        let _ = self.save(request, &request.after(owner, round), device);
    }

    /// Quantises the update, or zeros without one, and adds the device's noise to it and to its
    /// bit, or the masks: here and nowhere else. What is to be sent takes the place of the update,
    /// of which nothing is left.
    ///
    /// Each is a function whose stack is gone before the next one.
    pub(super) fn finish<M: Trainable, F, K: PersonalStore>(
        &mut self,
        device: &mut Device<'_, M, F, K>,
        trained: Option<&Unreleased>,
        participation: &Participation,
    ) {
        let Workspace { update, local, .. } = &mut device.memory.work;
        // What is personal lies behind what is shared, and is not sent.
        let length = self.invitation.update_length();
        if K::IS_PRESENT {
            for vector in [&mut *update, &mut *local] {
                vector.get_mut(length..).unwrap_or_default().fill(0.0);
            }
        }
        let update = update.get_mut(..length).unwrap_or_default();
        let local = local.get_mut(..length).unwrap_or_default();
        let Invitation {
            grid,
            noise,
            bit,
            masks,
            ..
        } = &self.invitation;
        (self.first, self.chunk) = (0, 0);
        // Two halves, in the places of two parameters that training no longer needs.
        let (mut low, mut high) = (patterns_mut(update), patterns_mut(local));
        let (quantizer, bit_value) = match trained {
            Some(Unreleased::Update { quantizer, bit }) => (Some(quantizer), *bit),
            Some(Unreleased::Integers) | None => (None, 0),
        };
        // Integers are where they are sent from, unless there are none.
        let has_integers = M::HAS_REQUESTS && matches!(trained, Some(Unreleased::Integers));
        let is_bare = noise.is_none() && masks.is_none();
        self.negated = !has_integers && quantise(quantizer, grid, is_bare, low, high);
        let mut purpose = Purpose::DeviceNoise;
        if M::HAS_REQUESTS && self.invitation.is_matrix() {
            purpose = Purpose::CorrelationNoise;
            // Behind the matrix is the number of samples, which is public.
            for half in [&mut low, &mut high] {
                let matrix = core::mem::take(half).split_last_mut();
                *half = matrix.map_or_else(Default::default, |(_, matrix)| matrix);
            }
        }
        let Halves {
            low: bit_low,
            high: bit_high,
        } = &mut self.bit;
        (*bit_low, *bit_high) = halves(bit_value);
        let (bit_low, bit_high) = (slice::from_mut(bit_low), slice::from_mut(bit_high));
        let bit_noise = bit.as_ref().and_then(|bit| bit.noise.as_ref());
        if let Some(noise) = noise {
            add_noise(noise, &mut participation.stream(purpose), low, high);
        }
        if let Some(noise) = bit_noise {
            let stream = &mut participation.stream(Purpose::DeviceBitNoise);
            add_noise(noise, stream, bit_low, bit_high);
        }
        if let Some(masking) = masks {
            device.masks.add(self.number, *masking, low, high);
        }
    }
}
