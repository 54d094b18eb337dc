//! Refusals of an experiment, and its parts.

mod correlated;
mod distributed;

use super::*;
use crate::config::Override;
use crate::tables::ArithmeticName;
use smolfed_accounting::accountant::Accountant;
use smolfed_data::DataFolders;
use smolfed_release::PlanError;
use smolfed_release::Released;

/// A valid experiment on 100 devices with 64 features and ten classes.
const SOUND: &str = "method = \"dp-fed-ls\"\nrounds = 3\n[data]\nsource = \"digits\"\n\
                     scale = \"unit\"\ndevices = 100\n[cohort]\ncohort_size = 20\n[server]\n\
                     smoothing_factor = 1.0\n[privacy]\nepsilon = 8.0\nclip_norm = 0.5\n";

fn build_text(text: &str, settings: &[&str]) -> Result<Experiment, ExperimentError> {
    let overrides: Vec<Override> = settings.iter().map(|s| s.parse().unwrap()).collect();
    let config = Config::parse(text, "test", &overrides).unwrap();
    let folders = DataFolders::of_experiment(None);
    let federation = Federation::new(&config.data, &folders, config.seed).unwrap();
    Experiment::new(config, &federation)
}

fn build(settings: &[&str]) -> Result<Experiment, ExperimentError> {
    build_text(SOUND, settings)
}

/// Returns the refusal of the valid experiment with these settings.
#[track_caller]
fn refusal(settings: &[&str]) -> String {
    let error = build(settings).unwrap_err();
    let sentence = error.to_string();
    assert!(!sentence.contains('\n'), "{sentence}");
    sentence
}

#[track_caller]
fn refused(settings: &[&str], start: &str) {
    let sentence = refusal(settings);
    assert!(sentence.starts_with(start), "{sentence}");
}

#[test]
fn fast_arithmetic_is_refused_where_there_is_none() {
    let fast = "simulation.arithmetic=fast";
    let and =
        |second: &str| format!("`simulation.arithmetic` and `{second}` contradict each other: ");
    refused(&[fast, "model.hidden=8"], &and("model.hidden"));
    let smoothing = [fast, "train.gradient_smoothing=1"];
    refused(&smoothing, &and("train.gradient_smoothing"));
    for method in ["fedsc", "fedavg-sc"] {
        let method = format!("method={method}");
        let common = [fast, "server.smoothing_factor=0", "privacy={}"];
        let settings = [&common[..], &[method.as_str()]].concat();
        refused(&settings, &and("method"));
    }
    let heads = [
        fast,
        "method=dpfedmtl",
        "model.hidden=8",
        "server.smoothing_factor=0",
    ];
    refused(&heads, &and("model.hidden"));
    let stepwise = [
        fast,
        "method=dpfedmtl",
        "personalise.private=biases",
        "personalise.noise=each-step",
        "personalise.local_steps=4",
        "privacy.trust=local",
        "server.smoothing_factor=0",
    ];
    refused(&stepwise, &and("personalise.noise"));
}

#[test]
fn an_experiment_knows_how_many_devices_train_in_the_span() {
    let fast = |settings: &[&str]| {
        let settings = [&["simulation.arithmetic=fast"], settings].concat();
        build(&settings).unwrap().method.properties().arithmetic
    };
    let all = fast(&[]);
    assert_eq!((all.name(), all.in_span()), (ArithmeticName::Fast, 100));
    let note = all.note(100).unwrap();
    assert!(
        note.contains("not the bits of a board; 100 of 100 devices"),
        "{note}"
    );
    assert!(!note.contains("the others"), "{note}");
    let none = fast(&["train.epochs=1", "train.batch_size=100"]);
    let note = none.note(100).unwrap();
    assert!(note.contains("0 of 100 devices") && note.contains("the others train directly"));
    let exact = build(&[]).unwrap().method.properties().arithmetic;
    assert_eq!((exact.name(), exact.note(100)), (ArithmeticName::F32, None));
}

