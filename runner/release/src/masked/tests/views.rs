//! The views of the parties. The coordinator's view is uniform without an answer. With it, the view
//! is the noisy sum and nothing else.

use super::*;

/// Returns the χ² of counts against the uniform distribution.
fn chi_square(counts: &[u32]) -> f64 {
    let total: u32 = counts.iter().sum();
    let expected = f64::from(total) / counts.len() as f64;
    let term = |count: &u32| (f64::from(*count) - expected).powi(2) / expected;
    counts.iter().map(term).sum()
}

/// Tests every bit of the coordinator's view without an answer: the masked update of a device, and
/// the masked sum of several. Of w = 14 bits, both pieces of five are uniform: with 31 degrees of
/// freedom, the statistic is beyond 96 with probability 1e-8. Single bits have 1 degree, and are
/// beyond 33 with probability 1e-8. In total (2 + 14) · 2 comparisons: false alarm below 4e-7.
#[test]
fn the_view_of_the_coordinator_without_an_answer_is_uniform() {
    let setting = Setting::new(1, None);
    let width = u32::from(setting.release.masking.unwrap().ring.width());
    assert_eq!(width, 14);
    for devices in [&[5][..], &[0, 3, 5, 7]] {
        let mut pieces = vec![[0_u32; 32]; (width / 5) as usize];
        let mut bits = vec![[0_u32; 2]; width as usize];
        for round in 0..600 {
            let (sum, _) = setting.sum(round, devices);
            for x in sum.integers() {
                for (i, counts) in (0..).zip(&mut pieces) {
                    counts[((x >> (5 * i)) & 31) as usize] += 1;
                }
                for (i, counts) in (0..).zip(&mut bits) {
                    counts[((x >> i) & 1) as usize] += 1;
                }
            }
        }
        for counts in &pieces {
            assert!(chi_square(counts) < 96.0, "{counts:?}");
        }
        for counts in &bits {
            assert!(chi_square(counts) < 33.0, "{counts:?}");
        }
    }
}

/// The only relation between the coordinator's view and the updates is its sum minus the answer.
/// For any other updates with the same sum there are masks that give the same view, so no function
/// of the view reveals more.
#[test]
fn with_an_answer_the_view_is_the_noisy_sum() {
    let setting = Setting::new(1, None);
    let ring = setting.release.masking.unwrap().ring;
    let (mut sum, asked) = setting.sum(3, &[1, 4]);
    let round = MaskedRound {
        number: 3,
        terms: setting.release.masking.unwrap().terms(),
        asked,
        entries: LENGTH as u32,
        attendees: std::mem::take(sum.attendees_mut()),
        earlier: Vec::new(),
    };
    let masked: Vec<Vec<i64>> = [1, 4]
        .map(|device| setting.sum(3, &[device]).0.integers().to_vec())
        .to_vec();
    let answers = setting.helpers().unmask(&round).unwrap();
    let (one, other) = (integers(1, 3), integers(4, 3));
    // The masks of both devices, and the masks they would have if the updates were exchanged.
    let masks = |of: [&[i64]; 2]| -> Vec<Vec<i64>> {
        let pairs = masked.iter().zip(of);
        let mask = |(y, q): (&Vec<i64>, &[i64])| {
            y.iter().zip(q).map(|(y, q)| ring.reduce(y - q)).collect()
        };
        pairs.map(mask).collect()
    };
    let (found, swapped) = (masks([&one, &other]), masks([&other, &one]));
    assert_ne!(found, swapped);
    let sums = |masks: &[Vec<i64>]| -> Vec<i64> {
        let sum = plus(&masks[0], &masks[1]);
        sum.into_iter().map(|x| ring.reduce(x)).collect()
    };
    assert_eq!(sums(&found), sums(&swapped), "the answer fits to both");
    let left = plus(&masked[0], &masked[1]);
    let left = left
        .iter()
        .zip(&answers[0].integers)
        .map(|(y, m)| ring.centre(y - m));
    let root = helper_root(&root(), 0);
    let mut noise = vec![0; LENGTH];
    let sampler = setting.release.mechanism.sampler.unwrap();
    add_noise(&mut noise, &sampler, &root, Purpose::HelperNoise, 3);
    assert_eq!(left.collect::<Vec<_>>(), plus(&exact(3, &[1, 4]), &noise));
}

