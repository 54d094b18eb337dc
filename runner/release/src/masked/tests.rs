//! Properties of masked sums: the releases, the view of each party, and the refusals of a helper.

mod refusals;
mod views;

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::{collection::vec, prelude::*};
use smolfed_accounting::correlated::{Family, Participation, Strategy};
use smolfed_accounting::{NoiseMultiplier, Parties, TrustModel};
use smolfed_core::noise::DiscreteGaussian;
use smolfed_core::params::ClipNorm;
use smolfed_core::quantize::Grid;
use smolfed_core::stream::{Purpose, Root};
use smolfed_core::train::TrainReport;

use super::device::helper_root;
use super::*;
use crate::masking::{Crowd, Masking, Ring};
use crate::mechanism::{add_noise, sampler_of_std};
use crate::sum::ReleaseAt;
use crate::{
    Admitted, Channel, Encoding, Fault, History, Mechanism, PrivateSum, ReceivedUpdate,
    ReleaseSettings, Released, Timing, Uploads, publish,
};

const SEED: u64 = 11;
const BITS: u32 = 8;
const CLIP_NORM: f32 = 0.5;
const DEVICES: u32 = 12;
const LENGTH: usize = 24;

fn root() -> Root {
    Root::from_seed(SEED)
}

/// A run with masks: noise of one clip norm at each party.
struct Setting {
    release: ReleaseSettings,
    policy: HelperPolicy,
    strategy: Option<Arc<Strategy>>,
}

impl Setting {
    fn new(helpers: u8, strategy: Option<Strategy>) -> Self {
        let combination = Combination::from_strategy(strategy.as_ref()).unwrap();
        let sensitivity = strategy.as_ref().map_or(1.0, Strategy::sensitivity);
        let fineness = combination.fineness() as f64;
        let (noise, _) = sampler_of_std(sensitivity * 256.0 * fineness).unwrap();
        let largest = (u128::from(DEVICES) * u128::from(combination.weight())) << BITS;
        let all = sensitivity * 256.0 * fineness * f64::from(helpers + 1).sqrt();
        let allowed = strategy.as_ref().map(|strategy| strategy.participation());
        let release = ReleaseSettings {
            channel: Channel::Updates,
            encoding: Encoding::Clipped(grid()),
            weight_cap: None,
            mechanism: Mechanism::for_test(
                TrustModel::Distributed(Parties::new(helpers, helpers).unwrap()),
                Some(noise),
            ),
            masking: Some(Masking {
                helpers,
                grid_bits: BITS as u8,
                ring: Ring::holding(largest, all.ceil() as u64).unwrap(),
                max_devices: DEVICES,
                largest_norm: largest as u64,
            }),
            timing: Timing::EachRound,
            noise_std: sensitivity * f64::from(CLIP_NORM),
            is_simulation: true,
            fault: Fault::None,
        };
        Self {
            release,
            policy: HelperPolicy {
                helpers,
                noise_multiplier: sensitivity,
                min_cohort: 0,
                max_rounds: 100,
                participations: allowed.map_or(100, |allowed| allowed.participations()),
                separation: allowed.map_or(1, |allowed| allowed.separation()),
                coefficients: combination.coefficients().to_vec(),
            },
            strategy: strategy.map(Arc::new),
        }
    }

    fn helpers(&self) -> LocalHelpers {
        LocalHelpers::new(&self.policy, DEVICES, &root(), self.release.fault)
    }

    fn history(&self) -> History {
        let ring = self.release.masking.map(|masking| masking.ring);
        History::new(self.strategy.as_ref(), BITS, LENGTH).of_masked(ring)
    }

    /// Returns the masked sum of these devices, each with its own update.
    fn sum(&self, round: u32, devices: &[u32]) -> (PrivateSum, Asked) {
        let asked = asked(round);
        let root = root();
        let masks = DeviceMasks::for_round(&self.release, &root, round, &asked);
        let mut uploads = Uploads::new(&self.release, &root, round, LENGTH).masking(masks);
        for device in devices {
            uploads.device(*device, 1, |contribution| {
                contribution
                    .update()
                    .copy_from_slice(&update(*device, round));
                Ok(TrainReport::default())
            });
        }
        (uploads.into_sum(), asked)
    }

