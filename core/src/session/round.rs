//! A round from the model to the update: train, clip, quantise, add the device's noise, pack.

use embedded_storage::nor_flash::NorFlash;
use rand_core::Rng;

use super::conversation::{Conversation, declined};
use crate::{
    model::Model,
    quantize::Quantizer,
    samples::Samples,
    session::{Identity, Memory},
    stream::{Purpose, Stream, StreamId},
    train::{Workspace, local_update},
    wire::{
        message::{Decline, Invitation, UPDATE_CHUNK_BYTES},
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
}

/// An update on its way.
pub(super) struct Outgoing {
    quantizer: Quantizer,
    pub(super) negated: bool,
    noise: Option<Stream>,
}

/// The chunk of an update that is on its way.
pub(super) struct Packed {
    bytes: [u8; UPDATE_CHUNK_BYTES],
    length: usize,
}

impl Packed {
    pub(super) const fn empty() -> Self {
        Self {
            bytes: [0; UPDATE_CHUNK_BYTES],
            length: 0,
        }
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

impl<M, F, R> Conversation<'_, M, F, R>
where
    M: Model,
    F: NorFlash,
    R: Rng,
{
    /// Trains, and puts the update where it is sent from.
    #[inline(never)]
    pub(super) fn prepare<S: Samples<Target = M::Target>>(
        &mut self,
        samples: &S,
    ) -> Result<(), Decline> {
        let Memory { global, work } = &mut self.memory;
        let round = self.round.as_mut().ok_or(Decline::RoundUsed)?;
        // A device without data that it can use loses no participation. With noise of its own it does
        // not tell that it has none.
        let is_usable = !samples.is_empty() && samples.len() <= work.order.len();
        if !is_usable && round.invitation.noise.is_none() {
            return Err(Decline::NoSamples);
        }
        self.ledger
            .begin(round.number, self.policy.budget)
            .map_err(declined)?;
        let Identity { device, root, .. } = &self.identity;
        let stream = |purpose| {
            root.stream(StreamId {
                purpose,
                round: round.number,
                device: *device,
            })
        };
        let Invitation { grid, noise, .. } = &round.invitation;
        let Workspace {
            local,
            update,
            order,
            scratch,
        } = work;
        let trained = local_update(
            &self.model,
            samples,
            global,
            &round.invitation.training(),
            &mut stream(Purpose::BatchShuffle),
            Workspace {
                local,
                update,
                order,
                scratch,
            },
        );
        let quantizer = trained.ok().and_then(|_| grid.quantizer(update).ok());
        let quantizer = match (quantizer, noise) {
            (Some(quantizer), _) => quantizer,
            // Whether there are samples and whether training diverges depends on the data, and a
            // coordinator could choose a model for which it tells something about them. Noise of the
            // device's own hides that as well.
            (None, Some(_)) => {
                update.fill(0.0);
                grid.quantizer(update).map_err(|_| Decline::Diverged)?
            }
            (None, None) => return Err(Decline::Diverged),
        };
        // +2^b is the one value that has no place in b + 1 bits; the others are then 0.
        let largest = 1 << grid.bits();
        let negated = noise.is_none() && update.iter().any(|x| quantizer.get(*x) == largest);
        let noise = noise.map(|_| stream(Purpose::DeviceNoise));
        self.update = Some(Outgoing {
            quantizer,
            negated,
            noise,
        });
        round.chunk = 0;
        Ok(())
    }

    /// Packs the current chunk, with noise of its own that is drawn here and nowhere else.
    pub(super) fn pack(&mut self) {
        let (Some(round), Some(outgoing)) = (&self.round, &mut self.update) else {
            return;
        };
        let width = round.invitation.width();
        let count = pack::capacity(width, UPDATE_CHUNK_BYTES);
        let start = usize::from(round.chunk) * count;
        let values = self
            .memory
            .work
            .update
            .iter()
            .skip(start)
            .take(count)
            .map(|x| {
                let value = i64::from(outgoing.quantizer.get(*x));
                match (&round.invitation.noise, &mut outgoing.noise) {
                    (Some(noise), Some(stream)) => value.wrapping_add(noise.sample(stream)),
                    _ if outgoing.negated => -value,
                    _ => value,
                }
            });
        let Packed { bytes, length } = &mut self.packed;
        *length = pack::pack(values, width, bytes).unwrap_or(0);
    }
}
