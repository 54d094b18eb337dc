//! The command line: one file a subcommand, thin over the library.

mod audit;
mod data;
mod demo;
mod device;
mod privacy;
mod provision;
mod report;
mod run;
mod screen;
mod serve;
mod session;
mod summary;
mod sweep;
mod text;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::audit::target::TargetError;
use crate::config::ConfigError;
use crate::data::DataError;
use crate::privacy::accountant::AccountingError;
use crate::privacy::ledger::LedgerError;
use crate::run::RunError;
use crate::run_dir::RunDirError;
use crate::serve::ServeError;
use crate::sweep::SweepError;
use data::DataCommandError;

/// Differentially private federated learning, simulated on a desktop with the code that
/// microcontrollers run.
///
/// Without a command: trains on the built-in digits, with and without Laplacian smoothing at the
/// same privacy, and prints both.
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "Example:\n  smolfed run experiment.toml --set privacy.epsilon=6"
)]
pub struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Args),
    Serve(serve::Args),
    Provision(provision::Args),
    Device(device::Args),
    Data(data::Args),
    Report(report::Args),
    Sweep(sweep::Args),
    Plan(privacy::PlanArgs),
    Account(privacy::AccountArgs),
    Audit(audit::Args),
}

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

impl CliError {
    /// 2 for bad usage or bad input, 1 for a failed run.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        let bad_input = match self {
            Self::Config(_)
            | Self::Data(_)
            | Self::Usage(_)
            | Self::Audit(_)
            | Self::Accounting(_) => true,
            Self::DataCommand(error) => error.is_bad_input(),
            Self::Run(error) => error.is_bad_input(),
            Self::Serve(error) => error.is_bad_input(),
            Self::Sweep(error) => error.is_bad_input(),
            Self::RunDir(error) => !matches!(error, RunDirError::Io { .. }),
            Self::Ledger(error) => !matches!(error, LedgerError::Io { .. }),
            Self::Stopped(_) | Self::Output(_) => false,
        };
        ExitCode::from(if bad_input { 2 } else { 1 })
    }
}

impl Cli {
    /// Does what was asked.
    ///
    /// # Errors
    /// [`CliError`], one sentence.
    pub fn run(self) -> Result<(), CliError> {
        match self.command {
            None => demo::run(),
            Some(Command::Run(args)) => run::run(&args),
            Some(Command::Serve(args)) => serve::run(&args),
            Some(Command::Provision(args)) => provision::run(&args, &mut std::io::stdout().lock()),
            Some(Command::Device(args)) => device::run(&args),
            Some(Command::Data(args)) => Ok(data::run(&args, &mut std::io::stdout().lock())?),
            Some(Command::Report(args)) => report::run(&args, &mut std::io::stdout().lock()),
            Some(Command::Sweep(args)) => sweep::run(&args),
            Some(Command::Plan(args)) => privacy::plan(&args, &mut std::io::stdout().lock()),
            Some(Command::Audit(args)) => audit::run(&args, &mut std::io::stdout()),
            Some(Command::Account(args)) => privacy::account(&args, &mut std::io::stdout().lock()),
        }
    }
}