    fn release(
        &self,
        (history, helpers): (&mut History, &mut LocalHelpers),
        round: u32,
        devices: &[u32],
    ) -> Result<Released, HelperError> {
        let (sum, asked) = self.sum(round, devices);
        let helpers = Some(helpers as &mut dyn Helpers);
        publish(
            sum,
            Some(asked),
            history,
            helpers,
            &self.release,
            &root(),
            &at(round),
        )
    }

    /// Returns the noise of all parties in a round.
    fn noise(&self, round: u32) -> Vec<i64> {
        let sampler = self.release.mechanism.sampler.unwrap();
        let mut noise = vec![0; LENGTH];
        add_noise(&mut noise, &sampler, &root(), Purpose::ServerNoise, round);
        for helper in 0..self.policy.helpers {
            let root = helper_root(&root(), helper);
            add_noise(&mut noise, &sampler, &root, Purpose::HelperNoise, round);
        }
        noise
    }
}

fn grid() -> Grid {
    Grid::new(ClipNorm::new(CLIP_NORM).unwrap(), BITS).unwrap()
}

fn at(number: u32) -> ReleaseAt {
    ReleaseAt {
        number,
        learning_rate: 0.1,
        cohort_size: DEVICES as usize,
    }
}

fn asked(round: u32) -> Asked {
    Asked {
        invitation: round.to_le_bytes().to_vec(),
        model: vec![0.25; 5],
    }
}

/// Returns an update inside the ball, different for each device and round.
fn update(device: u32, round: u32) -> Vec<f32> {
    let entry = |i: usize| ((i as u32 * 7 + device * 13 + round * 5) % 11) as f32 - 5.0;
    (0..LENGTH).map(|i| entry(i) * 0.015).collect()
}

/// Returns the integers of an update.
fn integers(device: u32, round: u32) -> Vec<i64> {
    let mut integers = vec![0; LENGTH];
    grid()
        .quantize_into(&update(device, round), &mut integers)
        .unwrap();
    integers.into_iter().map(i64::from).collect()
}

fn exact(round: u32, devices: &[u32]) -> Vec<i64> {
    let mut sum = vec![0; LENGTH];
    for device in devices {
        let of_device = integers(*device, round);
        sum.iter_mut().zip(of_device).for_each(|(sum, q)| *sum += q);
    }
    sum
}

fn plus(a: &[i64], b: &[i64]) -> Vec<i64> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

fn correlated() -> Strategy {
    let participation = Participation::new(12, 3, 4).unwrap();
    Strategy::plan(Family::BandedOptimalMean, participation).unwrap()
}

fn devices(present: &[bool]) -> Vec<u32> {
    (0..)
        .zip(present)
        .filter(|(_, is)| **is)
        .map(|(device, _)| device)
        .collect()
}

