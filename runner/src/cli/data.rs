//! `smolfed data`: the list of known data sets, the inspection of one, and the features of an
//! experiment for firmware.

mod drawing;
mod error;
mod picture;
mod recipe;
pub(super) mod subject;
mod text;

use std::io::{self, Write};
use std::path::Path;

use clap::Subcommand;
use serde::Serialize;

pub use error::DataCommandError;
use smolfed_data::catalogue::KNOWN_SETS;
use smolfed_data::folders::DataFolders;
use smolfed_data::inspection::Inspection;
use smolfed_data::table::profile::Profile;

/// List the known data sets, inspect a data set, or print an experiment's features for firmware.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  smolfed data list\n  smolfed data inspect digits")]
pub struct Args {
    #[command(subcommand)]
    command: DataCommand,
}

#[derive(Clone, Debug, Subcommand)]
enum DataCommand {
    /// List the data sets that smolfed knows by name, with the locations of their files.
    #[command(after_help = "Example:\n  smolfed data list")]
    List {
        /// Print one JSON document to standard output and nothing else.
        #[arg(long)]
        json: bool,
    },
    /// Describe the contents of a data set and print a `[data]` table for it.
    #[command(after_help = "Examples:\n  smolfed data inspect digits\n  \
        smolfed data inspect table.csv --set label=activity --set device_column=phone\n  \
        smolfed data inspect mnist --set partition=dirichlet --set alpha=0.1 --set devices=100\n  \
        smolfed data inspect experiment.toml")]
    Inspect(subject::Args),
    /// Print the features of an experiment as source code for firmware, in Rust or in C.
    ///
    /// With this recipe, the features that firmware computes from windows or images are
    /// bit-identical to the simulation's. The Rust output is a file for a project based on
    /// `firmware-example/template/`.
    #[command(after_help = "Examples:\n  \
        smolfed data recipe experiment.toml --rust > src/recipe/windows-integer.rs\n  \
        smolfed data recipe experiment.toml --c > recipe.h")]
    Recipe(recipe::Args),
}

/// Lists or inspects data sets, and writes the answer to `out`.
///
/// # Errors
/// [`DataCommandError`]: bad input, or an output that takes nothing.
pub fn run(args: &Args, out: &mut dyn Write) -> Result<(), DataCommandError> {
    match answer(args, out) {
        // A reader that has seen enough, such as `head`, is no failure.
        Err(DataCommandError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

fn answer(args: &Args, out: &mut dyn Write) -> Result<(), DataCommandError> {
    match &args.command {
        DataCommand::List { json } => Ok(list(*json, &DataFolders::of_experiment(None), out)?),
        DataCommand::Recipe(args) => recipe::run(args, out),
        DataCommand::Inspect(args) => {
            let subject = args.subject()?;
            let columns = subject.columns.as_ref();
            let found = Inspection::new(&subject.config, &subject.folders, subject.seed)?;
            if let Some(path) = &args.svg {
                draw(&found, path)?;
            }
            if args.json {
                let found = Document {
                    found: &found,
                    table: columns.map(|(profile, _)| profile),
                };
                serde_json::to_writer_pretty(&mut *out, &found).map_err(io::Error::from)?;
                Ok(writeln!(out)?)
            } else {
                Ok(text::write(&found, columns, out)?)
            }
        }
    }
}

/// Writes a drawing of a sample and its fixed features.
fn draw(found: &Inspection, path: &Path) -> Result<(), DataCommandError> {
    let drawn = found.computed.as_ref().and_then(|computed| {
        let sample = &found.facts.example.features;
        drawing::svg(sample, &computed.recipe, &computed.example)
    });
    let text = drawn.ok_or(DataCommandError::NoDrawing)?;
    std::fs::write(path, text).map_err(|reason| DataCommandError::Drawing {
        path: path.to_path_buf(),
        reason,
    })
}

/// An inspection as JSON.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    found: &'a Inspection,
    /// The columns of a file with columns.
    #[serde(skip_serializing_if = "Option::is_none")]
    table: Option<&'a Profile>,
}

const LIST_NOTE: &str = "\
The environment variable SMOLFED_DATA names the folder of data sets; the working directory
and data below it are searched, too. `smolfed data inspect NAME` shows what is in a set; your
own files work, too: `smolfed data inspect FILE`, then `smolfed init FILE > mine.toml`.
";

fn list(json: bool, folders: &DataFolders, out: &mut dyn Write) -> io::Result<()> {
    if json {
        let sets: Vec<_> = KNOWN_SETS
            .iter()
            .map(|set| {
                serde_json::json!({
                    "name": set.name, "about": set.about, "cite": set.cite, "table": set.table,
                    "needs_files": set.path.is_some(), "path": set.place(folders),
                })
            })
            .collect();
        serde_json::to_writer_pretty(&mut *out, &sets)?;
        return writeln!(out);
    }
    for set in &KNOWN_SETS {
        let place = match (set.path, set.place(folders)) {
            (None, _) => "built in".to_owned(),
            (Some(_), Some(place)) => place.display().to_string(),
            (Some(path), None) => format!("not found: needs {path} in the folder of data sets"),
        };
        writeln!(out, "{:<11} {}", set.name, set.about)?;
        writeln!(out, "{:<11} {place}", "")?;
        writeln!(out, "{:<11} cite {}\n", "", set.cite)?;
    }
    out.write_all(LIST_NOTE.as_bytes())
}

#[cfg(test)]
mod tests;
