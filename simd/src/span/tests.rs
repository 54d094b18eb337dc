//! Compares training in the span with the core's, for every model and setting.

use std::num::NonZeroU32;

use proptest::prelude::*;
use rand_core::Rng;
use smolfed_core::params::{ClipNorm, LearningRate};
use smolfed_core::personal::{self, StepMemory};
use smolfed_core::stream::{Purpose, Root, StreamId};
use smolfed_core::train::{self, Workspace};

use super::*;

/// Bound on the differences of entries, in units of the largest entry of the model during training.
const TOLERANCE: f32 = 1e-5;

/// Settings of a device's training, with data from a seed.
#[derive(Clone, Copy, Debug)]
struct Case {
    seed: u64,
    samples: usize,
    features: usize,
    outputs: usize,
    settings: LocalTraining,
}

impl Case {
    fn stream(&self, purpose: Purpose) -> Stream {
        Root::from_seed(self.seed).stream(StreamId {
            purpose,
            round: 0,
            device: 0,
        })
    }

    /// Returns values in [-1, 1).
    fn values(&self, count: usize, rng: &mut Stream) -> Vec<f32> {
        let value = |_| rng.next_u32() as i32 as f32 / (1u32 << 31) as f32;
        (0..count).map(value).collect()
    }

    /// Returns the model, the features and the start of training.
    fn data(&self) -> (Vec<f32>, Vec<f32>, Stream) {
        let mut rng = self.stream(Purpose::Synthesis);
        let features = self.values(self.samples * self.features, &mut rng);
        let start = self.values((self.features + 1) * self.outputs, &mut rng);
        (features, start, rng)
    }

    /// Returns the updates and reports of both ways.
    fn both<M: InSpan<Target: Copy + Default>>(
        &self,
        model: &M,
        target: impl Fn(&mut Stream) -> M::Target,
    ) -> [Result<(Vec<f32>, TrainReport), TrainError>; 2] {
        let (features, global, mut rng) = self.data();
        let targets: Vec<_> = (0..self.samples).map(|_| target(&mut rng)).collect();
        let numbers: Vec<u32> = (0..self.samples as u32).rev().collect();
        let rows = Rows::new(&features, self.features, &targets, &numbers);
        let mut direct = vec![0.0; global.len()];
        let work = Workspace {
            local: &mut vec![0.0; global.len()],
            update: &mut direct,
            order: &mut vec![0; self.samples],
            scratch: &mut vec![0.0; 16 * self.outputs],
        };
        let mut order = self.stream(Purpose::BatchShuffle);
        let report = train::local_update(model, &rows, &global, &self.settings, &mut order, work);
        let expected = report.map(|report| (direct, report));

        let mut update = vec![f32::NAN; global.len()];
        let mut order = self.stream(Purpose::BatchShuffle);
        let samples = WithGram {
            rows: &rows,
            gram: &Gram::new(&rows),
        };
        let report = model.update_in_span(
            samples,
            &global,
            &mut update,
            &self.settings,
            &mut order,
            &mut SpanBuffers::default(),
        );
        [expected, report.map(|report| (update, report))]
    }

    /// Trains a model with this many outputs. Two outputs mean logistic regression or a softmax.
    fn of_any_model(&self, is_linear: bool) -> [Result<(Vec<f32>, TrainReport), TrainError>; 2] {
        let class = |rng: &mut Stream| (rng.next_u32() % 7) as u16;
        match (self.outputs, is_linear) {
            (1, true) => self.both(&Linear::new(self.features), |rng| self.values(1, rng)[0]),
            (1, false) => self.both(&Logistic::new(self.features), |rng| class(rng) % 2),
            // Some targets are invalid classes.
            (outputs, _) => self.both(&Softmax::new(self.features, outputs), class),
        }
    }
}

fn largest(v: &[f32]) -> f32 {
    v.iter().fold(0.0, |largest, x| x.abs().max(largest))
}

