//! What a round with helpers adds to an update: masks on its entries, and the tags behind them.
//!
//! Both follow from the keys of the device, the round and the ledger, so that nothing of them is
//! kept: a chunk that is repeated has the same bytes. The ledger admits one update in a round, and
//! a ledger that is new has other masks ([`mask`](crate::mask)).

use crate::{
    identity::{Identity, LedgerNonce},
    mask::{MaskRoot, Masking, RoundKey, Tag, Terms},
    secrets::Secrets,
    wire::{
        keys::{Fingerprint, ledger_fingerprint},
        message::{Invitation, InvitationBytes, PackedInvitation},
    },
};

/// The masks and tags of a device, with this ledger.
pub(super) struct DeviceMasks {
    root: MaskRoot,
    ledger: Fingerprint,
}

/// What the tags of a round cover of its invitation.
pub(super) type Tagged = PackedInvitation;

/// [`Tagged`] of this invitation.
pub(super) fn tagged(invitation: InvitationBytes<'_>) -> Tagged {
    PackedInvitation::from(invitation).tagged()
}

/// The same of an invitation without a request, all of which is tagged.
pub(super) fn tagged_whole(invitation: InvitationBytes<'_>) -> Tagged {
    invitation.into()
}

impl DeviceMasks {
    /// Whether updates may have masks, and tags.
    pub(super) const HAS_MASKS: bool = true;

    /// Whether a device that insists on so many helpers may mask for this invitation.
    pub(super) const fn are_for(invitation: &Invitation, helpers: u8) -> bool {
        invitation.helpers() == helpers
    }

    /// Those of a device as it was provisioned: its helpers know nothing of ledgers.
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

    /// Adds the masks of a helper to integers in two halves, modulo 2⁶⁴: what is sent are their
    /// lowest bits.
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

    /// The tag for a helper of what the device was asked for.
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
