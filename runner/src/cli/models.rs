//! `smolfed models`: models for devices that only infer are published, listed, exported, verified
//! and rolled back, and devices are split between versions.

mod folder;
mod list;
mod publish;
mod verify;

use std::io::Write;

use clap::Subcommand;

use super::CliError;
use folder::{FolderArgs, percent, tell};
use smolfed_fleet::delivery::catalogue::{Edit, Share};

/// Publish models to devices that only infer, split devices between versions, and roll back.
///
/// A folder holds the versions of one model, signed with its publisher.key. `smolfed deliver` sends
/// them to devices, and follows changes within a second. Version numbers only rise: rolling back
/// publishes the parameters of an earlier version under a new number. See docs/delivery.md.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  smolfed models publish runs/digits
  smolfed models publish runs/digits-2 --share 10
  smolfed models split 1=50 2=50
  smolfed models roll-back
  smolfed models list")]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(list::Args),
    Publish(publish::Args),
    RollBack(RollBackArgs),
    Split(SplitArgs),
    Export(verify::ExportArgs),
    Verify(verify::Args),
}

/// Publish the parameters of an earlier version to all devices, under a new number.
///
/// By default, this is the version before the current one or, if devices get different versions,
/// the oldest of them. The new number makes devices accept it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  smolfed models roll-back
  smolfed models roll-back 3 --models shop/models")]
struct RollBackArgs {
    /// Version whose parameters to publish.
    #[arg(value_name = "VERSION")]
    version: Option<u32>,
    #[command(flatten)]
    folder: FolderArgs,
}

/// Set the share of devices that get each version.
///
/// A hash of the device's number and of the newest version decides which version a device gets.
/// Raising the share of the newest version adds devices to it. A device never returns to an older
/// version: lowering a share applies to devices that do not have the newer version yet.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  smolfed models split 1=90 2=10
  smolfed models split 2=100")]
struct SplitArgs {
    /// Versions and their shares in percent, which add up to 100.
    #[arg(value_name = "VERSION=PERCENT", required = true, value_parser = share)]
    shares: Vec<Share>,
    #[command(flatten)]
    folder: FolderArgs,
}

fn share(text: &str) -> Result<Share, String> {
    let share = text.split_once('=').and_then(|(version, share)| {
        Some(Share {
            version: version.parse().ok()?,
            percent: percent(share).ok()?,
        })
    });
    share.ok_or_else(|| "expected VERSION=PERCENT, for example 2=10".to_owned())
}

/// Runs the command.
pub(super) fn run(args: &Args, out: &mut impl Write) -> Result<(), CliError> {
    match &args.command {
        Command::List(args) => list::run(args, out),
        Command::Publish(args) => publish::run(args, out),
        Command::RollBack(args) => roll_back(args, out),
        Command::Split(args) => split(args, out),
        Command::Export(args) => verify::export(args, out),
        Command::Verify(args) => verify::run(args, out),
    }
}

fn roll_back(args: &RollBackArgs, out: &mut impl Write) -> Result<(), CliError> {
    let folder = &args.folder.models;
    let version = Edit::begin(folder)?.roll_back(args.version)?;
    writeln!(
        out,
        "version {}: {}",
        version.number,
        version.source_words()
    )?;
    tell(folder, out)
}

fn split(args: &SplitArgs, out: &mut impl Write) -> Result<(), CliError> {
    let folder = &args.folder.models;
    Edit::begin(folder)?.split(args.shares.clone())?;
    tell(folder, out)
}
