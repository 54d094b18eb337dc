//! The main task on MNIST, which is not in the repository.

use std::path::PathBuf;

use crate::program::{Outcome, Place, program};

/// Returns the folder with the data sets if it contains MNIST. Otherwise prints that the test is
/// skipped, or fails if the data are required (`SMOLFED_REQUIRE_DATA` is set).
fn data_folder() -> Option<PathBuf> {
    let folder = std::env::var_os("SMOLFED_DATA").map(PathBuf::from);
    let folder = folder.filter(|folder| folder.join("mnist").is_dir());
    assert!(
        folder.is_some() || std::env::var_os("SMOLFED_REQUIRE_DATA").is_none(),
        "SMOLFED_DATA must name a folder with mnist"
    );
    if folder.is_none() {
        println!("skipped: SMOLFED_DATA names no folder with mnist");
    }
    folder
}

/// Runs ten rounds of logistic regression on 1,000 devices of 50 images, in cohorts of about 50.
fn train(settings: &str) -> Option<Outcome> {
    let folder = data_folder()?;
    let place = Place::new();
    place.write(
        "mnist.toml",
        "name = \"mnist\"\nmethod = \"dp-fed-ls\"\nrounds = 10\nevaluate_every = 0\n\
         [data]\nsource = \"mnist\"\nscale = \"standardise\"\ndevices = 1000\n\
         samples_per_device = 50\n[cohort]\nsampling_rate = 0.05\n[train]\nclip = \"final\"\n",
    );
    let mut command = place.command(program());
    command.env("SMOLFED_DATA", folder);
    command.args(["run", "mnist.toml", "--json"]);
    command.args(settings.split_whitespace());
    Some(Outcome::of(command.output().unwrap(), settings).success())
}

#[test]
fn mnist_is_learned_with_both_ways_to_sample() {
    for sampling in ["uniform", "poisson"] {
        let Some(outcome) = train(&format!("--set cohort.sampling={sampling}")) else {
            return;
        };
        let document = outcome.json();
        let accuracy = document["test_accuracy"].as_f64().unwrap();
        assert!(accuracy > 0.80, "{sampling}: {accuracy}");
        assert_eq!(document["devices"], 1000);
    }
}

/// At epsilon = 8, ten rounds of this small federation still learn something: chance is 10 %.
#[test]
fn mnist_is_learned_under_a_target_epsilon() {
    let settings = "--set privacy.epsilon=8 --set privacy.clip_norm=0.5 \
                    --set server.smoothing_factor=1";
    let Some(outcome) = train(settings) else {
        return;
    };
    let document = outcome.json();
    assert!(document["epsilon"].as_f64().unwrap() <= 8.0, "{document}");
    let accuracy = document["test_accuracy"].as_f64().unwrap();
    assert!(accuracy > 0.5, "{accuracy}");
}
