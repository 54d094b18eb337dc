//! The reasons why a command fails (errors), and the exit code for each.

use std::io::ErrorKind;
use std::process::ExitCode;

use super::data::DataCommandError;
use super::style::fail;
use crate::proposal::ProposalError;
use smolfed_accounting::AccountingError;
use smolfed_data::DataError;
use smolfed_engine::audit::target::TargetError;
use smolfed_engine::config::ConfigError;
use smolfed_engine::ranks::ConnectError;
use smolfed_engine::run::RunError;
use smolfed_engine::run_files::error::RunDirError;
use smolfed_fleet::delivery::error::CatalogueError;
use smolfed_fleet::device::DeviceError;
use smolfed_fleet::helper::service::HelperServiceError;
use smolfed_fleet::keys::KeysError;
use smolfed_fleet::source::terms::ServeError;
use smolfed_fleet::watch::HttpError;
use smolfed_release::ledger::LedgerError;
use smolfed_report::inference::error::InferenceError;
use smolfed_report::runs::RunsError;
use smolfed_report::sweep::SweepError;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CliError {
    /// The experiment file or its overrides.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The data.
    #[error(transparent)]
    Data(#[from] DataError),
    /// `smolfed data`.
    #[error(transparent)]
    DataCommand(#[from] DataCommandError),
    /// The run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// Real devices.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// The keys of a fleet.
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// A folder of models.
    #[error(transparent)]
    Models(#[from] CatalogueError),
    /// A helper.
    #[error(transparent)]
    Helper(#[from] HelperServiceError),
    /// The live page.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// The run directory.
    #[error(transparent)]
    RunDir(#[from] RunDirError),
    /// An experiment that cannot be audited.
    #[error(transparent)]
    Audit(#[from] TargetError),
    /// The accountant.
    #[error(transparent)]
    Accounting(#[from] AccountingError),
    /// A privacy ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The sweep.
    #[error(transparent)]
    Sweep(#[from] SweepError),
    /// Other ranks.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A model in use.
    #[error(transparent)]
    Inference(#[from] InferenceError),
    /// Runs to list, compare or export.
    #[error(transparent)]
    Runs(#[from] RunsError),
    /// Bad usage that the parser of the command line cannot see.
    #[error("{0}")]
    Usage(String),
    /// The run stopped before its end, as it was told to.
    #[error("{0}")]
    Stopped(String),
    /// Standard output is gone.
    #[error("cannot write to standard output: {0}")]
    Output(#[from] std::io::Error),
}

impl From<DeviceError> for CliError {
    fn from(error: DeviceError) -> Self {
        match error {
            DeviceError::Usage(sentence) => Self::Usage(sentence),
            DeviceError::Stopped(sentence) => Self::Stopped(sentence),
        }
    }
}

impl From<ProposalError> for CliError {
    fn from(error: ProposalError) -> Self {
        match error {
            ProposalError::Request(sentence) => Self::Usage(sentence),
            ProposalError::Subject(error) => Self::DataCommand(error.into()),
            ProposalError::Data(error) => Self::Data(error),
            ProposalError::Config(error) => Self::Config(error),
            error @ ProposalError::Frame(_) => Self::Usage(error.to_string()),
        }
    }
}

impl CliError {
    /// Whether whoever read standard output has closed it.
    #[must_use]
    pub fn is_broken_pipe(&self) -> bool {
        let Self::Output(error) = self else {
            return false;
        };
        error.kind() == std::io::ErrorKind::BrokenPipe
    }

    /// Says on standard error what failed.
    pub fn print(&self) {
        fail(self);
    }

    /// 2 for bad usage or bad input, 1 for a failed run.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        let bad_input = match self {
            Self::Config(_)
            | Self::Data(_)
            | Self::Usage(_)
            | Self::Connect(_)
            | Self::Audit(_)
            | Self::Accounting(_) => true,
            Self::DataCommand(error) => error.is_bad_input(),
            Self::Run(error) => error.is_bad_input(),
            Self::Serve(error) => error.is_bad_input(),
            Self::Keys(error) => error.is_bad_input(),
            Self::Models(error) => error.is_bad_input(),
            Self::Helper(error) => error.is_bad_input(),
            Self::Http(error) => error.is_bad_input(),
            Self::Sweep(error) => error.is_bad_input(),
            Self::Inference(error) => error.is_bad_input(),
            Self::Runs(error) => error.is_bad_input(),
            Self::RunDir(error) => !matches!(error, RunDirError::Io { .. }),
            Self::Ledger(LedgerError::Io { source, .. }) => {
                matches!(source.kind(), ErrorKind::NotFound | ErrorKind::IsADirectory)
            }
            Self::Ledger(_) => true,
            Self::Stopped(_) | Self::Output(_) => false,
        };
        ExitCode::from(if bad_input { 2 } else { 1 })
    }
}
