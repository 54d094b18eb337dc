//! The bound at the limits of the arithmetic: for any clip norm, learning rate and bits requested
//! by a coordinator, the update of a device satisfies `Σq² ≤ 4^b`, or nothing is sent.

use core::num::NonZeroU32;
use std::{vec, vec::Vec};

use proptest::{collection::vec, prelude::*};

use super::*;
use crate::{
    model::Linear,
    params::LearningRate,
    samples::SampleSlice,
    stream::{Purpose, Root, StreamId},
    train::{LocalTraining, Workspace, local_update},
};

/// The parameters of a linear model of 65,000 features.
const LONG: usize = 65_001;

/// Returns Σq² of the update, or the reason why nothing is sent. Both ways to the integers agree.
fn squares_sent(grid: &Grid, update: &[f32]) -> Result<u128, QuantizeError> {
    let mut integers = vec![7; update.len()];
    let written = grid.quantize_into(update, &mut integers);
    let quantizer = grid.quantizer(update);
    assert_eq!(written.err(), quantizer.err());
    let square = |q: i32| u128::from(q.unsigned_abs()).pow(2);
    let sum = integers.iter().copied().map(square).sum();
    match quantizer {
        Ok(quantizer) => {
            let entries = update.iter().map(|x| quantizer.get(*x));
            assert!(entries.eq(integers));
            Ok(sum)
        }
        Err(error) => {
            let is_kept = integers.iter().all(|q| *q == 7);
            assert!(sum == 0 || is_kept, "part of a refused update is left");
            Err(error)
        }
    }
}

/// Returns the update of a device for a linear model, one sample and one step, before its entries
/// become integers. `None` if training diverged.
fn trained(features: &[f32], target: f32, rate: f32, clip_norm: f32) -> Option<Vec<f32>> {
    let model = Linear::new(features.len());
    let global = vec![0.0; features.len() + 1];
    let (mut local, mut update) = (global.clone(), global.clone());
    let id = StreamId {
        purpose: Purpose::BatchShuffle,
        round: 0,
        device: 0,
    };
    let settings = LocalTraining::new(
        LearningRate::new(rate).ok()?,
        ClipNorm::new(clip_norm).ok()?,
    )
    .with_batch_size(NonZeroU32::MIN);
    let work = Workspace {
        local: &mut local,
        update: &mut update,
        order: &mut [0],
        scratch: &mut [0.0],
    };
    let targets = [target];
    let samples = SampleSlice::new(features, &targets, features.len()).ok()?;
    let rng = &mut Root::from_seed(1).stream(id);
    local_update(&model, &samples, &global, &settings, rng, work).ok()?;
    Some(update)
}

/// A tiny clip norm whose squares underflow, many parameters, and the learning rate that makes each
/// entry twice the clip norm: the norm was computed as 0 and nothing was clipped, then the sum of
/// squares saturated, and the update was not shrunk enough.
#[test]
fn lying_coordinator_tiny_clip_norm() {
    let (clip_norm, rate) = (1e-25, 4e-25);
    let grid = Grid::new(ClipNorm::new(clip_norm).unwrap(), 24).unwrap();
    let update = trained(&[1.0; LONG - 1], 0.5, rate, clip_norm).unwrap();
    let sent = squares_sent(&grid, &update);
    let bound = u128::from(grid.bound());
    assert!(
        sent.is_ok_and(|squares| 0 < squares && squares <= bound),
        "{sent:?}"
    );
    // Without clipping, nothing would be sent.
    let unclipped = [2.0 * clip_norm; LONG];
    assert_eq!(
        squares_sent(&grid, &unclipped),
        Err(QuantizeError::NotClipped)
    );
    // The longest vector with squares in 64 bits, and one entry more.
    let fits = [2.0 * clip_norm; (1 << 14) - 1];
    assert!(squares_sent(&grid, &fits).is_ok_and(|squares| squares <= bound));
    let wide = [2.0 * clip_norm; 1 << 14];
    assert_eq!(squares_sent(&grid, &wide), Err(QuantizeError::NotClipped));
}

/// Any positive number, or one of common size.
fn positive() -> impl Strategy<Value = f32> {
    let any = (1_u32..f32::INFINITY.to_bits()).prop_map(f32::from_bits);
    prop_oneof![any, 1e-3f32..1e3]
}

/// Entries of any size, including NaN and infinities, or comparable with the clip norm.
fn entries(clip_norm: f32) -> impl Strategy<Value = Vec<f32>> {
    let near = (-2.1f32..2.1).prop_map(move |x| x * clip_norm);
    let wild = vec(prop_oneof![8 => any::<f32>(), 1 => Just(f32::NAN)], 1..20);
    prop_oneof![4 => vec(near, 1..20), 1 => wild]
}

fn length() -> impl Strategy<Value = usize> {
    prop_oneof![6 => 1_usize..300, 1 => 8_000_usize..17_000, 1 => Just(LONG)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// For any vector, clipped or not.
    #[test]
    fn no_update_is_sent_beyond_the_bound(
        (clip_norm, entries) in positive()
            .prop_map(|l| l.max(f32::MIN_POSITIVE))
            .prop_flat_map(|l| (Just(l), entries(l))),
        length in length(), bits in 4_u32..=24,
    ) {
        let grid = Grid::new(ClipNorm::new(clip_norm).unwrap(), bits).unwrap();
        let update: Vec<f32> = entries.iter().copied().cycle().take(length).collect();
        if let Ok(squares) = squares_sent(&grid, &update) {
            prop_assert!(squares <= u128::from(grid.bound()), "{:?}", grid);
        }
    }

    /// For results of training with any clip norm, learning rate and data.
    #[test]
    fn no_training_gets_beyond_the_bound(
        clip_norm in positive().prop_map(|l| l.max(f32::MIN_POSITIVE)),
        rate in positive(), ratio in 0.1f32..8.0, is_matched in any::<bool>(),
        features in vec(prop_oneof![Just(1f32), -2f32..2.0, any::<f32>()], 1..8),
        target in prop_oneof![-1f32..1.0, any::<f32>()],
        length in length(), bits in 4_u32..=24,
    ) {
        // Half of the learning rates give entries comparable with the clip norm.
        let rate = if is_matched { clip_norm * ratio } else { rate };
        let features: Vec<f32> = features.iter().copied().cycle().take(length).collect();
        let grid = Grid::new(ClipNorm::new(clip_norm).unwrap(), bits).unwrap();
        if let Some(update) = trained(&features, target, rate, clip_norm)
            && let Ok(squares) = squares_sent(&grid, &update)
        {
            prop_assert!(squares <= u128::from(grid.bound()), "{:?} rate {}", grid, rate);
        }
    }
}
