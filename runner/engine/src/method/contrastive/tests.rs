//! Rounds without labels: the senders of matrices, their noise, and the results.

use smolfed_core::contrast::correlation::sensitivity_in_steps;
use smolfed_core::stream::Root;

use super::build::{Kind, contrastive};
use super::device::{Buffers, DeviceRound, Unlabelled};
use super::learner::Contrastive;
use super::matrices::Matrices;
use crate::config::{Config, Override};
use crate::experiment::Experiment;
use crate::experiment::keys::Keys;
use crate::method::contract::{Assignment, Method, SecondMessage};
use crate::round::TrainingLoop;
use crate::source::Simulated;
use crate::source::simulated::train_cohort;
use smolfed_data::dataset::DeviceBuffer;
use smolfed_data::{DataFolders, Federation};
use smolfed_release::condition::{Condition, Randomness};
use smolfed_release::ledger::Spent;
use smolfed_release::origin::Origin;
use smolfed_release::sampling::draw_cohort;
use smolfed_release::statement::Subject;
use smolfed_release::{Admitted, Messages};

/// Twenty devices of one or two digits each.
const SOUND: &str = "method = \"fedsc\"\nseed = 3\nrounds = 6\n[data]\nsource = \"digits\"\n\
                     partition = \"shards\"\ndevices = 20\nshards_per_device = 1\nvalidation = 0\n\
                     scale = \"unit\"\n[cohort]\nsampling = \"full\"\n[train]\nepochs = 1\n\
                     batch_size = 16\nlearning_rate = 0.02\nweight_decay = 0\n[contrast]\nwidth = \
                     8\n";

/// Layers of an encoder, below a dense one to the representation.
const CNN: &str = "model.layers=[{type=\"convolution\",channels=2,kernel=3},{type=\"relu\"},\
                   {type=\"max-pool\",size=2}]";

fn build(settings: &[&str]) -> (Experiment, Federation) {
    let overrides: Vec<Override> = settings.iter().map(|s| s.parse().unwrap()).collect();
    let config = Config::parse(SOUND, "test", &overrides).unwrap();
    let folders = DataFolders::of_experiment(None);
    let federation = Federation::new(&config.data, &folders, config.seed).unwrap();
    (Experiment::new(config, &federation).unwrap(), federation)
}

/// Builds the method of an experiment and exposes its settings.
fn fedsc(experiment: &Experiment, federation: &Federation) -> Contrastive {
    let config = &experiment.config;
    let keys = Keys::parse(config, federation).unwrap();
    let spent = Spent::default();
    let setup = crate::experiment::setup(config, &keys, federation, &spent, &Origin::Simulation);
    contrastive(&setup, Kind::Fedsc).unwrap()
}

/// Results of a run.
struct Trained {
    global: Vec<f32>,
    matrices: Matrices,
    /// The rounds of the charges, and whether each protects one example.
    charges: Vec<(u32, bool)>,
    experiment: Experiment,
    /// The statements.
    statements: Vec<smolfed_release::PrivacyStatement>,
}

/// Trains to the end.
fn train(settings: &[&str]) -> Trained {
    let (experiment, federation) = build(settings);
    let width = experiment.task().output_count();
    let mut training = TrainingLoop::simulation(&experiment, &federation).unwrap();
    let mut charges = Vec::new();
    while !training.is_done() {
        for event in experiment.events_in(training.round()) {
            let is_matrix = event.unit == smolfed_accounting::PrivacyUnit::Example;
            charges.push((training.round(), is_matrix));
        }
        training.step(&mut Simulated(&federation)).unwrap();
    }
    let saved = training.state("test").unwrap().method;
    let rounds = training.round();
    Trained {
        global: training.global().to_vec(),
        matrices: Matrices::restored(width, &saved).unwrap(),
        charges,
        statements: experiment.statements(rounds, &[]).unwrap(),
        experiment: experiment.clone(),
    }
}

