//! Tests of the whole path: nothing bypasses a check, and every injected fault has an effect.

use std::collections::HashMap;

use proptest::{collection::vec, prelude::*};
use smolfed_accounting::{NoiseMultiplier, TrustModel};
use smolfed_core::noise::DiscreteGaussian;
use smolfed_core::params::ClipNorm;
use smolfed_core::quantize::Grid;
use smolfed_core::stream::Root;
use smolfed_core::train::TrainReport;

use super::split::Split;
use super::sum::ReleaseAt;
use super::*;
use crate::communicator::threads;

const LENGTH: usize = 6;
const CLIP_NORM: f32 = 0.5;

fn grid() -> Grid {
    Grid::new(ClipNorm::new(CLIP_NORM).unwrap(), 20).unwrap()
}

/// Noise of 2²⁰ steps.
fn mechanism(trust: TrustModel) -> Mechanism {
    Mechanism::for_test(trust, DiscreteGaussian::new(1 << 20, 1).ok())
}

/// No noise on sums of the server.
fn no_noise() -> Mechanism {
    Mechanism::for_test(TrustModel::Central, None)
}

/// Clipped updates with noise of 2²⁰ steps, added by the server.
fn central() -> ReleaseSettings {
    ReleaseSettings {
        channel: Channel::Updates,
        encoding: Encoding::Clipped(grid()),
        weight_cap: None,
        mechanism: mechanism(TrustModel::Central),
        masking: None,
        timing: Timing::EachRound,
        noise_std: f64::from(CLIP_NORM),
        is_simulation: true,
        fault: Fault::None,
    }
}

fn at(number: u32) -> ReleaseAt {
    ReleaseAt {
        number,
        learning_rate: 0.1,
        cohort_size: 1,
    }
}

/// Returns the contribution of a device with this update to the sum.
fn upload_of(release: &ReleaseSettings, device: u32, update: &[f32]) -> Vec<i64> {
    let root = Root::from_seed(5);
    let mut uploads = Uploads::new(release, &root, 3, update.len());
    uploads.device(device, 1, |contribution| {
        contribution.update().copy_from_slice(update);
        Ok(TrainReport::default())
    });
    uploads.into_sum().integers().to_vec()
}

/// Returns the contribution of one device with this update to the sum. The path clips it on
/// request.
fn upload(
    release: &ReleaseSettings,
    update: &[f32],
    samples: usize,
    clips: bool,
) -> (Vec<i64>, Outcome) {
    let root = Root::from_seed(5);
    let mut uploads = Uploads::new(release, &root, 3, update.len());
    let outcome = uploads.device(7, samples, |contribution| {
        contribution.update().copy_from_slice(update);
        let mut report = TrainReport::default();
        if clips {
            contribution.clip(&mut report).map_err(|e| e.to_string())?;
        }
        Ok(report)
    });
    (uploads.into_sum().integers().to_vec(), outcome)
}

fn squares(integers: &[i64]) -> u128 {
    integers
        .iter()
        .map(|q| u128::from(q.unsigned_abs()).pow(2))
        .sum()
}

fn released(release: &ReleaseSettings, number: u32) -> Vec<f32> {
    let root = Root::from_seed(5);
    let sum = PrivateSum::zero(LENGTH);
    sum.release(release, &root, &at(number)).over(1.0)
}

proptest! {
    /// For any contribution of a method, clipped or not, finite or not, the integers in the sum
    /// satisfy `Σq² ≤ 4^b`.
    #[test]
    fn no_contribution_exceeds_the_bound(
        update in vec(prop_oneof![any::<f32>(), -1f32..1.0], LENGTH),
        samples in 0usize..100,
        cap in prop::option::of(1u32..50),
        clips in any::<bool>(),
    ) {
        let release = ReleaseSettings { weight_cap: cap, mechanism: no_noise(), ..central() };
        let (sum, outcome) = upload(&release, &update, samples, clips);
        prop_assert!(squares(&sum) <= u128::from(grid().bound()), "{outcome:?}");
        if !outcome.is_trained() {
            prop_assert!(sum.iter().all(|q| *q == 0));
        }
    }
}

