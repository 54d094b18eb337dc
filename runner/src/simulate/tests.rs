//! The sum of a cohort: exact, independent of threads, without those who were left out.

use smolfed_core::params::{ClipNorm, LearningRate, Penalty};
use smolfed_core::stream::{Purpose, StreamId};
use smolfed_core::train::Clipping;

use super::*;
use crate::config::ModelConfig;
use crate::data::{DataConfig, DataFolders};

const SEED: u64 = 11;

fn federation() -> Federation {
    let config: DataConfig = toml::from_str(
        "source = \"synthetic\"\ndevices = 40\nsamples_per_device = 6\nfeatures = 5\nclasses = 3\n\
         test = 300",
    )
    .unwrap();
    Federation::new(&config, &DataFolders::new(Vec::new()), SEED).unwrap()
}

fn training(learning_rate: f32, clip_norm: Option<f32>) -> LocalTraining {
    LocalTraining {
        epochs: 2,
        batch_size: std::num::NonZeroU32::new(4).unwrap(),
        learning_rate: LearningRate::new(learning_rate).unwrap(),
        weight_decay: Penalty::NONE,
        proximal: Penalty::NONE,
        clip_norm: clip_norm.map(|norm| ClipNorm::new(norm).unwrap()),
        clipping: Clipping::EveryStep,
        gradient_smoothing: None,
    }
}

fn grid() -> Grid {
    Grid::new(ClipNorm::new(0.25).unwrap(), 20).unwrap()
}

/// A plan for round 2 of softmax regression with clipped updates.
fn plan() -> RoundPlan<'static> {
    RoundPlan {
        task: Task::new(&ModelConfig::default(), 5, Some(3)).unwrap(),
        training: training(0.1, Some(0.25)),
        encoding: Encoding::Clipped(grid()),

        weight_cap: None,
        device_noise: None,
        round: 2,
        number: 2,
    }
}

fn train(plan: &RoundPlan<'_>, cohort: &[u32]) -> CohortSum {
    train_from(0.01, plan, cohort)
}

/// Trains from a model whose parameters are all the same.
fn train_from(parameter: f32, plan: &RoundPlan<'_>, cohort: &[u32]) -> CohortSum {
    let global = vec![parameter; plan.task.parameter_count()];
    train_cohort(plan, &federation(), &Root::from_seed(SEED), &global, cohort)
}

/// A model whose scores are not finite: no device can train from it.
const HOPELESS: f32 = f32::MAX;

fn with_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.unwrap().install(work)
}

#[test]
fn the_sum_is_that_of_single_devices() {
    let cohort = [3, 7, 8, 20, 39];
    let together = train(&plan(), &cohort);
    let mut expected = vec![0; together.sum.len()];
    for device in cohort {
        let alone = train(&plan(), &[device]);
        for (entry, part) in expected.iter_mut().zip(&alone.sum) {
            *entry += part;
        }
    }
    assert_eq!(together.sum, expected);
    assert!(together.sum.iter().any(|q| *q != 0));
    assert_eq!(together.outcomes.len(), cohort.len());
}

#[test]
fn any_number_of_threads_gives_the_same_sum_and_order() {
    let cohort: Vec<u32> = (0..37).collect();
    let noise = DiscreteGaussian::new(1 << 20, 1).unwrap();
    let plan = RoundPlan {
        device_noise: Some(&noise),
        ..plan()
    };
    let one = with_threads(1, || train(&plan, &cohort));
    for threads in [2, 3, 8, 64] {
        assert_eq!(
            with_threads(threads, || train(&plan, &cohort)),
            one,
            "{threads}"
        );
    }
}

#[test]
fn an_empty_cohort_sums_to_zero() {
    let sum = train(&plan(), &[]);
    assert_eq!(sum.sum, vec![0; 18]);
    assert!(sum.outcomes.is_empty());
}

#[test]
fn every_clipped_update_obeys_the_bound() {
    let mut clipped = 0;
    for device in 0..40 {
        let alone = train(&plan(), &[device]);
        let squares: i64 = alone.sum.iter().map(|q| q * q).sum();
        assert!(squares as u64 <= grid().bound(), "device {device}");
        if let Outcome::Trained(report) = &alone.outcomes[0] {
            clipped += report.clipped_steps;
        }
    }
    assert!(clipped > 0, "the bound was reached by some");
}

#[test]
fn devices_that_are_left_out_add_nothing_and_are_explained() {
    for (encoding, clip_norm) in [
        (Encoding::Clipped(grid()), Some(0.25)),
        (Encoding::Unbounded, None),
    ] {
        let plan = RoundPlan {
            training: training(0.1, clip_norm),
            encoding,
            ..plan()
        };
        let sum = train_from(HOPELESS, &plan, &[1, 2, 3]);
        assert_eq!(sum.sum, vec![0; 18], "{encoding:?}");
        for outcome in &sum.outcomes {
            let Outcome::LeftOut { reason } = outcome else {
                panic!("{outcome:?}");
            };
            assert!(reason.contains("diverged"), "{reason}");
        }
    }
}

