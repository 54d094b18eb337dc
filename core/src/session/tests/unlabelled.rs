//! Devices that learn without labels: a round has two parts, and each yields the results of the
//! functions of `contrast`.

use super::*;
use crate::{
    clip::clip_l2,
    contrast::{
        Augmented, BatchMemory, ContrastRequest, ContrastTraining, FromRecipe, Objective, Part,
        Projection, Recipe, TrainingMemory, Windows,
        correlation::{SumMemory, packed_length, sensitivity_in_steps, sum_into},
        descend,
    },
    params::NoiseMultiplier,
};

const WIDTH: usize = 6;
const COUNT: usize = FEATURES * WIDTH;
const MATRIX: usize = packed_length(WIDTH);
/// Samples of the device, 2V views each.
const SAMPLES: usize = 10;
const PAIRS: usize = 2;

type Encoder = Projection<Const<FEATURES>, Const<WIDTH>>;
type Learner<V = Root> = Session<'static, Unlabelled<Encoder, Windows>, Ram, Stream, NoStore, V>;

const fn encoder() -> Encoder {
    Projection::new(Const, Const)
}

fn learner(policy: Policy, ledger: Ledger<Ram>) -> Learner {
    learner_of(identity(), policy, ledger)
}

fn learner_of<V: Secrets>(
    identity: Identity<V>,
    policy: Policy,
    ledger: Ledger<Ram>,
) -> Learner<V> {
    let model = Unlabelled::new(encoder());
    let scratch = model.scratch_for(2 * PAIRS * SAMPLES);
    let mut memory = memory(COUNT, SAMPLES, scratch);
    memory.global = vec![0.0; model.global_count()].leak();
    let nonces = stream(Purpose::Initialisation, 0);
    Session::new(identity, policy, model, memory, ledger, nonces).unwrap()
}

fn recipe() -> Recipe {
    Recipe {
        alpha: 0.4,
        time: 5.0,
        time_shift: 2.0,
        jitter: 0.25,
        ..Recipe::default()
    }
}

fn others() -> Vec<f32> {
    (0..MATRIX).map(|i| (i % 5) as f32 * 0.1).collect()
}

/// Returns the received values: the encoder, the recipe and, in training, the matrix of the others.
fn comes_down(part: Part) -> Vec<f32> {
    let mut values: Vec<f32> = (0..COUNT)
        .map(|i| ((i * 7) % 11) as f32 * 0.04 - 0.2)
        .collect();
    values.extend(recipe().values());
    if part == TRAINING {
        values.extend(others());
    }
    values
}

const TRAINING: Part = Part::Training { has_others: true };

fn asked(part: Part, noise: Option<Sigma>) -> Invitation {
    let is_matrix = part == Part::Matrix;
    let clip_norm = if is_matrix { 3.0 } else { 0.05 };
    let network = None;
    Invitation {
        shape: ModelShape {
            kind: ModelKind::Projection,
            features: FEATURES as u16,
            outputs: WIDTH as u16,
            network,
            integer: None,
        },
        grid: Grid::new(ClipNorm::new(clip_norm).unwrap(), 16).unwrap(),
        clipping: Clipping::Final,
        request: Some(Request::Contrast(ContrastRequest {
            part,
            pairs: PAIRS as u32,
            norm_bound: Some(3.0),
            entries: if is_matrix { MATRIX + 1 } else { COUNT } as u32,
            max_samples: if is_matrix { 50 } else { 0 },
        })),
        ..invitation(noise)
    }
}

fn features() -> Vec<f32> {
    data().0.to_vec()
}

/// Runs a part of round `number` to its end.
fn part(board: &mut Learner, number: u32, asked: Invitation, model: Vec<f32>) -> Coordinator {
    let other = Coordinator::new(chain(), number, asked, model);
    part_in_pieces(board, other, usize::MAX).0
}

/// [`part`] with pieces of this length. Also returns the number of pieces before the last one.
fn part_in_pieces<V: Secrets>(
    board: &mut Learner<V>,
    other: Coordinator,
    most: usize,
) -> (Coordinator, usize) {
    part_on(board, other, most, &features())
}