#[test]
fn numbers_of_the_core_are_refused_with_key_and_value() {
    for (setting, start) in [
        (
            "privacy.clip_norm=0",
            "`privacy.clip_norm` is 0: it must be",
        ),
        (
            "privacy.clip_norm=nan",
            "`privacy.clip_norm` is NaN: it must be",
        ),
        ("privacy.clip_norm=1e99", "`privacy.clip_norm` is 1"),
        (
            "train.learning_rate=0",
            "`train.learning_rate` is 0: it must be",
        ),
        (
            "train.weight_decay=-1",
            "`train.weight_decay` is -1: it must",
        ),
        ("train.proximal=inf", "`train.proximal` is inf: it must be"),
        (
            "server.learning_rate=-2",
            "`server.learning_rate` is -2: it must",
        ),
    ] {
        let error = build(&[setting]).unwrap_err();
        assert!(matches!(error, ExperimentError::Value { .. }), "{error:?}");
        refused(&[setting], start);
    }
}

#[test]
fn numbers_out_of_a_range_of_their_own_are_refused() {
    for (setting, start) in [
        ("rounds=0", "`rounds` is 0: it must be at least 1"),
        ("train.epochs=0", "`train.epochs` is 0"),
        ("train.batch_size=0", "`train.batch_size` is 0"),
        (
            "train.learning_rate_decay=0",
            "`train.learning_rate_decay` is 0",
        ),
        (
            "train.learning_rate_decay=1.1",
            "`train.learning_rate_decay` is 1.1",
        ),
        (
            "train.gradient_smoothing=-1",
            "`train.gradient_smoothing` is -1",
        ),
        (
            "server.smoothing_factor=nan",
            "`server.smoothing_factor` is NaN",
        ),
        (
            "privacy.grid_bits=3",
            "`privacy.grid_bits` is 3: it must be from 4 to 24",
        ),
        (
            "server.axes=[8]",
            "`server.axes` is [8]: it must be lengths whose product is the 64",
        ),
        ("server.axes=[9223372036854775807, 3]", "`server.axes` is ["),
        (
            "server.smooth_along=image",
            "`server.smooth_along` is \"image\": it must be left out without `model.layers`",
        ),
        ("name=\"a/b\"", "`name` is \"a/b\""),
        ("name=\"..\"", "`name` is \"..\""),
        ("name=\"\"", "`name` is \"\""),
    ] {
        let error = build(&[setting]).unwrap_err();
        assert!(matches!(error, ExperimentError::Range { .. }), "{error:?}");
        refused(&[setting], start);
    }
    let too_much = SOUND.replace("epsilon = 8.0", "noise_multiplier = 1e300");
    let error = build_text(&too_much, &[]).unwrap_err().to_string();
    assert!(error.contains("`privacy.noise_multiplier`"), "{error}");
}

#[test]
fn contradictions_name_both_keys() {
    let cases: [(&[&str], [&str; 2]); 10] = [
        (
            &["cohort.sampling_rate=0.2"],
            ["cohort.cohort_size", "cohort.sampling_rate"],
        ),
        (
            &["cohort.sampling=full"],
            ["cohort.sampling", "cohort.cohort_size"],
        ),
        (
            &["cohort={sampling=\"full\", sampling_rate=0.5}"],
            ["cohort.sampling", "cohort.sampling_rate"],
        ),
        (
            &["privacy.noise_multiplier=1"],
            ["privacy.epsilon", "privacy.noise_multiplier"],
        ),
        (
            &["privacy.noise_std=1"],
            ["privacy.epsilon", "privacy.noise_std"],
        ),
        (
            &["privacy.max_epsilon=1"],
            ["privacy.epsilon", "privacy.max_epsilon"],
        ),
        (&["method=dp-fed"], ["method", "server.smoothing_factor"]),
        (
            &["server={denoiser=\"james-stein\", smoothing_factor=1}"],
            ["server.denoiser", "server.smoothing_factor"],
        ),
        (
            &["server={denoiser=\"auto\", smoothing_factor=1}"],
            ["server.denoiser", "server.smoothing_factor"],
        ),
        (
            &[
                "server={denoiser=\"auto\"}",
                "privacy.mechanism=correlated",
                "privacy.separation=3",
                "cohort={sampling=\"rotation\"}",
            ],
            ["server.denoiser", "privacy.mechanism"],
        ),
    ];
    for (settings, keys) in cases {
        let [first, second] = keys;
        refused(
            settings,
            &format!("`{first}` and `{second}` contradict each other: "),
        );
    }
    let both = SOUND.replace("epsilon = 8.0", "noise_multiplier = 1.0\nnoise_std = 1.0");
    let error = build_text(&both, &[]).unwrap_err();
    assert!(
        matches!(error, ExperimentError::Combination(_)),
        "{error:?}"
    );
}

