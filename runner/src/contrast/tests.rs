//! Rounds without labels: who sends matrices, with how much noise, and what comes of it.

use smolfed_core::contrast::correlation::sensitivity_in_steps;
use smolfed_core::stream::Root;

use super::device::{Buffers, DeviceRound, Unlabelled};
use crate::config::{Config, Override};
use crate::data::synthetic::DeviceBuffer;
use crate::data::{DataFolders, Federation};
use crate::experiment::Experiment;
use crate::privacy::statement::Subject;
use crate::rounds::{Start, Training, Updates};

use super::*;

/// Twenty devices of one or two digits each.
const SOUND: &str = "method = \"fedsc\"\nseed = 3\nrounds = 6\n[data]\nsource = \"digits\"\npartition = \"shards\"\n\
                     devices = 20\nshards_per_device = 1\nvalidation = 0\nscale = \"unit\"\n[cohort]\nsampling = \
                     \"full\"\n[train]\nepochs = 1\nbatch_size = 16\nlearning_rate = 0.02\nweight_decay = 0\n\
                     [contrast]\nwidth = 8\n";

fn settle(settings: &[&str]) -> (Experiment, Federation) {
    let overrides: Vec<Override> = settings.iter().map(|s| s.parse().unwrap()).collect();
    let config = Config::parse(SOUND, "test", &overrides).unwrap();
    let folders = DataFolders::of_experiment(None);
    let federation = Federation::new(&config.data, &folders, config.seed).unwrap();
    (Experiment::new(config, &federation).unwrap(), federation)
}

/// Trains to the end; the parameters, the matrices, and who was charged in which round.
fn train(settings: &[&str]) -> (Vec<f32>, Matrices, Vec<(u32, bool)>, Experiment) {
    let (experiment, federation) = settle(settings);
    let plan = experiment.contrast.as_ref().unwrap();
    let width = smolfed_core::contrast::Representation::width(&plan.network);
    let rounds = experiment.config.rounds;
    let mut updates = Contrasting::new(&federation, plan, rounds, Matrices::new(width));
    let start = Start::simulation(&experiment);
    let mut training = Training::new(&experiment, &federation, start);
    let mut charges = Vec::new();
    while !training.is_done() {
        let charge = &mut |round, event: crate::privacy::event::PrivacyEvent| {
            let is_matrix = event.unit == crate::privacy::event::PrivacyUnit::Example;
            charges.push((round, is_matrix));
            Ok(())
        };
        training.step(&mut updates, charge).unwrap();
    }
    let global = training.global().to_vec();
    let matrices = Updates::matrices(&updates);
    let matrices = matrices.cloned().unwrap_or_else(|| Matrices::new(width));
    (global, matrices, charges, experiment)
}

/// All devices send one in the first round with matrices, then the cohort of every second round.
#[test]
fn releases_are_counted_by_device_and_charged_by_round() {
    let settings = [
        "cohort.sampling=uniform",
        "cohort.cohort_size=5",
        "contrast.share_from=1",
        "contrast.share_every=2",
    ];
    let (_, matrices, charges, experiment) = train(&settings);
    let releases = matrices.sent().values().map(|sent| sent.releases);
    // Rounds 1, 3 and 5: twenty devices once, then five twice.
    assert_eq!(releases.clone().sum::<u32>(), 20 + 5 + 5);
    assert_eq!(releases.min(), Some(1));
    let (least, most) = matrices.range_of_releases().unwrap();
    assert!(least == 1 && (2..=3).contains(&most));
    let of_matrices: Vec<u32> = charges.iter().filter(|c| c.1).map(|c| c.0).collect();
    assert_eq!(of_matrices, [1, 3, 5]);
    // Matrices also cost a whole device something.
    assert_eq!(charges.len(), 6 + 3 + 3);
    let [updates, of_matrices] = &experiment.statements(6, Some((1, 2))).unwrap()[..] else {
        panic!("two statements");
    };
    assert_eq!(updates.subject, Subject::Updates);
    assert_eq!(of_matrices.subject, Subject::CorrelationMatrices);
    assert!(updates.epsilon.is_infinite() && of_matrices.epsilon.is_infinite());
    let unprotected = "The encoder is not protected";
    let words = updates.in_words();
    assert!(words.contains(unprotected), "{words}");
    // A clip norm alone protects nothing, and a target for matrices that are not sent nothing either.
    let without_noise = ["privacy.clip_norm=1", "contrast.privacy.epsilon=8"];
    let average = [&["method=fedavg-sc"], &without_noise[..]].concat();
    for (settings, more) in [
        (&without_noise[..], unprotected),
        (&average, "nothing to protect"),
    ] {
        let statements = settle(settings).0.statements(6, None).unwrap();
        let words = statements[0].in_words();
        assert!(
            words.contains(unprotected) && words.contains(more),
            "{words}"
        );
    }
    let words = of_matrices.in_words();
    let range = "Devices sent between 1 and 2 matrices";
    assert!(words.contains(range), "{words}");
}

