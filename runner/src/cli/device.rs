//! `smolfed device` and its arguments for model, record, ledger, address and data: one or more
//! devices as a process.

mod data;
mod progress;
mod wake;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;

use super::CliError;
use super::provision::AnswerArgs;
use super::session::stop_on_ctrl_c;
use smolfed_engine::combinations::rules::UNKNOWN_LAYER;
use smolfed_engine::preprocessing::{self, Preprocessing};
use smolfed_engine::task::Task;
use smolfed_fleet::device::files::{DeviceFiles, files_in_folder};
use smolfed_fleet::device::line::{Direction, LineOptions};
use smolfed_fleet::device::process::DeviceProcess;
use smolfed_fleet::link::Preset;
use smolfed_fleet::transport::{Address, TransportFiles, read_options};

use progress::Progress;
use wake::WakeArgs;

/// How often the command looks whether it is to end.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Open files for records and ledgers.
const OTHER_FILES: u64 = 64;

/// Run one or more devices as a process, with the same client code as on boards.
///
/// The number, key, secret and limits of the device come from a record written by `smolfed
/// provision`, and its data from the record or a CSV file. It runs until Ctrl-C, and reconnects if
/// the connection is lost. It answers the questions that its record allows, or those of --answers
/// instead.
///
/// The ledger of the device records the rounds it took part in. Never restore it from a backup,
/// since the device could then reuse random streams. If it is lost, give the device new files with
/// `smolfed keys rotate`. At its first start, the device overwrites the key in its record, because
/// the ledger then holds the key.
///
/// Methods with personal models store the model next to the ledger, as the safetensors file
/// device-K.personal. The file device-K.held contains an update that has not been sent yet, so that
/// the device can send it after a restart.
///
/// With a folder written by `smolfed provision` instead of a record, all devices in the folder run
/// in one process, for tests, demonstrations and measurements. They store unsent updates in files
/// only with --awake-for.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  smolfed device --model softmax:64x10 --provision fleet/device-0.bin \\
      --ledger fleet/device-0.ledger --connect tcp:127.0.0.1:7000
  smolfed device --model softmax:64x10 --provision fleet --connect tcp:127.0.0.1:7000
  smolfed device --model linear:13 --provision device-7.bin --ledger device-7.ledger \\
      --data measurements.csv --label power --listen unix:/run/smolfed/device-7
  smolfed device --model softmax:64x10 --provision device-7.bin --ledger device-7.ledger \\
      --connect tls:fleet.example.org:7443 --tls-ca ca.pem
  smolfed device --preprocessing fleet/preprocessing.json --provision device-7.bin \\
      --ledger device-7.ledger --data measurements.csv --connect tcp:10.0.0.1:7000
  smolfed device --model softmax:64x10 --provision device-7.bin --ledger device-7.ledger \\
      --connect tcp:10.0.0.1:7000 --awake-for 500ms
  grep SMOLFED:7: records.txt | smolfed device --provision - --ledger device-7.ledger \\
      --new-ledger --preprocessing preprocessing.json --data measurements.csv \\
      --connect tcp:10.0.0.1:7000")]
