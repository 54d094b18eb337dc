//! Runs resumed after every round.

use smolfed_core::stream::Root;
use tempfile::TempDir;

use super::Coming;
use crate::attendance::buffered::Arrivals;
use crate::config::{Config, Override};
use crate::experiment::Experiment;
use crate::method::state::StateError;
use crate::round::{TrainingLoop, TrainingState};
use crate::run::prepare;
use crate::source::Simulated;
use smolfed_data::{DataFolders, Federation};

const ROUNDS: u32 = 4;

const TINY: &str = "name = \"tiny\"\nmethod = \"dp-fed\"\nrounds = 4\nseed = 7\n\
                    evaluate_every = 0\n[data]\nsource = \"digits\"\nscale = \"unit\"\n\
                    devices = 40\nsamples_per_device = 12\nvalidation = 0\n[cohort]\n\
                    sampling = \"poisson\"\nsampling_rate = 0.3\n[train]\nepochs = 1\n\
                    [privacy]\nclip_norm = 0.5\nnoise_multiplier = 1.0\ndelta = 1e-3\n";

/// All parts with a state between rounds, and their state.
const CASES: [(&str, &[&str]); 9] = [
    ("", &[]),
    ("privacy.clip_norm=\"adaptive\"", &[]),
    (
        "server={denoiser=\"auto\"}",
        &["auto.average", "auto.evidence", "auto.moved", "auto.start"],
    ),
    (
        "cohort={sampling=\"arrival\",cohort_size=4} privacy.mechanism=\"correlated\" \
         privacy.separation=2",
        &[
            "mechanism.decoder",
            "mechanism.participations",
            "mechanism.sums",
        ],
    ),
    (
        "cohort={sampling=\"rotation\"} privacy.mechanism=\"correlated\" privacy.separation=2 \
         privacy.trust=\"distributed\"",
        &[
            "helper.rounds.0",
            "helper.sums.0",
            "mechanism.decoder",
            "mechanism.participations",
            "mechanism.sums",
        ],
    ),
    (
        "cohort={sampling=\"buffered\",cohort_size=9,staleness=1} privacy.trust=\"local\" \
         cohort.availability={awake=\"20s\",period=\"50min\",training=\"30s\"}",
        &[
            "mechanism.participations",
            "versions.models",
            "versions.rounds",
        ],
    ),
    (
        "cohort={sampling=\"buffered\",cohort_size=9,staleness=2} privacy.mechanism=\"correlated\" \
         cohort.availability={awake=\"20s\",period=\"50min\",training=\"30s\"} \
         privacy.separation=1",
        &[
            "mechanism.decoder",
            "mechanism.participations",
            "mechanism.sums",
            "versions.models",
            "versions.rounds",
        ],
    ),
    ("method=\"pmtl\"", &[]),
    (
        "method=\"fedsc\" contrast.width=3 contrast.privacy={epsilon=8,delta=1e-3}",
        &[],
    ),
];

pub(super) fn experiment(settings: &str) -> (Experiment, Federation) {
    let overrides = settings.split_whitespace().map(|text| text.parse());
    let overrides: Vec<Override> = overrides.collect::<Result<_, _>>().unwrap();
    let config = Config::parse(TINY, "a test", &overrides).unwrap();
    prepare(config, &DataFolders::new(Vec::new())).unwrap()
}

/// Returns the state after the last round, of a loop that is restored from its encoded state after
/// every `every` rounds.
fn run((experiment, federation): &(Experiment, Federation), every: u32) -> TrainingState {
    let place = TempDir::new().unwrap();
    let path = place.path().join("states");
    let mut state = TrainingState::new(experiment);
    while state.round < ROUNDS {
        let root = experiment.root().unwrap();
        let store = Some(state.store(&path, "run"));
        let training = TrainingLoop::new(experiment, federation, root, &state, store, None);
        let mut training = training.unwrap();
        for _ in 0..every {
            training.step(&mut Simulated(federation)).unwrap();
        }
        let bytes = training.state("run").unwrap().encode("run").unwrap();
        training.state_saved();
        (state, _) = TrainingState::decode(&bytes).unwrap();
    }
    state
}

#[test]
fn a_run_that_is_resumed_after_every_round_ends_with_the_same_bits() {
    for (settings, _) in CASES {
        let place = experiment(settings);
        let whole = run(&place, ROUNDS);
        assert_eq!(run(&place, 1), whole, "{settings}");
        assert_eq!(run(&place, 2), whole, "{settings}");
    }
}

/// A device whose last participation is too recent is left out, also by a run that has been resumed
/// since.
#[test]
fn participations_are_known_after_a_resume() {
    let settings = "cohort={sampling=\"rotation\"} privacy.mechanism=\"correlated\" \
                    privacy.separation=2";
    let (experiment, federation) = experiment(settings);
    let mut state = TrainingState::new(&experiment);
    let mut trained = Vec::new();
    for _ in 0..ROUNDS {
        let root = experiment.root().unwrap();
        let training = TrainingLoop::new(&experiment, &federation, root, &state, None, None);
        let mut training = training.unwrap();
        let devices = Simulated(&federation);
        // All of them try to take part in every round.
        let arrivals = |_| Arrivals {
            devices: (0..40).collect(),
            ..Arrivals::default()
        };
        let mut source = Coming { devices, arrivals };
        let record = training.step(&mut source).unwrap().record;
        trained.push(record.simulation_only.trained);
        let bytes = training.state("run").unwrap().encode("run").unwrap();
        (state, _) = TrainingState::decode(&bytes).unwrap();
    }
    assert_eq!(trained, [40, 0, 40, 0]);
}

#[test]
fn a_state_without_what_is_kept_is_refused_by_its_name() {
    for (settings, names) in CASES {
        let place = experiment(settings);
        let state = run(&place, ROUNDS);
        let found: Vec<&String> = state.server.tensors.keys().collect();
        assert_eq!(found, names, "{settings}");
        let refused = |state: &TrainingState| {
            let root = Root::from_seed(7);
            let begun = TrainingLoop::new(&place.0, &place.1, root, state, None, None);
            match begun.err() {
                Some(StateError::Checkpoint { reason }) => reason,
                other => panic!("{settings}: {other:?}"),
            }
        };
        for name in names {
            let mut other = state.clone();
            other.server.tensors.remove(*name);
            assert_eq!(refused(&other), format!("it has no `{name}`"));
        }
        if state.clip_norm.is_some() {
            let clip_norm = None;
            let other = TrainingState { clip_norm, ..state };
            assert_eq!(refused(&other), "it has no `clip_norm`");
        } else if settings.starts_with("method") {
            assert!(refused(&state).contains("only where its run is stored"));
        }
    }
}
