//! A round from the model to the update: train, clip, quantise, add the device's noise, pack.

use embedded_storage::nor_flash::NorFlash;

use super::device::{Device, Memory};
use crate::{
    model::Model,
    quantize::Quantizer,
    samples::Samples,
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
    /// The chunk of the model that is awaited, or of the update that is being sent.
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

    /// Trains, and puts the update where it is sent from.
    pub(super) fn prepare<M, F, S>(
        &mut self,
        device: &mut Device<'_, M, F>,
        samples: &S,
    ) -> Result<(), Decline>
    where
        M: Model,
        F: NorFlash,
        S: Samples<Target = M::Target>,
    {
        let has_noise = self.invitation.noise.is_some();
        // A device without usable data loses no participation. One that adds its own noise does
        // not reveal that it has no data.
        let is_usable = !samples.is_empty() && samples.len() <= device.memory.work.order.len();
        if !is_usable && !has_noise {
            return Err(Decline::NoSamples);
        }
        device.begin(self.number)?;
        let trained = self.trained(device, samples);
        // Whether there are samples and whether training diverges depends on the data, and a
        // coordinator could choose a model for which it reveals something about them. The device's
        // own noise hides that as well: an update of zeros.
        if trained.is_none() && !has_noise {
            return Err(Decline::Diverged);
        }
        self.finish(device, trained);
        Ok(())
    }

    /// Trains and clips; how to quantise the update, if there is one.
    ///
    /// Its stack is gone when the noise is drawn.
    #[inline(never)]
    fn trained<M, F, S>(&self, device: &mut Device<'_, M, F>, samples: &S) -> Option<Quantizer>
    where
        M: Model,
        S: Samples<Target = M::Target>,
    {
        let Memory { global, work } = &mut device.memory;
        let Workspace {
            local,
            update,
            order,
            scratch,
        } = work;
        local_update(
            &device.model,
            samples,
            global,
            &self.invitation.training(),
            &mut device.identity.stream(Purpose::BatchShuffle, self.number),
            Workspace {
                local,
                update,
                order,
                scratch,
            },
        )
        .ok()?;
        self.invitation.grid.quantizer(update).ok()
    }

    /// Quantises the update, or zeros without one, and adds the device's noise: here and nowhere
    /// else. What is to be sent takes the place of the update, of which nothing is left.
    #[inline(never)]
    fn finish<M, F>(&mut self, device: &mut Device<'_, M, F>, quantizer: Option<Quantizer>) {
        let Workspace { update, local, .. } = &mut device.memory.work;
        let Invitation { grid, noise, .. } = &self.invitation;
        let integer = |x| quantizer.map_or(0, |quantizer| quantizer.get(x));
        // +2^b is the one value that has no place in b + 1 bits; the others are then 0.
        let largest = 1 << grid.bits();
        self.negated = noise.is_none() && update.iter().any(|x| integer(*x) == largest);
        self.chunk = 0;
        let mut noise = noise.as_ref().map(|noise| {
            let stream = device.identity.stream(Purpose::DeviceNoise, self.number);
            (noise, stream)
        });
        for (low, high) in patterns_mut(update).iter_mut().zip(patterns_mut(local)) {
            let mut value = i64::from(integer(f32::from_bits(*low)));
            if let Some((noise, stream)) = &mut noise {
                value = value.wrapping_add(noise.sample(stream));
            } else if self.negated {
                value = -value;
            }
            // Two halves, in the places of two parameters that training no longer needs.
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
