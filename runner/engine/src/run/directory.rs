//! The run directory: all files of a run.
//!
//! | file | content |
//! | --- | --- |
//! | `config.toml` | the complete experiment, which `smolfed run config.toml` repeats |
//! | `metrics.jsonl` | one object per round |
//! | `ledger.jsonl` | the releases, one line per round ([`smolfed_release::ledger`]) |
//! | `privacy.json` | the privacy statements |
//! | `diagnostics.json` | spectra of the last round, for the report |
//! | `assessment.json` | all figures of the final model on held-out samples |
//! | `membership.json` | simulation only: an attack on the model, if examples were held back |
//! | `representation.json` | simulation only: picture of the representations of an encoder |
//! | `model.safetensors` | the model |
//! | `preprocessing.json` | further data for inference ([`crate::preprocessing`]) |
//! | `report.html` | the report, self-contained |
//! | `personal.json` | simulation only: figures of each device's models |
//! | `personal.states` | simulation only: personal models ([`crate::method::personal::states`]) |
//! | `checkpoint/` | the state to resume from |
//! | `fleet.toml` | with real devices: their settings (it distinguishes the run from simulations) |
//! | `participation.jsonl` | with real devices, secret: participants, one object per round |
//! | `answers.jsonl` | with real devices, secret: answering devices, one object per question |
//! | `devices.json` | with real devices, secret: the outcome of each |
//!
//! Any process that writes to a directory holds a lock on its `config.toml` meanwhile, which ends
//! with the process.
//!
//! Files that must not be lost are written under another name, synced and renamed. A crash or a
//! full disk leaves the previous ones intact.

mod look;
pub mod model_file;

use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::config::Config;
use crate::evaluation::assessment::FinalAssessment;
use crate::evaluation::devices::DeviceReport;
use crate::membership::Attack;
use crate::preprocessing::Preprocessing;
use crate::representation::Picture;
use crate::round::{RoundRecord, Spectrum};
use crate::run_files::error::{RunDirError, damaged, io, write_atomically};
use crate::run_files::records::{self, RecordFile, RecordValues};
use crate::source::participation::{AnswerRecord, Participation};
use crate::task::Task;
use model_file::{InputLayout, ModelFile};
use smolfed_data::wording::of_json;
use smolfed_release::provenance::{Provenance, with_origin};
use smolfed_release::statement::PrivacyStatement;

/// A run directory.
#[derive(Clone, Debug)]
pub struct RunDir {
    path: PathBuf,
    /// The configuration, locked as long as this or a clone of it lives, or `None` for reading.
    _lock: Option<Arc<File>>,
}