const ADAPTIVE: &str = "privacy.clip_norm=adaptive";

#[test]
fn keys_of_an_adaptive_clip_norm_are_refused_by_name() {
    for (settings, start) in [
        (
            vec!["privacy.adaptive.quantile=0.3"],
            "`privacy.clip_norm` and `privacy.adaptive` contradict each other: set",
        ),
        (
            vec![ADAPTIVE, "privacy.adaptive.quantile=1"],
            "`privacy.adaptive.quantile` is 1: it must be above 0 and below 1",
        ),
        (
            vec![ADAPTIVE, "privacy.adaptive.learning_rate=0"],
            "`privacy.adaptive.learning_rate` is 0: it must be above 0",
        ),
        (
            vec![ADAPTIVE, "privacy.adaptive.initial=0"],
            "`privacy.adaptive.initial` is 0: it must be above 0",
        ),
        (
            vec![ADAPTIVE, "privacy.adaptive.initial=1e-12"],
            "`privacy.adaptive.initial` is 0.000000000001: it must be from 2^-30",
        ),
        (
            vec![ADAPTIVE, "privacy.adaptive.bit_noise=-1"],
            "`privacy.adaptive.bit_noise` is -1: it must be a finite number above 0",
        ),
        (
            vec![ADAPTIVE, "privacy.adaptive.bit_noise=0.01"],
            "`privacy.adaptive.bit_noise` is 0.01: it must be above ",
        ),
        (
            vec![ADAPTIVE, "method=local"],
            "`privacy.clip_norm` and `method` contradict each other: its devices send no updates",
        ),
    ] {
        refused(&settings, start);
    }
    let std = SOUND.replace("epsilon = 8.0", "noise_std = 1.0");
    let error = build_text(&std, &[ADAPTIVE]).unwrap_err().to_string();
    let expected = "`privacy.noise_std` and `privacy.clip_norm` contradict each other";
    assert!(error.starts_with(expected), "{error}");
}

/// The actual noise in steps: the squared inverse noise multipliers of both parts add up to that of
/// the charged event, or less.
#[test]
fn an_adaptive_clip_norm_costs_what_the_event_says() {
    let cases: [&[&str]; 4] = [
        &[ADAPTIVE],
        &[ADAPTIVE, "privacy.trust=local"],
        &[
            ADAPTIVE,
            "privacy.adaptive.bit_noise=3",
            "privacy.grid_bits=4",
        ],
        &[ADAPTIVE, "cohort={sampling=\"poisson\", sampling_rate=0.5}"],
    ];
    for settings in cases {
        let experiment = build(settings).unwrap();
        let grid = experiment.release.encoding.grid().unwrap();
        let multiplier = |sampler: &smolfed_core::noise::DiscreteGaussian| {
            let (numerator, denominator) = sampler.sigma().ratio();
            numerator as f64 / denominator as f64 / f64::from(grid.bits()).exp2()
        };
        let update = multiplier(experiment.release.mechanism.sampler.as_ref().unwrap());
        let bit = multiplier(experiment.release.mechanism.bit.unwrap().noise().unwrap());
        let total = experiment
            .privacy
            .event()
            .mechanism
            .noise_multiplier()
            .get();
        let cost = total.powi(2) * (update.powi(-2) + bit.powi(-2));
        assert!(cost <= 1.0 && cost > 0.9, "{settings:?}: {cost}");
        // The denoiser gets the noise of the updates, at the clip norm of the round.
        let now = experiment
            .release
            .at_clip_norm(smolfed_core::params::ClipNorm::new(0.4).unwrap());
        assert!((now.noise_std / (0.4 * update) - 1.0).abs() < 1e-4);
        let statements = experiment.privacy.statements(3).unwrap();
        let statement = &statements[0];
        assert_eq!((statement.clip_norm, statement.noise_std), (None, None));
        assert_eq!(statement.noise_multiplier, total);
        let is_named = |note: &String| note.starts_with("The clip norm changes from round");
        assert!(statement.notes.iter().any(is_named), "{statement:?}");
    }
    // The noise multiplier is the same as with a fixed clip norm, and so are the ledger's events.
    let event = |settings: &[&str]| build(settings).unwrap().privacy.event();
    assert_eq!(event(&[ADAPTIVE]), event(&[]));
}

