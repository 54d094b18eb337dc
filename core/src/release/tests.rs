//! The release of a device against its raw parts, and its errors.

use std::{format, vec::Vec};

use proptest::prelude::*;

use super::*;
use crate::{
    client::Client,
    crypto::Key,
    identity::{Identity, LedgerNonce},
    ledger::{
        Budget, Ledger, LedgerError, Limits, MaxJump, Separation,
        tests::{Ram, erased},
    },
    model::{Const, FixedModel, Softmax},
    noise::{DiscreteGaussian, Sigma},
    params::{ClipNorm, LearningRate},
    progress::Progress,
    samples::SampleSlice,
    stream::{Purpose, Root, StreamId},
    train::{Clipping, LocalTraining, TrainReport},
    wire::message::{Packed, UPDATE_CHUNK_BYTES},
};

type Model = Softmax<Const<3>, Const<2>>;
type Device = Client<Model, { Model::PARAMETERS }, 4, { Model::SCRATCH }>;

const LIMITS: Limits = Limits {
    budget: Budget(5),
    separation: Separation::NONE,
    max_jump: MaxJump::DEFAULT,
};
const FEATURES: [f32; 12] = [
    0.9, 0.1, 0.0, 0.2, 0.8, 1.0, 0.5, -0.5, 0.25, -1.0, 0.0, 0.75,
];
const TARGETS: [u16; 4] = [0, 1, 0, 1];
const GLOBAL: [f32; 8] = [0.0; 8];

fn identity() -> Identity {
    Identity {
        device: 42,
        root: Root::from_secret([0x5a; 32]),
    }
}

fn ledger(nonce: LedgerNonce) -> Ledger<Ram> {
    Ledger::create(erased(), nonce, Key::from_secret([7; 32])).unwrap()
}

fn settings() -> LocalTraining {
    LocalTraining::new(LearningRate::new(1.0).unwrap(), ClipNorm::new(0.3).unwrap()).with_epochs(5)
}

fn grid() -> Grid {
    Grid::new(ClipNorm::new(0.3).unwrap(), 16).unwrap()
}

fn multiplier() -> NoiseMultiplier {
    NoiseMultiplier::new(1.5).unwrap()
}

fn samples() -> SampleSlice<'static, u16> {
    SampleSlice::new(&FEATURES, &TARGETS, 3).unwrap()
}

/// Returns the integers of a round with noise.
fn noised(ledger: &mut Ledger<Ram>, round: u32, global: &[f32; 8]) -> Vec<i64> {
    let participation = ledger.begin(round, &mut identity(), &LIMITS).unwrap();
    let mut device = Device::new(Softmax::new(Const, Const));
    let trained = device.train(participation, &samples(), global, &settings());
    let noised = trained.noise(&grid(), multiplier()).unwrap();
    noised.values().collect()
}

/// Returns the integers of a round without noise.
fn central(ledger: &mut Ledger<Ram>, round: u32, global: &[f32; 8]) -> Vec<i64> {
    let participation = ledger.begin(round, &mut identity(), &LIMITS).unwrap();
    let mut device = Device::new(Softmax::new(Const, Const));
    let trained = device.train(participation, &samples(), global, &settings());
    let central = trained.central(&grid(), TrustCoordinator).unwrap();
    central.values().collect()
}

/// Returns the stream of a device bound to a ledger with this nonce, by its definition.
fn stream(nonce: &LedgerNonce, purpose: Purpose, round: u32) -> crate::stream::Stream {
    let label: Vec<u8> = [&b"streams "[..], nonce].concat();
    let root = Key::from_secret([0x5a; 32]).derive(&label.try_into().unwrap());
    Root::from_secret(*root.secret()).stream(StreamId {
        purpose,
        round,
        device: 42,
    })
}

/// Training, grid and noise of the raw parts, with the streams of the ledger.
#[test]
fn a_release_is_the_quantised_update_and_the_noise_of_its_stream() {
    let (nonce, round) = (*b"nonce 1.", 3);
    let mut device = Device::new(Softmax::new(Const, Const));
    let order = &mut stream(&nonce, Purpose::BatchShuffle, round);
    let report = device.train_unrecorded(&samples(), &GLOBAL, &settings(), order);
    assert!(report.unwrap().clipped_steps > 0);
    let quantizer = device.quantizer(&grid()).unwrap();
    let clean = device.update().map(|x| i64::from(quantizer.get(x)));
    assert_eq!(central(&mut ledger(nonce), round, &GLOBAL), clean);

    let mut expected = clean;
    let noise = DiscreteGaussian::new(3 << 15, 1).unwrap();
    let stream = &mut stream(&nonce, Purpose::DeviceNoise, round);
    noise.add_to(&mut expected, stream);
    assert_eq!(noised(&mut ledger(nonce), round, &GLOBAL), expected);
}

