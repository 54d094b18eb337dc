//! `smolfed receive` and its arguments for record, publisher and address: devices that only infer,
//! as a process.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::runtime::Builder;

use super::CliError;
use super::session::stop_on_ctrl_c;
use smolfed_core::delivery::{Accepted, PublisherKey};
use smolfed_core::wire::message::ModelShape;
use smolfed_engine::of_task;
use smolfed_engine::preprocessing::Preprocessing;
use smolfed_fleet::delivery::device::{InferDevice, lock_devices, open_slots, save_slots};
use smolfed_fleet::delivery::publisher::public_key;
use smolfed_fleet::device::files::{DeviceFiles, files_in_folder};
use smolfed_fleet::device::line::Direction;
use smolfed_fleet::link::Preset;
use smolfed_fleet::transport::{Address, TransportFiles, read_options};

/// How often the command looks whether it is to end.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Open files that are no connections.
const OTHER_FILES: u64 = 64;

/// Run one or more inference-only devices in a process, with the same client code as on boards.
///
/// A device fetches the version that `smolfed deliver` offers it, verifies the publisher's
/// signature, and keeps this and the previous version in device-K.models next to its record. It
/// needs no ledger, and takes part in no round. With a folder of records, all its devices run in
/// one process. The command runs until Ctrl-C.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  smolfed receive --provision shop/device-0.bin --publisher models/publisher.pub \\
      --preprocessing runs/digits/preprocessing.json --connect tcp:127.0.0.1:7200
  smolfed receive --provision shop --publisher models/publisher.pub \\
      --preprocessing runs/digits/preprocessing.json --connect tcp:127.0.0.1:7200 --once
  smolfed receive --provision shop/device-0.bin --publisher models/publisher.pub \\
      --preprocessing runs/digits/preprocessing.json --install model-2.sfm")]
pub(super) struct Args {
    /// Read the record of the device, or a folder of records, written by `smolfed provision
    /// --infer`.
    #[arg(long, value_name = "FILE|DIR")]
    provision: PathBuf,
    /// Accept models that match this preprocessing.json of a run.
    #[arg(long, value_name = "FILE")]
    preprocessing: PathBuf,
    /// Accept files signed by this publisher. KEY is 64 hexadecimal digits, or a file with them.
    #[arg(long, value_name = "KEY", value_parser = public_key)]
    publisher: PublisherKey,
    /// Connect to the service at this address, for example tcp:10.0.0.1:7200.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "listen")]
    connect: Option<Address>,
    /// Accept connections from the service at this address, for example tcp:0.0.0.0:7200.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<Address>,
    /// Install this signed file, which came by other means, and exit.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["connect", "listen"])]
    install: Option<PathBuf>,
    #[command(flatten)]
    files: TransportFiles,
    /// Set the speed of the link.
    #[arg(long, value_name = "KIND", value_enum, default_value_t)]
    link: Preset,
    /// Exit as soon as each device has the version that it is offered.
    #[arg(long)]
    once: bool,
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let preprocessing = Preprocessing::read(&args.preprocessing);
    let preprocessing = preprocessing.map_err(|error| CliError::Usage(error.to_string()))?;
    let shape = of_task!(&preprocessing.task, model => ModelShape::of(model));
    let shape = shape.ok_or_else(|| {
        CliError::Usage("the model has more features or classes than a device can have".to_owned())
    })?;
    let accepted = Accepted {
        publisher: args.publisher,
        shape,
        recipe: preprocessing.recipe(),
    };
    let _locks = lock_devices(&args.provision)?;
    let records = records(&args.provision)?;
    if let Some(file) = &args.install {
        let installed = records
            .iter()
            .map(|record| install(file, record, &accepted));
        // All of them, whatever happens with one.
        let results: Vec<_> = installed.collect();
        return results.into_iter().collect();
    }
    let direction = direction(args)?;
    let (dial, listen) = (args.connect.as_slice(), args.listen.as_slice());
    let options = read_options(&args.files, dial, listen);
    let options = options.map_err(|error| CliError::Usage(error.to_string()))?;
    let needed = records.len() as u64 + OTHER_FILES;
    // Without an answer of the system, the devices say what fails.
    let _ = rlimit::increase_nofile_limit(needed);
    let report = |device: u32, sentence: String| eprintln!("device {device}: {sentence}");
    let device = |record: PathBuf| InferDevice {
        slots: slots_of(&record),
        record,
        accepted,
        direction: &direction,
        transport: &options,
        link: args.link.link(),
        once: args.once,
        report: &report,
    };
    run_all(&records.into_iter().map(device).collect::<Vec<_>>())
}

/// Runs all devices until they are done, or until Ctrl-C.
fn run_all(devices: &[InferDevice<'_>]) -> Result<(), CliError> {
    let asked = stop_on_ctrl_c()?;
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CliError::Stopped(error.to_string()))?;
    runtime.block_on(async {
        let running = async {
            let mut running: FuturesUnordered<_> =
                devices.iter().map(|device| device.run()).collect();
            while let Some(result) = running.next().await {
                result?;
            }
            Ok(())
        };
        let stopped = async {
            while !asked.load(Ordering::Relaxed) {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        tokio::select! {
            result = running => result,
            () = stopped => Ok(()),
        }
    })
}

/// The records of the devices to be run: one, or all of a folder.
fn records(path: &Path) -> Result<Vec<PathBuf>, CliError> {
    if !path.is_dir() {
        return Ok(vec![path.to_path_buf()]);
    }
    let files = files_in_folder(path)?;
    let record = |files: DeviceFiles| files.record;
    Ok(files.into_iter().map(record).collect())
}

/// The file of the models of a device, next to its record.
fn slots_of(record: &Path) -> PathBuf {
    record.with_extension("models")
}

fn install(file: &Path, record: &Path, accepted: &Accepted) -> Result<(), CliError> {
    let (path, name) = (slots_of(record), file.display());
    let bytes = std::fs::read(file).map_err(|error| CliError::Usage(format!("{name}: {error}")))?;
    let mut slots = open_slots(&path, accepted)?;
    let version = slots.install(&bytes);
    let version = version.map_err(|error| CliError::Usage(format!("{name}: {error}")))?;
    save_slots(&path, &mut slots)?;
    eprintln!("{}: version {version}", path.display());
    Ok(())
}

/// Which way the device is connected.
fn direction(args: &Args) -> Result<Direction, CliError> {
    match (&args.connect, &args.listen) {
        (_, Some(address)) if address.has_broker() => Err(CliError::Usage(format!(
            "`--listen {address}`: at a broker devices connect: `--connect {address}`"
        ))),
        (_, Some(address)) => Ok(Direction::Listen(address.clone())),
        (Some(address), None) => Ok(Direction::Connect(address.clone())),
        (None, None) => Err(CliError::Usage(
            "the device has no connection: give `--connect ADDRESS`, `--listen ADDRESS` or \
             `--install FILE`"
                .to_owned(),
        )),
    }
}