/// All devices send one in the first round with matrices, then the cohort does in every second
/// round.
#[test]
fn releases_are_counted_by_device_and_charged_by_round() {
    let settings = [
        "cohort.sampling=uniform",
        "cohort.cohort_size=5",
        "contrast.share_from=1",
        "contrast.share_every=2",
    ];
    let Trained {
        matrices,
        charges,
        statements,
        ..
    } = train(&settings);
    let releases = matrices.sent().values().map(|sent| sent.releases);
    // Rounds 1, 3 and 5: twenty devices once, then five twice.
    assert_eq!(releases.clone().sum::<u32>(), 20 + 5 + 5);
    assert_eq!(releases.min(), Some(1));
    let of_matrices: Vec<u32> = charges.iter().filter(|c| c.1).map(|c| c.0).collect();
    assert_eq!(of_matrices, [1, 3, 5]);
    // Matrices also have a cost for a whole device.
    assert_eq!(charges.len(), 6 + 3 + 3);
    let [updates, of_matrices] = &statements[..] else {
        panic!("two statements");
    };
    assert_eq!(updates.subject, Subject::Updates);
    assert_eq!(of_matrices.subject, Subject::CorrelationMatrices);
    assert!(updates.epsilon.is_infinite() && of_matrices.epsilon.is_infinite());
    let unprotected = "The encoder is not protected";
    let words = updates.in_words();
    assert!(words.contains(unprotected), "{words}");
    // A clip norm alone protects nothing. A target for matrices that are never sent does not
    // either.
    let without_noise = ["privacy.clip_norm=1", "contrast.privacy.epsilon=8"];
    let average = [&["method=fedavg-sc"], &without_noise[..]].concat();
    for (settings, more) in [
        (&without_noise[..], unprotected),
        (&average, "nothing to protect"),
    ] {
        let statements = build(settings).0.privacy.statements(6).unwrap();
        let words = statements[0].in_words();
        assert!(
            words.contains(unprotected) && words.contains(more),
            "{words}"
        );
    }
}

/// Compares the cohort of a round with the senders of a matrix in it: N = 40 devices over T = 60
/// rounds with τ = 0.2. If the two draws are independent, the number of devices in both, over the
/// 59 rounds after the first, is Binomial(2360, 0.04), with mean 94 and std 9.5: above 170 or below
/// 30 with a probability below 1e-9. The same draw would have 472.
#[test]
fn contrast_cohort_shared_draw() {
    const SETTINGS: [&str; 7] = [
        "data.devices=40",
        "rounds=60",
        "evaluate_every=0",
        "cohort.sampling=poisson",
        "cohort.sampling_rate=0.2",
        "contrast.privacy.noise_multiplier=20000",
        "privacy.clip_norm=0.5",
    ];
    let in_both = |more: &[&str]| {
        let (experiment, federation) = build(&[&SETTINGS[..], more].concat());
        let mut training = TrainingLoop::simulation(&experiment, &federation).unwrap();
        let (mut before, mut both) = (vec![1; 40], 0);
        while !training.is_done() {
            let round = training.round();
            training.step(&mut Simulated(&federation)).unwrap();
            let saved = training.state("test").unwrap().method;
            let matrices = Matrices::restored(8, &saved).unwrap();
            let cohort = draw_cohort(&experiment.sampling(), &Root::from_seed(3), round);
            for device in 0..40 {
                let releases = matrices.releases(device);
                let sent = releases > before[device as usize];
                both += usize::from(sent && cohort.contains(&device));
                before[device as usize] = releases;
            }
        }
        let statements = experiment.statements(60, &[]).unwrap();
        (both, statements[0].in_words())
    };
    let independently = "drawn independently of those whose updates are summed";
    let (both, words) = in_both(&["privacy.noise_multiplier=2"]);
    assert!((30..=170).contains(&both), "{both}");
    assert!(words.contains(independently), "{words}");
    // Without privacy from a secret cohort, the cohort itself sends the matrices, as in the paper.
    for more in [
        &[][..],
        &["privacy.noise_multiplier=50", "privacy.trust=local"],
    ] {
        let (both, words) = in_both(more);
        assert!(
            both > 300 && !words.contains(independently),
            "{both} {words}"
        );
    }
}