/// Masks of two rounds and of two devices are unrelated, and so are the noises of two parties.
#[test]
fn nothing_is_used_twice() {
    let setting = Setting::new(2, None);
    let mask = |round, device| {
        let (sum, _) = setting.sum(round, &[device]);
        let ring = setting.release.masking.unwrap().ring;
        let q = integers(device, round);
        let mask = sum
            .integers()
            .iter()
            .zip(q)
            .map(|(y, q)| ring.reduce(y - q));
        mask.collect::<Vec<_>>()
    };
    let masks = [mask(0, 1), mask(1, 1), mask(0, 2), mask(1, 2)];
    let noises = [0, 1].map(|helper| {
        let mut noise = vec![0; LENGTH];
        let sampler = setting.release.mechanism.sampler.unwrap();
        let root = helper_root(&root(), helper);
        add_noise(&mut noise, &sampler, &root, Purpose::HelperNoise, 0);
        noise
    });
    let all: BTreeSet<&Vec<i64>> = masks.iter().chain(&noises).collect();
    assert_eq!(all.len(), 6);
    let reused = Setting {
        release: ReleaseSettings {
            fault: Fault::MaskReused,
            ..setting.release
        },
        ..setting
    };
    let ring = reused.release.masking.unwrap().ring;
    let of = |round| reused.sum(round, &[1]).0.integers().to_vec();
    let (first, second) = (of(0), of(1));
    let difference = first.iter().zip(&second).map(|(a, b)| ring.centre(a - b));
    let expected = integers(1, 0)
        .into_iter()
        .zip(integers(1, 1))
        .map(|(a, b)| a - b);
    assert_eq!(difference.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
}

/// With injected faults each party's view reveals an update.
#[test]
fn faults_of_helpers_show_updates() {
    let faulty = |fault| {
        let mut setting = Setting::new(1, None);
        setting.release.fault = fault;
        setting
    };
    // Without the helper's noise, the coordinator subtracts its own and gets the exact sum.
    let silent = faulty(Fault::NoHelperNoise);
    let released = silent
        .release((&mut silent.history(), &mut silent.helpers()), 3, &[1, 4])
        .unwrap();
    let mut own = vec![0; LENGTH];
    let sampler = silent.release.mechanism.sampler.unwrap();
    add_noise(&mut own, &sampler, &root(), Purpose::ServerNoise, 3);
    assert_eq!(released.integers(), plus(&exact(3, &[1, 4]), &own));
    // Two answers for lists that differ by one device reveal its mask, and thereby its update.
    let answer = |helpers: &mut LocalHelpers, setting: &Setting, devices: &[u32]| {
        let (mut sum, asked) = setting.sum(3, devices);
        let round = MaskedRound {
            number: 3,
            terms: setting.release.masking.unwrap().terms(),
            asked,
            entries: LENGTH as u32,
            attendees: std::mem::take(sum.attendees_mut()),
            earlier: Vec::new(),
        };
        helpers.unmask(&round)
    };
    let generous = faulty(Fault::OneAnswerTooMany);
    let mut helpers = generous.helpers();
    let both = answer(&mut helpers, &generous, &[1, 4]).unwrap();
    let one = answer(&mut helpers, &generous, &[1]).unwrap();
    let ring = generous.release.masking.unwrap().ring;
    let masked = generous.sum(3, &[4]).0;
    let masks = both[0]
        .integers
        .iter()
        .zip(&one[0].integers)
        .map(|(a, b)| a - b);
    let update = masked
        .integers()
        .iter()
        .zip(masks)
        .map(|(y, u)| ring.centre(y - u));
    assert_eq!(update.collect::<Vec<_>>(), integers(4, 3));
    let honest = Setting::new(1, None);
    let mut helpers = honest.helpers();
    answer(&mut helpers, &honest, &[1, 4]).unwrap();
    let error = answer(&mut helpers, &honest, &[1]).unwrap_err();
    assert!(error.to_string().contains("answered already"), "{error}");
}