#[test]
fn an_update_beyond_the_ball_is_left_out_unless_it_is_clipped() {
    let long = [CLIP_NORM; LENGTH];
    let release = central();
    // Inside the cube but outside the ball: the integers are scaled back to the bound.
    assert!(squares(&upload(&release, &long, 1, false).0) <= u128::from(grid().bound()));
    let longer = [3.0 * CLIP_NORM; LENGTH];
    let (sum, outcome) = upload(&release, &longer, 1, false);
    assert!(!outcome.is_trained() && sum.iter().all(|q| *q == 0));
    let (sum, outcome) = upload(&release, &longer, 1, true);
    assert!(outcome.is_trained());
    let norm = (squares(&sum) as f64).sqrt() * grid().step();
    assert!((norm / f64::from(CLIP_NORM) - 1.0).abs() < 1e-4, "{norm}");
    // The injected fault lets it through.
    let faulty = ReleaseSettings {
        fault: Fault::ClipSkipped.placed(1, &[LENGTH]),
        ..release
    };
    let (sum, _) = upload(&faulty, &longer, 1, true);
    assert!(squares(&sum) > u128::from(grid().bound()));
}

#[test]
fn nothing_of_a_device_that_may_not_take_part_enters_the_sum() {
    let (admitted, root) = (Admitted::Only(vec![7]), Root::from_seed(5));
    let release = central();
    let mut uploads = Uploads::new(&release, &root, 3, LENGTH).admitting(&admitted);
    let mut send = |device| {
        uploads.device(device, 1, |contribution| {
            contribution.update().fill(0.1);
            Ok(TrainReport::default())
        })
    };
    assert!(send(7).is_trained());
    assert!(matches!(send(8), Outcome::LeftOut { reason } if reason.contains("too recently")));
    let mut sum = uploads.into_sum();
    assert_eq!(sum.integers(), upload(&release, &[0.1; LENGTH], 1, false).0);
    let received = ReceivedUpdate::from(vec![5; LENGTH]);
    let before = sum.integers().to_vec();
    sum.add_received(8, &received, &admitted);
    assert_eq!(sum.integers(), before);
    sum.add_received(7, &received, &admitted);
    assert_ne!(sum.integers(), before);
}

#[test]
fn the_server_adds_its_noise_once_and_anew_in_each_round() {
    let release = central();
    let first = released(&release, 0);
    assert_eq!(first, released(&release, 0));
    assert_ne!(first, released(&release, 1));
    assert!(first.iter().any(|x| *x != 0.0));
    let reused = ReleaseSettings {
        fault: Fault::NoiseStreamReused,
        ..release.clone()
    };
    assert_eq!(released(&reused, 1), released(&release, 0));
    // Under local trust the noise is already in the uploads, and comes from each device.
    let local = ReleaseSettings {
        mechanism: Mechanism::for_test(TrustModel::Local, release.mechanism.sampler),
        ..release.clone()
    };
    assert_eq!(released(&local, 0), [0.0; LENGTH]);
    let (with_noise, _) = upload(&local, &[0.0; LENGTH], 1, false);
    assert!(with_noise.iter().any(|q| *q != 0));
    let (without, _) = upload(&release, &[0.0; LENGTH], 1, false);
    assert_eq!(without, [0; LENGTH]);
}

/// 4,000 draws of std 2²⁰ steps: the relative error of their std has a std of 1.1 %. An error
/// above six of these has a probability below 2e-9.
#[test]
fn a_release_has_the_noise_that_it_says() {
    let release = central();
    let root = Root::from_seed(8);
    let length = 4_000;
    let released = PrivateSum::zero(length).release(&release, &root, &at(0));
    let squares = released.over(1.0).into_iter().map(|x| f64::from(x).powi(2));
    let found = (squares.sum::<f64>() / length as f64).sqrt();
    let said = released.noise_std();
    assert!((found / said - 1.0).abs() < 0.067, "{found} {said}");
}

/// Returns the noise of a release of this length, in grid steps.
fn noise_of(trust: TrustModel, device: u32, length: usize) -> Vec<i64> {
    let release = ReleaseSettings {
        mechanism: mechanism(trust),
        ..central()
    };
    if trust == TrustModel::Local {
        return upload_of(&release, device, &vec![0.0; length]);
    }
    let released = PrivateSum::zero(length).release(&release, &Root::from_seed(5), &at(3));
    let steps = released.over(grid().step());
    steps.into_iter().map(|steps| steps as i64).collect()
}

/// Four successive values, at any two places of the noise of a model of 70,000 parameters. Noise
/// of 2²⁰ steps has no value with a probability above 4e-7, so that two such tuples are equal with
/// a probability below 3e-26: among all 2.5e9 pairs, below 1e-16. Overlapping tuples are no more
/// likely to be equal.
#[test]
fn no_block_of_noise_is_repeated_in_a_model_of_70000_parameters() {
    for trust in [TrustModel::Central, TrustModel::Local] {
        let noise = noise_of(trust, 7, 70_000);
        let mut places = HashMap::new();
        for (place, values) in noise.windows(4).enumerate() {
            let before = places.insert(values, place);
            assert_eq!(before, None, "{trust}: {place}");
        }
    }
}

