//! Existing runs: listed, compared, and exported for other programs.
//!
//! Figures are read from `metrics.jsonl` by their dotted names, so that runs of different methods
//! and versions of smolfed can be compared.
//!
//! | question | file |
//! | --- | --- |
//! | which folders are runs or sweeps | `find` |
//! | one run, as far as it has come | `record` |
//! | figures of rounds by dotted names, and which of them judge a model | `figures` |
//! | the configuration by dotted keys, and in what several differ | `settings` |
//! | ε in a table, with its qualifications | `spent` |
//! | runs given on the command line | `selection` |
//! | `smolfed runs` | [`list`] |
//! | `smolfed runs compare` | [`compare`] |
//! | `smolfed runs export` | [`export`] |
//! | output without overwriting | `output` |

pub mod compare;
mod error;
pub mod export;
pub mod figures;
mod find;
pub mod list;
mod output;
pub mod record;
pub mod selection;
pub mod settings;
mod spent;

pub use error::RunsError;
pub use output::{OutputFile, write_new};
