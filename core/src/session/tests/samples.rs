//! Samples that training cannot use. They are refused before a round, and cost no participation
//! where the device may report them. Otherwise an update of zeros hides them.

use super::*;
use crate::{fixed_point::FeatureScale, samples::SampleError, session::FixedPoint};

/// Returns feature rows of 20 values and targets, one of which is damaged.
fn damaged() -> Vec<(Vec<f32>, Vec<u16>, SampleError)> {
    let (features, targets) = data();
    let (features, targets) = (features.to_vec(), targets.to_vec());
    let mut cases = Vec::new();
    for x in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut features = features.clone();
        features[FEATURES + 3] = x;
        cases.push((
            features,
            targets.clone(),
            SampleError::NotFinite { feature: 3 },
        ));
    }
    for class in [6, 7, u16::MAX] {
        let mut targets = targets.clone();
        *targets.last_mut().unwrap() = class;
        cases.push((features.clone(), targets, SampleError::Target));
    }
    let (least, most, found) = (1, 10, 11);
    let many = SampleError::Count { least, most, found };
    cases.push((vec![0.5; found * FEATURES], vec![0; found], many));
    cases
}

/// Samples whose rows are one value too short.
struct Short<'a>(SampleSlice<'a, u16>);

impl Samples for Short<'_> {
    type Target = u16;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn features(&self, index: usize) -> &[f32] {
        &self.0.features(index)[1..]
    }

    fn target(&self, index: usize) -> u16 {
        self.0.target(index)
    }
}

/// Returns a board whose round may begin, and its coordinator.
fn ready(noise: Option<Sigma>) -> (Board, Coordinator) {
    let mut board = board(policy(), ledger(), 0);
    let mut other = coordinator(3, noise);
    while board.phase() != Phase::Training {
        turn_without_training(&mut board, &mut other);
    }
    (board, other)
}

/// Returns the noise alone.
fn zeros() -> Vec<i64> {
    let mut zeros = vec![0; PARAMETERS];
    let noise = DiscreteGaussian::of(noise().unwrap());
    noise.add_to(&mut zeros, &mut stream(Purpose::DeviceNoise, 3));
    zeros
}

#[test]
fn a_trusted_coordinator_hears_of_damaged_samples_before_the_round_is_recorded() {
    for (features, targets, error) in damaged() {
        let samples = SampleSlice::new(&features, &targets, FEATURES).unwrap();
        let (mut board, mut other) = ready(None);
        assert_eq!(board.check(&samples), Err(error));
        board.train(&samples);
        run(&mut board, &mut other, |bytes| bytes);
        let reason = match error {
            SampleError::Count { .. } => Decline::NoSamples,
            _ => Decline::SAMPLES,
        };
        assert_eq!(other.declined, Some(reason));
        assert_eq!(board.ledger().past().participations, 0);
        // The round is still available for good samples.
        other.declined = None;
        other.invite();
        run(&mut board, &mut other, |bytes| bytes);
        assert_eq!(other.integers, expected(3, &other.invitation));
    }
}

#[test]
fn under_noise_of_the_device_damaged_samples_are_an_update_of_zeros() {
    for (features, targets, _) in damaged() {
        let samples = SampleSlice::new(&features, &targets, FEATURES).unwrap();
        for most in [1, usize::MAX] {
            let (mut board, mut other) = ready(noise());
            while board.train_some(&samples, most) == Progress::More {}
            run(&mut board, &mut other, |bytes| bytes);
            assert_eq!(other.declined, None);
            assert_eq!(other.integers, zeros());
            assert_eq!(board.ledger().past().participations, 1);
        }
    }
}

#[test]
fn rows_of_another_length_are_refused() {
    let (features, targets) = data();
    let samples = SampleSlice::new(&features, &targets, FEATURES).unwrap();
    let (mut board, mut other) = ready(None);
    assert_eq!(board.check(&samples), Ok(()));
    let (expected, found) = (FEATURES, FEATURES - 1);
    let error = SampleError::Length { expected, found };
    assert_eq!(board.check(&Short(samples)), Err(error));
    board.train(&Short(samples));
    run(&mut board, &mut other, |bytes| bytes);
    assert_eq!(other.declined, Some(Decline::SAMPLES));
}

/// Numbers to round: NaN would become an integer.
#[test]
fn integers_of_damaged_samples_are_refused() {
    let nonces = stream(Purpose::Initialisation, 0);
    let scale = FeatureScale::new::<i8>(6).unwrap();
    let model = Softmax::new(Const::<FEATURES>, Const::<6>);
    let model = FixedPoint::<_, i8>::new(model, scale);
    let memory = memory(PARAMETERS, 10, 6 + FEATURES);
    let session = Session::new(identity(), policy(), model, memory, ledger(), nonces);
    let board = session.unwrap();
    for (features, targets, error) in damaged() {
        let samples = SampleSlice::new(&features, &targets, FEATURES).unwrap();
        assert_eq!(board.check(&samples), Err(error));
    }
    let (features, targets) = data();
    let samples = SampleSlice::new(&features, &targets, FEATURES).unwrap();
    assert_eq!(board.check(&samples), Ok(()));
    let (expected, found) = (FEATURES, FEATURES - 1);
    let error = SampleError::Length { expected, found };
    assert_eq!(board.check(&Short(samples)), Err(error));
}