/// Compares the first six values of 1,000 devices, at any distance between them.
#[test]
fn no_two_of_1000_devices_have_equal_noise() {
    let mut devices = HashMap::new();
    for device in 0..1_000 {
        let noise = noise_of(TrustModel::Local, device, LENGTH);
        for values in noise.windows(4) {
            let before = devices.insert(values.to_vec(), device);
            assert_eq!(before, None, "{device}");
        }
    }
}

#[test]
fn what_is_private_prints_no_values_and_is_shown_without_noise_in_simulations_only() {
    let release = central();
    let sum = PrivateSum::zero(3);
    assert_eq!(format!("{sum:?}"), "PrivateSum of 3 integers");
    assert!(sum.simulated(&release, &at(0)).is_some());
    let fleet = ReleaseSettings {
        is_simulation: false,
        ..release.clone()
    };
    let local = ReleaseSettings {
        mechanism: Mechanism::for_test(TrustModel::Local, release.mechanism.sampler),
        ..release.clone()
    };
    assert!(sum.simulated(&fleet, &at(0)).is_none());
    assert!(sum.simulated(&local, &at(0)).is_none());
}

/// Returns the contribution of one device to the sum of the bits.
fn bit_sent(release: &ReleaseSettings, device: u32, norm: Option<f32>) -> i64 {
    let root = Root::from_seed(5);
    let mut uploads = Uploads::new(release, &root, 3, LENGTH);
    let _ = uploads.device(device, 1, |contribution| {
        contribution.update().fill(0.0);
        let norm = norm.ok_or("it cannot train")?;
        Ok(TrainReport {
            norm,
            ..TrainReport::default()
        })
    });
    uploads.into_sum().bits()
}

#[test]
fn a_bit_is_a_half_up_to_the_clip_norm_and_minus_a_half_beyond_it() {
    let release = with_bit(TrustModel::Central, None);
    let half = 1 << 20;
    for (norm, expected) in [
        (Some(0.0), half),
        (Some(CLIP_NORM), half),
        (Some(CLIP_NORM.next_up()), -half),
        (Some(f32::NAN), -half),
        (Some(f32::INFINITY), -half),
        (None, 0),
    ] {
        assert_eq!(bit_sent(&release, 7, norm), expected, "{norm:?}");
    }
    // Without an adaptive clip norm nothing is sent and nothing is released.
    assert_eq!(bit_sent(&central(), 7, Some(0.0)), 0);
    let released = PrivateSum::zero(1).release(&central(), &Root::from_seed(5), &at(0));
    assert_eq!(released.unclipped_excess(), None);
}

/// Returns a release with a bit alongside the update.
fn with_bit(trust: TrustModel, noise: Option<DiscreteGaussian>) -> ReleaseSettings {
    let split = Split::new(NoiseMultiplier::new(1.0).unwrap(), 1.5).unwrap();
    let bit = ClipBit::new(&grid(), noise.map(|noise| (noise, split)));
    ReleaseSettings {
        mechanism: Mechanism {
            bit: Some(bit),
            ..mechanism(trust)
        },
        ..central()
    }
}

/// Returns the mean squares and the mean product of two samples.
fn moments(a: &[f64], b: &[f64]) -> [f64; 3] {
    let mean =
        |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>() / x.len() as f64;
    [mean(a, a), mean(b, b), mean(a, b)]
}

/// 4,000 draws in units of the claimed std: a mean square has a std of 0.022, a mean product one of
/// 0.016. Six of them are exceeded with a probability below 2e-9 each.
#[track_caller]
fn are_two_noises(a: &[f64], b: &[f64]) {
    let [first, second, product] = moments(a, b);
    assert!((first - 1.0).abs() < 0.134, "{first}");
    assert!((second - 1.0).abs() < 0.134, "{second}");
    assert!(product.abs() < 0.095, "{product}");
}

