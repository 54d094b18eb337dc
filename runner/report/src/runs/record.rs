//! One run as read from its directory, with its state: complete, running or unfinished.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::figures::{self, Round};
use super::settings::{self, Settings};
use smolfed_engine::config::Config;
use smolfed_engine::run::directory::RunDir;
use smolfed_engine::run_files::error::{RunDirError, if_there};
use smolfed_release::statement::PrivacyStatement;

/// Progress of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// All of its rounds are done, and its privacy statement is written.
    Complete,
    /// A process writes to it.
    Running,
    /// It stopped, was stopped, or crashed.
    Unfinished,
}

impl State {
    /// Returns the word in tables and in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Running => "running",
            Self::Unfinished => "unfinished",
        }
    }
}

/// Contents of a run directory about the course of its run.
#[derive(Clone, Debug)]
pub struct Run {
    /// The directory, as it was given.
    pub path: PathBuf,
    /// The complete configuration.
    pub config: Config,
    /// The configuration by dotted keys.
    pub settings: Settings,
    /// Its rounds, in order.
    pub rounds: Vec<Round>,
    /// The privacy statements, the run's accountant first. Empty while they do not cover all
    /// rounds.
    pub statements: Vec<PrivacyStatement>,
    /// Progress of the run.
    pub state: State,
    /// Time at which its last round was recorded.
    pub written: SystemTime,
}

impl Run {
    /// Reads a run directory. Files that a broken run has not written are absent.
    ///
    /// # Errors
    /// [`RunDirError`] if there is no run, or a file is damaged or cannot be read.
    pub fn open(path: &Path) -> Result<Self, RunDirError> {
        let dir = RunDir::open(path)?;
        let config = dir.config()?;
        let is_running = dir.is_in_use()?;
        let rounds: Vec<Round> = dir.record_values()?.into_iter().map(Round::from).collect();
        let statements = if_there(dir.privacy())?;
        let state = match (&statements, is_running) {
            (_, true) => State::Running,
            (Some(_), false) if rounds.len() >= config.rounds as usize => State::Complete,
            _ => State::Unfinished,
        };
        // Before a resumption, the run may have stopped and stated its spent privacy until then.
        let covers_all = |statements: &Vec<PrivacyStatement>| match state {
            State::Complete => true,
            State::Running => false,
            State::Unfinished => {
                let first = statements.first();
                first.is_some_and(|first| first.rounds >= rounds.len() as u64)
            }
        };
        Ok(Self {
            path: path.to_path_buf(),
            settings: settings::from_config(&config)?,
            statements: statements.filter(covers_all).unwrap_or_default(),
            config,
            rounds,
            state,
            written: dir.written()?,
        })
    }

    /// Returns the wall time of all rounds, in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        let seconds = self.rounds.iter().map(|r| r.get(figures::SECONDS));
        seconds.map(Option::unwrap_or_default).sum()
    }

    /// Returns the approximate end of the first round. See [`Self::times`].
    #[must_use]
    pub fn started(&self) -> SystemTime {
        self.times().first().map_or(self.written, |time| *time)
    }

    /// Returns when each round ended: the last one when it was recorded, and earlier ones earlier
    /// by the duration of rounds. Pauses of a resumed run are left out.
    #[must_use]
    pub fn times(&self) -> Vec<SystemTime> {
        let mut time = self.written;
        let mut times = Vec::with_capacity(self.rounds.len());
        for round in self.rounds.iter().rev() {
            times.push(time);
            let seconds = round.get(figures::SECONDS).unwrap_or_default();
            let took = Duration::try_from_secs_f64(seconds).unwrap_or_default();
            time = time.checked_sub(took).unwrap_or(time);
        }
        times.reverse();
        times
    }
}

/// Returns the time since 1970, or zero before.
#[must_use]
pub fn since_epoch(time: SystemTime) -> Duration {
    time.duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
}
