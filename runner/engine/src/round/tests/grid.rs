//! Runs with a model on a grid.

use smolfed_core::stream::Root;
use smolfed_core::wire::message::ModelGrid;

use crate::attendance::Attendance;
use crate::config::Config;
use crate::experiment::Experiment;
use crate::method::contract::{Assignment, Learner};
use crate::question::Inquiry;
use crate::round::{TrainingLoop, TrainingState};
use crate::source::Simulated;
use crate::source::contract::{CohortSum, Draw, Source, SourceError, Step};
use smolfed_data::{DataFolders, Federation};

const ROUNDS: u32 = 6;

/// Simulated devices that check the models of rounds and questions.
struct Checked<'a> {
    devices: Simulated<'a>,
    grid: ModelGrid,
    models: usize,
}

impl Checked<'_> {
    fn check(&mut self, model: &[f32]) {
        let is_on_grid = |x: &f32| self.grid.value(self.grid.round(*x)).to_bits() == x.to_bits();
        assert!(model.iter().all(is_on_grid));
        self.models += 1;
    }
}

impl Source for Checked<'_> {
    fn draw(
        &mut self,
        attendance: &Attendance,
        root: &Root,
        step: Step,
    ) -> Result<Option<Draw>, SourceError> {
        self.devices.draw(attendance, root, step)
    }

    fn sum(
        &mut self,
        assignment: &Assignment<'_>,
        learner: &mut dyn Learner,
        cohort: &[u32],
    ) -> Result<CohortSum, SourceError> {
        self.check(assignment.global);
        self.devices.sum(assignment, learner, cohort)
    }

    fn answers(&mut self, inquiry: &Inquiry<'_>, cohort: &[u32]) -> Result<CohortSum, SourceError> {
        self.check(inquiry.model);
        self.devices.answers(inquiry, cohort)
    }
}

fn experiment() -> (Experiment, Federation) {
    let text = format!(
        "method = \"dp-fed\"\nrounds = {ROUNDS}\nevaluate_every = 1\n[data]\nsource = \"digits\"\n\
         devices = 40\n[cohort]\ncohort_size = 20\n[server]\nmodel_places = 10\n\
         [privacy]\nclip_norm = 0.5\nnoise_multiplier = 1\ndelta = 1e-3\n\
         [[questions]]\nkind = \"evaluate\"\nevery = 2\n"
    );
    let config = Config::parse(&text, "a test", &[]).unwrap();
    let folders = DataFolders::new(Vec::new());
    let federation = Federation::new(&config.data, &folders, config.seed).unwrap();
    let experiment = Experiment::new(config, &federation).unwrap();
    (experiment, federation)
}

/// Runs until a round. Returns the state, the published model, and the number of models that
/// devices have seen.
fn run(
    (experiment, federation): &(Experiment, Federation),
    state: &TrainingState,
    until: u32,
) -> (TrainingState, Vec<f32>, usize) {
    let root = experiment.root().unwrap();
    let mut training = TrainingLoop::new(experiment, federation, root, state, None, None).unwrap();
    let mut source = Checked {
        devices: Simulated(federation),
        grid: experiment.model_grid().unwrap(),
        models: 0,
    };
    while training.round() < until {
        let record = training.step(&mut source).unwrap().record;
        assert_eq!(record.beyond_grid, Some(0));
    }
    let published = training.global().to_vec();
    source.check(&published);
    (training.state("").unwrap(), published, source.models)
}

/// Everything that devices see or a run writes is on the grid. The server keeps the full values, so
/// a resumed run has the same bits.
#[test]
fn devices_see_the_grid_and_the_server_keeps_all_bits() {
    let place = experiment();
    let start = TrainingState::new(&place.0);
    let (whole, published, models) = run(&place, &start, ROUNDS);
    // One per round, three questions, and the last model.
    assert_eq!(models, 6 + 3 + 1);
    assert_ne!(whole.global, published);
    assert_eq!(place.0.published(whole.global.clone()), published);
    let (state, ..) = run(&place, &start, 2);
    let (resumed, ..) = run(&place, &state, ROUNDS);
    assert_eq!(resumed, whole);
}
