//! Experiments with correlated noise: their parts, and refusals.

use smolfed_accounting::event::Mechanism as Accounted;
use smolfed_accounting::{Accountant, Delta, NoiseMultiplier, SamplingRate};

use super::*;

const CORRELATED: &str = "method = \"dp-fed-ls\"\nrounds = 12\n[data]\nsource = \"digits\"\n\
                          scale = \"unit\"\ndevices = 100\n[cohort]\nsampling = \"rotation\"\n\
                          [privacy]\nepsilon = 8.0\nclip_norm = 0.5\nmechanism = \"correlated\"\n\
                          separation = 5\n";

fn correlated(settings: &[&str]) -> Experiment {
    build_text(CORRELATED, settings).unwrap()
}

#[track_caller]
fn refused_with(settings: &[&str], parts: &[&str]) {
    let sentence = build_text(CORRELATED, settings).unwrap_err().to_string();
    assert!(!sentence.contains('\n'), "{sentence}");
    for part in parts {
        assert!(sentence.contains(part), "{sentence}: {part}");
    }
}

#[test]
fn the_noise_is_what_the_target_needs_for_one_gaussian_release() {
    let experiment = correlated(&[]);
    let plan = &experiment.privacy;
    let strategy = plan.mechanism.strategy.as_ref().unwrap();
    assert_eq!(strategy.participation().participations(), 3);
    assert_eq!(plan.accountant, Accountant::AnalyticGaussian);
    let Accounted::Correlated { sensitivity, .. } = plan.event().mechanism else {
        panic!("{:?}", plan.event());
    };
    assert_eq!(
        sensitivity.get().to_bits(),
        strategy.sensitivity().to_bits()
    );
    // One release, from the first round on: any number of rounds costs the target.
    for rounds in [1, 7, 12] {
        let epsilon = plan.estimate(rounds).unwrap().epsilon;
        assert!(epsilon <= 8.0 && epsilon > 7.9, "{epsilon} after {rounds}");
    }
    let z = plan.multiplier().get();
    let single = PrivacyEvent::new(
        Accounted::Gaussian {
            noise_multiplier: NoiseMultiplier::new(z).unwrap(),
        },
        Sampling::full(100).unwrap(),
        1,
    );
    let delta = Delta::new(100f64.powf(-1.1)).unwrap();
    let one = Accountant::AnalyticGaussian
        .epsilon(&[single], delta)
        .unwrap();
    assert!((one.epsilon - plan.estimate(12).unwrap().epsilon).abs() < 1e-6);
    // Its std in steps of a grid that is 256 times finer.
    let std = plan.noise_std();
    assert!((std / (z * strategy.sensitivity() * 0.5) - 1.0).abs() < 1e-12);
    let (numerator, denominator) = plan.mechanism.sampler.unwrap().sigma().ratio();
    let steps = numerator as f64 / denominator as f64;
    let expected = std / 0.5 * f64::from(1 << 20) * 256.0;
    assert!((steps / expected - 1.0).abs() < 1e-6 && steps >= expected * (1.0 - 1e-12));
    assert_eq!(experiment.server.fixed_denominator, Some(20.0));
    assert_eq!(experiment.attendance.largest(), 20);
}

#[test]
fn a_noise_std_is_relative_to_the_sensitivity() {
    let given = ["privacy.epsilon=inf"];
    let multiplier = |settings: &[&str]| {
        let text = CORRELATED.replace("epsilon = 8.0\n", "");
        build_text(&text, settings).unwrap().privacy
    };
    let of_std = multiplier(&["privacy.noise_std=6"]);
    let sensitivity = of_std.mechanism.strategy.as_ref().unwrap().sensitivity();
    let expected = 6.0 / (0.5 * sensitivity);
    assert!((of_std.multiplier().get() / expected - 1.0).abs() < 1e-12);
    assert!((of_std.noise_std() - 6.0).abs() < 1e-12);
    assert!(
        (multiplier(&["privacy.noise_multiplier=2"])
            .multiplier()
            .get()
            - 2.0)
            .abs()
            < 1e-12
    );
    // Without noise there is no guarantee, and nothing to correlate.
    assert!(!correlated(&given).history().is_kept() && correlated(&[]).history().is_kept());
}

