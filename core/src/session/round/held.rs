//! The flash format of a covered update: its integers in two halves, and the details of its round.
//!
//! | offset | bytes | details |
//! | --- | --- | --- |
//! | 0 | 1 | bytes of the invitation |
//! | 1 | 1 | 1 if the update is to be negated, else 0 |
//! | 2 | 8 | the bit of an adaptive clip norm with its noise, in two halves, or 0 without one |
//! | 10 | | the invitation, and zeros behind it |

use super::{Round, SentBit, Stage};
use crate::{
    bytes::{Reader, Writer},
    ledger::LedgerNonce,
    personal::store::{StateId, StateKind, flash::held::values_of},
    session::{device::Device, masks, trainable::Trainable},
    train::Workspace,
    wire::message::{InvitationBytes, MAX_INVITATION_BYTES, PackedInvitation},
};

/// Bytes before the invitation.
const INVITATION: usize = 10;

/// Bytes of the details.
pub(in super::super) const DETAILS: usize = INVITATION + MAX_INVITATION_BYTES;

/// Number of values in a state that holds an update of `entries` entries.
pub(in super::super) const fn held_values(entries: usize) -> usize {
    let half = entries * size_of::<f32>();
    values_of([DETAILS, half, half])
}

impl<D> Round<D> {
    /// Returns the flash identity of the update if it may be held: it is covered and has no masks.
    /// The tags of a masked update need the model, which is not held.
    pub(in super::super) fn held_id(&self, owner: &LedgerNonce) -> Option<StateId> {
        let may_be_held = self.is_covered() && self.invitation.masks.is_none();
        may_be_held.then_some(StateId {
            kind: StateKind::Held(self.checksum),
            owner: *owner,
            round: self.number,
        })
    }

    /// Returns the details of the round.
    pub(in super::super) fn details(&self) -> [u8; DETAILS] {
        let packed = PackedInvitation::from(&self.invitation);
        let invitation = packed.bytes().as_slice();
        let half = |half: &[u32]| half.first().copied().unwrap_or(0);
        let (low, high) = self.bit.halves();
        let mut details = [0; DETAILS];
        Writer::new(&mut details)
            // At most 255.
            .u8(invitation.len() as u8)
            .u8(u8::from(self.negated))
            .u32(half(low))
            .u32(half(high))
            .put(invitation);
        details
    }

    /// Restores the round of a covered update. `None` if the details are invalid.
    pub(in super::super) fn from_details(id: &StateId, details: &[u8; DETAILS]) -> Option<Self> {
        let StateKind::Held(checksum) = id.kind else {
            return None;
        };
        let reader = &mut Reader(details);
        let (length, negated) = (reader.u8()?, reader.u8()?);
        let (low, high) = (reader.u32()?, reader.u32()?);
        let packed = InvitationBytes::held(reader.rest().get(..length.into())?);
        let invitation = packed.unpack()?;
        let tagged = masks::tagged_whole(packed);
        Some(Self {
            stage: Stage::Covered,
            negated: negated != 0,
            bit: SentBit::of_halves(low, high),
            ..Self::new(id.round, invitation, tagged, checksum)
        })
    }

    /// Returns the halves of the update in memory. `None` if the device has no room for them.
    pub(in super::super) fn halves<'d, M: Trainable, F, K, V>(
        &self,
        device: &'d Device<'_, M, F, K, V>,
    ) -> Option<[&'d [u8]; 2]> {
        let length = self.invitation.update_length();
        let Workspace { update, local, .. } = &device.memory.work;
        let (low, high) = (update.get(..length)?, local.get(..length)?);
        Some([low, high].map(bytemuck::cast_slice))
    }

    /// [`Self::halves`], mutable for reading them back.
    pub(in super::super) fn halves_mut<'d, M: Trainable, F, K, V>(
        &self,
        device: &'d mut Device<'_, M, F, K, V>,
    ) -> Option<[&'d mut [u8]; 2]> {
        let length = self.invitation.update_length();
        let Workspace { update, local, .. } = &mut device.memory.work;
        let (low, high) = (update.get_mut(..length)?, local.get_mut(..length)?);
        Some([low, high].map(bytemuck::cast_slice_mut))
    }
}
