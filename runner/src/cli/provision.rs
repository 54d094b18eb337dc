//! `smolfed provision`: secrets for devices and for their coordinator.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use smolfed_core::crypto::Key;
use smolfed_core::ledger::{Budget, Ledger, LedgerNonce, Limits, MaxJump, Separation};
use smolfed_core::provision::{self, ProvisionError};
use smolfed_core::samples::{SampleSlice, Samples};
use smolfed_core::session::{Identity, Policy};
use smolfed_core::stream::Root;
use zeroize::Zeroizing;

use super::CliError;
use crate::config::{Config, Override};
use crate::data::dataset::DeviceBuffer;
use crate::data::{DataFolders, Federation};
use crate::device::flash::FileFlash;
use crate::durable::create_private;
use crate::entropy::secret;
use crate::experiment::Experiment;
use crate::fleet::keys;
use crate::inference::preprocessing::Preprocessing;
use crate::on_samples;
use crate::run;
use crate::source::fleet::terms::terms;
use crate::task::Task;

/// Create the secrets of devices: a keys file for the coordinator, and for each device a record to
/// be written to its flash.
///
/// A record contains the device's number, its key, the secret root of its random streams, and its
/// limits: by default as many participations as the experiment has rounds, the experiment's epochs
/// and, under local trust, at least its noise. With correlated noise the participations and their
/// separation are those that the experiment's ε counts on.
/// Writes keys.toml, and for each device device-K.bin and a new device-K.ledger, for a device that
/// is a process or has no random number generator; and preprocessing.json, by which a device
/// prepares its own samples as the experiment does. Only their owner can read the files, and
/// nothing is overwritten. Copy the files of each device to it once, then delete them here.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  smolfed provision experiment.toml --devices 0..4 --out fleet
  smolfed provision experiment.toml --devices 0..4 --out fleet --separation 342 --participations 6
  smolfed provision --devices 0..4 --out fleet --with-data --set data.devices=54")]
pub(super) struct Args {
    /// The experiment, a TOML file; by default the built-in one.
    file: Option<PathBuf>,
    /// Device numbers, from FIRST up to but excluding LAST: 0..4 means four devices.
    #[arg(long, value_name = "FIRST..LAST", value_parser = range)]
    devices: Range<u32>,
    /// The folder to write to.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Include each device's share of the experiment's data: for tests and demonstrations.
    #[arg(long)]
    with_data: bool,
    /// Maximum participations of a device in its lifetime; by default the experiment's rounds or,
    /// with correlated noise, its participations.
    #[arg(
        long,
        value_name = "N",
        visible_alias = "participations",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    budget: Option<u32>,
    /// How far apart two participations of a device are at least, in round numbers of the fleet: 1
    /// lets it take part in every round, 342 in one of 342 at most. By default 1 or, with
    /// correlated noise, the experiment's separation, which is also the least that is accepted.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    separation: Option<u32>,
    /// How many round numbers ahead of its ledger a device accepts a round, so that no message can
    /// use up its numbers; by default 65536, or less for budgets above 65534.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_jump: Option<u32>,
    /// Let the devices greet under pseudonyms, which change, so that an observer of the line does
    /// not learn their numbers.
    #[arg(long)]
    hide_number: bool,
    /// Derive the devices' random streams from a seed, as in a simulation. For tests and
    /// demonstrations only: whoever knows the seed can subtract their noise.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Set a key of the experiment; repeatable.
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
    // An experiment that real devices cannot run is refused before secrets are created.
    terms(&experiment)?;
    let devices = federation.device_count();
    if args.devices.end > devices {
        let Range { start, end } = args.devices;
        return Err(CliError::Usage(format!(
            "`--devices {start}..{end}`: the experiment's federation has devices 0 to {}; `--set \
             data.devices={end}` adds devices unless the partition is natural",
            devices.saturating_sub(1)
        )));
    }
    let policy = policy(args, &experiment)?;
    let files = Files { dir: &args.out };
    files.check_free(&args.devices)?;
    std::fs::create_dir_all(&args.out).map_err(write_error(&args.out))?;
    let mut keys = BTreeMap::new();
    for device in args.devices.clone() {
        let random = || secret().map_err(|error| CliError::Stopped(error.to_string()));
        let key = random()?;
        let root = match args.seed {
            Some(seed) => Root::from_seed(seed),
            None => Root::from_secret(*random()?),
        };
        let nonce = random()?.first_chunk().copied().unwrap_or_default();
        let identity = Identity { device, root };
        let first = Key::from_secret(*key);
        let data = args.with_data.then_some(&federation);
        let page = record(&identity, &first, &policy, experiment.task(), data)
            .map(Zeroizing::new)
            .map_err(|error| CliError::Usage(format!("device {device}: {error}")))?;
        files.write(device, &page, nonce, first)?;
        keys.insert(device, key);
    }
    let text = keys::to_toml(&keys, args.seed);
    write_private(&files.keys(), text.as_bytes())?;
    let preprocessing = Preprocessing::new(&experiment, &federation).to_json();
    write_private(&files.preprocessing(), preprocessing.as_bytes())?;
    if let Some(seed) = args.seed {
        eprintln!(
            "the devices' random streams are derived from seed {seed}: for tests and \
             demonstrations only"
        );
    }
    let simulated = devices as usize - args.devices.len();
    print_commands(args, experiment.task(), simulated, out)?;
    Ok(())
}

/// The files in the folder.
struct Files<'a> {
    dir: &'a Path,
}

