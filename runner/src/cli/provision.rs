//! `smolfed provision`: secrets for devices and for their coordinator.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use smolfed_core::ledger::{Budget, Ledger};
use smolfed_core::provision::{self, ProvisionError};
use smolfed_core::samples::{SampleSlice, Samples};
use smolfed_core::session::{Identity, Policy};
use smolfed_core::stream::Root;
use smolfed_core::wire::mac::Key;

use super::CliError;
use crate::config::{Config, Override};
use crate::coordinator::{fleet::secret, keys};
use crate::data::synthetic::DeviceBuffer;
use crate::data::{DataFolders, Federation};
use crate::device::flash::FileFlash;
use crate::experiment::Experiment;
use crate::run;
use crate::run_dir::sync_folder;
use crate::serve::terms;
use crate::task::Task;

/// Make the secrets of devices: a file of keys for the coordinator, and for each device a record to
/// be written to its flash.
///
/// A record holds the device's number, its key, the secret root of its random streams, and what it
/// agrees to: by default as many participations as the experiment has rounds, its epochs and, with
/// local trust, its noise. Writes keys.toml and device-K.bin, and a blank device-K.ledger for a device
/// that is a process; nobody else can read them, and nothing is overwritten. Copy each record to its
/// device and delete it here.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  smolfed provision experiment.toml --devices 0..4 --out fleet
  smolfed provision --devices 0..4 --out fleet --with-data --set data.devices=54")]
pub(super) struct Args {
    /// The experiment, a TOML file; by default the built-in one.
    file: Option<PathBuf>,
    /// Numbers of the devices, from the first up to but without the last: 0..4 are four devices.
    #[arg(long, value_name = "FIRST..LAST", value_parser = range)]
    devices: Range<u32>,
    /// The folder to write to.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Put each device's share of the experiment's data into its record: for tests and demonstrations.
    #[arg(long)]
    with_data: bool,
    /// Most participations of a device in its life; by default the experiment's rounds.
    #[arg(long, value_name = "N")]
    budget: Option<u32>,
    /// Make the random streams of devices follow from a seed, as a simulation's do. For tests and
    /// demonstrations only: who knows the seed can subtract their noise.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Set a key of the experiment; can be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<Override>,
}

fn range(text: &str) -> Result<Range<u32>, String> {
    let numbers = text
        .split_once("..")
        .and_then(|(first, last)| Some(first.trim().parse().ok()?..last.trim().parse().ok()?));
    numbers
        .filter(|range| !range.is_empty())
        .ok_or("expected FIRST..LAST with FIRST below LAST, for example 0..4".to_owned())
}

/// Runs the command.
pub(super) fn run(args: &Args, out: &mut impl Write) -> Result<(), CliError> {
    let mut overrides = args.overrides.clone();
    overrides.extend(args.seed.map(super::serve::seed).transpose()?);
    let config = Config::load(args.file.as_deref(), &overrides)?;
    let folders = DataFolders::of_experiment(args.file.as_deref());
    let (experiment, federation) = run::prepare(config, &folders)?;
    // What real devices cannot do is refused before they have secrets for it.
    terms(&experiment)?;
    let devices = federation.device_count();
    if args.devices.end > devices {
        let Range { start, end } = args.devices;
        return Err(CliError::Usage(format!(
            "`--devices {start}..{end}`: the experiment's federation has devices 0 to {}; `--set \
             data.devices={end}` makes room where devices are not natural",
            devices.saturating_sub(1)
        )));
    }
    let keys_path = args.out.join("keys.toml");
    let record_path = |device: u32| args.out.join(format!("device-{device}.bin"));
    let ledger_path = |device: u32| args.out.join(format!("device-{device}.ledger"));
    let files = args
        .devices
        .clone()
        .flat_map(|device| [record_path(device), ledger_path(device)])
        .chain([keys_path.clone()]);
    if let Some(taken) = files.into_iter().find(|path| path.exists()) {
        return Err(CliError::Usage(format!(
            "{} is there already: nothing is overwritten; choose another --out",
            taken.display()
        )));
    }
    let failed = |path: &Path| {
        let path = path.display().to_string();
        move |error: io::Error| CliError::Stopped(format!("cannot write {path}: {error}"))
    };
    std::fs::create_dir_all(&args.out).map_err(failed(&args.out))?;
    let policy = policy(args, &experiment);
    let mut keys = BTreeMap::new();
    for device in args.devices.clone() {
        let key = secret().map_err(|error| CliError::Stopped(error.to_string()))?;
        let root = match args.seed {
            Some(seed) => Root::from_seed(seed),
            None => {
                Root::from_secret(secret().map_err(|error| CliError::Stopped(error.to_string()))?)
            }
        };
        let identity = Identity {
            device,
            key: Key::from_secret(key),
            root,
        };
        let data = args.with_data.then_some(&federation);
        let record = record(&identity, &policy, &experiment.task, data)
            .map_err(|error| CliError::Usage(format!("device {device}: {error}")))?;
        let path = record_path(device);
        write_secret(&path, &record).map_err(failed(&path))?;
        let path = ledger_path(device);
        let flash = FileFlash::create(&path).map_err(failed(&path))?;
        Ledger::create(flash)
            .map_err(|error| CliError::Stopped(format!("{}: {error}", path.display())))?;
        keys.insert(device, key);
    }
    write_secret(&keys_path, keys::to_toml(&keys, args.seed).as_bytes())
        .map_err(failed(&keys_path))?;
    if let Some(seed) = args.seed {
        eprintln!(
            "the devices' random streams follow from seed {seed}: for tests and demonstrations only"
        );
    }
    let simulated = devices as usize - args.devices.len();
    say_what_next(args, &experiment.task, simulated, out)?;
    Ok(())
}