#[test]
fn missing_keys_are_named() {
    let no_cohort = build(&["cohort={}"]).unwrap_err();
    assert!(
        matches!(
            no_cohort,
            ExperimentError::Missing {
                key: "cohort.cohort_size",
                ..
            }
        ),
        "{no_cohort:?}"
    );
    for noise in ["epsilon = 8.0", "noise_multiplier = 1.0", "noise_std = 1.0"] {
        let text = SOUND
            .replace("epsilon = 8.0", noise)
            .replace("clip_norm = 0.5", "");
        let error = build_text(&text, &[]).unwrap_err();
        assert!(
            matches!(
                error,
                ExperimentError::Missing {
                    key: "privacy.clip_norm",
                    ..
                } | ExperimentError::Plan(PlanError::Missing {
                    key: "privacy.clip_norm",
                    ..
                })
            ),
            "{noise}: {error:?}"
        );
    }
}

#[test]
fn privacy_numbers_are_refused_once_and_clearly() {
    for (setting, sentence) in [
        (
            "privacy.epsilon=0",
            "`privacy.epsilon` is 0: it must be above 0",
        ),
        (
            "privacy.epsilon=nan",
            "`privacy.epsilon` is NaN: it must be above 0",
        ),
        (
            "cohort.cohort_size=0",
            "`cohort.cohort_size` is 0: it must be from 1 to the device count 100",
        ),
        (
            "cohort.cohort_size=101",
            "`cohort.cohort_size` is 101: it must be from 1 to the device count 100",
        ),
    ] {
        let error = build(&[setting]).unwrap_err();
        assert!(
            matches!(error, ExperimentError::Plan(PlanError::Privacy { .. })),
            "{error:?}"
        );
        assert_eq!(refusal(&[setting]), sentence);
    }
    let poisson = ["cohort.sampling=poisson", "cohort.cohort_size=101"];
    refused(&poisson, "`cohort.cohort_size` is 101");
    for rate in ["0", "1.5", "nan"] {
        let cohort = format!("cohort={{sampling=\"poisson\", sampling_rate={rate}}}");
        refused(&[&cohort], "`cohort.sampling_rate` is");
    }
    // 1/N is not below 1 for a single device.
    let alone = ["data.devices=1", "cohort={sampling=\"full\"}"];
    assert_eq!(
        refusal(&alone),
        "`privacy.delta` is 1/N^1.1: with a single device, 1/N^p is 1: write a number such as 1e-5"
    );
    for (noise, start) in [
        (
            "noise_multiplier = -1.0",
            "`privacy.noise_multiplier` is -1",
        ),
        ("noise_std = -1.0", "`privacy.noise_std` is -1"),
        (
            "noise_multiplier = 1.0\nmax_epsilon = 0.0",
            "`privacy.max_epsilon` is 0",
        ),
    ] {
        let text = SOUND.replace("epsilon = 8.0", noise);
        let error = build_text(&text, &[]).unwrap_err().to_string();
        assert!(error.starts_with(start), "{error}");
    }
}

#[test]
fn a_model_that_does_not_fit_is_refused() {
    for (kind, start) in [
        (
            "linear",
            "`model.kind` is \"linear\", but the data have classes",
        ),
        (
            "logistic",
            "`model.kind` is \"logistic\", but the data have 10 classes",
        ),
    ] {
        let setting = format!("model.kind={kind}");
        let error = build(&[&setting]).unwrap_err();
        assert!(matches!(error, ExperimentError::Task(_)), "{error:?}");
        refused(&[&setting], start);
    }
}

