//! Rounds as they are observed from outside.

mod adaptive;
mod denominator;
mod resume;

use crate::config::Config;
use crate::experiment::Experiment;
use crate::round::{RoundError, TrainingLoop};
use crate::source::Simulated;
use smolfed_data::{DataFolders, Federation};

/// Whether devices can train depends on their data. Here none can: with noise, rounds go on and
/// release noise alone, as if all had sent zeros.
#[test]
fn nobody_trained_is_not_observable() {
    let run = |more: &str| {
        let text = format!(
            "method = \"dp-fed\"\nrounds = 2\n[data]\nsource = \"synthetic\"\ndevices = 8\n\
             samples_per_device = 4\nfeatures = 4\n[cohort]\nsampling = \"full\"\n[train]\n\
             learning_rate = 3e38\nclip = \"final\"\n[privacy]\nclip_norm = 0.5\n{more}"
        );
        let config = Config::parse(&text, "a test", &[]).unwrap();
        let folders = DataFolders::new(Vec::new());
        let federation = Federation::new(&config.data, &folders, config.seed).unwrap();
        let experiment = Experiment::new(config, &federation).unwrap();
        let mut training = TrainingLoop::simulation(&experiment, &federation).unwrap();
        let trained = |training: &mut TrainingLoop<'_>| {
            let round = training.step(&mut Simulated(&federation))?;
            let is_noisy = training.global().iter().all(|x| *x != 0.0);
            Ok::<_, RoundError>((round.record.simulation_only.trained, is_noisy))
        };
        Ok((trained(&mut training)?, trained(&mut training)?))
    };
    for trust in ["central", "local", "distributed"] {
        let noise = format!("noise_multiplier = 3.0\ntrust = \"{trust}\"\ndelta = 1e-5\n");
        assert_eq!(run(&noise).unwrap(), ((0, true), (0, true)), "{trust}");
    }
    let error = run("noise_multiplier = 0.0\n").unwrap_err();
    assert!(
        matches!(error, RoundError::NobodyTrained { round: 0, .. }),
        "{error}"
    );
}