#[test]
fn a_device_that_may_send_no_more_keeps_its_last_matrix() {
    let full = train(&[]).1;
    assert_eq!(full.range_of_releases(), Some((6, 6)));
    let (_, capped, charges, experiment) = train(&["contrast.max_releases=2"]);
    // Six rounds of updates, six with matrices of somebody, two in which a device can have sent one.
    assert_eq!(charges.len(), 6 + 6 + 2);
    assert!(capped.sent().values().all(|sent| sent.releases == 2));
    let matrices = experiment.matrix_privacy.unwrap();
    assert_eq!(matrices.event.exposure().count(), 1);
    assert_eq!(matrices.event.with_count(6).exposure().count(), 2);
}

/// The noise is what a Gaussian of the target's multiplier needs, and the matrices have it: the sum of squares of
/// their differences to those without noise is a chi-square of 720 degrees of freedom, beyond ±26 % of its mean
/// with a probability below 1e-6.
#[test]
fn matrices_carry_the_noise_that_their_target_needs() {
    let settings = ["contrast.privacy.epsilon=3", "contrast.privacy.delta=1e-4"];
    let (experiment, federation) = settle(&settings);
    let plan = experiment.contrast.as_ref().unwrap();
    let privacy = experiment.matrix_privacy.as_ref().unwrap();
    let epsilon = privacy.estimate(6).unwrap().epsilon;
    assert!((2.999..=3.0).contains(&epsilon), "{epsilon}");
    let sharing = plan.sharing.as_ref().unwrap();
    let sensitivity = sensitivity_in_steps(20, 8, 1);
    let least = privacy.multiplier().get() / std::f64::consts::SQRT_2 * sensitivity;
    assert!((1.0..1.000_01).contains(&(sharing.noise_std / least)));
    // Six releases of sensitivity one are a Gaussian of 1/√6 the std.
    let known =
        crate::privacy::gdp::epsilon(6f64.sqrt() * sensitivity / sharing.noise_std, privacy.delta);
    assert!((known - 3.0).abs() < 1e-3, "{known}");

    let (root, mut buffers) = (Root::from_seed(3), Buffers::new(plan, 16));
    let global = plan.network.initial(&root);
    let silent = Sharing {
        noise: None,
        ..sharing.clone()
    };
    let mut squares = 0.0;
    for device in 0..20 {
        let mut buffer = DeviceBuffer::default();
        let round = DeviceRound {
            plan,
            root: &root,
            number: 0,
            device,
            samples: Unlabelled::View(federation.device(device, &mut buffer)),
            global: &global,
        };
        let noisy = round.matrix(sharing, &mut buffers).unwrap();
        let clean = round.matrix(&silent, &mut buffers).unwrap();
        let differences = noisy.iter().zip(&clean).map(|(a, b)| (a - b) as f64);
        squares += differences
            .map(|x| (x / sharing.noise_std).powi(2))
            .sum::<f64>();
    }
    assert!((squares / 720.0 - 1.0).abs() < 0.26, "{squares}");
}

/// Whether representations are finite depends on samples: with noise of its own, a device is not to be told from the
/// others. Core tests that one sample cannot take the others away.
#[test]
fn with_noise_a_device_always_sends_something() {
    let (experiment, federation) = settle(&["contrast.privacy.epsilon=3"]);
    let plan = experiment.contrast.as_ref().unwrap();
    let sharing = plan.sharing.as_ref().unwrap();
    let (root, mut buffers) = (Root::from_seed(3), Buffers::new(plan, 16));
    let broken = vec![f32::MAX; experiment.shared_count()];
    let mut buffer = DeviceBuffer::default();
    let round = DeviceRound {
        plan,
        root: &root,
        number: 0,
        device: 1,
        samples: Unlabelled::View(federation.device(1, &mut buffer)),
        global: &broken,
    };
    let sent = round.matrix(sharing, &mut buffers).unwrap();
    assert!(sent.iter().filter(|x| **x != 0).count() > 30);
    let silent = Sharing {
        noise: None,
        ..sharing.clone()
    };
    assert!(round.matrix(&silent, &mut buffers).is_err());
}