proptest! {
    /// If any devices drop out, the release is the exact sum of the others with the noise of all
    /// parties, bit for bit: the release of a trusted server with the same noise.
    #[test]
    fn the_release_is_that_of_a_trusted_server(
        present in vec(any::<bool>(), DEVICES as usize), round in 0u32..90, count in 1u8..=3,
    ) {
        let setting = Setting::new(count, None);
        let present = devices(&present);
        let (mut history, mut helpers) = (setting.history(), setting.helpers());
        let released = setting.release((&mut history, &mut helpers), round, &present).unwrap();
        let expected = plus(&exact(round, &present), &setting.noise(round));
        prop_assert_eq!(released.integers(), expected);
        // A coalition knows half of the variance or less.
        let std = f64::from(CLIP_NORM) * f64::from(count + 1).sqrt();
        prop_assert!((released.noise_std() / std - 1.0).abs() < 1e-12);
    }

    /// Rounds of correlated noise have the same property, with combinations of exact sums. This
    /// also holds if both sides restart in some round.
    #[test]
    fn correlated_noise_is_that_of_a_trusted_server(
        parts in vec(vec(any::<bool>(), 4), 12), anew in 1u32..12,
    ) {
        let setting = Setting::new(1, Some(correlated()));
        let (mut history, mut helpers) = (setting.history(), setting.helpers());
        let mut trusted = History::new(setting.strategy.as_ref(), BITS, LENGTH);
        for (round, present) in (0..).zip(&parts) {
            // The devices whose turn it is in this round.
            let devices: Vec<u32> = devices(present).iter().map(|i| 3 * i + round % 3).collect();
            if round == anew {
                history.restart();
                trusted.restart();
            }
            let released = setting.release((&mut history, &mut helpers), round, &devices).unwrap();
            let mut sum = PrivateSum::zero(LENGTH);
            let entries = exact(round, &devices);
            sum.integers_mut().copy_from_slice(&entries);
            let expected = trusted.combine(sum);
            prop_assert_eq!(released.integers(), plus(expected.integers(), &setting.noise(round)));
        }
    }
}

/// If the histories of both sides differ, the helper refuses, and both restart. Columns of C only
/// lose entries, so no device moves the releases further than the sensitivity allows.
#[test]
fn a_history_that_does_not_match_begins_anew_and_keeps_the_bound() {
    let strategy = correlated();
    let setting = Setting::new(1, Some(strategy.clone()));
    let (mut history, mut helpers) = (setting.history(), setting.helpers());
    let mut factors = Vec::new();
    let round = |round: u32, history: &mut History, helpers: &mut LocalHelpers| {
        let devices = [round % 3];
        let released = setting.release((history, helpers), round, &devices);
        released.map(|released| released.integers().to_vec())
    };
    for number in 0..2 {
        round(number, &mut history, &mut helpers).unwrap();
    }
    // The helper restarts: its sums are lost, its record is not.
    helpers = setting.helpers();
    let error = round(2, &mut history, &mut helpers).unwrap_err();
    let HelperError::Refused { helper: 0, refusal } = error else {
        panic!("{error}");
    };
    assert!(refusal.needs_new_history());
    history.restart();
    for number in 3..8 {
        let released = round(number, &mut history, &mut helpers).unwrap();
        let noise = setting.noise(number);
        let clean: Vec<i64> = released.iter().zip(&noise).map(|(y, z)| y - z).collect();
        factors.push(clean);
    }
    // Round 3 is combined with nothing, rounds 4 and later with rounds from 3 on.
    let m = setting.policy.coefficients.clone();
    for (i, clean) in factors.iter().enumerate() {
        let mut expected = vec![0; LENGTH];
        for (j, m) in m.iter().enumerate().take(i + 1) {
            let sum = exact(3 + (i - j) as u32, &[(3 + (i - j) as u32) % 3]);
            expected.iter_mut().zip(sum).for_each(|(y, x)| *y += m * x);
        }
        assert_eq!(clean, &expected, "{i}");
    }
    // (Σ m²) k is the square of the bound. Each column has a part of these coefficients.
    let squares: i64 = m.iter().map(|m| m * m).sum();
    let bound = strategy.sensitivity() * 256.0;
    assert!((squares as f64 * 4.0).sqrt() <= bound * (1.0 + 1e-9));
}

