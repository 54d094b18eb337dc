//! What a round with helpers adds to an update: masks on its entries, and the tags behind them.
//!
//! Both follow from the keys of the device, the round and the ledger, so that nothing of them is
//! kept: a chunk that is repeated has the same bytes. The ledger admits one update in a round, and
//! a ledger that is new has other masks ([`mask`](crate::mask)).

use super::round::{halves, whole};
use crate::{
    ledger::LedgerNonce,
    mask::{MaskRoot, Masking, RoundKey, Tag},
    wire::{keys::ledger_fingerprint, message::Invitation},
};

/// The keys of a round: those of the device, its ledger, and the round's number.
#[derive(Clone, Copy)]
pub(super) struct MaskKeys<'a> {
    pub(super) root: &'a MaskRoot,
    pub(super) ledger: &'a LedgerNonce,
    pub(super) round: u32,
}

impl MaskKeys<'_> {
    fn of(&self, helper: u8) -> RoundKey {
        let ledger = ledger_fingerprint(self.ledger);
        self.root.helper(helper).round(self.round, &ledger)
    }

    /// Adds the masks of all helpers to integers in two halves, modulo 2⁶⁴: what is sent are their
    /// lowest bits.
    #[inline(never)]
    pub(super) fn add(&self, masking: Masking, low: &mut [u32], high: &mut [u32]) {
        for helper in 0..masking.helpers() {
            let mut masks = self.of(helper).masks(masking.width().into());
            for (low, high) in low.iter_mut().zip(high.iter_mut()) {
                // Below 2^57.
                let mask = masks.next_mask() as i64;
                (*low, *high) = halves(whole(*low, *high).wrapping_add(mask));
            }
        }
    }

    /// The tag for a helper of what the device was asked for.
    #[inline(never)]
    pub(super) fn tag(&self, helper: u8, invitation: &Invitation, model: &[f32]) -> Tag {
        let Some(masking) = invitation.masks else {
            return Tag::default();
        };
        let terms = masking.terms(&invitation.grid);
        self.of(helper)
            .tag(&terms, invitation.tagged().as_slice(), model)
    }
}