/// The number of matrices of a device depends on the draw of the cohorts, and on the numbers of
/// samples. The statement counts the planned number, whoever was drawn.
#[test]
fn no_realised_participation() {
    let statement = |seed: &str| {
        let settings = [
            seed,
            "cohort.sampling=uniform",
            "cohort.cohort_size=5",
            "contrast.privacy.noise_multiplier=30",
        ];
        let trained = train(&settings);
        let statement = trained.statements[1].clone();
        let mut keys = serde_json::to_value(&statement).unwrap();
        // The notes and the conditions name the seed.
        for key in ["notes", "conditions"] {
            assert!(keys.as_object_mut().unwrap().remove(key).is_some());
        }
        (
            statement,
            keys,
            trained.matrices.range_of_releases().unwrap(),
        )
    };
    let (first, keys, range) = statement("seed=3");
    let (_, other_keys, other) = statement("seed=4");
    assert_ne!(range, other, "choose seeds that draw otherwise");
    assert_eq!(keys, other_keys);
    assert_eq!((first.rounds, first.max_participations), (6, Some(6)));
    let words = first.in_words();
    assert!(
        words.contains("at most 6 matrices") && !words.contains("sent between"),
        "{words}"
    );
}

/// The encoder's ε includes the matrices, whose noise devices draw under any trust model.
#[test]
fn the_encoder_depends_on_the_seed_of_the_devices() {
    const NOISE: &str = "privacy={clip_norm = 0.5, noise_multiplier = 2.0}";
    let (experiment, federation) = build(&[NOISE, "contrast.privacy.noise_multiplier=20000"]);
    let made_from = |experiment: &Experiment, seed, device_seed| {
        let origin = Origin::Fleet {
            id: "0123".to_owned(),
            seed,
            device_seed,
            simulated: 0,
            has_quorum: false,
        };
        let config = experiment.config.clone();
        Experiment::with_spent(config, &federation, &Spent::default(), origin).unwrap()
    };
    let made = |seed, device_seed| made_from(&experiment, seed, device_seed);
    let fleet = made(None, Some(9));
    assert_eq!(fleet.privacy.known_seeds(), [(Randomness::Devices, 9)]);
    let statements = fleet.statements(6, &[]).unwrap();
    let seed = Condition::KnownSeed {
        seed: 9,
        of: Randomness::Devices,
    };
    assert!(statements[0].conditions().iter().any(|of| *of == seed));
    let both = [(Randomness::Coordinator, 7), (Randomness::Devices, 9)];
    assert_eq!(made(Some(7), Some(9)).privacy.known_seeds(), both);
    assert_eq!(made(None, None).privacy.known_seeds(), []);
    let notes = made(None, None).statements(6, &[]).unwrap()[0]
        .notes
        .clone();
    let of_devices = "Each real device draws the noise of its correlation matrices";
    let said = notes.iter().filter(|note| note.starts_with(of_devices));
    assert_eq!(said.count(), 1, "{notes:?}");
    let (bare, _) = build(&[NOISE]);
    let found = made_from(&bare, None, Some(9)).privacy.known_seeds();
    assert_eq!(found, [], "matrices without noise");
    // A simulation has a single seed.
    assert_eq!(
        experiment.privacy.known_seeds(),
        [(Randomness::Simulation, 3)]
    );
}

#[test]
fn a_device_that_may_send_no_more_keeps_its_last_matrix() {
    let full = train(&[]).matrices;
    assert_eq!(full.range_of_releases(), Some((6, 6)));
    let capped = train(&["contrast.max_releases=2"]);
    // Six rounds of updates, six with matrices of any device, two in which one device can have sent
    // one.
    assert_eq!(capped.charges.len(), 6 + 6 + 2);
    assert!(
        capped
            .matrices
            .sent()
            .values()
            .all(|sent| sent.releases == 2)
    );
    let message = capped.experiment.method.second_message().unwrap();
    let event = message.of_unit.event();
    assert_eq!(event.exposure().count(), 1);
    assert_eq!(event.with_count(6).exposure().count(), 2);
}