/// A run that stops for any reason has the bound of its plan.
#[test]
fn a_stopped_run_is_covered_by_its_plan() {
    let experiment = correlated(&[]);
    let [whole, stopped] = [12, 5].map(|rounds| experiment.statements(rounds, &[]).unwrap());
    assert!(stopped[0].is_upper_bound() && stopped[0].epsilon_planned.is_none());
    assert_eq!(stopped[0].epsilon.to_bits(), whole[0].epsilon.to_bits());
    assert_eq!((stopped[0].rounds, whole[0].rounds), (5, 12));
}

#[test]
fn participations_that_cannot_be_are_cut_and_that_is_said() {
    let experiment = correlated(&["privacy.participations=9"]);
    let strategy = experiment.privacy.mechanism.strategy.as_ref().unwrap();
    assert_eq!(strategy.participation().participations(), 3);
    let statements = experiment.statements(12, &[]).unwrap();
    let cut = "`privacy.participations` is 9, but no more than 3 of 12 rounds are 5 rounds apart";
    assert!(statements[0].notes.iter().any(|note| note.starts_with(cut)));
    // A device of a fleet that sleeps begins no version before the last one has expired.
    let windows = "cohort={sampling=\"buffered\",cohort_size=20,staleness=2}";
    let cut = "`privacy.participations` is 9, but no more than 2 of 12 rounds are 7 rounds apart";
    for mechanism in ["correlated", "independent"] {
        let mechanism = format!("privacy.mechanism={mechanism}");
        let experiment = correlated(&[windows, &mechanism, "privacy.participations=9"]);
        let notes = &experiment.statements(12, &[]).unwrap()[0].notes;
        assert!(notes.iter().any(|note| note.starts_with(cut)), "{notes:?}");
    }
    let whole = correlated(&["privacy.participations=3"]);
    let notes = &whole.statements(12, &[]).unwrap()[0].notes;
    assert!(notes.iter().all(|note| !note.contains("participations")));
}

#[test]
fn what_does_not_go_with_correlated_noise_is_refused_in_one_sentence() {
    for (setting, key, reason) in [
        (
            "cohort={sampling=\"poisson\",cohort_size=5}",
            "cohort.sampling",
            "not drawn at random",
        ),
        (
            "cohort={sampling=\"uniform\",cohort_size=5}",
            "cohort.sampling",
            "not drawn at random",
        ),
        (
            "privacy.trust=local",
            "privacy.trust",
            "by a trusted server",
        ),
        (
            "privacy.clip_norm=adaptive",
            "privacy.clip_norm",
            "different grids",
        ),
        (
            "cohort.cohort_size=5",
            "cohort.cohort_size",
            "every b-th round",
        ),
    ] {
        refused_with(&[setting], &[key, reason]);
    }
    let local = ["method=local", "server.smoothing_factor=0"];
    refused_with(&local, &["`method`", "send nothing"]);
    let sc = ["contrast.width=4", "privacy.mechanism=correlated"];
    for (method, reason) in [("fedsc", "correlation matrices"), ("central-sc", "")] {
        let method = format!("method={method}");
        let settings = [method.as_str(), sc[0], "contrast.privacy.epsilon=8"];
        let settings = if reason.is_empty() {
            &settings[..2]
        } else {
            &settings[..]
        };
        refused_with(settings, &["method", reason]);
    }
}

#[test]
fn keys_of_correlated_noise_are_refused_without_it() {
    for setting in [
        "privacy.separation=5",
        "privacy.participations=2",
        "privacy.family=tree",
    ] {
        let key = setting.split('=').next().unwrap();
        let sentence = refusal(&[setting]);
        assert!(
            sentence.contains(key) && sentence.contains("privacy.mechanism"),
            "{sentence}"
        );
    }
    for scheme in ["rotation", "arrival"] {
        let setting = format!("cohort={{sampling=\"{scheme}\"}}");
        let sentence = refusal(&[&setting]);
        assert!(
            sentence.contains("`cohort.sampling` and `privacy.mechanism`"),
            "{sentence}"
        );
    }
}