/// [`part_in_pieces`] on these features.
fn part_on<V: Secrets>(
    board: &mut Learner<V>,
    mut other: Coordinator,
    most: usize,
    features: &[f32],
) -> (Coordinator, usize) {
    // The coordinator of the tests does not know the device's session.
    board.send(Answer::Hello);
    let targets = vec![(); features.len() / FEATURES];
    let samples = SampleSlice::new(features, &targets, FEATURES).unwrap();
    let mut pieces = 0;
    for _ in 0..200 {
        if other.done || other.declined.is_some() {
            return (other, pieces);
        }
        if board.outgoing().is_empty() {
            board.timeout();
        }
        other.receive(board.outgoing());
        board.sent();
        if board.phase() == Phase::Idle && !other.done {
            other.invite();
        }
        for said in core::mem::take(&mut other.outgoing) {
            board.receive(&said);
        }
        while board.train_some(&samples, most) == Progress::More {
            pieces += 1;
        }
    }
    panic!("no end: {board:?}");
}

fn takes_part(board: &mut Learner, number: u32, asked: Invitation) -> Coordinator {
    let part_of = asked.contrast().unwrap().part;
    part(board, number, asked, comes_down(part_of))
}

/// Returns the result of `contrast` with the device's streams.
fn matrix(number: u32, asked: &Invitation) -> Vec<i64> {
    matrix_of(|purpose| stream(purpose, number), asked)
}

fn matrix_of(stream: impl Fn(Purpose) -> Stream, asked: &Invitation) -> Vec<i64> {
    matrix_on(stream, asked, &features())
}

fn matrix_on(stream: impl Fn(Purpose) -> Stream, asked: &Invitation, features: &[f32]) -> Vec<i64> {
    let (down, targets) = (
        comes_down(Part::Matrix),
        vec![(); features.len() / FEATURES],
    );
    let samples = SampleSlice::new(features, &targets, FEATURES).unwrap();
    let windows = Windows::from_recipe(&recipe()).unwrap();
    let streams = stream(Purpose::Augmentation);
    let views = Augmented::new(&samples, windows, PAIRS, streams);
    let memory = &mut SumMemory {
        view: &mut [0.0; FEATURES],
        hidden: &mut [],
        representation: &mut [0.0; WIDTH],
        matrix: &mut [0.0; MATRIX],
    };
    let mut sum = [0; MATRIX];
    let rng = &mut stream(Purpose::CorrelationNoise);
    let noise = asked.noise.map(DiscreteGaussian::of);
    let noise = noise.as_ref().map(|noise| (noise, rng));
    let (encoder, parameters) = (encoder(), &down[..COUNT]);
    sum_into(
        &encoder,
        parameters,
        &views,
        &asked.grid,
        noise,
        memory,
        &mut sum,
    )
    .unwrap();
    sum.into_iter().chain([targets.len() as i64]).collect()
}

fn update(number: u32, asked: &Invitation) -> Vec<i64> {
    update_of(|purpose| stream(purpose, number), asked)
}

fn update_of(stream: impl Fn(Purpose) -> Stream, asked: &Invitation) -> Vec<i64> {
    let (features, down) = (features(), comes_down(TRAINING));
    let samples = SampleSlice::new(&features, &[(); SAMPLES], FEATURES).unwrap();
    let windows = Windows::from_recipe(&recipe()).unwrap();
    let streams = stream(Purpose::Augmentation);
    let mut views = Augmented::new(&samples, windows, PAIRS, streams);
    let mut local = down[..COUNT].to_vec();
    let memory = &mut TrainingMemory {
        order: &mut [0; SAMPLES],
        batch: BatchMemory {
            representations: &mut [0.0; 2 * PAIRS * SAMPLES * WIDTH],
            view: &mut [0.0; FEATURES],
            hidden: &mut [],
            pair: &mut [0.0; 2 * WIDTH],
            matrix: &mut [0.0; MATRIX],
            gradient: &mut [0.0; COUNT],
        },
    };
    let objective = Objective {
        alpha: recipe().alpha,
        others: &others(),
        norm_bound: Some(3.0),
    };
    let settings = ContrastTraining::from(&asked.training());
    let rng = &mut stream(Purpose::BatchShuffle);
    descend(
        &encoder(),
        &mut local,
        &mut views,
        &objective,
        &settings,
        rng,
        memory,
    )
    .unwrap();
    let mut update: Vec<f32> = local.iter().zip(&down).map(|(w, v)| w - v).collect();
    let norm = clip_l2(&mut update, asked.grid.clip_norm().get()).unwrap();
    assert!(norm > 0.05, "{norm}: nothing is clipped");
    let mut integers = [0; COUNT];
    asked.grid.quantize_into(&update, &mut integers).unwrap();
    let mut sum = integers.map(i64::from);
    if let Some(noise) = asked.noise {
        DiscreteGaussian::of(noise).add_to(&mut sum, &mut stream(Purpose::DeviceNoise));
    }
    sum.to_vec()
}