fn policy(args: &Args, experiment: &Experiment) -> Policy {
    let privacy = &experiment.privacy;
    // In units of 2^-32, rounded down: never more than the experiment adds.
    let least = privacy.multiplier().get() * 2f64.powi(32);
    Policy {
        budget: Budget(args.budget.unwrap_or(experiment.config.rounds)),
        least_noise_multiplier: if privacy.is_local() { least as u64 } else { 0 },
        most_epochs: experiment.training.epochs,
    }
}

fn record(
    identity: &Identity,
    policy: &Policy,
    task: &Task,
    data: Option<&Federation>,
) -> Result<Vec<u8>, ProvisionError> {
    let Some(federation) = data else {
        return write(identity, policy, None::<&SampleSlice<'_, u16>>, 0);
    };
    let mut buffer = DeviceBuffer::default();
    let view = federation.device(identity.device, &mut buffer);
    match task {
        Task::Linear(_) => write(identity, policy, Some(&view.values()), view.feature_count()),
        _ => write(
            identity,
            policy,
            Some(&view.classes()),
            view.feature_count(),
        ),
    }
}

fn write<S: Samples>(
    identity: &Identity,
    policy: &Policy,
    samples: Option<&S>,
    features: usize,
) -> Result<Vec<u8>, ProvisionError>
where
    S::Target: provision::Target,
{
    let count = samples.map_or(0, Samples::len);
    let length = provision::record_bytes(features, count).ok_or(ProvisionError::Room)?;
    let mut page = vec![0; length];
    let written = provision::write(identity, policy, samples, &mut page)?;
    page.truncate(written);
    Ok(page)
}

/// Writes a new file that nobody else can read.
fn write_secret(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    sync_folder(path)
}

fn say_what_next(
    args: &Args,
    task: &Task,
    simulated: usize,
    out: &mut impl Write,
) -> io::Result<()> {
    let simulated = match simulated {
        0 => String::new(),
        rest => format!(" --simulated {rest}"),
    };
    let folder = args.out.display();
    let first = args.devices.start;
    let model = super::device::model_name(task);
    writeln!(
        out,
        "{} devices in {folder}: the coordinator keeps keys.toml, each device gets its record.\n\n  \
         smolfed serve {}--keys {folder}/keys.toml --listen tcp:0.0.0.0:7000{simulated}\n  \
         smolfed device --model {model} --provision {folder}/device-{first}.bin --ledger \
         {folder}/device-{first}.ledger --connect tcp:127.0.0.1:7000",
        args.devices.len(),
        args.file
            .as_ref()
            .map_or(String::new(), |file| format!("{} ", file.display())),
    )
}
