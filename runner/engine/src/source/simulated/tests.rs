//! The sum of a cohort: exact, independent of threads, and without omitted devices.

use smolfed_accounting::{PrivacyEvent, TrustModel};
use smolfed_core::noise::DiscreteGaussian;
use smolfed_core::params::{ClipNorm, LearningRate, Penalty};
use smolfed_core::quantize::Grid;
use smolfed_core::stream::{Purpose, StreamId};
use smolfed_core::train::{Clipping, LocalTraining};

use super::*;
use crate::config::Config;
use crate::evaluation::samples::evaluate;
use crate::experiment::Experiment;
use crate::tables::simulation::ArithmeticName;
use smolfed_data::{DataConfig, DataFolders};
use smolfed_release::{
    Admitted, Channel, Encoding, Fault, Mechanism, Outcome, ReleaseSettings, Timing,
};

const SEED: u64 = 11;

/// Returns forty devices of six samples, five features and three classes.
fn experiment() -> (Experiment, Federation) {
    let text = "method = \"dp-fed\"\nseed = 11\nrounds = 1\n[data]\nsource = \"synthetic\"\n\
                devices = 40\nsamples_per_device = 6\nfeatures = 5\nclasses = 3\ntest = 300\n\
                [cohort]\nsampling = \"full\"\n";
    let config = Config::parse(text, "test", &[]).unwrap();
    let folders = DataFolders::new(Vec::new());
    let federation = Federation::new(&config.data, &folders, SEED).unwrap();
    (Experiment::new(config, &federation).unwrap(), federation)
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

/// A round's request to devices, and the release settings.
#[derive(Clone, Copy)]
struct Ask {
    training: LocalTraining,
    encoding: Encoding,
    device_noise: Option<DiscreteGaussian>,
    number: u32,
    seed: u64,
}

/// Returns round 2 of softmax regression with clipped updates.
fn ask() -> Ask {
    Ask {
        training: training(0.1, Some(0.25)),
        encoding: Encoding::Clipped(grid()),
        device_noise: None,
        number: 2,
        seed: SEED,
    }
}

/// Results of a cohort.
#[derive(Debug, PartialEq)]
struct Found {
    sum: Vec<i64>,
    outcomes: Vec<Outcome>,
}

fn train(ask: &Ask, cohort: &[u32]) -> Found {
    train_from(0.01, ask, cohort)
}

/// Trains from a model with equal parameters.
fn train_from(parameter: f32, ask: &Ask, cohort: &[u32]) -> Found {
    let (experiment, federation) = experiment();
    let event = PrivacyEvent {
        trust: TrustModel::Local,
        ..experiment.privacy.event()
    };
    let release = ReleaseSettings {
        channel: Channel::Updates,
        encoding: ask.encoding,
        weight_cap: None,
        mechanism: Mechanism::independent(event, ask.device_noise),
        masking: None,
        timing: Timing::EachRound,
        noise_std: 0.0,
        is_simulation: true,
        fault: Fault::None,
    };
    let assignment = Assignment {
        training: ask.training,
        release: &release,
        admitted: &Admitted::All,
        root: &Root::from_seed(ask.seed),
        global: &vec![parameter; experiment.task().parameter_count()],
        round: 2,
        number: ask.number,
    };
    let mut learner = experiment.method.begin(&federation, None).unwrap();
    let found = train_cohort(&assignment, &mut *learner, &federation, cohort).unwrap();
    Found {
        sum: found.sum.integers().to_vec(),
        outcomes: found.outcomes,
    }
}

/// A parameter that makes all scores non-finite: no device can train from such a model.
const HOPELESS: f32 = f32::MAX;

fn with_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.unwrap().install(work)
}