#[test]
fn the_bit_has_noise_of_its_own_under_either_trust_model() {
    let noise = DiscreteGaussian::new(3 << 20, 1).unwrap();
    let release = with_bit(TrustModel::Central, Some(noise));
    // σ_b is half of the noise multiplier, 3: the bit's clip norm is a half.
    let (update_std, bit_std) = (f64::from(CLIP_NORM), 1.5);
    let root = Root::from_seed(6);
    let draw = |number| {
        let released = PrivateSum::zero(1).release(&release, &root, &at(number));
        let update = f64::from(released.over(1.0)[0]) / update_std;
        (update, released.unclipped_excess().unwrap() / bit_std)
    };
    let (updates, bits): (Vec<f64>, Vec<f64>) = (0..4_000).map(draw).unzip();
    are_two_noises(&updates, &bits);
    // A device adds noise with or without a bit, and the server adds none.
    let local = with_bit(TrustModel::Local, Some(noise));
    let released = PrivateSum::zero(1).release(&local, &root, &at(0));
    assert_eq!(released.unclipped_excess(), Some(0.0));
    let half = (1 << 20) as f64;
    let alone = |device| bit_sent(&local, device, None) as f64 / (2.0 * half * bit_std);
    let beside = |device| bit_sent(&local, device, Some(1.0)) as f64 + half;
    let alone: Vec<f64> = (0..4_000).map(alone).collect();
    let beside: Vec<f64> = (4_000..8_000)
        .map(|device| beside(device) / (2.0 * half * bit_std))
        .collect();
    are_two_noises(&alone, &beside);
    // Both parts of one sender are visible together, so their noises must be independent.
    let nothing = [0.0; 1];
    let update = |device| upload_of(&local, device, &nothing)[0] as f64 / half;
    let updates: Vec<f64> = (0..4_000).map(update).collect();
    are_two_noises(&updates, &alone);
}

#[test]
fn what_devices_sent_is_in_the_sum_with_its_bits() {
    let mut sum = PrivateSum::zero(2);
    let received = [(vec![5, -7], 64), (vec![1, 1], -64), (vec![0, 2], 64)];
    for (device, (integers, bit)) in (0..).zip(received) {
        let update = ReceivedUpdate::from(integers).with_bit(bit);
        sum.add_received(device, &update, &Admitted::All);
    }
    assert_eq!((sum.integers(), sum.bits()), (&[6, -4][..], 64));
}

#[test]
fn sums_of_parts_are_added_or_put_side_by_side_with_their_bits() {
    let part = |integers: [i64; 2], bit| {
        let mut sum = PrivateSum::zero(2);
        let update = ReceivedUpdate::from(integers.to_vec()).with_bit(bit);
        sum.add_received(0, &update, &Admitted::All);
        sum
    };
    let (first, second) = (part([5, -7], 64), part([1, 3], -32));
    let mut total = part([0, 0], 0);
    total.absorb(&first);
    total.absorb(&second);
    assert_eq!((total.integers(), total.bits()), (&[6, -4][..], 32));
    let mut all = PrivateSum::zero(0);
    all.append(&first);
    all.append(&second);
    assert_eq!((all.integers(), all.bits()), (&[5, -7, 1, 3][..], 32));
}

/// A device's own noise does not depend on its update, which is added unchanged.
#[test]
fn an_update_is_in_the_sum_with_its_sign_beside_the_noise_of_its_device() {
    let local = ReleaseSettings {
        mechanism: mechanism(TrustModel::Local),
        ..central()
    };
    let update = [0.25, -0.125, 0.0, 0.0, 0.0, 0.0];
    let noise = upload_of(&local, 7, &[0.0; LENGTH]);
    let sent = upload_of(&local, 7, &update);
    let found: Vec<i64> = sent.iter().zip(&noise).map(|(y, z)| y - z).collect();
    assert_eq!(found, [1 << 19, -(1 << 18), 0, 0, 0, 0]);
}

/// In steps of 2^-30, up to 8192 in magnitude.
#[test]
fn updates_without_a_bound_are_added_up_unless_they_are_too_large() {
    let release = ReleaseSettings {
        encoding: Encoding::Unbounded,
        mechanism: no_noise(),
        ..central()
    };
    let root = Root::from_seed(5);
    let mut uploads = Uploads::new(&release, &root, 3, 2);
    let mut send = |update: [f32; 2]| {
        let outcome = uploads.device(7, 1, |contribution| {
            contribution.update().copy_from_slice(&update);
            Ok(TrainReport::default())
        });
        outcome.is_trained()
    };
    assert!(send([0.5, -8192.0]) && send([0.25, 0.125]));
    assert!(!send([8192.0_f32.next_up(), 0.0]) && !send([f32::NAN, 0.0]));
    let expected = [3 << 28, (1 << 27) - (8192 << 30)];
    assert_eq!(uploads.into_sum().integers(), expected);
}