pub(super) struct Args {
    /// Set the model, for example softmax:64x10.
    ///
    /// The model is linear:FEATURES, logistic:FEATURES or softmax:FEATURESxCLASSES, as printed by
    /// `smolfed provision`. A network of layers needs `--preprocessing` instead.
    #[arg(
        long,
        value_name = "MODEL",
        required_unless_present = "preprocessing",
        conflicts_with = "preprocessing"
    )]
    model: Option<Task>,
    /// Read the model and the preprocessing of samples from this file, a preprocessing.json.
    ///
    /// `smolfed provision` and runs write this file. With it, the device finds the columns of the
    /// CSV file by name, replaces missing values, scales values and reads classes as names.
    #[arg(long, value_name = "FILE")]
    preprocessing: Option<PathBuf>,
    /// Read the record of the device, or a folder of records, written by `smolfed provision`.
    ///
    /// The record may also be text. With -, the command reads the text from standard input. A
    /// folder contains the records and ledgers of several devices, whose samples are in their
    /// records.
    #[arg(long, value_name = "FILE|DIR")]
    provision: PathBuf,
    /// Keep the device's ledger in this file, created by `smolfed provision` or by `--new-ledger`.
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
    /// Create the ledger, which must not exist yet.
    ///
    /// Use this flag once in the lifetime of a device whose record came as text. A coordinator
    /// refuses a device that presents a second ledger.
    #[arg(long)]
    new_ledger: bool,
    /// Connect to the coordinator at this address, for example tcp:10.0.0.1:7000.
    ///
    /// The address is tcp:HOST:PORT, tls:HOST:PORT, mqtt:HOST:PORT[/PREFIX], udp:HOST:PORT[/SIZE],
    /// unix:PATH or serial:PATH[@BAUD], with 115200 baud by default.
    #[arg(
        long,
        value_name = "ADDRESS",
        required_unless_present = "listen",
        conflicts_with = "listen"
    )]
    connect: Option<Address>,
    /// Accept connections from the coordinator at this address, for example tcp:0.0.0.0:7000.
    ///
    /// The address is tcp:HOST:PORT, tls:HOST:PORT, udp:HOST:PORT[/SIZE] or unix:PATH.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<Address>,
    #[command(flatten)]
    files: TransportFiles,
    /// Read the samples of the device from this CSV file.
    ///
    /// Without `--preprocessing`, its columns are the features in the order of the model, and
    /// classes are numbers from 0.
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// Train the device to predict this column of the CSV file.
    ///
    /// With `--preprocessing`, the default is the column of the experiment.
    #[arg(long, value_name = "COLUMN", requires = "data")]
    label: Option<String>,
    /// Begin every session with an X25519 handshake, and open none without it.
    ///
    /// Someone who records the connection cannot decrypt it, even after obtaining both sides' keys
    /// later. The coordinator must support the handshake, which costs each side a fraction of a
    /// millisecond.
    #[arg(long)]
    x25519: bool,
    #[command(flatten)]
    answers: AnswerArgs,
    #[command(flatten)]
    wake: WakeArgs,
    /// Set the speed of the link to the coordinator.
    ///
    /// A message is resent after 500ms (fast), 5s (slow) or 1m (lorawan) at the earliest, and never
    /// sooner than a measured round trip.
    #[arg(long, value_name = "KIND", value_enum, default_value_t)]
    link: Preset,
    /// Exit when the coordinator closes the connection.
    #[arg(long)]
    once: bool,
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let preprocessing = args.preprocessing.as_deref().map(Preprocessing::read);
    let preprocessing = preprocessing.transpose();
    // Whatever is wrong with it, it was given.
    let preprocessing = preprocessing.map_err(|error| CliError::Usage(error.to_string()))?;
    let task = task(args, preprocessing.as_ref())?;
    let is_encoder = |preprocessing: &Preprocessing| {
        preprocessing.target == preprocessing::Target::Representation
    };
    let is_encoder = preprocessing.as_ref().is_some_and(is_encoder);
    let data = match (&args.data, &preprocessing, &args.label) {
        (None, ..) => None,
        (Some(path), Some(preprocessing), label) => {
            Some(data::prepared(path, preprocessing, label.as_deref())?)
        }
        (Some(path), None, Some(label)) => Some(data::as_it_is(path, label)?),
        (Some(path), None, None) => {
            let path = path.display();
            return Err(CliError::Usage(format!(
                "`--data {path}`: give `--label COLUMN`, or `--preprocessing FILE`, which knows it"
            )));
        }
    };
    let recipe = preprocessing.as_ref().and_then(Preprocessing::recipe);
    let files = files(args)?;
    if files.len() > 1 && data.is_some() {
        let folder = args.provision.display();
        return Err(CliError::Usage(format!(
            "`--data`: {folder} has {} devices, whose samples are in their records: give the \
             device-K.bin of one, or leave `--data` out",
            files.len()
        )));
    }
    let questions = args.answers.of_process()?;
    let direction = direction(args)?;
    let (dial, listen) = (args.connect.as_slice(), args.listen.as_slice());
    let options = read_options(&args.files, dial, listen);
    let options = options.map_err(|error| CliError::Usage(error.to_string()))?;
    let progress = Progress::new(files.len());
    let awake = args.wake.awake();
    let holds_updates = files.len() == 1 || awake.is_some();
    let line = LineOptions {
        direction: &direction,
        transport: &options,
        link: args.link.link(),
        once: args.once,
        awake,
        watcher: &progress,
    };
    let device = |files| DeviceProcess {
        task,
        is_encoder,
        files,
        has_new_ledger: args.new_ledger,
        holds_updates,
        has_handshake: args.x25519,
        questions,
        samples: data.as_ref(),
        recipe: recipe.filter(|_| data.is_some()),
        line: line.clone(),
    };
    let devices: Vec<_> = files.into_iter().map(device).collect();
    run_all(&devices, &progress)
}