/// Without any matrix of another device, a round is one of federated averaging.
#[test]
fn until_matrices_are_there_it_is_federated_averaging() {
    let with_update = train(&["rounds=1", "contrast.exchange=with-update"]);
    let average = train(&["rounds=1", "method=fedavg-sc"]);
    let before = train(&["rounds=1", "contrast.alpha=share"]);
    assert_eq!(with_update.0, average.0);
    assert_ne!(before.0, average.0);
    assert_eq!(with_update.1.range_of_releases(), Some((1, 1)));
    // From a later round on it is not.
    let late = train(&["rounds=3", "contrast.share_from=2", "contrast.alpha=share"]);
    let average = train(&["rounds=3", "method=fedavg-sc"]);
    assert_ne!(late.0, average.0);
}

/// With each device's share as α, and one step of all samples, devices together step as one that has them all, but
/// for the random views.
#[test]
fn with_shares_a_round_is_one_of_all_samples_in_one_place() {
    let settings = [
        "rounds=1",
        "train.batch_size=2000",
        "contrast.augment.jitter=1e-6",
    ];
    let step = |more: &[&str]| {
        let (experiment, _) = settle(&settings);
        let before = experiment
            .contrast
            .unwrap()
            .network
            .initial(&Root::from_seed(3));
        let after = train(&[&settings, more].concat()).0;
        let step: Vec<f32> = after.iter().zip(before).map(|(a, b)| a - b).collect();
        step
    };
    let central = step(&["method=central-sc"]);
    let norm = |x: &[f32]| smolfed_core::lanes::norm(x);
    let away = |x: Vec<f32>| {
        let difference: Vec<f32> = x.iter().zip(&central).map(|(a, b)| a - b).collect();
        norm(&difference) / norm(&central)
    };
    let (shares, average) = (
        away(step(&["contrast.alpha=share"])),
        away(step(&["method=fedavg-sc"])),
    );
    assert!(shares < 1e-3 && average > 0.02, "{shares} {average}");
}

#[test]
fn settings_that_cannot_be_are_refused_in_a_sentence() {
    for (settings, start) in [
        (
            &["contrast.views=3"][..],
            "`contrast.views` is 3: it must be an even number",
        ),
        (&["contrast.views=0"], "`contrast.views` is 0"),
        (
            &["contrast.width=65"],
            "`contrast.width` is 65: it must be at most 64",
        ),
        (
            &["contrast.width=1000"],
            "`contrast.width` is 1000: it must be at most 256",
        ),
        (
            &["contrast.norm_bound=0"],
            "`contrast.norm_bound` is 0: it must be above 0",
        ),
        (&["contrast.norm_bound=-1"], "`contrast.norm_bound` is -1"),
        (
            &["contrast.share_from=6"],
            "`contrast.share_from` is 6: it must be below the 6 rounds",
        ),
        (&["contrast.max_releases=0"], "`contrast.max_releases` is 0"),
        (
            &["contrast.augment.rotation=10"],
            "`contrast.augment.rotation` and `data.axes`",
        ),
        (
            &["contrast.augment.jitter=0"],
            "`contrast.augment` is missing",
        ),
        (
            &["contrast.augment.channel_drop=2"],
            "`contrast.augment.channel_drop` is 2",
        ),
        (
            &["contrast.privacy.delta=1"],
            "`contrast.privacy.delta` is 1",
        ),
        (
            &[
                "contrast.privacy.epsilon=1",
                "contrast.privacy.noise_multiplier=1",
            ],
            "`contrast.privacy.epsilon` and `contrast.privacy.noise_multiplier` contradict",
        ),
        (
            &[
                "privacy.epsilon=1",
                "privacy.clip_norm=1",
                "contrast.privacy.epsilon=8",
            ],
            "`privacy.epsilon` is 1: no noise multiplier keeps epsilon at or below 1",
        ),
        (
            &["model.kind=linear"],
            "`model.kind` is \"linear\", but the method learns an encoder",
        ),
        (
            &[
                "method=central-sc",
                "privacy.epsilon=1",
                "privacy.clip_norm=1",
            ],
            "`method` and `privacy` contradict",
        ),
    ] {
        let overrides: Vec<Override> = settings.iter().map(|s| s.parse().unwrap()).collect();
        let config = Config::parse(SOUND, "test", &overrides).unwrap();
        let folders = DataFolders::of_experiment(None);
        let federation = Federation::new(&config.data, &folders, 3).unwrap();
        let sentence = Experiment::new(config, &federation)
            .unwrap_err()
            .to_string();
        assert!(sentence.starts_with(start), "{sentence}");
        assert!(!sentence.contains('\n'), "{sentence}");
    }
}