#[test]
fn targets_and_accountants_that_cannot_be_are_refused_before_the_start() {
    let infeasible = build(&["privacy.epsilon=0.001", "privacy.accountant=theorem-1"]);
    let error = infeasible.unwrap_err();
    assert!(
        matches!(error, ExperimentError::Plan(PlanError::Calibration { .. })),
        "{error:?}"
    );
    assert!(error.to_string().contains("infeasible"), "{error}");
    // Theorem 2 is about Poisson sampling.
    let given = SOUND.replace("epsilon = 8.0", "noise_multiplier = 1.0");
    let error = build_text(&given, &["privacy.accountant=theorem-2"]).unwrap_err();
    assert!(
        matches!(error, ExperimentError::Plan(PlanError::Accounting { .. })),
        "{error:?}"
    );
    assert!(
        error
            .to_string()
            .starts_with("`privacy.accountant` is \"theorem-2\""),
        "{error}"
    );
}

#[test]
fn a_target_becomes_noise_and_budget() {
    let experiment = build(&[]).unwrap();
    let plan = &experiment.privacy;
    assert_eq!(plan.budget.unwrap().get().to_bits(), 8f64.to_bits());
    assert_eq!(plan.accountant, Accountant::UniformProfile);
    let spent = |rounds| plan.estimate(rounds).unwrap().epsilon;
    assert!(spent(3) <= 8.0 && spent(3) > 7.99, "{}", spent(3));
    assert!(spent(4) > 8.0);
    assert!(spent(1) < spent(2) && spent(2) < spent(3));
    assert!(plan.mechanism.sampler.is_some() && !plan.mechanism.is_local());
    let z = plan.multiplier().get();
    assert!((plan.noise_std() - 0.5 * z).abs() < 1e-12);
}

#[test]
fn an_infinite_target_needs_no_noise() {
    let experiment = build(&["privacy.epsilon=inf"]).unwrap();
    assert!(experiment.privacy.mechanism.sampler.is_none());
    assert!(experiment.privacy.budget.is_none());
    assert!(
        experiment
            .privacy
            .estimate(3)
            .unwrap()
            .epsilon
            .is_infinite()
    );
}

/// The sampler's std is a fraction of a step of the grid, rounded up.
#[test]
fn the_noise_is_never_less_than_was_asked_for() {
    for z in [1e-3, 0.3, 1.0, 7.77] {
        let text = SOUND.replace("epsilon = 8.0", &format!("noise_multiplier = {z}"));
        let experiment = build_text(&text, &[]).unwrap();
        let (numerator, denominator) = experiment
            .privacy
            .mechanism
            .sampler
            .unwrap()
            .sigma()
            .ratio();
        let std = numerator as f64 / denominator as f64;
        let asked = z * f64::from(1 << 20);
        assert!(std >= asked && std < asked + 1e-2, "{std} for {asked}");
    }
}

#[test]
fn a_theorem_is_never_stated_alone() {
    // The side conditions hold for many devices, small cohorts and some rounds.
    let experiment = build(&[
        "privacy.accountant=theorem-1",
        "data.devices=1000",
        "cohort.cohort_size=50",
        "rounds=30",
    ])
    .unwrap();
    let statements = experiment.privacy.statements(30).unwrap();
    assert!(
        statements
            .iter()
            .any(|statement| statement.is_upper_bound())
    );
    assert_eq!(statements[0].accountant, Accountant::Theorem1);
    // A condition states what the sampling reveals, where it does.
    let realised = build(&["cohort.sampling=poisson", "cohort.denominator=realised"]);
    let statement = &realised.unwrap().privacy.statements(3).unwrap()[0];
    assert!(
        statement
            .notes
            .iter()
            .any(|note| note.contains("size of each cohort")),
        "{statement:?}"
    );
}

#[test]
fn the_learning_rate_decays_from_round_to_round_and_never_vanishes() {
    let experiment = build(&["train.learning_rate=0.5", "train.learning_rate_decay=0.5"]).unwrap();
    let rate = |round| experiment.training_in(round).learning_rate.get();
    assert_eq!([rate(0), rate(1), rate(3)], [0.5, 0.25, 0.0625]);
    assert_eq!(rate(10_000).to_bits(), f32::MIN_POSITIVE.to_bits());
}

