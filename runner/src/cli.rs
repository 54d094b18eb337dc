//! The command line of `smolfed`: one file for each subcommand (command), thin over the library.

mod answers;
mod ask;
mod audit;
mod completions;
mod confusion;
mod data;
mod deliver;
mod demo;
mod device;
mod error;
mod evaluate;
mod export;
mod gateway;
mod helper;
mod inference;
mod init;
mod keys;
mod link;
mod man;
mod models;
mod operation;
mod predict;
mod privacy;
mod provision;
mod receive;
mod report;
mod run;
mod runs;
mod schema;
mod screen;
mod serve;
mod session;
mod signals;
mod style;
mod summary;
mod sweep;
mod text;
mod usage;

use clap::{CommandFactory, Parser, Subcommand};

use crate::launch::Launch;

pub use error::CliError;

/// Differentially private federated learning for microcontrollers, in simulations and with real
/// fleets.
///
/// Without a command, smolfed compares four variants on the built-in digits at equal epsilon:
/// without denoising, with Laplacian smoothing, with automatic denoising, and on gradients instead
/// of pixels.
#[derive(Debug, Parser)]
#[command(
    version,
    // The words of the library do not begin with a verb.
    mut_arg("color", |arg| arg.help("Use colors: never, always, or only on a terminal")),
    after_help = "Example:\n  smolfed run experiment.toml --set privacy.epsilon=6"
)]
pub struct Cli {
    #[command(flatten)]
    color: colorchoice_clap::Color,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Args),
    Ask(ask::Args),
    Serve(serve::Args),
    Provision(provision::Args),
    Keys(keys::Args),
    Device(device::Args),
    Helper(helper::Args),
    Gateway(gateway::Args),
    Models(models::Args),
    Deliver(deliver::Args),
    Receive(receive::Args),
    Data(data::Args),
    Init(init::Args),
    Schema(schema::Args),
    Runs(runs::Args),
    Report(report::Args),
    Predict(predict::Args),
    Evaluate(evaluate::Args),
    Export(export::Args),
    Sweep(sweep::Args),
    Plan(privacy::PlanArgs),
    Account(privacy::AccountArgs),
    Audit(audit::Args),
    Completions(completions::Args),
    Man(man::Args),
}

impl Cli {
    /// Parses the command line. Exits if it asks for help or is wrong. Of several ranks, the first
    /// one reports this.
    #[must_use]
    pub fn of_this_process() -> Self {
        Self::try_parse().unwrap_or_else(|error| match Launch::is_to_print() {
            true => usage::explained(error, &Self::command()).exit(),
            false => std::process::exit(error.exit_code()),
        })
    }

    /// Does what was asked.
    ///
    /// # Errors
    /// [`CliError`], one sentence.
    pub fn run(self) -> Result<(), CliError> {
        self.color.write_global();
        let is_shared = matches!(self.command, Some(Command::Run(_) | Command::Sweep(_)));
        if !is_shared && !Launch::is_to_print() {
            // Rank 0 does it.
            return Ok(());
        }
        match self.command {
            None => demo::run(),
            Some(Command::Run(args)) => run::run(&args),
            Some(Command::Ask(args)) => ask::run(&args),
            Some(Command::Serve(args)) => serve::run(&args),
            Some(Command::Provision(args)) => provision::run(&args, &mut std::io::stdout().lock()),
            Some(Command::Keys(args)) => keys::run(&args, &mut std::io::stdout().lock()),
            Some(Command::Device(args)) => device::run(&args),
            Some(Command::Helper(args)) => helper::run(&args),
            Some(Command::Gateway(args)) => gateway::run(&args),
            Some(Command::Models(args)) => models::run(&args, &mut std::io::stdout().lock()),
            Some(Command::Deliver(args)) => deliver::run(&args),
            Some(Command::Receive(args)) => receive::run(&args),
            Some(Command::Data(args)) => Ok(data::run(&args, &mut std::io::stdout().lock())?),
            Some(Command::Init(args)) => init::run(&args, &mut std::io::stdout().lock()),
            Some(Command::Schema(schema::Args {})) => schema::run(&mut std::io::stdout().lock()),
            Some(Command::Runs(args)) => runs::run(&args, &mut std::io::stdout().lock()),
            Some(Command::Report(args)) => report::run(&args, &mut std::io::stdout().lock()),
            Some(Command::Predict(args)) => predict::run(&args),
            Some(Command::Evaluate(args)) => evaluate::run(&args),
            Some(Command::Export(args)) => export::run(&args),
            Some(Command::Sweep(args)) => sweep::run(&args),
            Some(Command::Plan(args)) => privacy::plan(&args, &mut std::io::stdout().lock()),
            Some(Command::Audit(args)) => audit::run(&args, &mut std::io::stdout()),
            Some(Command::Completions(args)) => {
                completions::run(&args, Self::command(), &mut std::io::stdout().lock())
            }
            Some(Command::Man(args)) => man::run(&args, Self::command()),
            Some(Command::Account(args)) => privacy::account(&args, &mut std::io::stdout().lock()),
        }
    }
}
