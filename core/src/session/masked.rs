//! Masks on the entries of an update, and the tags after it, in a round with helpers.
//!
//! Both derive from the keys of the device, the round and the ledger, so nothing is stored, and a
//! repeated chunk has the same bytes. The ledger admits one update per round, and a new ledger has
//! other masks ([`mask`](crate::mask)).

use crate::{
    identity::{Identity, LedgerNonce},
    mask::{MaskRoot, Masking, RoundKey, Tag, Terms},
    secrets::Secrets,
    wire::{
        keys::{Fingerprint, ledger_fingerprint},
        message::{Invitation, InvitationBytes, PackedInvitation},
    },
};

/// The masks and tags of a device with this ledger.
pub(super) struct DeviceMasks {
    root: MaskRoot,
    ledger: Fingerprint,
}

/// The part of a round's invitation that the tags cover.
pub(super) type Tagged = PackedInvitation;

/// Returns the [`Tagged`] part of this invitation.
pub(super) fn tagged(invitation: InvitationBytes<'_>) -> Tagged {
    PackedInvitation::from(invitation).tagged()
}

/// Returns an invitation without a request, which the tags cover completely.
pub(super) fn tagged_whole(invitation: InvitationBytes<'_>) -> Tagged {
    invitation.into()
}

impl DeviceMasks {
    /// Whether updates may have masks and tags.
    pub(super) const HAS_MASKS: bool = true;

    /// Whether a device that requires `helpers` helpers may mask for this invitation.
    pub(super) const fn are_for(invitation: &Invitation, helpers: u8) -> bool {
        invitation.helpers() == helpers
    }

    /// Derives the masks from the provisioned root: helpers know nothing of ledgers.
    #[inline(never)]
    pub(super) fn new<S: Secrets>(
        identity: &mut Identity<S>,
        ledger: &LedgerNonce,
    ) -> Result<Self, S::Fault> {
        Ok(Self {
            root: identity.root.masks(identity.device)?,
            ledger: ledger_fingerprint(ledger),
        })
    }

    #[inline(never)]
    fn key(&self, helper: u8, round: u32) -> RoundKey {
        self.root.helper(helper).round(round, &self.ledger)
    }

    /// Adds the masks of a helper to integers in two halves, modulo 2⁶⁴. Their lowest bits are
    /// sent.
    #[inline(never)]
    pub(super) fn add(
        &self,
        round: u32,
        helper: u8,
        masking: Masking,
        low: &mut [u32],
        high: &mut [u32],
    ) {
        let mut masks = self.key(helper, round).masks(masking.width().into());
        masks.add_to(low, high);
    }

    /// Returns the tag for a helper over the terms, the invitation and the model.
    #[inline(never)]
    pub(super) fn tag(
        &self,
        round: u32,
        helper: u8,
        terms: &Terms,
        invitation: &Tagged,
        model: &[f32],
    ) -> Tag {
        let key = self.key(helper, round);
        key.tag(terms, invitation.bytes().as_slice(), model)
    }
}
