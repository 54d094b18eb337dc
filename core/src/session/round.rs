//! A round from the model to the update: train, clip, quantise, add the device's noise, pack. Each
//! step runs in pieces, between which the firmware can do other work.

use super::{
    device::Device,
    masks::{DeviceMasks, Tagged},
    trainable::Trainable,
};
use crate::{
    mask::Tag,
    release::patterns,
    train::{Kept, TrainReport, Workspace},
    wire::message::{Invitation, Packed, UpdateChunk, UpdatePart},
};

mod covering;
mod held;
mod own_noise;
mod sent_bit;
pub(super) mod stage;
mod training;

#[cfg(feature = "sleep")]
pub(super) use covering::ENTRIES_OF_A_SAMPLE;
pub(super) use held::{DETAILS, held_values};
pub(super) use stage::Stage;
pub(super) use training::Asked;

use sent_bit::SentBit;

/// A round that the device takes part in.
#[derive(Clone, Copy)]
pub(super) struct Round<D> {
    pub(super) number: u32,
    pub(super) invitation: Invitation,
    /// The part that tags cover. Encoding it again would take more flash than this takes RAM.
    pub(super) tagged: Tagged,
    /// Checksum of the invitation as received.
    checksum: u32,
    pub(super) stage: Stage<D>,
    /// The next expected chunk of the model, or the current chunk of the update.
    pub(super) chunk: u16,
    /// The first chunk of the update that may not have arrived.
    pub(super) first: u16,
    /// End of the requested chunks of the model, or of the update's chunks before an answer.
    pub(super) end: u16,
    /// The number of the model that the device had before this round's, as long as differences to
    /// it are possible.
    #[cfg(feature = "short")]
    pub(super) base: Option<u32>,
    /// See [`UpdateChunk::negated`](crate::wire::message::UpdateChunk::negated).
    pub(super) negated: bool,
    /// The bit of adaptive clipping to send.
    bit: SentBit,
    /// Whether training cannot use the samples.
    is_unusable: bool,
    /// The training report, once training has ended.
    report: Kept<TrainReport>,
}

impl<D> Round<D> {
    /// Creates a round that waits for its model, with the checksum of its invitation.
    pub(super) const fn new(
        number: u32,
        invitation: Invitation,
        tagged: Tagged,
        checksum: u32,
    ) -> Self {
        Self {
            number,
            invitation,
            tagged,
            checksum,
            stage: Stage::Invited,
            chunk: 0,
            first: 0,
            end: 0,
            #[cfg(feature = "short")]
            base: None,
            negated: false,
            bit: SentBit::ZERO,
            is_unusable: false,
            report: Kept::NONE,
        }
    }

    /// Whether the update is ready to be sent.
    pub(super) const fn is_covered(&self) -> bool {
        matches!(self.stage, Stage::Covered)
    }

    /// Whether an invitation in another session is to this round and its update is ready, so that
    /// the same integers are sent again.
    pub(super) const fn resumes(&self, number: u32, checksum: u32) -> bool {
        self.is_covered() && self.number == number && self.checksum == checksum
    }

    /// Continues at this chunk, with up to `window` chunks before the next answer.
    pub(super) fn goes_on_at(&mut self, chunk: u16, window: u8, chunks: usize) {
        // A model or an update has fewer chunks than a u16 can count.
        let chunks = u16::try_from(chunks).unwrap_or(u16::MAX);
        self.first = chunk;
        self.chunk = chunk;
        self.end = chunk.saturating_add(window.into()).min(chunks);
    }

    /// Returns the current chunk of the update, once training has ended.
    pub(super) fn update_chunk<'a, M: Trainable<Descent = D>, F, K, V>(
        &'a self,
        device: &'a Device<'_, M, F, K, V>,
    ) -> UpdateChunk<'a> {
        let packed = match self.invitation.part_of::<true>(self.chunk.into()) {
            Some(UpdatePart::Entries(range)) => {
                let Workspace { update, local, .. } = &device.memory.work;
                let part =
                    |vector: &'a [f32]| patterns(vector.get(range.clone()).unwrap_or_default());
                Packed::Halves {
                    low: part(update),
                    high: part(local),
                    width: self.invitation.width_of::<true>(),
                }
            }
            Some(UpdatePart::Tag(helper)) if DeviceMasks::HAS_MASKS => {
                Packed::Tag(self.tag(device, helper))
            }
            // Without masks the device declined any round that asks for tags.
            Some(UpdatePart::Tag(_)) => Packed::Bytes(&[]),
            Some(UpdatePart::Bit) | None => {
                let (low, high) = self.bit.halves();
                let width = self.invitation.bit_width_of::<true>().unwrap_or(0);
                Packed::Halves { low, high, width }
            }
        };
        UpdateChunk {
            index: self.chunk,
            negated: self.negated,
            more: self.chunk.saturating_add(1) < self.end,
            packed,
        }
    }

    /// Returns the tag of a masked update for a helper.
    #[inline(never)]
    fn tag<M: Trainable, F, K, V>(&self, device: &Device<'_, M, F, K, V>, helper: u8) -> Tag {
        let Invitation {
            grid, masks, shape, ..
        } = &self.invitation;
        let (Some(masks), Some(model)) = (masks, device.memory.global.get(..shape.parameters()))
        else {
            return Tag::default();
        };
        let (round, terms) = (self.number, masks.terms(grid));
        (device.masks).tag(round, helper, &terms, &self.tagged, model)
    }
}
