//! `smolfed data recipe`: the features of an experiment as source text for firmware.

use std::io::{self, Write};
use std::path::PathBuf;

use super::error::DataCommandError;
use crate::device_recipe::DeviceRecipe;
use smolfed_data::DataFolders;
use smolfed_engine::config::{Config, Override};
use smolfed_engine::run;

/// Arguments of `smolfed data recipe`.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Args {
    /// Experiment, a TOML file.
    experiment: PathBuf,
    /// Print a Rust module for a project based on `firmware-example/template/` (the default).
    #[arg(long, conflicts_with = "c")]
    rust: bool,
    /// Print a header for the C library.
    #[arg(long)]
    c: bool,
    /// Set a key of the experiment (repeatable).
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<Override>,
}

/// Writes the recipe to `out`.
pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<(), DataCommandError> {
    let path = args.experiment.as_path();
    let config = Config::load(Some(path), &args.overrides)?;
    let (experiment, federation) = run::prepare(config, &DataFolders::of_experiment(Some(path)))?;
    let recipe = DeviceRecipe::new(&experiment, &federation)?;
    let text = match args.c {
        true => recipe.c(),
        false => recipe.rust(),
    };
    out.write_all(text.as_bytes()).map_err(io::Error::into)
}