impl Files<'_> {
    fn keys(&self) -> PathBuf {
        self.dir.join("keys.toml")
    }

    fn preprocessing(&self) -> PathBuf {
        self.dir.join(Preprocessing::FILE)
    }

    fn record(&self, device: u32) -> PathBuf {
        self.dir.join(format!("device-{device}.bin"))
    }

    fn ledger(&self, device: u32) -> PathBuf {
        self.dir.join(format!("device-{device}.ledger"))
    }

    /// Refuses a folder in which one of the files exists.
    fn check_free(&self, devices: &Range<u32>) -> Result<(), CliError> {
        if self.dir.is_file() {
            return Err(CliError::Usage(format!(
                "`--out {}` is a file: choose a folder",
                self.dir.display()
            )));
        }
        let of_devices = devices
            .clone()
            .flat_map(|device| [self.record(device), self.ledger(device)]);
        let mut files = of_devices.chain([self.keys(), self.preprocessing()]);
        match files.find(|path| path.exists()) {
            None => Ok(()),
            Some(path) => Err(CliError::Usage(format!(
                "{} already exists and is not overwritten: choose another --out",
                path.display()
            ))),
        }
    }

    /// Writes the record and a new ledger of a device.
    fn write(
        &self,
        device: u32,
        record: &[u8],
        nonce: LedgerNonce,
        key: Key,
    ) -> Result<(), CliError> {
        write_private(&self.record(device), record)?;
        let path = self.ledger(device);
        let flash = FileFlash::create(&path).map_err(write_error(&path))?;
        Ledger::create(flash, nonce, key)
            .map_err(|error| CliError::Stopped(format!("{}: {error}", path.display())))?;
        Ok(())
    }
}

fn write_private(path: &Path, bytes: &[u8]) -> Result<(), CliError> {
    create_private(path, bytes).map_err(write_error(path))?;
    Ok(())
}

fn write_error(path: &Path) -> impl FnOnce(io::Error) -> CliError {
    let path = path.display().to_string();
    move |error| CliError::Stopped(format!("cannot write {path}: {error}"))
}

fn policy(args: &Args, experiment: &Experiment) -> Result<Policy, CliError> {
    let privacy = &experiment.privacy;
    // In units of 2^-32, rounded down: never more than the experiment adds.
    let noise = privacy.multiplier().get() * 2f64.powi(32);
    let policy = |limits| Policy {
        limits,
        min_noise_multiplier: if privacy.is_local() { noise as u64 } else { 0 },
        max_epochs: experiment.training.epochs,
        hides_number: args.hide_number,
    };
    limits(args, experiment).map(policy)
}

/// How often, how far apart and how far ahead a device takes part.
fn limits(args: &Args, experiment: &Experiment) -> Result<Limits, CliError> {
    let strategy = experiment.privacy.strategy.as_ref();
    let (participations, least) = match strategy.map(|strategy| strategy.participation()) {
        Some(counted_on) => (counted_on.participations(), counted_on.separation()),
        None => (experiment.config.rounds, Separation::NONE.0),
    };
    let budget = args.budget.unwrap_or(participations);
    let separation = args.separation.unwrap_or(least);
    if separation < least {
        return Err(CliError::Usage(format!(
            "`--separation {separation}`: the experiment's ε counts on devices whose rounds are at \
             least {least} apart; leave it out, or give {least} or more"
        )));
    }
    // At most as far that the numbers outlast the budget, whatever rounds the device is invited to.
    let outlasting = (u32::MAX / budget.max(1)).saturating_sub(1).max(1);
    let max_jump = args
        .max_jump
        .unwrap_or_else(|| MaxJump::DEFAULT.0.min(outlasting));
    // The next round of a device is its separation less 1 ahead of its ledger.
    let nearest = separation - 1;
    if nearest > max_jump {
        return Err(CliError::Usage(format!(
            "`--separation {separation}`: a device that accepts rounds up to {max_jump} numbers \
             ahead would take part once; at most {} is possible with `--max-jump {max_jump}`",
            u64::from(max_jump) + 1
        )));
    }
    Ok(Limits {
        budget: Budget(budget),
        separation: Separation(separation),
        max_jump: MaxJump(max_jump),
    })
}

fn record(
    identity: &Identity,
    key: &Key,
    policy: &Policy,
    task: &Task,
    data: Option<&Federation>,
) -> Result<Vec<u8>, ProvisionError> {
    let Some(federation) = data else {
        return write(identity, key, policy, None::<&SampleSlice<'_, u16>>, 0);
    };
    let mut buffer = DeviceBuffer::default();
    let view = federation.device(identity.device, &mut buffer);
    on_samples!(task, view, (_model, rows) => {
        write(identity, key, policy, Some(rows), view.feature_count())
    })
}

fn write<S: Samples>(
    identity: &Identity,
    key: &Key,
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
    let written = provision::write(identity, key, policy, samples, &mut page)?;
    page.truncate(written);
    Ok(page)
}

/// Prints the commands that start the coordinator and a device.
fn print_commands(
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
    let own_samples = format!("--preprocessing {folder}/preprocessing.json --data FILE");
    // A network has no short name.
    let (model, own_samples) = match task.network() {
        None => (
            format!("--model {task}"),
            format!("{own_samples} instead of --model"),
        ),
        Some(_) => (
            format!("--preprocessing {folder}/preprocessing.json"),
            "--data FILE".to_owned(),
        ),
    };
    writeln!(
        out,
        "{} devices in {folder}: keys.toml is for the coordinator, device-K.bin for device K.\n\n  \
         smolfed serve {}--keys {folder}/keys.toml --listen tcp:0.0.0.0:7000{simulated}\n  \
         smolfed device {model} --provision {folder}/device-{first}.bin --ledger \
         {folder}/device-{first}.ledger --connect tcp:127.0.0.1:7000\n\nA device with samples of \
         its own: {own_samples}.",
        args.devices.len(),
        args.file
            .as_ref()
            .map_or(String::new(), |file| format!("{} ", file.display())),
    )
}