/// Ranks exchange training reports bit for bit.
#[test]
fn a_report_of_training_travels_with_all_of_its_numbers() {
    let report = TrainReport {
        steps: 1,
        clipped_steps: 2,
        clipping_chances: 3,
        first_loss: f32::INFINITY,
        last_loss: 0.25,
        norm: -0.0,
        saturated: 4,
    };
    let text = serde_json::to_string(&Outcome::Trained(report)).unwrap();
    let Outcome::Trained(read) = serde_json::from_str(&text).unwrap() else {
        panic!("{text}");
    };
    assert_eq!(read, report);
    assert!(read.norm.is_sign_negative());
}

/// Returns the outcome and the sum of a device that releases these gradients in a round whose plan
/// accounts for two.
fn released_in_steps(gradients: &[[f32; 2]]) -> (Outcome, Vec<i64>) {
    let release = ReleaseSettings {
        timing: Timing::EachStep(2),
        mechanism: no_noise(),
        ..central()
    };
    let root = Root::from_seed(5);
    let mut uploads = Uploads::new(&release, &root, 3, 2);
    let outcome = uploads.device(7, 1, |contribution| {
        let steps = contribution.steps().ok_or("no steps")?;
        for gradient in gradients {
            let released = steps.release(&mut gradient.clone());
            released.map_err(|error| error.to_string())?;
        }
        Ok(TrainReport::default())
    });
    (outcome, uploads.into_sum().integers().to_vec())
}

/// The model moves against the gradients that local steps release.
#[test]
fn what_local_steps_release_is_subtracted() {
    let (outcome, sum) = released_in_steps(&[[0.25, 0.0], [0.125, -0.25]]);
    assert!(outcome.is_trained(), "{outcome:?}");
    // In steps of 2^-21.
    assert_eq!(sum, [-(3 << 18), 1 << 19]);
}

#[test]
fn a_device_with_more_releases_than_accounted_is_left_out() {
    let (outcome, sum) = released_in_steps(&[[0.25, 0.0], [0.125, -0.25], [0.0, 0.25]]);
    let expected = "3 releases, of which 2 are accounted for";
    assert!(
        matches!(&outcome, Outcome::LeftOut { reason, .. } if reason == expected),
        "{outcome:?}"
    );
    assert_eq!(sum, [0, 0]);
}

#[test]
fn only_rank_0_has_the_sum_of_all_ranks() {
    let found = threads::run(3, |ranks| {
        let mut sum = PrivateSum::zero(2);
        let update = ReceivedUpdate::from(vec![5, -7]).with_bit(64);
        sum.add_received(0, &update, &Admitted::All);
        sum.reduce(ranks);
        (sum.integers().to_vec(), sum.bits())
    });
    let nothing = (vec![0, 0], 0);
    assert_eq!(found, [(vec![15, -21], 192), nothing.clone(), nothing]);
}

/// A mean is in units of the parameters, and the estimate of a sum replaces the integers that it
/// was estimated from.
#[test]
fn what_is_read_of_a_sum_is_in_units_of_the_parameters() {
    let step = grid().step();
    let mut sum = PrivateSum::zero(3);
    let received = ReceivedUpdate::from(vec![1 << 20, -(1 << 18), 3]);
    assert_eq!(received.length(), 3);
    sum.add_received(0, &received, &Admitted::All);
    let simulated = sum.simulated(&central(), &at(0)).unwrap();
    assert_eq!(simulated.length(), 3);
    let expected = [0.125, -0.03125, (0.75 * step) as f32];
    assert_eq!(simulated.over(4.0), expected);
    let quiet = ReleaseSettings {
        mechanism: no_noise(),
        ..central()
    };
    let at = ReleaseAt {
        cohort_size: 7,
        ..at(0)
    };
    let released = sum.release(&quiet, &Root::from_seed(5), &at);
    assert_eq!(released.over(4.0), expected);
    assert_eq!((released.length(), released.cohort_size()), (3, 7));
    assert_eq!(released.integer_count(), 3);
    let less = released.clone().less(&[1, -2, 5]);
    assert_eq!(less.integers(), [(1 << 20) - 1, 2 - (1 << 18), -2]);
    let estimated = released.estimated(vec![6.0, -1.0], 2.0);
    assert_eq!(estimated.integer_count(), 3);
    assert_eq!(estimated.over(4.0), [1.5, -0.25]);
    assert_eq!((estimated.length(), estimated.noise_std()), (2, 1.0));
}