#[test]
fn both_parts_of_a_round_bring_the_bits_of_the_simulator() {
    let mut board = learner(policy(), ledger());
    let orders = [[Part::Matrix, TRAINING], [TRAINING, Part::Matrix]];
    for (number, noise) in [(1, None), (2, noise())] {
        for (index, order) in orders.iter().enumerate() {
            let number = 2 * number + index as u32;
            let mut frames = Vec::new();
            for (place, part) in order.iter().enumerate() {
                // Under central trust, only matrices have the device's noise.
                let is_second = place == 1;
                let asked = asked(*part, noise);
                let other = takes_part(&mut board, number, asked);
                let expected = match part {
                    Part::Matrix => matrix(number, &asked),
                    Part::Training { .. } => update(number, &asked),
                };
                assert_eq!(other.integers, expected, "{part:?}, second: {is_second}");
                assert_eq!((other.refusals.total(), board.refusals().total()), (0, 0));
                frames.push(other.requests);
            }
            assert_eq!(board.ledger().past().participations, number - 1);
        }
    }
}

/// The noise of a matrix covers one sample. A damaged sample changes neither the part of the others
/// nor their number, which has no noise. An unusable number of samples decides nothing.
#[test]
fn a_damaged_sample_does_not_decide_about_the_others_in_a_matrix() {
    let asked = asked(Part::Matrix, noise());
    let mut damaged = features();
    damaged[FEATURES] = f32::NAN;
    let (one, many) = (features()[..FEATURES].to_vec(), features().repeat(2));
    for (number, features) in [(1, damaged), (2, one), (3, many)] {
        let mut board = learner(policy(), ledger());
        let other = Coordinator::new(chain(), number, asked, comes_down(Part::Matrix));
        let (other, _) = part_on(&mut board, other, usize::MAX, &features);
        let expected = matrix_on(|purpose| stream(purpose, number), &asked, &features);
        assert_eq!(other.integers, expected, "{number}");
        let count = (features.len() / FEATURES) as i64;
        assert_eq!(other.integers[MATRIX], count);
        assert!(other.integers[..MATRIX].iter().any(|x| x.abs() > 10_000));
    }
}

/// 21 entries of the matrix and the number of samples, in pieces of 16 or more: the noise continues
/// across pieces, and the number has none.
#[test]
fn the_noise_of_a_matrix_in_pieces_is_that_of_the_whole() {
    let asked = asked(Part::Matrix, noise());
    for (most, noises) in [(1, 2), (2, 1)] {
        let mut board = learner(policy(), ledger());
        let other = Coordinator::new(chain(), 3, asked, comes_down(Part::Matrix));
        let (other, pieces) = part_in_pieces(&mut board, other, most);
        assert_eq!(other.integers, matrix(3, &asked));
        // The record and the matrix come first. The last piece, without a bit, is not counted.
        assert_eq!(pieces, 2 + noises);
    }
}

/// Both parts draw from the element's root for the round, which is overwritten between them and
/// derived again.
#[cfg(feature = "element")]
#[test]
fn both_parts_of_a_round_draw_from_the_root_of_an_element() {
    use super::element::{Chip, element_chain, identity_in, name, new_ledger, root};

    for order in [[Part::Matrix, TRAINING], [TRAINING, Part::Matrix]] {
        let chip = Chip::new();
        let mut board = learner_of(identity_in(&chip), policy(), new_ledger());
        for part in order {
            let asked = asked(part, noise());
            let other = Coordinator::new(element_chain(), 3, asked, comes_down(part));
            let (other, _) = part_in_pieces(&mut board, other, usize::MAX);
            let stream = |purpose| stream_of(&root(3), purpose, 3);
            let expected = match part {
                Part::Matrix => matrix_of(stream, &asked),
                Part::Training { .. } => update_of(stream, &asked),
            };
            assert_eq!(other.integers, expected, "{part:?}");
        }
        assert_eq!(board.ledger().past().participations, 1);
        assert!(*board.ledger().chain().secret() == *name(1).secret());
    }
}

/// A noise stream is used once, whatever a coordinator asks for.
#[test]
fn no_part_of_a_round_is_repeated() {
    for order in [[Part::Matrix, TRAINING], [TRAINING, Part::Matrix]] {
        let mut board = learner(policy(), ledger());
        for (count, part) in order.into_iter().enumerate() {
            let first = takes_part(&mut board, 3, asked(part, noise()));
            assert!(first.done);
            let again = takes_part(&mut board, 3, asked(part, noise()));
            assert_eq!(again.declined, Some(Decline::RoundUsed), "{count}");
        }
        for part in order {
            let again = takes_part(&mut board, 3, asked(part, noise()));
            assert_eq!(again.declined, Some(Decline::RoundUsed));
        }
        assert_eq!(board.ledger().past().participations, 1);
    }
}