#[test]
fn impossible_participation_is_refused_by_its_key() {
    refused_with(
        &["privacy.separation=13"],
        &["`privacy.separation` is 13", "from 1 to 12"],
    );
    refused_with(
        &["privacy.separation=0"],
        &["`privacy.separation` is 0", "from 1 to 12"],
    );
    refused_with(
        &["privacy.participations=0"],
        &["`privacy.participations` is 0"],
    );
    let text = CORRELATED.replace("separation = 5\n", "");
    let sentence = build_text(&text, &[]).unwrap_err().to_string();
    assert!(
        sentence.starts_with("`privacy.separation` is missing"),
        "{sentence}"
    );
    // Schedules that would violate (k, b).
    let too_often = ["privacy.participations=2"];
    refused_with(
        &too_often,
        &[
            "`privacy.participations` is 2",
            "round 10",
            "once too often",
        ],
    );
    let full = ["cohort={sampling=\"full\"}"];
    refused_with(&full, &["`privacy.separation`, which is 5", "round 1,"]);
    let all = ["cohort={sampling=\"full\"}", "privacy.separation=1"];
    assert_eq!(correlated(&all).server.fixed_denominator, Some(100.0));
    for (setting, most) in [
        (
            "cohort={sampling=\"arrival\",cohort_size=21}",
            "from 1 to 20",
        ),
        (
            "cohort={sampling=\"arrival\",cohort_size=0}",
            "from 1 to 20",
        ),
        (
            "cohort={sampling=\"arrival\",sampling_rate=0.3}",
            "`cohort.sampling_rate` is 30",
        ),
        (
            "cohort={sampling=\"arrival\"}",
            "`cohort.cohort_size` is missing",
        ),
    ] {
        refused_with(&[setting], &[most]);
    }
    let few = [
        "cohort={sampling=\"arrival\",cohort_size=9}",
        "privacy.participations=1",
    ];
    refused_with(&few, &["from 1 to 8 devices"]);
    let arrivals = correlated(&["cohort={sampling=\"arrival\",cohort_size=15}"]);
    assert_eq!(arrivals.server.fixed_denominator, Some(15.0));
}

#[test]
fn a_grid_that_is_too_fine_for_the_cohort_is_refused_with_what_fits() {
    let settings = ["privacy.family=tree", "privacy.grid_bits=24"];
    let experiment = correlated(&settings);
    let strategy = experiment.privacy.mechanism.strategy.as_ref().unwrap();
    let devices = 2_000_000_000;
    let large = Attendance::Drawn(Sampling::unsampled(devices, 3).unwrap());
    let of = Correlated::parse(&experiment.config, 100).unwrap().unwrap();
    let error = of
        .fits_size(&large, experiment.release.encoding)
        .unwrap_err()
        .to_string();
    let most = strategy.max_cohort(24);
    let fits = strategy.max_grid_bits(devices.into()).unwrap();
    for part in [
        "`privacy.grid_bits` is 24".to_owned(),
        format!("at most {fits} for cohorts of {devices} devices"),
        format!("at most {most} devices with 24 bits"),
    ] {
        assert!(error.contains(&part), "{error}: {part}");
    }
}

const IN_TURN: &str = "cohort={sampling=\"block-cyclic\",cohort_size=10}";

