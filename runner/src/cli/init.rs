//! `smolfed init`: an experiment file for some data.

use std::io::Write;
use std::path::Path;

use serde::Deserialize;
use toml::{Table, Value};

use super::CliError;
use super::data::DataCommandError;
use super::data::subject::{self, Found, SubjectError, complete_devices};
use super::style::warn;
use crate::starter::{self, DataSection};
use smolfed_data::DataFolders;
use smolfed_data::catalogue::KnownSet;
use smolfed_data::dataset::TaskKind;
use smolfed_data::inspection::Inspection;
use smolfed_data::suggestion::{Choices, Suggestion};
use smolfed_engine::config::Config;

/// Write an experiment for your data to standard output: commented, and ready to run.
///
/// Looks at each column and says what it takes it for: label, device, number, category, time. What
/// the file cannot say, flags do. Nothing else is written.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  smolfed init phones.csv --label activity --device-column phone > mine.toml
  smolfed run mine.toml
  smolfed init wisdm > wisdm.toml")]
pub(super) struct Args {
    /// Name of a known set (`smolfed data list`), a file, or a folder.
    data: String,
    /// The column to predict; by default one that is called label, class, target, y or outcome.
    #[arg(long, value_name = "NAME")]
    label: Option<String>,
    /// The column that says whose row it is; by default one that is called user, phone, patient or
    /// the like.
    #[arg(long, value_name = "NAME")]
    device_column: Option<String>,
    /// What the label is; by default a number if labels are many different numbers.
    #[arg(long, value_name = "TASK")]
    task: Option<TaskKind>,
    /// Leave a column out; can be repeated.
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

/// Makes a path below the working directory relative to it, where the experiment will be.
fn shorten(value: &mut Value) {
    let folder = std::env::current_dir().unwrap_or_default();
    let path = value.as_str().map(Path::new);
    if let Some(rest) = path.and_then(|path| path.strip_prefix(&folder).ok()) {
        *value = rest.to_string_lossy().into_owned().into();
    }
}

impl Args {
    fn experiment(&self) -> Result<String, CliError> {
        if Path::new(&self.data)
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            return Err(CliError::Usage(format!(
                "{0} is an experiment already: smolfed run {0}",
                self.data
            )));
        }
        let folders = DataFolders::of_experiment(None);
        let section = self.section(&folders)?;
        let wrong = |error: toml::de::Error| CliError::Usage(format!("{}: {error}", self.data));
        let data = toml::from_str(&section.text).map_err(wrong)?;
        let found = Inspection::new(&data, &folders, 1)?;
        found.remarks.iter().for_each(warn);
        let text = starter::experiment(&self.name(), &self.command(), section, &found);
        // What is written can be run.
        Config::parse(&text, "the new experiment", &[])?;
        Ok(text)
    }

    /// The `[data]` table.
    fn section(&self, folders: &DataFolders) -> Result<DataSection, CliError> {
        let set = KnownSet::named(&self.data);
        let known = set.and_then(|set| set.place(folders));
        // The columns of a set that is cut into samples say nothing of these.
        let is_cut = set.is_some_and(KnownSet::is_cut);
        let known = known.filter(|place| place.is_file() && !is_cut);
        let place = known
            .as_ref()
            .map_or(self.data.as_str().into(), |place| place.to_string_lossy());
        match subject::find(&place).map_err(DataCommandError::from)? {
            Found::Columns {
                format,
                path,
                profile,
            } => {
                let suggestion = Suggestion::new(&profile, &self.choices(set));
                let suggestion = suggestion.map_err(|reason| {
                    DataCommandError::from(SubjectError::Suggestion {
                        path,
                        reason: Box::new(reason),
                    })
                })?;
                if let (None, Some(left_out)) = (set, suggestion.left_out()) {
                    warn(left_out);
                }
                // A known set is found again in the folder of data sets.
                let path = set.and_then(|set| set.path).unwrap_or(&self.data);
                Ok(DataSection::of_columns(format, path, &profile, &suggestion))
            }
            Found::Ready(mut table)
            | Found::Experiment {
                data: mut table, ..
            } => {
                let choices = self.choices(None);
                if choices != Choices::default() {
                    let message = "--label, --device-column, --task and --ignore are for files \
                                   with columns";
                    return Err(CliError::Usage(format!("{}: {message}", self.data)));
                }
                complete_devices(&mut table);
                table.iter_mut().for_each(|(_, value)| shorten(value));
                Ok(DataSection::ready(&table.to_string()))
            }
        }
    }

    /// What the flags say, or else what is known of a set.
    fn choices(&self, set: Option<&KnownSet>) -> Choices {
        let table: Table = set
            .and_then(|set| set.table.parse().ok())
            .unwrap_or_default();
        let text = |key: &str| Some(table.get(key)?.as_str()?.to_owned());
        let task = || TaskKind::deserialize(table.get("task")?.clone()).ok();
        let ignored = table.get("ignore").and_then(Value::as_array);
        let ignored = ignored.into_iter().flatten().filter_map(Value::as_str);
        let mut ignore: Vec<String> = ignored.map(str::to_owned).collect();
        ignore.extend(self.ignore.iter().cloned());
        Choices {
            label: self.label.clone().or_else(|| text("label")),
            device_column: self.device_column.clone().or_else(|| text("device_column")),
            has_no_devices: false,
            task: self.task.or_else(task),
            ignore,
        }
    }

    /// The file's name up to its first dot.
    fn name(&self) -> String {
        let file = Path::new(&self.data).file_name();
        let name = file.map_or(String::new(), |name| name.to_string_lossy().into_owned());
        let stem = name.split('.').find(|part| !part.is_empty());
        stem.unwrap_or("experiment").to_owned()
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