/// Defines the names of files in a run directory, with a list of all.
macro_rules! files {
    ($($(#[$documentation:meta])* $name:ident = $file:expr;)*) => {
        impl RunDir {
            $($(#[$documentation])* const $name: &'static str = $file;)*
            /// Files of runs, which nothing else may overwrite.
            pub const FILES: &'static [&'static str] = &[$(Self::$name),*];
        }
    };
}

files! {
    CONFIG = "config.toml";
    /// The configuration before it is complete.
    CONFIG_PARTIAL = "config.toml.partial";
    METRICS = "metrics.jsonl";
    LEDGER = "ledger.jsonl";
    PRIVACY = "privacy.json";
    DIAGNOSTICS = "diagnostics.json";
    ASSESSMENT = "assessment.json";
    MEMBERSHIP = "membership.json";
    DEVICE_FIGURES = "personal.json";
    PERSONAL_MODELS = "personal.states";
    MODEL = "model.safetensors";
    REPORT = "report.html";
    CHECKPOINT = "checkpoint";
    FLEET = "fleet.toml";
    PARTICIPATION = "participation.jsonl";
    ANSWERS = "answers.jsonl";
    REPRESENTATION = "representation.json";
    DEVICES = "devices.json";
    PREPROCESSING = Preprocessing::FILE;
}

impl RunDir {
    /// Creates the directory of a new run and writes its configuration.
    ///
    /// # Errors
    /// [`RunDirError::Exists`], `Failed` or `Taken` if there is something in it,
    /// [`RunDirError::Io`] if it cannot be created.
    pub fn create(path: &Path, config: &Config) -> Result<Self, RunDirError> {
        Self::empty(path, &[])?.begin(config)
    }

    /// Creates the directory of a run of real devices, which only its owner can access. The file
    /// that marks it is written before the configuration, which makes the directory a run: if this
    /// is interrupted, it can be repeated.
    ///
    /// # Errors
    /// As [`Self::create`].
    pub fn create_of_fleet(
        out: Option<&Path>,
        config: &Config,
        fleet: &impl Serialize,
    ) -> Result<Self, RunDirError> {
        let dir = Self::empty(
            &Self::out(out, config),
            &[Self::FLEET, Self::CONFIG_PARTIAL],
        )?;
        dir.restrict_to_owner()?;
        dir.write_fleet(fleet)?;
        dir.begin(config)
    }

    /// Creates a directory that may contain only files with these names and their partial versions.
    fn empty(path: &Path, left: &[&str]) -> Result<Self, RunDirError> {
        let is_left = |name: &str| left.iter().any(|left| name.starts_with(left));
        let is_other = |entry: std::io::Result<fs::DirEntry>| {
            entry.is_ok_and(|entry| !entry.file_name().to_str().is_some_and(is_left))
        };
        let taken = fs::read_dir(path).is_ok_and(|mut entries| entries.any(is_other));
        if taken || path.is_file() {
            let is_run = Self::config_path(path).is_file();
            let is_failed = Self::is_failed(path);
            let path = path.display().to_string();
            return Err(match is_run {
                true if is_failed => RunDirError::Failed { path },
                true => RunDirError::Exists { path },
                false => RunDirError::Taken { path },
            });
        }
        fs::create_dir_all(path).map_err(io("create", path))?;
        Ok(Self {
            path: path.to_path_buf(),
            _lock: None,
        })
    }

    /// Turns the directory into one of a run.
    fn begin(self, config: &Config) -> Result<Self, RunDirError> {
        self.write(Self::CONFIG, config.to_toml()?.as_bytes())?;
        self.locked()
    }

    /// Renames the directory of a run that ended before its first checkpoint, so that a new one can
    /// replace it. Its ledger is kept. Returns the new path, or `None` if `path` is not such a
    /// directory.
    ///
    /// # Errors
    /// [`RunDirError::InUse`] if the run has not ended, and errors of the operating system.
    pub fn set_aside(path: &Path) -> Result<Option<PathBuf>, RunDirError> {
        if !Self::is_failed(path) {
            return Ok(None);
        }
        let _lock = Self::resume(path)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let candidate = |number| path.with_file_name(format!("{name}-failed-{number}"));
        let free = (1u32..).map(candidate).find(|place| !place.exists());
        let free = free.unwrap_or_else(|| path.to_path_buf());
        fs::rename(path, &free).map_err(io("rename", path))?;
        Ok(Some(free))
    }

    /// Returns whether a run left this directory before its first checkpoint, or has none yet.
    fn is_failed(path: &Path) -> bool {
        Self::config_path(path).is_file() && !path.join(Self::CHECKPOINT).exists()
    }

    /// Creates the directory of a new run: `out` or, without one, `runs/<name>-<time>`.
    ///
    /// # Errors
    /// As [`Self::create`].
    pub fn create_for(out: Option<&Path>, config: &Config) -> Result<Self, RunDirError> {
        Self::create(&Self::out(out, config), config)
    }

    fn out(out: Option<&Path>, config: &Config) -> PathBuf {
        out.map_or_else(|| default_out(&config.name), Path::to_path_buf)
    }

    /// Returns the path of the configuration of the run in `dir`.
    #[must_use]
    pub fn config_path(dir: &Path) -> PathBuf {
        dir.join(Self::CONFIG)
    }

    /// Opens the directory of an earlier run to continue it.
    ///
    /// # Errors
    /// As [`Self::open`], and [`RunDirError::InUse`] if another process writes to it.
    pub fn resume(path: &Path) -> Result<Self, RunDirError> {
        Self::open(path)?.locked()
    }

    fn locked(self) -> Result<Self, RunDirError> {
        let path = Self::config_path(&self.path);
        let file = File::open(&path).map_err(io("read", &path))?;
        match file.try_lock() {
            Ok(()) => Ok(Self {
                _lock: Some(Arc::new(file)),
                ..self
            }),
            Err(TryLockError::WouldBlock) => Err(RunDirError::InUse {
                path: self.path.display().to_string(),
            }),
            Err(TryLockError::Error(error)) => Err(io("lock", &path)(error)),
        }
    }

    /// Opens the directory of an earlier run for reading.
    ///
    /// # Errors
    /// [`RunDirError::NotARun`] if it holds no configuration.
    pub fn open(path: &Path) -> Result<Self, RunDirError> {
        if !Self::config_path(path).is_file() {
            let path = path.display().to_string();
            return Err(RunDirError::NotARun {
                path,
                file: Self::CONFIG,
            });
        }
        Ok(Self {
            path: path.to_path_buf(),
            _lock: None,
        })
    }

    /// Returns the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the complete configuration.
    ///
    /// # Errors
    /// [`RunDirError::Config`] if it cannot be read.
    pub fn config(&self) -> Result<Config, RunDirError> {
        Ok(Config::load(Some(&self.path.join(Self::CONFIG)), &[])?)
    }

    /// Returns the path of the run's own privacy ledger.
    #[must_use]
    pub fn ledger(&self) -> PathBuf {
        self.path.join(Self::LEDGER)
    }

    /// Opens `metrics.jsonl` to append, keeping the records of the first `rounds` rounds.
    ///
    /// # Errors
    /// [`RunDirError`] if it cannot be read or written, or does not hold these rounds.
    pub fn metrics(&self, rounds: u32) -> Result<RecordFile<RoundRecord>, RunDirError> {
        RecordFile::open(&self.path.join(Self::METRICS), rounds)
    }

    /// Returns the path of the participation record: of real devices, or to replay.
    #[must_use]
    pub fn participation_path(&self) -> PathBuf {
        self.path.join(Self::PARTICIPATION)
    }

    /// Keeps a copy of a participation record, so that a replay can be resumed.
    ///
    /// # Errors
    /// [`RunDirError::Io`].
    pub fn copy_participation(&self, path: &Path) -> Result<(), RunDirError> {
        let bytes = fs::read(path).map_err(io("read", path))?;
        self.write(Self::PARTICIPATION, &bytes)
    }

    /// Opens `participation.jsonl` to append, keeping the records of the first `rounds` rounds.
    ///
    /// # Errors
    /// As [`Self::metrics`].
    pub fn participation(&self, rounds: u32) -> Result<RecordFile<Participation>, RunDirError> {
        RecordFile::open(&self.participation_path(), rounds)
    }

    /// Opens `answers.jsonl` to append, keeping the records of questions after the first `rounds`
    /// rounds.
    ///
    /// # Errors
    /// [`RunDirError`] if it cannot be read or written.
    pub fn answers(&self, rounds: u32) -> Result<RecordFile<AnswerRecord>, RunDirError> {
        RecordFile::open_any(&self.path.join(Self::ANSWERS), rounds)
    }

    /// Restricts the directory to its owner, as it will tell who took part.
    ///
    /// # Errors
    /// [`RunDirError::Io`].
    fn restrict_to_owner(&self) -> Result<(), RunDirError> {
        use std::os::unix::fs::PermissionsExt;
        let owner_only = fs::Permissions::from_mode(0o700);
        fs::set_permissions(&self.path, owner_only).map_err(io("write", &self.path))
    }

    /// Writes the settings of a fleet, which mark a run of real devices.
    ///
    /// # Errors
    /// [`RunDirError::Io`].
    fn write_fleet(&self, fleet: &impl Serialize) -> Result<(), RunDirError> {
        let text = toml::to_string(fleet)
            .map_err(|error| damaged(&self.path.join(Self::FLEET), error.to_string()))?;
        self.write(Self::FLEET, text.as_bytes())
    }

    /// Returns whether it is a run of real devices.
    #[must_use]
    pub fn is_of_fleet(&self) -> bool {
        self.path.join(Self::FLEET).is_file()
    }

    /// Returns the settings of a fleet as written, or `None` for a simulation.
    ///
    /// # Errors
    /// [`RunDirError`] if they are damaged.
    pub fn fleet<T: DeserializeOwned>(&self) -> Result<Option<T>, RunDirError> {
        if !self.is_of_fleet() {
            return Ok(None);
        }
        let path = self.path.join(Self::FLEET);
        let text = fs::read_to_string(&path).map_err(io("read", &path))?;
        let fleet = toml::from_str(&text).map_err(|error| damaged(&path, error.to_string()))?;
        Ok(Some(fleet))
    }

    /// Writes the outcome of each real device.
    ///
    /// # Errors
    /// [`RunDirError::Io`].
    pub fn write_devices(&self, devices: &impl Serialize) -> Result<(), RunDirError> {
        self.write_json(Self::DEVICES, devices)
    }

    /// Returns all records so far.
    ///
    /// # Errors
    /// [`RunDirError`] if they cannot be read.
    pub fn records(&self) -> Result<Vec<RoundRecord>, RunDirError> {
        records::read(&self.path.join(Self::METRICS))
    }

    /// Returns the records as in the file, for any version of smolfed that wrote them.
    ///
    /// # Errors
    /// As [`Self::records`].
    pub fn record_values(&self) -> Result<Vec<RecordValues>, RunDirError> {
        records::read(&self.path.join(Self::METRICS))
    }

    /// Writes the privacy statements.
    ///
    /// # Errors
    /// [`RunDirError::Io`].
    pub fn write_privacy(&self, statements: &[PrivacyStatement]) -> Result<(), RunDirError> {
        self.write_json(Self::PRIVACY, statements)
    }

    /// Returns the privacy statements, the run's accountant first.
    ///
    /// # Errors
    /// [`RunDirError`] if they are missing or damaged.
    pub fn privacy(&self) -> Result<Vec<PrivacyStatement>, RunDirError> {
        self.read_json(Self::PRIVACY)
    }

    /// Returns the privacy statements as in the file, for comparison.
    ///
    /// # Errors
    /// As [`Self::privacy`].
    pub fn privacy_values(&self) -> Result<Vec<serde_json::Value>, RunDirError> {
        self.read_json(Self::PRIVACY)
    }

    /// Writes the spectra of the last round.
    ///
    /// # Errors
    /// [`RunDirError::Io`].
    pub fn write_diagnostics(&self, spectrum: &Spectrum) -> Result<(), RunDirError> {
        self.write_figures(Self::DIAGNOSTICS, spectrum, |key| match key {
            "clean" => Provenance::SimulationOnly,
            _ => Provenance::Released,
        })
    }

    /// Returns the spectra of the last round.
    ///
    /// # Errors
    /// [`RunDirError`] if they are missing or damaged.
    pub fn diagnostics(&self) -> Result<Spectrum, RunDirError> {
        self.read_json(Self::DIAGNOSTICS)
    }

    /// Returns the path of the personal models.
    #[must_use]
    pub fn personal_models(&self) -> PathBuf {
        self.path.join(Self::PERSONAL_MODELS)
    }

    /// Writes the figures of each device's models.
    ///
    /// # Errors
    /// [`RunDirError::Io`].
    pub fn write_device_figures(&self, devices: &DeviceReport) -> Result<(), RunDirError> {
        self.write_figures(Self::DEVICE_FIGURES, devices, simulation_only)
    }

    /// Returns the figures of each device's models.
    ///
    /// # Errors
    /// [`RunDirError`] if they are missing or damaged.
    pub fn device_figures(&self) -> Result<DeviceReport, RunDirError> {
        self.read_json(Self::DEVICE_FIGURES)
    }

    /// Writes all figures of the final model.
    ///
    /// # Errors
    /// [`RunDirError::Io`].
    pub fn write_assessment(&self, assessment: &FinalAssessment) -> Result<(), RunDirError> {
        let origin = match assessment.is_simulation_only {
            true => simulation_only,
            false => |_: &str| Provenance::Released,
        };
        self.write_figures(Self::ASSESSMENT, assessment, origin)
    }

    /// Returns all figures of the final model.
    ///
    /// # Errors
    /// [`RunDirError`] if they are missing or damaged.
    pub fn assessment(&self) -> Result<FinalAssessment, RunDirError> {
        self.read_json(Self::ASSESSMENT)
    }

    /// Writes the results of the membership attack, on this run's model or on several.
    ///
    /// # Errors
    /// [`RunDirError::Io`].
    pub fn write_membership(&self, attacks: &[Attack]) -> Result<(), RunDirError> {
        self.write_figures(Self::MEMBERSHIP, attacks, simulation_only)
    }

    /// Returns the results of the membership attack.
    ///
    /// # Errors
    /// [`RunDirError`] if they are missing or damaged.
    pub fn membership(&self) -> Result<Vec<Attack>, RunDirError> {
        self.read_json(Self::MEMBERSHIP)
    }

    /// Writes the picture of an encoder's representations.
    ///
    /// # Errors
    /// [`RunDirError::Io`].
    pub fn write_representation(&self, picture: &Picture) -> Result<(), RunDirError> {
        self.write_figures(Self::REPRESENTATION, picture, simulation_only)
    }

    /// Returns the picture of an encoder's representations.
    ///
    /// # Errors
    /// [`RunDirError`] if it is missing or damaged.
    pub fn representation(&self) -> Result<Picture, RunDirError> {
        self.read_json(Self::REPRESENTATION)
    }

    /// Writes the model.
    ///
    /// # Errors
    /// [`RunDirError::Io`].
    pub fn write_model(
        &self,
        task: &Task,
        layout: &InputLayout,
        parameters: &[f32],
    ) -> Result<(), RunDirError> {
        let bytes = model_file::encode(task, layout, parameters)
            .map_err(|reason| damaged(&self.path.join(Self::MODEL), reason))?;
        self.write(Self::MODEL, &bytes)
    }

    /// Returns the path of the model.
    #[must_use]
    pub fn model_path(&self) -> PathBuf {
        self.path.join(Self::MODEL)
    }

    /// Returns the model.
    ///
    /// # Errors
    /// [`RunDirError`] if it is missing or damaged.
    pub fn model(&self) -> Result<ModelFile, RunDirError> {
        let path = self.path.join(Self::MODEL);
        let bytes = fs::read(&path).map_err(io("read", &path))?;
        ModelFile::decode(&bytes).map_err(|reason| damaged(&path, reason))
    }

    /// Returns the shared parameters, or `None` if nothing is shared, and so no model was written.
    ///
    /// # Errors
    /// [`RunDirError`] if the model is damaged.
    pub fn shared_parameters(&self) -> Result<Option<Vec<f32>>, RunDirError> {
        let path = self.path.join(Self::MODEL);
        match fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            read => {
                let bytes = read.map_err(io("read", &path))?;
                let parameters = model_file::parameters(&bytes);
                Ok(Some(parameters.map_err(|reason| damaged(&path, reason))?))
            }
        }
    }

    /// Writes the data that inference needs besides the model.
    ///
    /// # Errors
    /// [`RunDirError::Io`].
    pub fn write_preprocessing(&self, preprocessing: &Preprocessing) -> Result<(), RunDirError> {
        self.write(Self::PREPROCESSING, preprocessing.to_json().as_bytes())
    }

    /// Writes the report.
    ///
    /// # Errors
    /// [`RunDirError::Io`].
    pub fn write_report(&self, html: &str) -> Result<PathBuf, RunDirError> {
        self.write(Self::REPORT, html.as_bytes())?;
        Ok(self.path.join(Self::REPORT))
    }

    /// Returns the folder of the checkpoint, a [`TrainingState`](crate::round::TrainingState).
    #[must_use]
    pub fn checkpoint(&self) -> PathBuf {
        self.path.join(Self::CHECKPOINT)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), RunDirError> {
        write_atomically(&self.path.join(name), bytes)
    }

    fn write_json<T: Serialize + ?Sized>(&self, name: &str, value: &T) -> Result<(), RunDirError> {
        let text = serde_json::to_string_pretty(value)
            .map_err(|error| damaged(&self.path.join(name), error.to_string()))?;
        self.write(name, text.as_bytes())
    }

    /// Writes figures with the origin of each.
    fn write_figures<T: Serialize + ?Sized>(
        &self,
        name: &str,
        figures: &T,
        origin_of: fn(&str) -> Provenance,
    ) -> Result<(), RunDirError> {
        let value = serde_json::to_value(figures)
            .map_err(|error| damaged(&self.path.join(name), error.to_string()))?;
        self.write_json(name, &with_origin(value, origin_of))
    }

    fn read_json<T: DeserializeOwned>(&self, name: &str) -> Result<T, RunDirError> {
        let path = self.path.join(name);
        let text = fs::read_to_string(&path).map_err(io("read", &path))?;
        serde_json::from_str(&text).map_err(|error| damaged(&path, of_json(&error)))
    }
}

/// Returns the origin of figures that read private data without noise.
const fn simulation_only(_: &str) -> Provenance {
    Provenance::SimulationOnly
}

fn default_out(name: &str) -> PathBuf {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    // Two runs within one second get different directories.
    let first = PathBuf::from("runs").join(format!("{name}-{}", now.as_secs()));
    let mut out = first.clone();
    let mut number = 2;
    while out.exists() {
        out = first.with_file_name(format!("{name}-{}-{number}", now.as_secs()));
        number += 1;
    }
    out
}

#[cfg(test)]
mod tests;
