//! State after a round: [`TrainingState`]. A run resumes from it alone, and its file is the
//! checkpoint.
//!
//! ```text
//! metadata  format | round | run | clip_norm | texts of the method (method.*) and of the server
//! tensors   parameters |             arrays of the method (method.*) and of the server
//! ```
//!
//! The file has the safetensors format. The server's names tell the owner: `mechanism` (correlated
//! noise), `helper` (masked sums of a simulation) or `auto` (the denoiser). Random streams have no
//! position to save, as their names include the round. Their root is not in the file, as it may be
//! secret. The states of devices are not in it either. The method keeps their digest.

use std::fs;
use std::path::Path;

use smolfed_core::params::ClipNorm;
use smolfed_core::stream::Root;

use crate::experiment::Experiment;
use crate::method::contract::Store;
use crate::run_files::error::{RunDirError, damaged, io, write_atomically};
use smolfed_release::saved::Saved;

/// Version of the format. The first one had no number.
const VERSION: &str = "2";
/// Names in the file.
const FORMAT: &str = "format";
const ROUND: &str = "round";
const RUN: &str = "run";
const CLIP_NORM: &str = "clip_norm";
const PARAMETERS: &str = "parameters";
const METHOD: &str = "method.";

/// Suffix of a run's name if a program provides the server's step.
pub(crate) const OWN_STEP: &str = "-own";

/// State of a run after a round.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrainingState {
    /// Number of completed rounds. Before the first one, there is no other state.
    pub round: u32,
    /// The global model.
    pub global: Vec<f32>,
    /// L of the next round, if it is adaptive.
    pub clip_norm: Option<ClipNorm>,
    /// State of the method.
    pub method: Saved,
    /// State of the mechanism, of helpers in this process and of the denoiser.
    pub server: Saved,
}

/// Why the bytes of a file are not a valid state.
#[derive(Debug, thiserror::Error)]
pub enum StateFileError {
    /// The format has another version.
    #[error("its format has version {found}, but this smolfed reads version {VERSION}")]
    Version {
        /// The version of the format.
        found: String,
    },
    /// The description of the problem.
    #[error("{0}")]
    Damaged(String),
}

impl From<String> for StateFileError {
    fn from(reason: String) -> Self {
        Self::Damaged(reason)
    }
}

impl TrainingState {
    /// Name of the file in the folder of checkpoints.
    pub const FILE: &'static str = "state.safetensors";

    /// Creates the state before the first round: the initial model of the method, from the
    /// experiment's seed.
    #[must_use]
    pub fn new(experiment: &Experiment) -> Self {
        let root = Root::from_seed(experiment.config.initial_seed());
        Self {
            global: experiment.method.initial(&root),
            clip_norm: experiment.adaptive.map(|adaptive| adaptive.initial),
            ..Self::default()
        }
    }

    /// Loads the last checkpoint in `folder`, of the run of this name with this number of
    /// parameters. Returns `None` if the run stopped before its first checkpoint.
    ///
    /// # Errors
    /// [`RunDirError`] if it cannot be read, is damaged, of another version or of another run.
    pub fn load(folder: &Path, run: &str, parameters: usize) -> Result<Option<Self>, RunDirError> {
        let Some((state, found)) = Self::read(folder)? else {
            return Ok(None);
        };
        let reason = match state.global.len() {
            _ if found != run => difference(&found, run),
            count if count != parameters => {
                format!("{count} parameters, but the model has {parameters}")
            }
            _ => return Ok(Some(state)),
        };
        let path = folder.join(Self::FILE).display().to_string();
        Err(RunDirError::Foreign { path, reason })
    }

    /// Reads the last checkpoint in `folder`, with the name of its run, for any run.
    ///
    /// # Errors
    /// [`RunDirError`] if it cannot be read, is damaged or of another version.
    pub fn read(folder: &Path) -> Result<Option<(Self, String)>, RunDirError> {
        let path = folder.join(Self::FILE);
        if !path.is_file() {
            return Ok(None);
        }
        let bytes = fs::read(&path).map_err(io("read", &path))?;
        let state = Self::decode(&bytes).map_err(|error| match error {
            StateFileError::Damaged(reason) => damaged(&path, reason),
            StateFileError::Version { .. } => RunDirError::Version {
                path: path.display().to_string(),
                reason: error.to_string(),
            },
        });
        state.map(Some)
    }