/// Answers of a helper that do not belong to the sum leave uniform integers, which are too long for
/// any sum: with 24 entries all 200 of them are found, and none of 200 honest rounds is.
#[test]
fn an_answer_that_does_not_belong_to_the_sum_is_noticed() {
    struct Liar(Root);
    impl Helpers for Liar {
        fn unmask(&mut self, round: &MaskedRound) -> Result<Vec<HelperAnswer>, HelperError> {
            let root = MaskRootOf(&self.0).key(round.number);
            let mut masks = root.masks(u32::from(round.terms.width));
            let integers = (0..round.entries).map(|_| masks.next_mask().cast_signed());
            let (round, integers) = (round.number, integers.collect());
            Ok(vec![HelperAnswer { round, integers }])
        }
    }
    let setting = Setting::new(1, None);
    let everybody: Vec<u32> = (0..DEVICES).collect();
    let mut helpers = LocalHelpers::new(
        &HelperPolicy {
            max_rounds: 1_000,
            participations: 1_000,
            ..setting.policy.clone()
        },
        DEVICES,
        &root(),
        Fault::None,
    );
    for round in 0..200 {
        let (sum, asked) = setting.sum(round, &everybody);
        let mut liar = Liar(root());
        let lying = Some(&mut liar as &mut dyn Helpers);
        let error = publish(
            sum,
            Some(asked),
            &mut setting.history(),
            lying,
            &setting.release,
            &root(),
            &at(round),
        )
        .unwrap_err();
        assert_eq!(error, HelperError::Implausible, "{round}");
        let honest = setting.release((&mut setting.history(), &mut helpers), round, &everybody);
        assert!(honest.is_ok(), "{round}");
    }
}

/// A key that no device has.
struct MaskRootOf<'a>(&'a Root);

impl MaskRootOf<'_> {
    fn key(&self, round: u32) -> smolfed_core::mask::RoundKey {
        let unknown = smolfed_core::mask::MaskRoot::new(self.0, u32::MAX);
        unknown.helper(7).round(round, b"stranger")
    }
}

#[test]
fn an_answer_of_another_length_and_a_crowd_are_refused() {
    let setting = Setting::new(1, None);
    let (sum, _) = setting.sum(0, &[1, 2]);
    let answer = HelperAnswer {
        round: 0,
        integers: vec![0; LENGTH - 1],
    };
    let error = sum.unmask(&[answer]).unwrap_err();
    assert_eq!(error, HelperError::Unfit { helper: 0 });
    let masking = setting.release.masking.unwrap();
    assert!(masking.has_room_for(12).is_ok());
    let crowd = Crowd {
        found: 13,
        most: 12,
    };
    assert_eq!(masking.has_room_for(13), Err(crowd));
    let (sum, asked) = setting.sum(0, &[1, 2]);
    let error = publish(
        sum,
        Some(asked),
        &mut setting.history(),
        None,
        &setting.release,
        &root(),
        &at(0),
    );
    assert_eq!(error.unwrap_err(), HelperError::NoHelpers);
}

/// A device that cannot train masks zeros: it is on the list like any other.
#[test]
fn whether_a_device_could_train_does_not_show() {
    let setting = Setting::new(2, None);
    let (asked, root) = (asked(3), root());
    let masks = DeviceMasks::for_round(&setting.release, &root, 3, &asked);
    let mut uploads = Uploads::new(&setting.release, &root, 3, LENGTH).masking(masks);
    uploads.device(4, 1, |_| Err("no".to_owned()));
    let mut sum = uploads.into_sum();
    let attendees = std::mem::take(sum.attendees_mut());
    assert_eq!(
        attendees
            .iter()
            .map(|a| (a.device, a.tags.len()))
            .collect::<Vec<_>>(),
        [(4, 2)]
    );
    assert!(sum.integers().iter().any(|x| *x != 0));
    let distinct: BTreeSet<_> = attendees[0].tags.iter().collect();
    assert_eq!(distinct.len(), 2, "a tag for each helper");
}

