//! A training loop of your own over the library: an experiment, its rounds one by one, and what
//! the privacy statement says of them.
//!
//! ```console
//! $ cargo run --release -p smolfed --example training_loop
//! ```

use std::error::Error;

use smolfed::config::{Config, DEFAULT};
use smolfed::data::DataFolders;
use smolfed::round::TrainingLoop;
use smolfed::run;
use smolfed::source::Simulated;

fn main() -> Result<(), Box<dyn Error>> {
    // Any experiment file works. This is the built-in one, with less privacy and fewer rounds.
    let overrides = ["rounds=12".parse()?, "privacy.epsilon=4".parse()?];
    let config = Config::parse(DEFAULT, "the built-in experiment", &overrides)?;
    let (experiment, federation) = run::prepare(config, &DataFolders::of_experiment(None))?;

    let mut training = TrainingLoop::simulation(&experiment, &federation)?;
    let mut devices = Simulated(&federation);
    let mut best = 0.0;
    while !training.is_done() {
        let record = training.step(&mut devices)?.record;
        let accuracy = record.test.and_then(|test| test.accuracy).unwrap_or(0.0);
        println!(
            "round {:>2}: {:.1} % of the test samples",
            record.round,
            100.0 * accuracy
        );
        // Rules of your own go here. This one may not pick a model: the test samples would choose
        // it.
        best = f64::max(best, accuracy);
    }

    println!(
        "best {:.1} %, {} parameters",
        100.0 * best,
        training.global().len()
    );
    for statement in experiment.statements(training.round(), &[])? {
        println!("{}", statement.in_words());
    }
    Ok(())
}
