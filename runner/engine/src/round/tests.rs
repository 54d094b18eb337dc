//! Rounds observed from outside.

mod adaptive;
mod denominator;
mod grid;
mod resume;
mod windows;

use smolfed_core::stream::Root;

use crate::attendance::Attendance;
use crate::attendance::buffered::Arrivals;
use crate::config::Config;
use crate::experiment::Experiment;
use crate::method::contract::{Assignment, Learner};
use crate::question::Inquiry;
use crate::round::{RoundError, TrainingLoop};
use crate::server::OwnStep;
use crate::source::Simulated;
use crate::source::contract::{CohortSum, Draw, Source, SourceError, Step};
use smolfed_data::{DataFolders, Federation};

/// Simulated devices whose arrivals the test chooses.
struct Coming<'a, F> {
    devices: Simulated<'a>,
    /// Arrivals by round.
    arrivals: F,
}

impl<F: Fn(u32) -> Arrivals> Source for Coming<'_, F> {
    fn draw(&mut self, _: &Attendance, _: &Root, step: Step) -> Result<Option<Draw>, SourceError> {
        Ok(Some(Draw::of(step.number, (self.arrivals)(step.round))))
    }

    fn sum(
        &mut self,
        assignment: &Assignment<'_>,
        learner: &mut dyn Learner,
        cohort: &[u32],
    ) -> Result<CohortSum, SourceError> {
        self.devices.sum(assignment, learner, cohort)
    }

    fn answers(&mut self, inquiry: &Inquiry<'_>, cohort: &[u32]) -> Result<CohortSum, SourceError> {
        self.devices.answers(inquiry, cohort)
    }
}

/// Whether devices can train depends on their data. Here none can: with noise, rounds continue and
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

/// The weights of `denoiser = "auto"` have no effect beside a custom step, and are not recorded.
#[test]
fn a_custom_step_replaces_the_automatic_denoiser() {
    let text = "method = \"dp-fed\"\nrounds = 2\n[data]\nsource = \"synthetic\"\ndevices = 8\n\
                samples_per_device = 4\nfeatures = 4\n[cohort]\nsampling = \"full\"\n[server]\n\
                denoiser = \"auto\"\n[privacy]\nclip_norm = 0.5\nnoise_multiplier = 1\n";
    let config = Config::parse(text, "a test", &[]).unwrap();
    let folders = DataFolders::new(Vec::new());
    let federation = Federation::new(&config.data, &folders, config.seed).unwrap();
    let automatic = Experiment::new(config, &federation).unwrap();
    let own = OwnStep::new(|step| step.global.fill(0.5));
    let own = automatic.clone().with_own_step(own);
    for (experiment, is_automatic) in [(&automatic, true), (&own, false)] {
        let mut training = TrainingLoop::simulation(experiment, &federation).unwrap();
        let record = training.step(&mut Simulated(&federation)).unwrap().record;
        assert_eq!(!record.experts.is_empty(), is_automatic);
        let is_half = training
            .global()
            .iter()
            .all(|x| x.to_bits() == 0.5_f32.to_bits());
        assert_eq!(is_half, !is_automatic);
    }
}