/// The state of helpers goes into a simulation's checkpoint, and the run continues with the same
/// bits.
#[test]
fn a_checkpoint_has_the_sums_of_masks() {
    let setting = Setting::new(2, Some(correlated()));
    let (mut history, mut helpers) = (setting.history(), setting.helpers());
    for round in 0..5 {
        let released = setting
            .release((&mut history, &mut helpers), round, &[round % 3])
            .unwrap();
        history.decode(released).unwrap();
    }
    let mut saved = crate::saved::Saved::default();
    history.save(&mut saved, true);
    helpers.save(&mut saved);
    let (mut later, mut later_helpers) = (setting.history(), setting.helpers());
    later.restore(&saved, 5).unwrap();
    later_helpers.restore(&saved).unwrap();
    let expected = setting
        .release((&mut history, &mut helpers), 5, &[5])
        .unwrap();
    let found = setting
        .release((&mut later, &mut later_helpers), 5, &[5])
        .unwrap();
    assert_eq!(found.integers(), expected.integers());
    assert!(setting.helpers().restore(&Default::default()).is_err());
}

/// Anyone with the root of the devices can derive every mask.
#[test]
fn no_helper_has_the_root_of_the_devices_or_of_another_helper() {
    let roots = [
        super::device::devices_root(&root()),
        helper_root(&root(), 0),
        helper_root(&root(), 1),
    ];
    let sampler = DiscreteGaussian::new(1_000_000, 1).unwrap();
    let drawn = roots.map(|root| {
        let mut noise = vec![0; 8];
        add_noise(&mut noise, &sampler, &root, Purpose::HelperNoise, 3);
        noise
    });
    let distinct: BTreeSet<&Vec<i64>> = drawn.iter().collect();
    assert_eq!(distinct.len(), 3);
}

/// The known noises of all parties add up to all of the noise.
#[test]
fn the_noise_that_parties_know_is_that_of_the_release() {
    let setting = Setting::new(2, None);
    let noise = |setting: &Setting, party: Party| {
        party.noise(&setting.release, &setting.policy, &root(), 3, LENGTH)
    };
    let of_all = [Party::Coordinator, Party::Helper(0), Party::Helper(1)];
    let known = of_all.map(|party| noise(&setting, party));
    let sum = known.iter().fold(vec![0; LENGTH], |sum, z| plus(&sum, z));
    assert_eq!(sum, setting.noise(3));
    let mut silent = Setting::new(2, None);
    silent.release.fault = Fault::NoHelperNoise;
    assert_eq!(noise(&silent, Party::Helper(0)), [0; LENGTH]);
}

/// The masked update of an admitted real device is in the sum with its entry of the list.
#[test]
fn a_masked_update_of_a_real_device_enters_with_its_attendee() {
    let ring = Ring::new(20).unwrap();
    let mut sum = PrivateSum::zero(2);
    sum.integers_mut().copy_from_slice(&[1, 2]);
    assert_eq!(sum.masked(ring), [0; 0]);
    let attendee = |device| Attendee {
        device,
        ledger: *b"ledger 1",
        tags: vec![[9; 16]],
    };
    let admitted = Admitted::Only(vec![7]);
    for device in [6, 7] {
        let update = ReceivedUpdate::from(vec![5, -7]);
        sum.add_masked(attendee(device), &update, &admitted);
    }
    assert_eq!(sum.integers(), [6, -5]);
    assert_eq!(*sum.attendees_mut(), [attendee(7)]);
    assert_eq!(sum.masked(ring), [6, (1 << 20) - 5]);
}

#[test]
fn the_noise_of_each_party_is_at_least_its_share() {
    for (helpers, colluding) in [(1, 1), (2, 1), (3, 2), (8, 1)] {
        let parties = Parties::new(helpers, colluding).unwrap();
        for z in [0.7, 1.0, 1.3] {
            let each = parties.of_each(NoiseMultiplier::new(z).unwrap()).get();
            let (sampler, _) = sampler_of_std(each * 256.0).unwrap();
            let (numerator, denominator) = sampler.sigma().ratio();
            let squares = u128::from(numerator).pow(2) * u128::from(parties.honest());
            let total = (z * 256.0 * denominator as f64).powi(2);
            assert!(squares as f64 >= total, "{helpers} {colluding} {z}");
        }
    }
}