/// The plan has the noise of a Gaussian with the target's multiplier, and the matrices have it too.
/// The sum of squared differences from those without noise is a chi-square with 720 degrees of
/// freedom, beyond ±26 % of its mean with a probability below 1e-6.
#[test]
fn matrices_carry_the_noise_that_their_target_needs() {
    let settings = ["contrast.privacy.epsilon=3", "contrast.privacy.delta=1e-4"];
    let (experiment, federation) = build(&settings);
    let method = fedsc(&experiment, &federation);
    let plan = &method.settings;
    let SecondMessage {
        release, of_unit, ..
    } = method.second_message().unwrap();
    let epsilon = of_unit.estimate(6).unwrap().epsilon;
    assert!((2.999..=3.0).contains(&epsilon), "{epsilon}");
    let sensitivity = sensitivity_in_steps(20, 8, 1);
    let least = of_unit.multiplier().get() / std::f64::consts::SQRT_2 * sensitivity;
    assert!((1.0..1.000_01).contains(&(release.noise_std / least)));
    // Six releases of sensitivity one are one Gaussian with 1/√6 the std.
    let known = smolfed_accounting::gdp::epsilon(
        6f64.sqrt() * sensitivity / release.noise_std,
        of_unit.delta,
    );
    assert!((known - 3.0).abs() < 1e-3, "{known}");

    let (root, mut buffers) = (Root::from_seed(3), Buffers::new(plan, 16));
    let global = plan.network.initial(&root);
    let silent = Messages {
        noise: None,
        ..*release
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
        let noisy = round.matrix(release, &mut buffers).unwrap();
        let clean = round.matrix(&silent, &mut buffers).unwrap();
        let differences = noisy
            .integers()
            .iter()
            .zip(clean.integers())
            .map(|(a, b)| (a - b) as f64);
        squares += differences
            .map(|x| (x / release.noise_std).powi(2))
            .sum::<f64>();
    }
    assert!((squares / 720.0 - 1.0).abs() < 0.26, "{squares}");
}

/// Every matrix of a run has noise of the claimed std, and no two share it. The noise is so large
/// that the hidden signal adds less than a hundredth to the mean square.
///
/// For 528 entries, the Chernoff bound on a mean square above 1.46 is 5e-10 (less below 0.54), and
/// on a mean product of two beyond ±0.33 it is 3e-12. For 120 matrices and 7,140 pairs, both are
/// below 1e-7 together.
#[test]
fn every_matrix_has_noise_of_the_claimed_std_and_its_own() {
    let settings = ["contrast.privacy.epsilon=0.1", "contrast.width=32"];
    let (experiment, federation) = build(&settings);
    let method = fedsc(&experiment, &federation);
    let noise_std = method.second_message().unwrap().release.noise_std;
    let mut training = TrainingLoop::simulation(&experiment, &federation).unwrap();
    let mut sent: Vec<Vec<f64>> = Vec::new();
    while !training.is_done() {
        training.step(&mut Simulated(&federation)).unwrap();
        let saved = training.state("test").unwrap().method;
        let matrices = Matrices::restored(32, &saved).unwrap();
        let scaled = |entry: &i64| *entry as f64 / noise_std;
        let messages = matrices.sent().values();
        sent.extend(messages.map(|of| of.sum.integers().iter().map(scaled).collect()));
    }
    assert_eq!((sent.len(), sent[0].len()), (120, 528));
    let mean_product = |a: &[f64], b: &[f64]| {
        let products = a.iter().zip(b).map(|(x, y)| x * y);
        products.sum::<f64>() / a.len() as f64
    };
    for (index, message) in sent.iter().enumerate() {
        let square = mean_product(message, message);
        assert!((square - 1.0).abs() < 0.46, "{index}: {square}");
        for other in &sent[..index] {
            let product = mean_product(message, other);
            assert!(product.abs() < 0.33, "{index}: {product}");
        }
    }
}

/// Whether representations are finite depends on samples. With its own noise, a device must not be
/// distinguishable from the others. Core tests that one sample cannot remove the others.
#[test]
fn with_noise_a_device_always_sends_something() {
    let (experiment, federation) = build(&["contrast.privacy.epsilon=3"]);
    let method = fedsc(&experiment, &federation);
    let plan = &method.settings;
    let release = &method.second_message().unwrap().release;
    let (root, mut buffers) = (Root::from_seed(3), Buffers::new(plan, 16));
    let broken = vec![f32::MAX; experiment.method.properties().shared_count];
    let mut buffer = DeviceBuffer::default();
    let round = DeviceRound {
        plan,
        root: &root,
        number: 0,
        device: 1,
        samples: Unlabelled::View(federation.device(1, &mut buffer)),
        global: &broken,
    };
    let sent = round.matrix(release, &mut buffers).unwrap();
    assert!(sent.integers().iter().filter(|x| **x != 0).count() > 30);
    let silent = Messages {
        noise: None,
        ..*release
    };
    assert!(round.matrix(&silent, &mut buffers).is_err());
}