/// Whether training fails depends on private data: a device with noise of its own sends that alone.
#[test]
fn a_device_that_is_left_out_sends_its_noise_all_the_same() {
    let noise = DiscreteGaussian::new(1 << 20, 1).unwrap();
    let plan = RoundPlan {
        device_noise: Some(&noise),
        ..plan()
    };
    let found = train_from(HOPELESS, &plan, &[2]);
    let mut expected = vec![0; 18];
    let id = StreamId {
        purpose: Purpose::DeviceNoise,
        round: plan.number,
        device: 2,
    };
    noise.add_to(&mut expected, &mut Root::from_seed(SEED).stream(id));
    assert_eq!(found.sum, expected);
    assert!(matches!(found.outcomes[0], Outcome::LeftOut { .. }));
}

/// Updates that are too large for the sum of unbounded ones are refused whole.
#[test]
fn unbounded_updates_beyond_the_limit_are_left_out() {
    let plan = RoundPlan {
        training: training(1e6, None),
        encoding: Encoding::Unbounded,
        ..plan()
    };
    let sum = train(&plan, &[4]);
    assert!(
        matches!(sum.outcomes[0], Outcome::LeftOut { .. }),
        "{sum:?}"
    );
    assert_eq!(sum.sum, vec![0; 18]);
}

#[test]
fn unbounded_updates_keep_nine_digits() {
    let unbounded = RoundPlan {
        training: training(0.1, None),
        encoding: Encoding::Unbounded,
        ..plan()
    };
    // A bound far away changes nothing but the steps of the integers.
    let far = Grid::new(ClipNorm::new(64.0).unwrap(), 24).unwrap();
    let bounded = RoundPlan {
        training: training(0.1, Some(64.0)),
        encoding: Encoding::Clipped(far),
        ..plan()
    };
    let (one, other) = (train(&unbounded, &[5]), train(&bounded, &[5]));
    assert_eq!(one.outcomes.len(), 1);
    for (x, y) in one.sum.iter().zip(&other.sum) {
        let x = *x as f64 * Encoding::Unbounded.step();
        let y = *y as f64 * Encoding::Clipped(far).step();
        assert!((x - y).abs() <= far.step(), "{x} and {y}");
    }
}

#[test]
fn local_noise_is_each_devices_own_stream() {
    let noise = DiscreteGaussian::new(1000, 1).unwrap();
    let noisy = RoundPlan {
        device_noise: Some(&noise),
        ..plan()
    };
    for device in [0, 9] {
        let mut expected = train(&plan(), &[device]).sum;
        let id = StreamId {
            purpose: Purpose::DeviceNoise,
            round: 2,
            device,
        };
        noise.add_to(&mut expected, &mut Root::from_seed(SEED).stream(id));
        assert_eq!(train(&noisy, &[device]).sum, expected);
    }
}

#[test]
fn rounds_and_seeds_have_their_own_randomness() {
    let other_round = RoundPlan {
        number: 3,
        ..plan()
    };
    assert_ne!(train(&plan(), &[6]).sum, train(&other_round, &[6]).sum);
    let global = vec![0.01; 18];
    let other_seed = train_cohort(&plan(), &federation(), &Root::from_seed(12), &global, &[6]);
    assert_ne!(train(&plan(), &[6]).sum, other_seed.sum);
}

#[test]
fn evaluation_does_not_depend_on_threads() {
    let config: DataConfig = toml::from_str(
        "source = \"synthetic\"\ndevices = 40\nfeatures = 5\nclasses = 3\ntest = 3000",
    )
    .unwrap();
    let federation = Federation::new(&config, &DataFolders::new(Vec::new()), SEED).unwrap();
    let task = plan().task;
    let parameters: Vec<f32> = (0..18u8).map(|i| f32::from(i % 5) - 2.0).collect();
    let score = |threads| {
        let samples = federation.test();
        with_threads(threads, || evaluate(&task, &parameters, samples, 1.0)).unwrap()
    };
    let one = score(1).unwrap();
    assert_eq!(score(8), Some(one));
    assert!(one.accuracy.is_some() && one.rmse.is_none());
    assert!(one.to_string().starts_with("accuracy "));
}

#[test]
fn nothing_is_evaluated_without_samples() {
    let config: DataConfig =
        toml::from_str("source = \"synthetic\"\ndevices = 4\nfeatures = 5\nclasses = 3\ntest = 0")
            .unwrap();
    let federation = Federation::new(&config, &DataFolders::new(Vec::new()), SEED).unwrap();
    let score = evaluate(&plan().task, &[0.0; 18], federation.test(), 1.0);
    assert_eq!(score.unwrap(), None);
    let wrong = evaluate(&plan().task, &[0.0; 17], self::federation().test(), 1.0);
    assert!(wrong.is_err(), "a model of another length is refused");
}
