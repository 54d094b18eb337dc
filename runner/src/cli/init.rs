//! `smolfed init` and its arguments for the label, the device column and left-out columns: a
//! commented experiment file for some data.

use std::io::Write;

use super::CliError;
use super::style::warn;
use crate::proposal::Request;
use smolfed_data::dataset::TaskKind;
use smolfed_data::suggestion::Choices;

/// Write a commented, ready-to-run experiment for your data to standard output.
///
/// The command examines each column and reports the inferred role: label, device, number, category
/// or time. Use the flags for anything that the file does not show. The command does not write any
/// files.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  smolfed init phones.csv --label activity --device-column phone > mine.toml
  smolfed run mine.toml
  smolfed init wisdm > wisdm.toml")]
pub(super) struct Args {
    /// Name of a known set (`smolfed data list`), a file, or a folder.
    data: String,
    /// Predict this column [default: a column called label, class, target, y or outcome].
    #[arg(long, value_name = "NAME")]
    label: Option<String>,
    /// Assign rows to devices by this column [default: a column called user, phone, patient or
    /// similar].
    #[arg(long, value_name = "NAME")]
    device_column: Option<String>,
    /// Set the type of the label [default: regression if the labels are many different numbers].
    #[arg(long, value_name = "TASK")]
    task: Option<TaskKind>,
    /// Leave out a column (repeatable).
    #[arg(long, value_name = "NAME")]
    ignore: Vec<String>,
}

/// Runs the command.
pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<(), CliError> {
    let text = args.experiment()?;
    match out.write_all(text.as_bytes()) {
        // A reader that has seen enough, such as `head`, is no failure.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        result => Ok(result?),
    }
}

impl Args {
    fn experiment(&self) -> Result<String, CliError> {
        let request = Request {
            data: self.data.clone(),
            choices: Choices {
                label: self.label.clone(),
                device_column: self.device_column.clone(),
                has_no_devices: false,
                task: self.task,
                ignore: self.ignore.clone(),
            },
            command: self.command(),
        };
        Ok(request.experiment(&mut |sentence| warn(sentence))?)
    }

    /// The command line, on one line.
    fn command(&self) -> String {
        let words = std::env::args().skip(1).map(|word| {
            let is_plain = !word.contains(|c: char| c.is_whitespace() || c.is_control());
            if is_plain { word } else { format!("{word:?}") }
        });
        format!("smolfed {}", words.collect::<Vec<_>>().join(" "))
    }
}