/// Without a matrix of another device, a round is one of federated averaging.
#[test]
fn until_matrices_are_there_it_is_federated_averaging() {
    let with_update = train(&["rounds=1", "contrast.exchange=with-update"]);
    let average = train(&["rounds=1", "method=fedavg-sc"]);
    let before = train(&["rounds=1", "contrast.alpha=share"]);
    assert_eq!(with_update.global, average.global);
    assert_ne!(before.global, average.global);
    assert_eq!(with_update.matrices.range_of_releases(), Some((1, 1)));
    // Starting from a later round, it is not.
    let late = train(&["rounds=3", "contrast.share_from=2", "contrast.alpha=share"]);
    let average = train(&["rounds=3", "method=fedavg-sc"]);
    assert_ne!(late.global, average.global);
}

/// With each device's share as α, and one step over all samples, the devices together step like one
/// device with all samples, except for the random views.
#[test]
fn with_shares_a_round_is_one_of_all_samples_in_one_place() {
    let settings = [
        "rounds=1",
        "train.batch_size=2000",
        "contrast.augment.jitter=1e-6",
    ];
    let step = |more: &[&str]| {
        let (experiment, _) = build(&settings);
        let before = experiment.method.initial(&Root::from_seed(3));
        let after = train(&[&settings, more].concat()).global;
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

/// A network of layers is an encoder like the others: with and without matrices, and with noise on
/// them.
#[test]
fn a_network_of_layers_is_an_encoder() {
    let noise = "contrast.privacy.noise_multiplier=0.01";
    let mut left = Vec::new();
    for settings in [
        &["method=fedsc", CNN][..],
        &["method=fedsc", CNN, noise],
        &["method=fedavg-sc", CNN],
        &["method=central-sc", CNN],
    ] {
        let trained = train(settings);
        let task = trained.experiment.task();
        // Two kernels of 3 × 3, and 8 numbers of 2 × 3 × 3.
        assert_eq!(task.tensors().as_slice(), [18, 2, 144, 8]);
        let global = trained.global;
        let start = trained.experiment.method.initial(&Root::from_seed(3));
        assert_eq!(global.len(), start.len());
        let moved: Vec<f32> = global.iter().zip(&start).map(|(w, s)| w - s).collect();
        for tensor in [0..18, 18..20, 20..164, 164..172] {
            let norm = smolfed_core::lanes::norm(&moved[tensor]);
            assert!(norm.is_finite() && norm > 0.0, "{settings:?} {norm}");
        }
        assert!(!left.contains(&global), "{settings:?}");
        left.push(global);
    }
}

/// For any data, a device's update of a network is within the clip norm. Without clipping it would
/// not be at this learning rate.
#[test]
fn updates_of_a_network_are_clipped() {
    let settings = [
        "method=fedavg-sc",
        CNN,
        "privacy.noise_multiplier=1",
        "privacy.clip_norm=0.01",
    ];
    let (experiment, federation) = build(&settings);
    let mut release = experiment.release.clone();
    release.mechanism.sampler = None;
    let root = Root::from_seed(3);
    let global = experiment.method.initial(&root);
    let mut learner = experiment.method.begin(&federation, None).unwrap();
    for device in 0..4 {
        let assignment = Assignment {
            training: experiment.training_in(0),
            release: &release,
            admitted: &Admitted::All,
            root: &root,
            global: &global,
            round: 0,
            number: 0,
        };
        let found = train_cohort(&assignment, &mut *learner, &federation, &[device]).unwrap();
        let squares: i64 = found.sum.integers().iter().map(|q| q * q).sum();
        assert!((1 << 39..=1 << 40).contains(&squares), "{squares}");
    }
}

/// Refused settings, and the beginning of each message.
const INVALID: &[(&[&str], &str)] = &[
    (
        &["contrast.views=3"],
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
        &["model.layers=[{type=\"embedding\",vocabulary=17,width=2},{type=\"last\"}]"],
        "`model.layers` begin with an embedding of symbols, but the method learns an encoder",
    ),
    (
        &["model.layers=[{type=\"convolution\",channels=2,kernel=9}]"],
        "`model.layers`: layer 1",
    ),
    (
        &["model.hidden=3", CNN],
        "`model.hidden` and `model.layers` exclude each other",
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
];

#[test]
fn invalid_settings_are_refused_in_a_sentence() {
    for (settings, start) in INVALID {
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
