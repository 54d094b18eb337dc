//! The experiment that `smolfed init` proposes for some data, for the command and for programs.
//!
//! It follows from private rows, and is for whoever holds them.

use std::path::Path;

use serde::Deserialize;
use toml::{Table, Value};

use crate::starter::{self, DataSection};
use crate::subject::{self, Found, SubjectError, complete_devices};
use smolfed_data::catalogue::KnownSet;
use smolfed_data::config::DataConfig;
use smolfed_data::dataset::TaskKind;
use smolfed_data::error::DataError;
use smolfed_data::folders::DataFolders;
use smolfed_data::inspection::Inspection;
use smolfed_data::suggestion::{Choices, Suggestion, SuggestionError};
use smolfed_data::table::Table as Samples;
use smolfed_data::table::frame::Frame;
use smolfed_data::table::profile::Profile;
use smolfed_engine::config::{Config, ConfigError};

/// What errors and remarks name in the place of a file.
const FRAME: &str = "the frame";

/// What an experiment is proposed for.
#[derive(Clone, Debug)]
pub struct Request {
    /// Name of a known set, a file or a folder.
    pub data: String,
    /// What the user says about its columns.
    pub choices: Choices,
    /// The command or call that asks, for the head of the file.
    pub command: String,
}

/// Why there is no proposal.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProposalError {
    /// A request that makes no sense.
    #[error("{0}")]
    Request(String),
    /// What a name leads to.
    #[error(transparent)]
    Subject(#[from] SubjectError),
    /// A frame of which no use can be suggested.
    #[error("the frame: {0}")]
    Frame(#[from] SuggestionError),
    /// The data.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The experiment cannot be run.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

impl Request {
    /// The text of the experiment. Calls `remark` with each sentence that the owner of the data
    /// should read.
    ///
    /// # Errors
    /// [`ProposalError`].
    pub fn experiment(&self, remark: &mut dyn FnMut(&str)) -> Result<String, ProposalError> {
        if subject::is_experiment(Path::new(&self.data)) {
            return Err(ProposalError::Request(format!(
                "{0} is an experiment already: smolfed run {0}",
                self.data
            )));
        }
        let folders = DataFolders::of_experiment(None);
        let section = self.section(&folders, remark)?;
        let data = parsed(&section, &self.data)?;
        let found = Inspection::new(&data, &folders, 1)?;
        finish(&self.name(), &self.command, section, &found, remark)
    }

    /// The `[data]` table.
    fn section(
        &self,
        folders: &DataFolders,
        remark: &mut dyn FnMut(&str),
    ) -> Result<DataSection, ProposalError> {
        let set = KnownSet::named(&self.data);
        let known = set.and_then(|set| set.place(folders));
        // The columns of a set that is cut into samples say nothing of these.
        let is_cut = set.is_some_and(KnownSet::is_cut);
        let known = known.filter(|place| place.is_file() && !is_cut);
        let place = known
            .as_ref()
            .map_or(self.data.as_str().into(), |place| place.to_string_lossy());
        match subject::find(&place)? {
            Found::Columns {
                format,
                path,
                profile,
            } => {
                let suggestion = Suggestion::new(&profile, &self.choices_of(set));
                let suggestion = suggestion.map_err(|reason| SubjectError::Suggestion {
                    path,
                    reason: Box::new(reason),
                })?;
                if let (None, Some(left_out)) = (set, suggestion.left_out()) {
                    remark(&left_out);
                }
                // A known set is found again in the folder of data sets.
                let path = set.and_then(|set| set.path).unwrap_or(&self.data);
                Ok(DataSection::of_columns(format, path, &profile, &suggestion))
            }
            Found::Ready(mut table)
            | Found::Experiment {
                data: mut table, ..
            } => {
                if self.choices != Choices::default() {
                    let message = "--label, --device-column, --task and --ignore are for files \
                                   with columns";
                    return Err(ProposalError::Request(format!("{}: {message}", self.data)));
                }
                complete_devices(&mut table);
                table.iter_mut().for_each(|(_, value)| shorten(value));
                Ok(DataSection::ready(&table.to_string()))
            }
        }
    }

    /// What the user says, or else what is known of a set.
    fn choices_of(&self, set: Option<&KnownSet>) -> Choices {
        let table: Table = set
            .and_then(|set| set.table.parse().ok())
            .unwrap_or_default();
        let text = |key: &str| Some(table.get(key)?.as_str()?.to_owned());
        let task = || TaskKind::deserialize(table.get("task")?.clone()).ok();
        let ignored = table.get("ignore").and_then(Value::as_array);
        let ignored = ignored.into_iter().flatten().filter_map(Value::as_str);
        let mut ignore: Vec<String> = ignored.map(str::to_owned).collect();
        let Choices {
            label,
            device_column,
            has_no_devices,
            task: chosen,
            ignore: others,
        } = self.choices.clone();
        ignore.extend(others);
        Choices {
            label: label.or_else(|| text("label")),
            device_column: device_column.or_else(|| text("device_column")),
            has_no_devices,
            task: chosen.or_else(task),
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
}

/// The text of an experiment for a table that a program has in memory: its samples are those of
/// `source = "memory"`, which the program gives again. `remark` as of [`Request::experiment`].
///
/// # Errors
/// [`ProposalError`].
pub fn of_frame(
    frame: &Frame,
    choices: &Choices,
    command: &str,
    remark: &mut dyn FnMut(&str),
) -> Result<String, ProposalError> {
    let profile = Profile::of_frame(frame).map_err(DataError::at(FRAME))?;
    let suggestion = Suggestion::new(&profile, choices)?;
    if let Some(left_out) = suggestion.left_out() {
        remark(&left_out);
    }
    let columns = suggestion.columns();
    let samples = Samples::of_frame(frame, &columns).map_err(DataError::at(FRAME))?;
    samples.remarks(FRAME).iter().for_each(|said| remark(said));
    let samples = samples.into_dataset().map_err(DataError::at(FRAME))?;
    let section = DataSection::of_frame(&profile, &suggestion);
    let data = parsed(&section, FRAME)?;
    let found = Inspection::of_samples(samples, &data, 1)?;
    finish("frame", command, section, &found, remark)
}

/// The experiment, which can be run.
fn finish(
    name: &str,
    command: &str,
    section: DataSection,
    found: &Inspection,
    remark: &mut dyn FnMut(&str),
) -> Result<String, ProposalError> {
    found.remarks.iter().for_each(|said| remark(said));
    let text = starter::experiment(name, command, section, found);
    Config::parse(&text, "the new experiment", &[])?;
    Ok(text)
}

/// The configuration of the data that a table describes.
fn parsed(section: &DataSection, origin: &str) -> Result<DataConfig, ProposalError> {
    let wrong = |error: toml::de::Error| ProposalError::Request(format!("{origin}: {error}"));
    toml::from_str(&section.text).map_err(wrong)
}

/// Makes a path below the working directory relative to it, where the experiment will be.
fn shorten(value: &mut Value) {
    let folder = std::env::current_dir().unwrap_or_default();
    let path = value.as_str().map(Path::new);
    if let Some(rest) = path.and_then(|path| path.strip_prefix(&folder).ok()) {
        *value = rest.to_string_lossy().into_owned().into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smolfed_data::config::{SourceConfig, StoredSet};

    fn frame() -> Frame {
        let rows = 0..60u32;
        let column = |name: &str, cell: &dyn Fn(u32) -> String| {
            (name.to_owned(), rows.clone().map(cell).collect())
        };
        let colours = ["red", "blue", ""];
        Frame::new(vec![
            column("size", &|row| format!("{}.5", row * 7 % 11)),
            column("colour", &|row| colours[row as usize % 3].to_owned()),
            column("same", &|_| "x".to_owned()),
            column("phone", &|row| (row % 12).to_string()),
            column("label", &|row| (row % 2).to_string()),
        ])
        .unwrap()
    }

    #[test]
    fn the_proposal_for_a_frame_is_about_samples_in_memory() {
        let mut remarks = Vec::new();
        let mut remark = |said: &str| remarks.push(said.to_owned());
        let text = of_frame(&frame(), &Choices::default(), "a test", &mut remark).unwrap();
        let config = Config::parse(&text, "the test", &[]).unwrap();
        let SourceConfig::Stored(stored) = &config.data.source else {
            panic!("{text}")
        };
        let StoredSet::Memory(memory) = &stored.set else {
            panic!("{text}")
        };
        assert_eq!(memory.categories_are_public, Some(false));
        assert!(
            text.contains("partition = \"natural\"") && text.contains("a test"),
            "{text}"
        );
        assert!(text.contains("classes = [\"0\", \"1\"]"), "{text}");
        assert_eq!(remarks.len(), 1);
        assert!(remarks[0].contains("`same`"), "{remarks:?}");
    }

    #[test]
    fn a_frame_without_a_label_is_refused() {
        let choices = Choices {
            label: Some("none".to_owned()),
            ..Choices::default()
        };
        let error = of_frame(&frame(), &choices, "a test", &mut |_| {}).unwrap_err();
        assert!(matches!(error, ProposalError::Frame(_)), "{error}");
    }
}