/// With the same noise, two releases differ exactly as the updates do.
#[test]
fn no_two_updates_have_the_same_noise() {
    let other = [0.1; 8];
    let ledger = &mut ledger(*b"nonce 1.");
    let first = noised(ledger, 0, &GLOBAL);
    let again = ledger.begin(0, &mut identity(), &LIMITS).unwrap_err();
    assert_eq!(again, LedgerError::RoundUsed);
    let second = noised(ledger, 1, &other);

    let clean = |global| central(&mut self::ledger(*b"nonce 1."), 0, global);
    let differences =
        |a: &[i64], b: &[i64]| -> Vec<i64> { a.iter().zip(b).map(|(a, b)| a - b).collect() };
    let clean = differences(&clean(&other), &clean(&GLOBAL));
    let seen = differences(&second, &first);
    // Two draws of 8 values of σ = 98,304 have the same bits with probability below 10⁻⁴⁰.
    assert!(seen.iter().zip(&clean).all(|(seen, clean)| seen != clean));

    // An erased ledger has other streams, even in a round from before.
    let erased = noised(&mut self::ledger(*b"nonce 2."), 0, &GLOBAL);
    assert!(erased.iter().zip(&first).all(|(a, b)| a != b));
}

#[test]
fn a_device_without_an_update_releases_zeros_under_noise_and_nothing_in_trust() {
    let nonce = *b"nonce 1.";
    let nothing = SampleSlice::<u16>::new(&[], &[], 3).unwrap();
    let diverging = [f32::NAN; 8];
    for (samples, global) in [(nothing, GLOBAL), (samples(), diverging)] {
        let mut device = Device::new(Softmax::new(Const, Const));
        let participation = ledger(nonce).begin(4, &mut identity(), &LIMITS).unwrap();
        let trained = device.train(participation, &samples, &global, &settings());
        let noised = trained.noise(&grid(), multiplier()).unwrap();
        let mut noise = [0; 8];
        let stream = &mut stream(&nonce, Purpose::DeviceNoise, 4);
        DiscreteGaussian::new(3 << 15, 1)
            .unwrap()
            .add_to(&mut noise, stream);
        assert!(noised.values().eq(noise));

        let participation = ledger(nonce).begin(4, &mut identity(), &LIMITS).unwrap();
        let trained = device.train(participation, &samples, &global, &settings());
        let refused = trained.central(&grid(), TrustCoordinator).map(|_| ());
        assert_eq!(refused, Err(NoUpdate));
    }
}

#[test]
fn noise_that_is_none_is_refused() {
    let mut device = Device::new(Softmax::new(Const, Const));
    let participation = ledger(*b"nonce 1.")
        .begin(4, &mut identity(), &LIMITS)
        .unwrap();
    let trained = device.train(participation, &samples(), &GLOBAL, &settings());
    let refused = trained.noise(&grid(), NoiseMultiplier::NONE).map(|_| ());
    assert_eq!(refused, Err(NoiseError::ZeroSigma));
}

/// `Debug` ends up in logs.
#[test]
fn shapes_are_printed_and_values_are_not() {
    let mut device = Device::new(Softmax::new(Const, Const));
    let participation = ledger(*b"nonce 1.")
        .begin(4, &mut identity(), &LIMITS)
        .unwrap();
    assert_eq!(format!("{participation:?}"), "Participation(4)");
    let trained = device.train(participation, &samples(), &GLOBAL, &settings());
    assert_eq!(format!("{trained:?}"), "Trained(8 parameters)");
    let noised = trained.noise(&grid(), multiplier()).unwrap();
    assert_eq!((noised.len(), noised.is_empty()), (8, false));
    assert_eq!(format!("{noised:?}"), "Noised(8 integers)");
}

/// Returns the values that a coordinator unpacks from the chunks of a release.
fn unpacked(release: &impl Release, width: u32) -> Vec<i64> {
    let mut all = Vec::new();
    for (index, chunk) in release.chunks().enumerate() {
        assert_eq!((usize::from(chunk.index), chunk.more), (index, false));
        let Packed::Halves {
            low,
            high,
            width: w,
        } = chunk.packed
        else {
            panic!("halves are packed where they are sent from");
        };
        assert_eq!(w, width);
        let values = low.iter().zip(high).map(|(low, high)| whole(*low, *high));
        let mut bytes = [0; UPDATE_CHUNK_BYTES];
        let length = pack::pack(values, width, &mut bytes).unwrap();
        let mut values = std::vec![0; low.len()];
        pack::unpack(&bytes[..length], width, &mut values).unwrap();
        all.extend(values.iter().map(|x| if chunk.negated { -x } else { *x }));
    }
    all
}

