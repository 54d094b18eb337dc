//! Attacks on other kinds of releases: in each local step, and the score of a trial.

use super::*;

const STEPS: &str = "method = \"dpfedmtl\"\nseed = 7\nrounds = 3\n[model]\nhidden = 3\n\
                     [personalise]\nnoise = \"each-step\"\nlocal_steps = 4\n[data]\n\
                     source = \"digits\"\ndevices = 30\nsamples_per_device = 2\n[cohort]\n\
                     sampling = \"full\"\n[train]\nlearning_rate_decay = 0.5\n[privacy]\n\
                     clip_norm = 0.5\ndelta = 1e-5\nnoise_multiplier = 4.0\ntrust = \"local\"\n";
const TRIAL: &str = "method = \"dp-fed\"\nseed = 5\nrounds = 3\n[data]\nsource = \"digits\"\n\
                     devices = 40\nsamples_per_device = 10\ndevice_validation = 0.2\n\
                     scale = \"unit\"\n[cohort]\nsampling = \"full\"\n[privacy]\n\
                     clip_norm = 0.5\nepsilon = 2\n[privacy.selection]\nseeded = true\nseed = 11\n";

fn parsed(text: &str) -> Audited {
    let config = Config::parse(text, "a test", &[]).unwrap();
    let folders = DataFolders::new(Vec::new());
    let federation = Federation::new(&config.data, &folders, config.seed).unwrap();
    Audited {
        experiment: Experiment::new(config, &federation).unwrap(),
        federation,
    }
}

/// The claimed noise of each step is on the sum over all steps, which the attacker sees.
#[test]
fn releases_of_each_step_are_attacked() {
    let audited = parsed(STEPS);
    assert_eq!(failed(&audited, Fault::None), [""; 0]);
    let Audit { claim, low } = audit_with(&audited, Fault::None, 500, 8);
    assert!(low > 0.1 && low <= claim.epsilon, "{low} of {claim:?}");
    for fault in [Fault::NoiseOnFirstStepOnly, Fault::NoNoiseWithoutUpdate] {
        let found = failed(&audited, fault);
        let std = "standard deviation of the noise";
        assert!(found.contains(&std), "{}: {found:?}", fault.name());
    }
}

/// Windows with independent noise: a device counts k times, and its updates have separate noise
/// under local trust.
#[test]
fn windows_of_time_are_attacked() {
    let text = "method = \"dp-fed\"\nseed = 5\nrounds = 6\n[data]\nsource = \"digits\"\n\
                devices = 40\nsamples_per_device = 10\nscale = \"unit\"\n[cohort]\n\
                sampling = \"buffered\"\ncohort_size = 8\nstaleness = 1\n[privacy]\n\
                clip_norm = 0.5\nnoise_multiplier = 2.0\n";
    for trust in ["central", "local"] {
        let audited = parsed(&format!("{text}trust = \"{trust}\"\n"));
        assert_eq!(failed(&audited, Fault::None), [""; 0], "{trust}");
        let Audit { claim, low } = audit_with(&audited, Fault::None, 500, 8);
        assert!(
            low > 0.1 && low <= claim.epsilon,
            "{trust}: {low} of {claim:?}"
        );
        let found = failed(&audited, Fault::NoiseTooSmall);
        assert!(
            found.contains(&"standard deviation of the noise"),
            "{trust}: {found:?}"
        );
    }
}

/// The score has separate noise of the charged std.
#[test]
fn the_score_of_a_trial_is_audited() {
    let audited = parsed(TRIAL);
    assert_eq!(failed(&audited, Fault::None), [""; 0]);
    let target = Target::new(&audited.experiment, &audited.federation, Fault::None).unwrap();
    let checks = direct::audit(&target, 1, 1 << 12).unwrap();
    assert!(
        checks
            .iter()
            .any(|check| check.test == "noise of scores and other noise")
    );
    let found = failed(&audited, Fault::ScoreNoiseTooSmall);
    assert_eq!(found, ["standard deviation of the noise on scores"]);
}

/// The attacker also reads the score. With one canary it proves more than the updates alone cost.
/// With many, whose scores are in one sum, it proves no more than the claim.
#[test]
fn the_score_of_a_trial_is_attacked() {
    let text = TRIAL.replace("epsilon = 2", "noise_multiplier = 20.0");
    let audited = parsed(&format!("{text}score_noise_multiplier = 1.0\n"));
    let updates = parsed(text.split("[privacy.selection]").next().unwrap());
    let of_updates = audit_with(&updates, Fault::None, 10, 1).claim.epsilon;
    for (canaries, least) in [(1, of_updates), (32, 0.0)] {
        let Audit { claim, low } = audit_with(&audited, Fault::None, 2_000, canaries);
        assert!(low > least, "{canaries}: {low}, of updates {of_updates}");
        assert!(low <= claim.epsilon, "{canaries}: {low} of {claim:?}");
    }
}