#[test]
fn the_sum_is_that_of_single_devices() {
    let cohort = [3, 7, 8, 20, 39];
    let together = train(&ask(), &cohort);
    let mut expected = vec![0; together.sum.len()];
    for device in cohort {
        let alone = train(&ask(), &[device]);
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
    let ask = Ask {
        device_noise: Some(noise),
        ..ask()
    };
    let one = with_threads(1, || train(&ask, &cohort));
    for threads in [2, 3, 8, 64] {
        assert_eq!(
            with_threads(threads, || train(&ask, &cohort)),
            one,
            "{threads}"
        );
    }
}

#[test]
fn an_empty_cohort_sums_to_zero() {
    let sum = train(&ask(), &[]);
    assert_eq!(sum.sum, vec![0; 18]);
    assert!(sum.outcomes.is_empty());
}

#[test]
fn every_clipped_update_obeys_the_bound() {
    let mut clipped = 0;
    for device in 0..40 {
        let alone = train(&ask(), &[device]);
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
        let ask = Ask {
            training: training(0.1, clip_norm),
            encoding,
            ..ask()
        };
        let sum = train_from(HOPELESS, &ask, &[1, 2, 3]);
        assert_eq!(sum.sum, vec![0; 18], "{encoding:?}");
        for outcome in &sum.outcomes {
            let Outcome::LeftOut { reason } = outcome else {
                panic!("{outcome:?}");
            };
            assert!(reason.contains("diverged"), "{reason}");
        }
    }
}

/// Whether training fails depends on private data: a device with its own noise sends only that.
#[test]
fn a_device_that_is_left_out_sends_its_noise_all_the_same() {
    let noise = DiscreteGaussian::new(1 << 20, 1).unwrap();
    let ask = Ask {
        device_noise: Some(noise),
        ..ask()
    };
    let found = train_from(HOPELESS, &ask, &[2]);
    let mut expected = vec![0; 18];
    let id = StreamId {
        purpose: Purpose::DeviceNoise,
        round: ask.number,
        device: 2,
    };
    noise.add_to(&mut expected, &mut Root::from_seed(SEED).stream(id));
    assert_eq!(found.sum, expected);
    assert!(matches!(found.outcomes[0], Outcome::LeftOut { .. }));
}

/// Updates that are too large for the sum of unbounded ones are refused completely.
#[test]
fn unbounded_updates_beyond_the_limit_are_left_out() {
    let ask = Ask {
        training: training(1e6, None),
        encoding: Encoding::Unbounded,
        ..ask()
    };
    let sum = train(&ask, &[4]);
    assert!(
        matches!(sum.outcomes[0], Outcome::LeftOut { .. }),
        "{sum:?}"
    );
    assert_eq!(sum.sum, vec![0; 18]);
}

#[test]
fn unbounded_updates_keep_nine_digits() {
    let unbounded = Ask {
        training: training(0.1, None),
        encoding: Encoding::Unbounded,
        ..ask()
    };
    // A distant bound changes only the steps of the integers.
    let far = Grid::new(ClipNorm::new(64.0).unwrap(), 24).unwrap();
    let bounded = Ask {
        training: training(0.1, Some(64.0)),
        encoding: Encoding::Clipped(far),
        ..ask()
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
    let noisy = Ask {
        device_noise: Some(noise),
        ..ask()
    };
    for device in [0, 9] {
        let mut expected = train(&ask(), &[device]).sum;
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
    let other_round = Ask { number: 3, ..ask() };
    assert_ne!(train(&ask(), &[6]).sum, train(&other_round, &[6]).sum);
    let other_seed = Ask { seed: 12, ..ask() };
    assert_ne!(train(&ask(), &[6]).sum, train(&other_seed, &[6]).sum);
}

#[test]
fn evaluation_does_not_depend_on_threads() {
    let config: DataConfig = toml::from_str(
        "source = \"synthetic\"\ndevices = 40\nfeatures = 5\nclasses = 3\ntest = 3000",
    )
    .unwrap();
    let federation = Federation::new(&config, &DataFolders::new(Vec::new()), SEED).unwrap();
    let task = *experiment().0.task();
    let parameters: Vec<f32> = (0..18u8).map(|i| f32::from(i % 5) - 2.0).collect();
    let score = |arithmetic, threads| {
        let samples = federation.test();
        let evaluated = || evaluate(&task, arithmetic, &parameters, samples, 1.0);
        with_threads(threads, evaluated).unwrap().unwrap()
    };
    let [one, fast] = [ArithmeticName::F32, ArithmeticName::Fast].map(|arithmetic| {
        let one = score(arithmetic, 1);
        assert_eq!(score(arithmetic, 8), one);
        one
    });
    assert!(one.accuracy.is_some() && one.rmse.is_none());
    assert!(one.to_string().starts_with("accuracy "));
    assert!((fast.loss - one.loss).abs() < 1e-6 && fast.accuracy == one.accuracy);
}

#[test]
fn nothing_is_evaluated_without_samples() {
    let config: DataConfig =
        toml::from_str("source = \"synthetic\"\ndevices = 4\nfeatures = 5\nclasses = 3\ntest = 0")
            .unwrap();
    let federation = Federation::new(&config, &DataFolders::new(Vec::new()), SEED).unwrap();
    let task = *experiment().0.task();
    for arithmetic in [ArithmeticName::F32, ArithmeticName::Fast] {
        let score = evaluate(&task, arithmetic, &[0.0; 18], federation.test(), 1.0);
        assert_eq!(score.unwrap(), None);
        let wrong = evaluate(&task, arithmetic, &[0.0; 17], experiment().1.test(), 1.0);
        assert!(wrong.is_err(), "a model of another length is refused");
    }
}