#[test]
fn a_restart_ends_a_round() {
    let mut board = learner(policy(), ledger());
    assert!(takes_part(&mut board, 3, asked(Part::Matrix, noise())).done);
    let mut board = learner(policy(), board.into_ledger());
    let other = takes_part(&mut board, 3, asked(TRAINING, noise()));
    assert_eq!(other.declined, Some(Decline::RoundUsed));
    // Another round, without a request for its matrix.
    let mut board = learner(policy(), board.into_ledger());
    assert!(takes_part(&mut board, 4, asked(TRAINING, None)).done);
    let late = takes_part(&mut board, 3, asked(Part::Matrix, noise()));
    assert_eq!(late.declined, Some(Decline::RoundUsed));
}

/// An unfinished first part is abandoned for the second one.
#[test]
fn the_second_part_ends_a_first_one_that_goes_on() {
    let mut board = learner(policy(), ledger());
    let (first, second) = (asked(Part::Matrix, noise()), asked(TRAINING, None));
    let mut other = Coordinator::new(chain(), 3, first, comes_down(Part::Matrix));
    let features = features();
    let samples = SampleSlice::new(&features, &[(); SAMPLES], FEATURES).unwrap();
    let mut has_changed = false;
    for _ in 0..200 {
        if other.done {
            break;
        }
        if board.outgoing().is_empty() {
            board.timeout();
        }
        let is_first = board.phase() == Phase::Sending && !has_changed;
        if is_first {
            // The matrix is in transit when the coordinator continues.
            has_changed = true;
            board.sent();
            (other.invitation, other.model) = (second, comes_down(TRAINING));
            (other.integers, other.next) = (vec![0; COUNT], 0);
            other.invite();
        } else {
            other.receive(board.outgoing());
            board.sent();
        }
        if board.phase() == Phase::Idle {
            other.invite();
        }
        for said in core::mem::take(&mut other.outgoing) {
            board.receive(&said);
        }
        board.train(&samples);
    }
    assert!(has_changed && other.done);
    assert_eq!(other.integers, update(3, &second));
}

#[test]
fn a_device_insists_on_noise_of_its_matrices() {
    let least = |multiplier| Policy {
        min_matrix_noise_multiplier: NoiseMultiplier::from_units(multiplier),
        ..policy()
    };
    let declines = |policy, noise| {
        let mut board = learner(policy, ledger());
        takes_part(&mut board, 3, asked(Part::Matrix, noise)).declined
    };
    let sensitivity = sensitivity_in_steps(16, WIDTH, PAIRS);
    // z = 1/2, in steps of a quarter.
    let sigma = 0.5 * core::f64::consts::FRAC_1_SQRT_2 * sensitivity;
    let quarters = (4.0 * sigma).ceil() as u64;
    let noise = |quarters| Sigma::new(quarters, 4).ok();
    let half = 1 << 31;
    assert_eq!(declines(least(half), noise(quarters)), None);
    assert_eq!(
        declines(least(half), noise(quarters - 1)),
        Some(Decline::Noise)
    );
    assert_eq!(declines(least(1), None), Some(Decline::Noise));
    assert_eq!(declines(least(0), None), None);
    // Noise on one example does not cover the device.
    let local = Policy {
        min_noise_multiplier: NoiseMultiplier::from_units(1),
        ..policy()
    };
    assert_eq!(declines(local, noise(1 << 40)), Some(Decline::Noise));
    let mut board = learner(local, ledger());
    assert!(takes_part(&mut board, 3, asked(TRAINING, noise(1 << 40))).done);
}