fn cases() -> impl Strategy<Value = Case> {
    let sizes = (1usize..40, 1usize..40, 1usize..6);
    let penalty = prop_oneof![Just(0.0f32), 1e-4f32..0.3];
    let bound = proptest::option::of(0.01f32..3.0);
    let settings = (
        1u32..5,
        1u32..45,
        0.01f32..0.3,
        penalty.clone(),
        penalty,
        bound,
        any::<bool>(),
    );
    (any::<u64>(), sizes, settings).prop_map(|(seed, (samples, features, outputs), settings)| {
        let (epochs, batch_size, rate, decay, proximal, bound, is_final) = settings;
        Case {
            seed,
            samples,
            features,
            outputs,
            settings: LocalTraining {
                clip_norm: bound.map(|bound| ClipNorm::new(bound).unwrap()),
                clipping: if is_final {
                    Clipping::Final
                } else {
                    Clipping::EveryStep
                },
                weight_decay: Penalty::new(decay).unwrap(),
                proximal: Penalty::new(proximal).unwrap(),
                // The sum of squares of a sample is below `features`, so no model diverges.
                ..LocalTraining::new(
                    LearningRate::new(rate / features as f32).unwrap(),
                    ClipNorm::new(1.0).unwrap(),
                )
                .with_epochs(epochs)
                .with_batch_size(NonZeroU32::new(batch_size).unwrap())
            },
        }
    })
}

proptest! {
    /// Updates and reports equal the core's up to rounding, for any model and settings.
    #[test]
    fn training_is_the_cores_up_to_rounding(case in cases(), is_linear: bool) {
        let [expected, found] = case.of_any_model(is_linear);
        let ((expected, of_core), (found, report)) = (expected.unwrap(), found.unwrap());
        // The start has entries up to 1.
        let scale = 1.0 + largest(&expected);
        for (found, expected) in found.iter().zip(&expected) {
            prop_assert!((found - expected).abs() <= TOLERANCE * scale, "{found} {expected}");
        }
        let close = |a: f32, b: f32| (a - b).abs() <= 1e-4 * (a.abs() + b.abs()) + TOLERANCE;
        prop_assert_eq!(report.steps, of_core.steps);
        prop_assert_eq!(report.clipping_chances, of_core.clipping_chances);
        prop_assert!(close(report.first_loss, of_core.first_loss), "{report:?} {of_core:?}");
        prop_assert!(close(report.last_loss, of_core.last_loss), "{report:?} {of_core:?}");
        prop_assert!(close(report.norm, of_core.norm), "{report:?} {of_core:?}");
        if let Some(bound) = case.settings.clip_norm {
            prop_assert!(norm(&found) <= bound.get() * (1.0 + 1e-6));
        }
    }

    /// The sum of losses equals the core's up to rounding, for every model.
    #[test]
    fn losses_are_the_cores_up_to_rounding(case in cases()) {
        let (features, _, mut rng) = case.data();
        let width = case.features;
        let classes = case.outputs as u32;
        let label = |_| (rng.next_u32() % classes) as u16;
        let labels: Vec<u16> = (0..case.samples).map(label).collect();
        let bits: Vec<u16> = labels.iter().map(|label| label % 2).collect();
        // Scores may be any numbers, and the features are available.
        let of = |outputs: usize| {
            let numbers = features.iter().cycle().map(|x| 4.0 * x);
            numbers.take(case.samples * outputs).collect::<Vec<_>>()
        };
        let targets = of(2)[case.samples..].to_vec();
        for [fused, direct] in [
            both_losses(&Softmax::new(width, case.outputs), of(case.outputs), &labels),
            both_losses(&Logistic::new(width), of(1), &bits),
            both_losses(&Linear::new(width), of(1), &targets),
        ] {
            prop_assert!((fused - direct).abs() <= TOLERANCE * (1.0 + direct), "{fused} {direct}");
        }
    }

    /// Scores equal the core's up to rounding, and the same errors are returned.
    #[test]
    fn scores_are_the_cores_up_to_rounding(case in cases()) {
        let (features, parameters, mut rng) = case.data();
        let model = Softmax::new(case.features, case.outputs);
        let numbers: Vec<u32> = (0..case.samples as u32).collect();
        let targets = vec![0; case.samples];
        let rows = Rows::new(&features, case.features, &targets, &numbers);
        let drawn = numbers.iter().map(|_| rng.next_u32() % case.samples as u32);
        let batch: Vec<u32> = drawn.collect();
        let both = |batch: &[u32], parameters: &[f32], length: usize| {
            let mut scores = [vec![0.0; length], vec![0.0; length]];
            let [direct, fused] = &mut scores;
            let results = (
                model.row_scores(parameters, &rows, batch, &mut [], direct),
                model.fused_scores(parameters, &rows, batch, fused),
            );
            (results, scores)
        };
        let length = batch.len() * case.outputs;
        let (results, [direct, fused]) = both(&batch, &parameters, length);
        prop_assert_eq!(results, (Ok(()), Ok(())));
        for (fused, direct) in fused.iter().zip(&direct) {
            prop_assert!((fused - direct).abs() <= TOLERANCE * (case.features + 1) as f32);
        }
        let short = &parameters[1..];
        let beyond = [case.samples as u32];
        for (batch, parameters, length) in [
            (&batch[..], short, length),
            (&batch, &parameters, length + 1),
            (&beyond, &parameters, case.outputs),
            (&[], &parameters, 0),
        ] {
            let ((direct, fused), _) = both(batch, parameters, length);
            prop_assert!(direct.is_err());
            prop_assert_eq!(direct, fused);
        }
    }

    /// The same holds for personal models, with and without a pull to another model.
    #[test]
    fn personal_training_is_the_cores_up_to_rounding(
        case in cases(),
        steps in 1u32..12,
        is_pulled: bool,
    ) {
        let (features, start, mut rng) = case.data();
        let shared = case.values(start.len(), &mut rng);
        let model = Softmax::new(case.features, case.outputs);
        let targets: Vec<_> = (0..case.samples).map(|_| (rng.next_u32() % 3) as u16).collect();
        let numbers: Vec<u32> = (0..case.samples as u32).collect();
        let rows = Rows::new(&features, case.features, &targets, &numbers);
        let settings = PersonalTraining {
            effort: Effort::Steps(NonZeroU32::new(steps).unwrap()),
            batch_size: case.settings.batch_size,
            learning_rate: case.settings.learning_rate,
            weight_decay: case.settings.weight_decay,
        };
        let anchor = Anchor { at: &shared, strength: case.settings.proximal, importance: None };
        let anchor = is_pulled.then_some(&anchor);

        let mut expected = start.clone();
        let memory = StepMemory {
            gradient: &mut vec![0.0; start.len()],
            order: &mut vec![0; case.samples],
            scratch: &mut vec![0.0; 16 * case.outputs],
        };
        let mut order = case.stream(Purpose::BatchShuffle);
        let of_core = personal::descend(
            &model, &rows, &mut expected, anchor, &settings, &mut order, memory,
        )
        .unwrap();

        let mut found = start;
        let mut order = case.stream(Purpose::BatchShuffle);
        let gram = Gram::new(&rows);
        let mut buffers = SpanBuffers::default();
        let samples = WithGram {
            rows: &rows,
            gram: &gram,
        };
        let report = model.descend_in_span(
            samples, &mut found, anchor, &settings, &mut order, &mut buffers,
        );
        let report = report.unwrap();
        let scale = 1.0 + largest(&expected);
        for (found, expected) in found.iter().zip(&expected) {
            prop_assert!((found - expected).abs() <= TOLERANCE * scale, "{found} {expected}");
        }
        prop_assert_eq!(report.steps, of_core.steps);
        let apart = (report.last_loss - of_core.last_loss).abs();
        prop_assert!(apart <= 1e-4, "{report:?} {of_core:?}");
    }
}