    /// Writes the checkpoint of the run of this name. The previous one stays until this one is
    /// safe.
    ///
    /// # Errors
    /// [`RunDirError::Io`].
    pub fn save(self, folder: &Path, run: &str) -> Result<(), RunDirError> {
        fs::create_dir_all(folder).map_err(io("create", folder))?;
        let path = folder.join(Self::FILE);
        let bytes = self.encode(run).map_err(|reason| damaged(&path, reason))?;
        write_atomically(&path, &bytes)
    }

    /// Encodes the file, for the run of this name.
    ///
    /// # Errors
    /// A description of values that the format cannot hold.
    pub fn encode(self, run: &str) -> Result<Vec<u8>, String> {
        let mut saved = self.server;
        saved.put_all(METHOD, self.method);
        saved.put(PARAMETERS, [self.global.len()], self.global);
        // The shortest text that reads back as the same number.
        let clip_norm = self.clip_norm.map(|clip_norm| clip_norm.get().to_string());
        let header = [
            (FORMAT, Some(VERSION.to_owned())),
            (ROUND, Some(self.round.to_string())),
            (RUN, Some(run.to_owned())),
            (CLIP_NORM, clip_norm),
        ];
        let header = header.into_iter();
        let header = header.filter_map(|(key, value)| Some((key.to_owned(), value?)));
        saved.entries.extend(header);
        saved.encode()
    }

    /// Decodes the file, with the name of the run.
    ///
    /// # Errors
    /// [`StateFileError`].
    pub fn decode(bytes: &[u8]) -> Result<(Self, String), StateFileError> {
        let mut saved = Saved::decode(bytes)?;
        let format = saved.entries.remove(FORMAT);
        let found = format.unwrap_or_else(|| "1".to_owned());
        if found != VERSION {
            return Err(StateFileError::Version { found });
        }
        let mut entry = |key: &str| {
            saved
                .entries
                .remove(key)
                .ok_or(format!("it has no `{key}`"))
        };
        let (round, run) = (entry(ROUND)?, entry(RUN)?);
        let round = round
            .parse()
            .map_err(|_| "`round` is not a number".to_owned());
        let clip_norm = entry(CLIP_NORM).ok().map(|text| {
            let parsed = text.parse().ok().and_then(|x| ClipNorm::new(x).ok());
            parsed.ok_or("`clip_norm` is not a clip norm".to_owned())
        });
        let state = Self {
            round: round?,
            global: saved.get(PARAMETERS)?,
            clip_norm: clip_norm.transpose()?,
            method: saved.take_all(METHOD),
            server: {
                saved.tensors.remove(PARAMETERS);
                saved
            },
        };
        Ok((state, run))
    }

    /// Returns the storage of the method: this state, and the file for the states of devices.
    #[must_use]
    pub fn store<'a>(&'a self, device_states: &'a Path, run: &'a str) -> Store<'a> {
        Store {
            device_states,
            run,
            checkpoint: (self.round > 0).then_some((self.round, &self.method)),
            is_follower: false,
        }
    }
}

/// Describes the difference between the names of two runs (see [`name`](crate::run::name)).
fn difference(found: &str, expected: &str) -> String {
    let mut parts = found.split('-').zip(expected.split('-'));
    let lanes = |name: &str| {
        let fast = |part: &str| part.strip_prefix("fast").map(str::to_owned);
        name.split('-').find_map(fast)
    };
    match (
        parts.position(|(a, b)| a != b),
        lanes(found),
        lanes(expected),
    ) {
        (Some(0), ..) => "the configuration differs".to_owned(),
        (Some(1), ..) => "the data differ".to_owned(),
        (_, Some(found), Some(expected)) if found != expected => format!(
            "\"fast\" trained with vectors of {found} numbers, but this processor has {expected}"
        ),
        _ if found.ends_with(OWN_STEP) && !expected.ends_with(OWN_STEP) => {
            "it was trained with a program's denoiser or server step: resume it from there, with \
             the same one"
                .to_owned()
        }
        _ if expected.ends_with(OWN_STEP) && !found.ends_with(OWN_STEP) => {
            "it was trained without a program's denoiser or server step".to_owned()
        }
        _ => "the version of smolfed or the start of the run differs".to_owned(),
    }
}

#[cfg(test)]
mod tests;
