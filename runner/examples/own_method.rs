//! A method of your own over the library, in one file: each device of a round sends one gradient
//! of all its samples (FedSGD). Clipping, noise, accounting, sums and evaluation are the library's.
//!
//! ```console
//! $ cargo run --release -p smolfed --example own_method
//! ```

use std::error::Error;

use smolfed::config::{Config, DEFAULT};
use smolfed::data::{DataFolders, DeviceBuffer, Federation};
use smolfed::method::contract::{Assignment, Learner, Method, MethodProperties, Store, Trainer};
use smolfed::method::state::StateError;
use smolfed::{
    experiment::Experiment, release::Contribution, round::TrainingLoop, source::Simulated,
};
use smolfed::{on_samples, task::Task};
use smolfed_core::{Model, model::BATCH_GROUP, train::TrainReport};

/// The method, configured: that of federated averaging, but for what devices calculate.
#[derive(Debug)]
struct FedSgd(MethodProperties);

impl Method for FedSgd {
    fn properties(&self) -> &MethodProperties {
        &self.0
    }

    fn begin<'a>(
        &'a self,
        devices: &'a Federation,
        _: Option<Store<'_>>,
    ) -> Result<Box<dyn Learner + 'a>, StateError> {
        Ok(Box::new(Gradients(&self.0.task, devices)))
    }
}

/// The method at work: it keeps nothing from round to round.
struct Gradients<'a>(&'a Task, &'a Federation);

impl Learner for Gradients<'_> {
    fn trainer<'a>(&'a self, round: &'a Assignment<'a>) -> Box<dyn Trainer + 'a> {
        Box::new(Gradient(self, round))
    }
}

/// The method on one thread.
struct Gradient<'a>(&'a Gradients<'a>, &'a Assignment<'a>);

impl Trainer for Gradient<'_> {
    fn train(&mut self, device: u32, sent: &mut Contribution<'_>) -> Result<TrainReport, String> {
        let Self(Gradients(task, devices), round) = self;
        let mut buffer = DeviceBuffer::default();
        let samples = devices.device(device, &mut buffer);
        let all: Vec<u32> = (0..samples.len() as u32).collect();
        let mut scratch = vec![0.0; task.scratch_count(BATCH_GROUP)];
        let update = sent.update();
        let loss = on_samples!(task, samples, (model, rows) => {
            model.loss_and_gradient(round.global, rows, &all, &mut scratch, update)
        });
        loss.map_err(|error| error.to_string())?;
        let rate = round.training.learning_rate.get();
        update.iter_mut().for_each(|entry| *entry *= -rate);
        let mut report = TrainReport::default();
        sent.clip(&mut report).map_err(|error| error.to_string())?;
        Ok(report)
    }
}

/// Trains, prints how it goes, and gives the model.
fn learn() -> Result<Vec<f32>, Box<dyn Error>> {
    let folders = DataFolders::of_experiment(None);
    let overrides = ["rounds=10".parse()?, "train.learning_rate=2".parse()?];
    let config = Config::parse(DEFAULT, "the built-in experiment", &overrides)?;
    let federation = Federation::new(&config.data, &folders, config.seed)?;
    let experiment = Experiment::with_method(config, &federation, |setup| {
        Ok(Box::new(FedSgd(MethodProperties::new(setup.task()?))))
    })?;
    let mut training = TrainingLoop::simulation(&experiment, &federation)?;
    while !training.is_done() {
        let record = training.step(&mut Simulated(&federation))?.record;
        println!("{}", record.test.ok_or("there are no test samples")?);
    }
    let statements = experiment.statements(training.round(), &[])?;
    statements
        .iter()
        .for_each(|it| println!("{}", it.in_words()));
    Ok(training.global().to_vec())
}

fn main() -> Result<(), Box<dyn Error>> {
    learn().map(drop)
}

#[test]
fn a_method_is_one_file() {
    let model = learn().unwrap();
    assert!(model.iter().any(|x| *x != 0.0) && model.iter().all(|x| x.is_finite()));
}