fn case(samples: usize) -> Case {
    let (rate, bound) = (LearningRate::new(0.1).unwrap(), ClipNorm::new(0.3).unwrap());
    let settings = LocalTraining::new(rate, bound).with_epochs(3);
    Case {
        seed: 1,
        samples,
        features: 50,
        outputs: 3,
        settings,
    }
}

#[test]
fn a_device_without_samples_is_refused() {
    let [expected, found] = case(0).of_any_model(false);
    assert_eq!(expected.unwrap_err(), TrainError::NoSamples);
    assert_eq!(found.unwrap_err(), TrainError::NoSamples);
}

#[test]
fn one_sample_and_a_batch_larger_than_all_are_fine() {
    for samples in [1, 2, 15, 16, 17] {
        let [expected, found] = case(samples).of_any_model(false);
        let ((expected, of_core), (found, report)) = (expected.unwrap(), found.unwrap());
        assert_eq!(report.clipped_steps, of_core.clipped_steps);
        for (found, expected) in found.iter().zip(&expected) {
            assert!((found - expected).abs() <= 1e-6, "{found} {expected}");
        }
    }
}

#[test]
fn divergence_is_refused() {
    let rate = LearningRate::new(1e30).unwrap();
    for clipping in [Clipping::EveryStep, Clipping::Final] {
        let settings = LocalTraining {
            learning_rate: rate,
            clipping,
            ..case(9).settings
        };
        let diverging = Case {
            outputs: 1,
            settings,
            ..case(9)
        };
        let [_, found] = diverging.of_any_model(true);
        assert_eq!(found.unwrap_err(), TrainError::Diverged);
    }
}

