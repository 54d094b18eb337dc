//! The replacement of `masked.rs` without the feature `masks`: a device that has no code for masks
//! and declines every round that asks for them.

use crate::{
    identity::{Identity, LedgerNonce},
    mask::{Masking, Tag, Terms},
    secrets::Secrets,
    wire::message::{Invitation, InvitationBytes},
};

/// No masks.
pub(super) struct DeviceMasks;

/// Nothing, as no round has tags.
#[derive(Clone, Copy)]
pub(super) struct Tagged;

pub(super) const fn tagged(_: InvitationBytes<'_>) -> Tagged {
    Tagged
}

pub(super) const fn tagged_whole(_: InvitationBytes<'_>) -> Tagged {
    Tagged
}

impl DeviceMasks {
    pub(super) const HAS_MASKS: bool = false;

    /// A device that requires helpers takes part in no round.
    pub(super) const fn are_for(invitation: &Invitation, helpers: u8) -> bool {
        invitation.helpers() == 0 && helpers == 0
    }

    pub(super) const fn new<S: Secrets>(
        _: &mut Identity<S>,
        _: &LedgerNonce,
    ) -> Result<Self, S::Fault> {
        Ok(Self)
    }

    /// Never called, because the invitation is declined. If it were, no update would leave without
    /// a mask.
    pub(super) fn add(&self, _: u32, _: u8, _: Masking, low: &mut [u32], high: &mut [u32]) {
        low.fill(0);
        high.fill(0);
    }

    /// Never called.
    pub(super) const fn tag(&self, _: u32, _: u8, _: &Terms, _: &Tagged, _: &[f32]) -> Tag {
        [0; 16]
    }
}
