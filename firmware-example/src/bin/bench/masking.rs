//! Instructions for the masks of updates: the cost of one helper in a round.

use core::hint::black_box;

use smolfed_core::{
    mask::{MaskRoot, Masking},
    params::ClipNorm,
    quantize::Grid,
    stream::Root,
};

use super::counting::{PARAMETERS, count, print};

/// Measures the cost of one helper in a round: the masks of all entries, and the tag.
pub fn measure(global: &[f32]) -> Option<()> {
    let root = MaskRoot::new(&Root::from_seed(1), 0);
    let (round, ledger) = (0, [7; 8]);
    let terms = Masking::new(1, 19)?.terms(&Grid::new(ClipNorm::new(0.3).ok()?, 8).ok()?);
    // 650 entries in the memory of 65.
    let (mut low, mut high) = ([1; PARAMETERS / 10], [0; PARAMETERS / 10]);
    let instructions = count(|| {
        let key = root.helper(0).round(round, &ledger);
        let mut masks = key.masks(terms.width.into());
        for _ in 0..10 {
            masks.add_to(black_box(&mut low), black_box(&mut high));
        }
    });
    print("mask-650", instructions);
    // As many bytes as an invitation to train a model that is not a network.
    let invitation = [0x5a; 70];
    let instructions = count(|| {
        let key = root.helper(0).round(round, &ledger);
        black_box(key.tag(&terms, black_box(&invitation), black_box(global)));
    });
    print("mask-tag", instructions);
    Some(())
}