/// Returns this update in round 4.
fn trained<'a>(update: &'a mut [f32], spare: &'a mut [f32]) -> Trained<'a> {
    let participation = ledger(*b"nonce 1.")
        .begin(4, &mut identity(), &LIMITS)
        .unwrap();
    Trained::new(update, spare, Some(TrainReport::default()), participation)
}

proptest! {
    /// Any update, even outside the ball, is inside after the release, and the same in messages.
    #[test]
    fn what_is_trusted_to_a_coordinator_is_inside_the_ball_and_arrives(
        mut update in proptest::collection::vec(-0.4_f32..0.4, 1..300), bits in 4_u32..=24,
    ) {
        let mut spare = std::vec![0.0; update.len()];
        let grid = Grid::new(ClipNorm::new(0.3).unwrap(), bits).unwrap();
        let trained = trained(&mut update, &mut spare);
        let central = trained.central(&grid, TrustCoordinator).unwrap();
        let values: Vec<i64> = central.values().collect();
        let q: Vec<i32> = values.iter().map(|x| *x as i32).collect();
        prop_assert_eq!(grid.check(&q), Ok(()));
        prop_assert_eq!(unpacked(&central, bits + 1), values);
    }
}

/// +2^b does not fit b + 1 bits.
#[test]
fn an_update_of_one_entry_at_the_bound_arrives() {
    let (mut update, mut spare) = ([0.0, 0.3, 0.0], [0.0; 3]);
    let trained = trained(&mut update, &mut spare);
    let central = trained.central(&grid(), TrustCoordinator).unwrap();
    assert!(central.values().eq([0, 1 << 16, 0]));
    assert_eq!(unpacked(&central, 17), [0, 1 << 16, 0]);
}

#[test]
fn an_update_under_noise_arrives() {
    let (mut update, mut spare) = ([0.01; 200], [0.0; 200]);
    let trained = trained(&mut update, &mut spare);
    let noised = trained.noise(&grid(), multiplier()).unwrap();
    let width = pack::width(16, Sigma::new(3 << 15, 1).ok());
    assert_eq!(
        unpacked(&noised, width),
        noised.values().collect::<Vec<_>>()
    );
}

/// The exact bound holds for any training: clipped at the end, or not at all.
#[test]
fn an_update_that_was_not_clipped_to_the_grid_is_shrunk_onto_it() {
    let mut training = settings().with_clipping(Clipping::Final);
    training.clip_norm = None;
    let mut device = Device::new(Softmax::new(Const, Const));
    let participation = ledger(*b"nonce 1.")
        .begin(4, &mut identity(), &LIMITS)
        .unwrap();
    let trained = device.train(participation, &samples(), &GLOBAL, &training);
    let tight = Grid::new(ClipNorm::new(0.8).unwrap(), 16).unwrap();
    let central = trained.central(&tight, TrustCoordinator).unwrap();
    let values: Vec<i32> = central.values().map(|x| x as i32).collect();
    assert_eq!(tight.check(&values), Ok(()));
    assert!(values.iter().any(|x| *x != 0));
}

/// Training and noise in pieces of any length, instead of one call each.
#[test]
fn pieces_release_the_bits_of_the_whole() {
    let (nonce, round) = (*b"nonce 1.", 3);
    let whole = noised(&mut ledger(nonce), round, &GLOBAL);
    for most in 0..6 {
        let mut device = Device::new(Softmax::new(Const, Const));
        let participation = ledger(nonce)
            .begin(round, &mut identity(), &LIMITS)
            .unwrap();
        let (samples, settings) = (samples(), settings());
        let mut training = device.begin(participation, &samples, &GLOBAL, &settings);
        let mut pieces = 1;
        while training.advance(most) == Progress::More {
            pieces += 1;
        }
        assert!(pieces >= TARGETS.len() / most.max(1), "{pieces}");
        let multiplier = NoiseMultiplier::new(1.5).unwrap();
        let trained = training.finish();
        let mut noising = trained.noise_in_pieces(&grid(), multiplier).unwrap();
        pieces = 1;
        while noising.advance(most) == Progress::More {
            pieces += 1;
        }
        assert_eq!(pieces, GLOBAL.len().div_ceil(most.max(1)));
        let values: Vec<i64> = noising.finish().values().collect();
        assert_eq!(values, whole);
        // The end processes the remaining pieces.
        let mut device = Device::new(Softmax::new(Const, Const));
        let participation = ledger(nonce)
            .begin(round, &mut identity(), &LIMITS)
            .unwrap();
        let mut training = device.begin(participation, &samples, &GLOBAL, &settings);
        assert_eq!(training.advance(most), Progress::More);
        let mut noising = training
            .finish()
            .noise_in_pieces(&grid(), multiplier)
            .unwrap();
        assert_eq!(noising.advance(most), Progress::More);
        assert_eq!(noising.finish().values().collect::<Vec<i64>>(), whole);
    }
}
