//! A round from the model to the update: train, clip, quantise, add the device's noise, pack.

use embedded_storage::nor_flash::NorFlash;
use rand_core::Rng;

use super::conversation::{Conversation, declined};
use crate::{
    model::Model,
    quantize::Quantizer,
    samples::Samples,
    session::Memory,
    stream::Purpose,
    train::{Workspace, local_update},
    wire::{
        message::{Decline, Invitation, Packed, UPDATE_CHUNK_BYTES, UpdateChunk},
        pack,
    },
};

/// A round that the device takes part in.
#[derive(Clone, Copy)]
pub(super) struct Round {
    pub(super) number: u32,
    pub(super) invitation: Invitation,
    /// The chunk of the model that is awaited, or of the update that is on its way.
    pub(super) chunk: u16,
    /// See [`UpdateChunk::negated`](crate::wire::message::UpdateChunk::negated).
    pub(super) negated: bool,
}

impl Round {
    /// The current chunk of the update, once training has ended.
    pub(super) fn update_chunk<'a>(&self, work: &'a Workspace<'_>) -> UpdateChunk<'a> {
        let width = self.invitation.width();
        let count = pack::capacity(width, UPDATE_CHUNK_BYTES);
        let part = |vector: &'a [f32]| {
            let vector = patterns(vector);
            let start = vector.len().min(usize::from(self.chunk) * count);
            let rest = vector.get(start..).unwrap_or_default();
            rest.get(..count).unwrap_or(rest)
        };
        UpdateChunk {
            index: self.chunk,
            negated: self.negated,
            packed: Packed::Halves {
                low: part(work.update),
                high: part(work.local),
                width,
            },
        }
    }
}

impl<M, F, R> Conversation<'_, M, F, R>
where
    M: Model,
    F: NorFlash,
    R: Rng,
{
    /// Trains, and puts the update where it is sent from.
    pub(super) fn prepare<S: Samples<Target = M::Target>>(
        &mut self,
        samples: &S,
    ) -> Result<(), Decline> {
        let round = self.round.as_ref().ok_or(Decline::RoundUsed)?;
        let (number, has_noise) = (round.number, round.invitation.noise.is_some());
        // A device without data that it can use loses no participation. With noise of its own it does
        // not tell that it has none.
        let is_usable = !samples.is_empty() && samples.len() <= self.memory.work.order.len();
        if !is_usable && !has_noise {
            return Err(Decline::NoSamples);
        }
        self.ledger
            .begin(number, self.policy.budget)
            .map_err(declined)?;
        let trained = self.trained(samples);
        // Whether there are samples and whether training diverges depends on the data, and a coordinator
        // could choose a model for which it tells something about them. Noise of the device's own hides
        // that as well: an update of zeros.
        if trained.is_none() && !has_noise {
            return Err(Decline::Diverged);
        }
        self.finish(trained);
        Ok(())
    }

    /// Trains and clips; how to quantise the update, if there is one.
    ///
    /// Its stack is gone when the noise is drawn.
    #[inline(never)]
    fn trained<S: Samples<Target = M::Target>>(&mut self, samples: &S) -> Option<Quantizer> {
        let Memory { global, work } = &mut self.memory;
        let round = self.round.as_ref()?;
        let Workspace {
            local,
            update,
            order,
            scratch,
        } = work;
        local_update(
            &self.model,
            samples,
            global,
            &round.invitation.training(),
            &mut self.identity.stream(Purpose::BatchShuffle, round.number),
            Workspace {
                local,
                update,
                order,
                scratch,
            },
        )
        .ok()?;
        round.invitation.grid.quantizer(update).ok()
    }

    /// Quantises the update, or zeros without one, and adds the device's noise: here and nowhere else. What
    /// is to be sent takes the place of the update, of which nothing is left.
    #[inline(never)]
    fn finish(&mut self, quantizer: Option<Quantizer>) {
        let Workspace { update, local, .. } = &mut self.memory.work;
        let Some(round) = self.round.as_mut() else {
            return;
        };
        let Invitation { grid, noise, .. } = &round.invitation;
        let integer = |x| quantizer.map_or(0, |quantizer| quantizer.get(x));
        // +2^b is the one value that has no place in b + 1 bits; the others are then 0.
        let largest = 1 << grid.bits();
        round.negated = noise.is_none() && update.iter().any(|x| integer(*x) == largest);
        round.chunk = 0;
        let mut noise = noise.as_ref().map(|noise| {
            (
                noise,
                self.identity.stream(Purpose::DeviceNoise, round.number),
            )
        });
        for (low, high) in patterns_mut(update).iter_mut().zip(patterns_mut(local)) {
            let mut value = i64::from(integer(f32::from_bits(*low)));
            if let Some((noise, stream)) = &mut noise {
                value = value.wrapping_add(noise.sample(stream));
            } else if round.negated {
                value = -value;
            }
            // Two halves, in the places of two parameters that training needs no more.
            (*low, *high) = (value as u32, (value >> 32) as u32);
        }
    }
}

/// The memory of numbers as that of integers.
fn patterns(numbers: &[f32]) -> &[u32] {
    bytemuck::try_cast_slice(numbers).unwrap_or_default()
}

/// [`patterns`] to write to.
fn patterns_mut(numbers: &mut [f32]) -> &mut [u32] {
    bytemuck::try_cast_slice_mut(numbers).unwrap_or_default()
}
