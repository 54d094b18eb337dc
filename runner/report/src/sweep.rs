//! A sweep: many runs from one file, in parallel, to one table.
//!
//! A sweep file is a whole experiment with a table `[sweep]`, which defines the changes between
//! runs. Every combination of the variants, the values of the grid and the seeds is one run. The
//! runs of all seeds together are one [`Cell`] of the table.
//!
//! ```toml
//! [sweep]
//! seeds = 10
//! [sweep.grid]
//! "privacy.epsilon" = [6, 7, 8, 9]
//! "server.smoothing_factor" = [0, 1, 2, 3]
//! ```
//!
//! | question | file |
//! | --- | --- |
//! | contents of `[sweep]` | `file` |
//! | variants and values to cells | `grid` |
//! | runs in parallel, each data set once | `execution`, `workers`, `federations` |
//! | the runs over several ranks | `ranks` |
//! | one run, and the best of a random number of them | `single`, `private` |
//! | `results.jsonl`: the existing results | `results` |
//! | mean and standard error of a cell | `summary`, `metric` |
//! | rows and columns | `layout`, `table` |
//! | `table.md`, `table.csv`, `--json` | `document` |
//! | `plot.svg` | `plot` |
//! | one time for all files of a private sweep | `times` |

pub mod choice;
mod document;
mod execution;
mod federations;
mod file;
#[cfg(test)]
mod fixture;
mod grid;
mod layout;
mod metric;
mod plot;
mod private;
mod ranks;
mod results;
mod single;
mod summary;
mod table;
pub mod times;
mod workers;

use smolfed_data::DataError;
use smolfed_engine::config::ConfigError;
use smolfed_engine::ranks::RankError;
use smolfed_engine::run_files::error::RunDirError;
use smolfed_engine::task::pretrained::PretrainedError;

pub use document::Document;
pub use execution::execute;
pub use file::{Sweep, schema};
pub use grid::{Cell, Dimension, Level};
pub use metric::Metric;
pub use ranks::help;
pub use results::{Figures, Results, RunRecord};
pub use summary::{CellSummary, Mean, Summaries};
pub use workers::{Refusal, Run, RunOutcome, Watch};

/// Error when making a table.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SweepError {
    /// The experiment in the file, or an override, is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A setting of the sweep makes an experiment that cannot be read.
    #[error("with {settings}: {reason}")]
    Setting {
        /// The settings of the cell.
        settings: String,
        /// Reason.
        reason: ConfigError,
    },
    /// The file has no `[sweep]`.
    #[error("{origin}: the table [sweep] is missing; for a single run use: smolfed run {origin}")]
    NoSweep {
        /// The file.
        origin: String,
    },
    /// A key of `[sweep]` has an invalid value.
    #[error("{origin}: `{key}` {reason}")]
    Table {
        /// The file.
        origin: String,
        /// The key.
        key: String,
        /// The problem, and the expected value.
        reason: String,
    },
    /// The data cannot be used.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The file of initial parameters cannot be used.
    #[error(transparent)]
    Pretrained(#[from] Box<PretrainedError>),
    /// The results or the tables cannot be read or written.
    #[error(transparent)]
    Files(#[from] RunDirError),
    /// Nothing could be run.
    #[error("no cell of the sweep can be run, the first because {reason}")]
    NothingRuns {
        /// The reason of the first cell.
        reason: String,
    },
    /// The runs have no such figure.
    #[error("`sweep.metric` is \"{metric}\", but the runs only have {known}")]
    Metric {
        /// The metric.
        metric: Metric,
        /// The available figures.
        known: String,
    },
    /// Another rank cannot continue.
    #[error(transparent)]
    Rank(#[from] RankError),
    /// Threads cannot be started.
    #[error("cannot start {threads} threads: {reason}")]
    Threads {
        /// The number of threads.
        threads: usize,
        /// Reason.
        reason: String,
    },
}

impl SweepError {
    /// Returns whether the input is at fault, not the runs.
    #[must_use]
    pub const fn is_bad_input(&self) -> bool {
        match self {
            Self::Files(error) => !matches!(error, RunDirError::Io { .. }),
            Self::Threads { .. } | Self::Rank(_) => false,
            _ => true,
        }
    }
}