#[test]
fn what_a_device_cannot_do_costs_no_participation() {
    let mut board = learner(policy(), ledger());
    let mut declines = |asked: Invitation, model: Vec<f32>, expected| {
        let other = part(&mut board, 3, asked, model);
        assert_eq!(other.declined, Some(expected));
    };
    let change = |part, change: fn(&mut ContrastRequest)| {
        let mut asked = asked(part, None);
        let mut request = *asked.contrast().unwrap();
        change(&mut request);
        asked.request = Some(Request::Contrast(request));
        asked
    };
    // More views than the memory can hold.
    let many = change(TRAINING, |request| request.pairs = 32);
    declines(many, comes_down(TRAINING), Decline::Memory);
    // A matrix with bits for fewer samples than the device has.
    let few = change(Part::Matrix, |request| request.max_samples = 9);
    declines(few, comes_down(Part::Matrix), Decline::Work);
    // Augmentations that are unknown to the device or invalid.
    for (place, value) in [(2, 1.0), (8, f32::NAN), (11, -1.0)] {
        let mut down = comes_down(TRAINING);
        down[COUNT + place] = value;
        declines(asked(TRAINING, None), down, Decline::Settings);
    }
    let mut down = comes_down(TRAINING);
    down[COUNT + 12] = f32::INFINITY;
    declines(asked(TRAINING, None), down, Decline::Settings);
    // An invitation to train with labels.
    let mut labelled = invitation(None);
    labelled.shape = asked(TRAINING, None).shape;
    declines(labelled, comes_down(TRAINING), Decline::Shape);
    assert_eq!(board.ledger().past().participations, 0);
    assert!(takes_part(&mut board, 3, asked(TRAINING, None)).done);
}

/// A device with labels reports that it trains another model, and does nothing.
#[test]
fn a_model_with_labels_sends_no_matrix() {
    let mut asked = asked(Part::Matrix, noise());
    asked.shape = invitation(None).shape;
    let mut request = *asked.contrast().unwrap();
    request.entries = MATRIX as u32 + 1;
    asked.request = Some(Request::Contrast(request));
    let mut board = board(policy(), ledger(), 0);
    let mut other = Coordinator::new(chain(), 3, asked, model());
    run(&mut board, &mut other, |bytes| bytes);
    assert_eq!(other.declined, Some(Decline::Personal));
    assert_eq!(board.ledger().past().participations, 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// A request is either refused or has the lengths that its shape needs.
    #[test]
    fn requests_that_make_no_sense_are_no_invitations(
        matrix in any::<bool>(), pairs in 0u32..40, bound in -1.0f32..2.0,
        entries in 0u32..200, samples in 0u32..(1 << 21),
    ) {
        let mut asked = asked(if matrix { Part::Matrix } else { TRAINING }, None);
        let part = asked.contrast().unwrap().part;
        let request = ContrastRequest {
            part,
            pairs,
            norm_bound: Some(bound),
            entries,
            max_samples: samples,
        };
        asked.request = Some(Request::Contrast(request));
        let is_valid = (1..=32).contains(&pairs)
            && bound > 0.0
            && if matrix {
                entries == 22 && (1..=1 << 20).contains(&samples)
            } else {
                entries == COUNT as u32 && samples == 0
            };
        let unpacked = PackedInvitation::from(&asked).bytes().unpack();
        prop_assert_eq!(unpacked.is_some(), is_valid);
    }
}

/// Both parts of a round have its number: the second one replaces the first.
#[test]
fn each_part_of_a_round_is_held_and_goes_out_after_a_restart() {
    use crate::personal::store::flash::FlashStore;

    let features = features();
    let samples = SampleSlice::new(&features, &[(); SAMPLES], FEATURES).unwrap();
    let bytes = held_bytes(COUNT, 64) as usize;
    let mut store = FlashStore::new(Ram::<4, 64>::new(vec![0xff; bytes])).unwrap();
    let mut board = learner(policy(), ledger());
    for part in [Part::Matrix, TRAINING] {
        let asked = asked(part, noise());
        board.send(Answer::Hello);
        let mut other = Coordinator::new(chain(), 3, asked, comes_down(part));
        while board.phase() != Phase::Sending {
            harness::transmit(&mut board, |said| other.receive(said));
            if board.phase() == Phase::Idle {
                other.invite();
            }
            for said in core::mem::take(&mut other.outgoing) {
                board.receive(&said);
            }
            board.train(&samples);
        }
        assert_eq!(board.hold(&mut store), Ok(true), "{part:?}");
        assert_eq!(board.ledger().past().participations, 1);
        // Another device after a restart, while this one continues.
        let mut twin = learner(policy(), self::ledger());
        takes_part(&mut twin, 3, self::asked(Part::Matrix, noise()));
        let mut restarted = learner(policy(), twin.into_ledger());
        assert_eq!(restarted.resume(&mut store), Ok(Some(3)));
        let sent = takes_part(&mut restarted, 3, asked).integers;
        let expected = match part {
            Part::Matrix => matrix(3, &asked),
            Part::Training { .. } => update(3, &asked),
        };
        assert_eq!(sent, expected, "{part:?}");
        let sent = takes_part(&mut board, 3, asked).integers;
        assert_eq!(sent, expected, "{part:?}");
    }
}