#[test]
fn cohorts_are_settled_for_the_federation() {
    let size = |settings: &[&str]| {
        let sampling = build(settings).unwrap().sampling();
        (
            sampling.device_count(),
            sampling.sampling_rate().unwrap_or(1.0),
        )
    };
    assert_eq!(size(&[]), (100, 0.2));
    // A rate becomes a whole number of devices, at least one.
    assert_eq!(size(&["cohort={sampling_rate=0.256}"]), (100, 0.26));
    assert_eq!(size(&["cohort={sampling_rate=1e-9}"]), (100, 0.01));
    assert_eq!(
        size(&["cohort={sampling=\"poisson\", sampling_rate=0.256}"]),
        (100, 0.256)
    );
    assert_eq!(size(&["cohort={sampling=\"full\"}"]), (100, 1.0));
    let expected = |settings: &[&str]| build(settings).unwrap().server.fixed_denominator;
    assert_eq!(expected(&[]), Some(20.0));
    assert_eq!(expected(&["cohort.denominator=realised"]), None);
    assert_eq!(expected(&["cohort.denominator=16"]), Some(16.0));
    // It also divides the bits of an adaptive clip norm: 12 inside, 4 outside.
    let adaptive = build(&[ADAPTIVE, "cohort.denominator=16"]).unwrap();
    let released = Released::for_test(&[], 1.0, 20).with_unclipped_excess(4.0);
    let share = adaptive.adaptive.unwrap().unclipped_share(&released);
    assert_eq!(share, Some(0.75));
    let mean = ["method=pmtl", "personalise.update=mean-over-all"];
    for denominator in ["realised", "16"] {
        let setting = format!("cohort.denominator={denominator}");
        refused(
            &[mean[0], mean[1], &setting],
            "`personalise.update` and `cohort.den",
        );
    }
}

#[test]
fn users_with_several_devices_need_more_noise_and_are_named() {
    let count = "it must be from 1 to the device count 100";
    for devices in [0, 101] {
        let setting = format!("privacy.devices_per_user={devices}");
        let sentence = format!("`privacy.devices_per_user` is {devices}: {count}");
        assert_eq!(refusal(&[&setting]), sentence);
    }
    let plain = build(&[]).unwrap();
    let one = build(&["privacy.devices_per_user=1"]).unwrap();
    assert_eq!(one.privacy.event(), plain.privacy.event());
    assert_eq!(
        one.privacy.mechanism.sampler,
        plain.privacy.mechanism.sampler
    );
    for sampling in ["uniform", "poisson", "full"] {
        let cohort = match sampling {
            "full" => "cohort={sampling=\"full\"}".to_owned(),
            _ => format!("cohort={{sampling=\"{sampling}\", cohort_size=20}}"),
        };
        let plain = build(&[&cohort]).unwrap();
        let users = build(&[&cohort, "privacy.devices_per_user=3"]).unwrap();
        assert!(
            users.privacy.multiplier() > plain.privacy.multiplier(),
            "{sampling}"
        );
        assert_eq!(users.privacy.event().devices_per_user.get(), 3);
        let statements = users.privacy.statements(3).unwrap();
        assert!(statements[0].epsilon <= 8.0 && statements[0].is_upper_bound());
        assert_eq!(statements[0].devices_per_user, Some(3));
        let words = statements[0].in_words();
        assert!(words.contains("user with up to 3 devices"), "{words}");
    }
}

/// As the denominator, the size of a secret cohort shows in the average.
#[test]
fn a_denominator_that_reveals_the_cohort_leaves_no_upper_bound() {
    let is_bound = |sampling: &str, more: &[&str]| {
        let cohort =
            format!("cohort={{sampling=\"{sampling}\", cohort_size=20, denominator=\"realised\"}}");
        let experiment = build(&[&[cohort.as_str()], more].concat()).unwrap();
        let statement = experiment.privacy.statements(3).unwrap().remove(0);
        let is_named = statement
            .in_words()
            .contains("reveals the size of each cohort");
        assert_eq!(is_named, !statement.is_upper_bound());
        statement.is_upper_bound()
    };
    assert!(!is_bound("poisson", &[]));
    assert!(is_bound("uniform", &[]));
    // The server knows the cohorts in any case.
    assert!(is_bound("poisson", &["privacy.trust=local"]));
}