/// Parts have 20 devices, of which 10 are drawn on average: 3 compositions at rate 1/2 with noise
/// relative to one participation.
#[test]
fn devices_that_are_drawn_in_turn_need_the_noise_of_a_sampled_gaussian() {
    let experiment = correlated(&[IN_TURN]);
    let plan = &experiment.privacy;
    let strategy = plan.mechanism.strategy.as_ref().unwrap();
    assert_eq!(plan.accountant, Accountant::Pld);
    let sampling = Sampling::block_cyclic(100, 5, SamplingRate::new(0.5).unwrap()).unwrap();
    assert_eq!(experiment.sampling(), sampling);
    assert_eq!(strategy.participation().participations(), 3);
    let poisson = Sampling::poisson(100, SamplingRate::new(0.5).unwrap()).unwrap();
    let noise_multiplier = plan.multiplier();
    let mechanism = Accounted::Gaussian { noise_multiplier };
    for (rounds, compositions) in [(1, 1), (5, 1), (6, 2), (12, 3)] {
        let composed = PrivacyEvent::new(mechanism, poisson, compositions);
        let expected = Accountant::Pld.epsilon(&[composed], plan.delta).unwrap();
        let found = plan.estimate(rounds).unwrap().epsilon;
        assert!((found / expected.epsilon - 1.0).abs() < 1e-6, "{rounds}");
    }
    let epsilon = plan.estimate(12).unwrap().epsilon;
    assert!(epsilon <= 8.0 && epsilon > 7.9, "{epsilon}");
    // The noise on a release is less than without sampling, which is the case of rate 1.
    let of = |settings: &[&str]| correlated(settings).privacy.noise_std();
    assert!(plan.noise_std() < of(&[]));
    let all = [
        "cohort={sampling=\"block-cyclic\",cohort_size=20}",
        "rounds=15",
    ];
    assert!((of(&all) / of(&["rounds=15"]) - 1.0).abs() < 1e-3);
    assert_eq!(experiment.server.fixed_denominator, Some(10.0));
    assert_eq!(experiment.attendance.largest(), 20);
    let by_rate = ["cohort={sampling=\"block-cyclic\",sampling_rate=0.1}"];
    assert_eq!(correlated(&by_rate).sampling(), sampling);
}

/// A draw counts only for completed rounds: a stopped run is not a separate release.
#[test]
fn a_stopped_run_whose_devices_are_drawn_in_turn_has_the_figure_of_its_plan() {
    let experiment = correlated(&[IN_TURN]);
    let [whole, stopped] = [12, 5].map(|rounds| experiment.statements(rounds, &[]).unwrap());
    assert!(whole[0].is_upper_bound() && !stopped[0].is_upper_bound());
    assert_eq!(stopped[0].epsilon_planned, Some(whole[0].epsilon));
    assert!(stopped[0].epsilon < whole[0].epsilon);
    assert_eq!(whole[0].sampling_rate, Some(0.5));
    assert_eq!(whole[0].separation, Some(5));
    let words = whole[0].in_words();
    for part in [
        "split into 5 parts, which are fixed beforehand, may be public and take turns",
        "drawn independently with probability 0.5, in secret, so nobody learns which devices were \
         drawn",
        "sensitivity to one round of a device",
    ] {
        assert!(words.contains(part), "{words}");
    }
}

#[test]
fn what_does_not_go_with_drawing_in_turn_is_refused_in_one_sentence() {
    for (settings, parts) in [
        (
            &["privacy.family=tree"][..],
            ["`privacy.family`", "at most `privacy.separation` bands"],
        ),
        (
            &["privacy.family=square-root"],
            ["`privacy.family`", "at most `privacy.separation` bands"],
        ),
        (
            &["cohort={sampling=\"block-cyclic\",cohort_size=21}"],
            ["`cohort.cohort_size` is 21", "at most 20"],
        ),
        (
            &["cohort={sampling=\"block-cyclic\",sampling_rate=0.21}"],
            ["`cohort.sampling_rate` is 0.21", "at most 0.2"],
        ),
        (
            &["cohort={sampling=\"block-cyclic\"}"],
            ["`cohort.cohort_size` is missing", "sampling_rate"],
        ),
        (
            &["privacy.participations=2"],
            ["`privacy.participations` is 2", "round 10"],
        ),
        (
            &["privacy.devices_per_user=2"],
            ["`privacy.devices_per_user`", "block-cyclic"],
        ),
        (
            &["privacy.trust=local"],
            ["`privacy.trust`", "by a trusted server"],
        ),
    ] {
        let settings: Vec<&str> = [IN_TURN].iter().chain(settings).copied().collect();
        refused_with(&settings, &parts);
    }
    let sentence = refusal(&[IN_TURN]);
    assert!(sentence.contains("`cohort.sampling` and `privacy.mechanism`"));
    for family in ["identity", "square-root-banded", "banded-optimal-max"] {
        let setting = format!("privacy.family={family}");
        assert_eq!(correlated(&[IN_TURN, &setting]).attendance.largest(), 20);
    }
}