/// The model that the device trains.
fn task(args: &Args, preprocessing: Option<&Preprocessing>) -> Result<Task, CliError> {
    let task = match (preprocessing, args.model) {
        (Some(preprocessing), _) => preprocessing.task,
        (None, Some(task)) => task,
        (None, None) => return Err(CliError::Usage("`--model` is missing".to_owned())),
    };
    if task.hidden_count().is_some() {
        return Err(CliError::Usage(format!(
            "`--preprocessing`: `model.hidden` is supported only in simulations: {}",
            UNKNOWN_LAYER.advice
        )));
    }
    Ok(task)
}

/// Which way the device is connected.
fn direction(args: &Args) -> Result<Direction, CliError> {
    match (&args.connect, &args.listen) {
        (_, Some(address)) if address.has_broker() => Err(CliError::Usage(format!(
            "`--listen {address}`: at a broker devices connect: `--connect {address}`"
        ))),
        (_, Some(address)) => Ok(Direction::Listen(address.clone())),
        (Some(address), None) => Ok(Direction::Connect(address.clone())),
        (None, None) => Err(CliError::Usage("`--connect` is missing".to_owned())),
    }
}

/// The devices to be run: one, or all of a folder.
fn files(args: &Args) -> Result<Vec<DeviceFiles>, CliError> {
    let record = &args.provision;
    let ledger = match (record.is_dir(), &args.ledger) {
        (false, Some(ledger)) => ledger.clone(),
        (false, None) => {
            return Err(CliError::Usage(
                "`--ledger` is missing: the file device-K.ledger next to the record".to_owned(),
            ));
        }
        (true, None) => return Ok(files_in_folder(record)?),
        (true, Some(_)) => {
            let folder = record.display();
            return Err(CliError::Usage(format!(
                "`--ledger`: the devices of the folder {folder} have their ledgers in it"
            )));
        }
    };
    Ok(vec![DeviceFiles {
        record: record.clone(),
        ledger,
    }])
}

/// Runs all devices until Ctrl-C, on as many threads as there are cores, each with its share.
fn run_all(devices: &[DeviceProcess<'_>], progress: &Progress) -> Result<(), CliError> {
    let asked = stop_on_ctrl_c()?;
    let stop = CancellationToken::new();
    check_open_files(devices.len())?;
    let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let share = devices.len().div_ceil(threads).max(1);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                if asked.load(Ordering::Relaxed) {
                    stop.cancel();
                }
                progress.show();
                std::thread::sleep(POLL_INTERVAL);
            }
        });
        let run = |share| run_share(share, &stop).inspect_err(|_| stop.cancel());
        let shares: Vec<_> = devices
            .chunks(share)
            .map(|share| scope.spawn(move || run(share)))
            .collect();
        let results: Vec<_> = shares.into_iter().map(ScopedJoinHandle::join).collect();
        is_over.store(true, Ordering::Relaxed);
        for result in results {
            // A panic goes on where it came from.
            result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        }
        Ok(())
    })
}

/// Refuses more devices than the system allows open files for: a socket and a ledger each.
fn check_open_files(devices: usize) -> Result<(), CliError> {
    let needed = 2 * devices as u64 + OTHER_FILES;
    // Without an answer of the system the devices say what fails.
    let allowed = rlimit::increase_nofile_limit(needed).unwrap_or(needed);
    if allowed >= needed {
        return Ok(());
    }
    Err(CliError::Usage(format!(
        "{devices} devices need {needed} open files and the system allows {allowed}: raise it with \
         `ulimit -n {needed}`, or run them in several processes"
    )))
}

/// Runs devices side by side on this thread.
fn run_share(devices: &[DeviceProcess<'_>], stop: &CancellationToken) -> Result<(), CliError> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CliError::Stopped(error.to_string()))?;
    runtime.block_on(async {
        let mut running: FuturesUnordered<_> =
            devices.iter().map(|device| device.run(stop)).collect();
        while let Some(result) = running.next().await {
            result?;
        }
        Ok(())
    })
}