/// Decay by far more than the model makes the common factor leave and re-enter its range.
#[test]
fn a_decay_that_turns_the_model_around_is_followed() {
    for decay in [9.99, 10.0, 10.5, 15.0] {
        let settings = case(20)
            .settings
            .with_weight_decay(Penalty::new(decay).unwrap());
        let case = Case {
            settings: settings.with_clipping(Clipping::Final),
            ..case(20)
        };
        let [expected, found] = case.of_any_model(false);
        let ((expected, _), (found, _)) = (expected.unwrap(), found.unwrap());
        for (found, expected) in found.iter().zip(&expected) {
            assert!(
                (found - expected).abs() <= 1e-6,
                "{decay}: {found} {expected}"
            );
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let (features, targets) = ([1.0, 2.0, 3.0, 4.0], [0u16, 1]);
    let rows = Rows::new(&features, 2, &targets, &[0, 1]);
    let (model, mut buffers) = (Softmax::new(2, 2), SpanBuffers::default());
    let mut order = case(2).stream(Purpose::BatchShuffle);
    let mut train = |model: &Softmax<usize, usize>, rows: &Rows<'_, u16>, gram, global: &[f32]| {
        model.update_in_span(
            WithGram { rows, gram },
            global,
            &mut [0.0; 6],
            &case(2).settings,
            &mut order,
            &mut buffers,
        )
    };
    let gram = Gram::new(&rows);
    assert!(train(&model, &rows, &gram, &[0.0; 6]).is_ok());
    let wrong = train(&model, &rows, &gram, &[0.0; 5]);
    assert_eq!(
        wrong.unwrap_err(),
        TrainError::Workspace {
            expected: 6,
            found: 5
        }
    );
    let one = Rows::new(&features, 2, &targets, &[0]);
    let wrong = train(&model, &one, &gram, &[0.0; 6]);
    assert_eq!(
        wrong.unwrap_err(),
        TrainError::Workspace {
            expected: 1,
            found: 2
        }
    );
    let missing = Rows::new(&features, 2, &targets, &[0, 7]);
    let wrong = train(&model, &missing, &gram, &[0.0; 6]);
    let expected = ModelError::Features {
        expected: 2,
        found: 0,
    };
    assert_eq!(wrong.unwrap_err(), TrainError::Model(expected));
    let wrong = train(&Softmax::new(2, 0), &rows, &gram, &[]);
    assert!(wrong.is_err());
}

#[test]
fn a_gram_matrix_prints_its_shape_alone() {
    let rows = Rows::new(&[1.0, 2.0], 1, &[0u16, 1], &[0, 1]);
    assert_eq!(format!("{:?}", Gram::new(&rows)), "Gram(2 samples)");
    assert_eq!(Gram::bytes(50), 50 * 64 * 4);
}

/// eˣ is within two units in the last place.
#[test]
fn the_exponential_function_is_accurate() {
    struct Exp(Vec<f32>);
    impl WithSimd for Exp {
        type Output = Vec<f32>;
        #[inline(always)]
        fn with_simd<S: Simd>(mut self, simd: S) -> Vec<f32> {
            for x in S::as_mut_simd_f32s(&mut self.0).0 {
                *x = exp::exp(simd, *x);
            }
            self.0
        }
    }
    let x: Vec<f32> = (0..16_000).map(|i| -87.0 * i as f32 / 15_999.0).collect();
    for (found, x) in Arch::new().dispatch(Exp(x.clone())).into_iter().zip(x) {
        let expected = f64::from(x).exp();
        assert!(
            (f64::from(found) / expected - 1.0).abs() <= 2.4e-7,
            "exp({x}) = {found}"
        );
    }
    assert_eq!(Arch::new().dispatch(Exp(vec![0.0; 16])), [1.0; 16]);
}

/// Returns the sum of losses, fused and from the core.
fn both_losses<M: InSpan>(model: &M, mut scores: Vec<f32>, targets: &[M::Target]) -> [f32; 2] {
    let fused = model.fused_loss(&scores, targets, &mut SpanBuffers::default());
    let mut losses = vec![0.0; targets.len()];
    model.row_losses(&mut scores, targets, &mut losses);
    [fused, losses.iter().sum()]
}
