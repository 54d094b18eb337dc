//! `smolfed provision` and its arguments: secrets (keys, records, ledgers) for devices and for
//! their coordinator.

mod answers;
mod helpers;
mod infer;
mod issue;
mod noise;
mod output;
mod raw;
mod record;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::ops::Range;
use std::path::PathBuf;

use super::CliError;
use super::session::progress_bar;
use super::text::quoted;
use smolfed_data::{DataFolders, Federation};
use smolfed_engine::config::{Config, Override};
use smolfed_engine::experiment::Experiment;
use smolfed_engine::preprocessing::Preprocessing;
use smolfed_engine::run;
use smolfed_fleet::helper::store::ledger_path;
use smolfed_fleet::keys::file::KeyFile;
use smolfed_fleet::keys::passphrase::PassphraseSource;
use smolfed_fleet::keys::stored::Stored;
use smolfed_fleet::keys::vault::Vault;
use smolfed_fleet::source::terms::terms;

pub(super) use answers::AnswerArgs;
pub(super) use helpers::{HelperArgs, HelperFiles};
pub(super) use issue::{DeviceArgs, Issuer};
pub(super) use output::{Files, Output};

/// Create the secrets of devices, and a keys file for their coordinator.
///
/// Each device gets a record to write to its flash. A record contains the device's number, its key,
/// the secret root of its random streams, and its limits. By default, the limits allow the
/// experiment's number of rounds and of epochs per round. Under local trust, they require at least
/// the experiment's noise. With correlated noise, the participations and their separation are those
/// on which the experiment's ε relies. A device answers questions only with --answers, and each
/// answer is a participation.
///
/// The command writes keys.toml, preprocessing.json, and for each device K its record device-K.bin
/// and a new device-K.ledger. The ledger is for processes and for boards without a random number
/// generator. A device uses preprocessing.json to prepare its own samples as the experiment does.
/// Only the owner can read the files, and nothing is overwritten. Copy each device's files to it
/// once, then delete them here. See docs/provisioning.md and docs/boards.md.
///
/// With --element, devices with secrets in secure elements also get device-K.element: the 64 bytes
/// to write into the element of device K, which are its root and its first chain key.
///
/// With `privacy.trust` = "distributed", each helper gets helper-J.toml and helper-J.toml.ledger.
/// Move these files off this machine before the coordinator starts: anyone with them and the
/// coordinator's keys can read every update.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  smolfed provision experiment.toml --devices 0..4 --out fleet
  smolfed provision experiment.toml --devices 0..4 --out fleet --separation 342 --participations 6
  smolfed provision --devices 0..4 --out fleet --with-data --set data.devices=54
  smolfed provision ask.toml --devices 0..4 --out fleet --answers evaluate,count
  smolfed provision gradients.toml --devices 0..4 --out fleet --with-data --raw
  smolfed provision --infer --devices 0..100 --out shop")]
pub(super) struct Args {
    /// Experiment, a TOML file [default: the built-in experiment].
    file: Option<PathBuf>,
    /// Provision the devices from FIRST up to but excluding LAST: 0..4 means devices 0 to 3.
    #[arg(long, value_name = "FIRST..LAST", value_parser = range)]
    devices: Range<u32>,
    /// Write the files to this folder.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Write records and ledgers into one zip archive instead of the folder.
    ///
    /// Use it for thousands of devices.
    #[arg(long, value_name = "FILE")]
    archive: Option<PathBuf>,
    /// Write the records as text to this file instead of the folder, one line per device.
    ///
    /// Paste the lines or print them as QR codes, for devices that create their own ledgers.
    #[arg(long, value_name = "FILE", conflicts_with = "with_data")]
    records: Option<PathBuf>,
    /// Encrypt keys.toml with the passphrase in the first line of this file.
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
    #[command(flatten)]
    device: DeviceArgs,
    #[command(flatten)]
    helper: HelperArgs,
    /// Derive the random streams of the devices from a seed, as in a simulation.
    ///
    /// The seed also partitions the data, and the coordinator needs the same seed. For tests and
    /// demonstrations only: anyone who knows the seed can subtract the noise.
    #[arg(long, value_name = "N", conflicts_with = "element")]
    seed: Option<u64>,
    /// Provision inference-only devices, which take part in no round.
    ///
    /// They need no experiment, and their files are keys.toml and device-K.bin. `smolfed deliver`
    /// sends them models.
    #[arg(long, conflicts_with_all = [
        "file", "archive", "records", "seed", "with_data", "raw", "budget", "separation",
        "max_jump", "hide_number", "element", "answers", "overrides",
    ])]
    infer: bool,
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
    let keys_path = args.out.join("keys.toml");
    if args.infer {
        return infer::run(&args.devices, &args.out, sealed(args, &keys_path)?, out);
    }
    let mut overrides = args.device.overrides.clone();
    overrides.extend(args.seed.map(super::serve::seed).transpose()?);
    let (experiment, federation) = prepare(args.file.as_ref(), &overrides)?;
    let devices = federation.device_count();
    check_number(&args.devices, devices)?;
    let (made, file) = ((&experiment, &federation), args.file.as_deref());
    let issuer = Issuer::new(&args.device, made, file, args.seed)?;
    let files = Files {
        dir: &args.out,
        archive: args.archive.as_deref(),
        records: args.records.as_deref(),
    };
    let preprocessing_path = files.dir.join(Preprocessing::FILE);
    let links = BTreeMap::new();
    let mut helpers = HelperFiles::new(
        &args.helper,
        &experiment,
        issuer.limits(),
        args.seed,
        &links,
        args.devices.len(),
    )?;
    let mut beside = vec![keys_path.clone(), preprocessing_path.clone()];
    // At most 8.
    for path in HelperFiles::paths(helpers.count() as u8, files.dir) {
        beside.push(ledger_path(&path));
        beside.push(path);
    }
    files.check_free(&args.devices, &beside)?;
    let vault = sealed(args, &keys_path)?;
    let mut output = Output::create(&files)?;
    let (mut keys, mut elements) = (BTreeMap::new(), BTreeSet::new());
    let bar = progress_bar(args.devices.len() as u64, "device");
    for device in args.devices.clone() {
        let issued = issuer.issue(device)?;
        output.write(&issued)?;
        helpers.add(&issued);
        elements.extend(issued.in_element());
        keys.insert(device, issued.key);
        bar.inc(1);
    }
    bar.finish_and_clear();
    let preprocessing = Preprocessing::new(&experiment, &federation).to_json();
    output.write_beside(&preprocessing_path, preprocessing.as_bytes())?;
    helpers.write(&mut output, files.dir, true)?;
    output.sync()?;
    // The keys come last: without them nothing else is in use.
    let file = KeyFile {
        links: helpers.links(),
        keys,
        elements,
        device_seed: args.seed,
        ..KeyFile::default()
    };
    let bytes = Stored { file, vault }.to_bytes();
    output.finish(&keys_path, &bytes.map_err(CliError::Stopped)?)?;
    if let Some(seed) = args.seed {
        eprintln!(
            "the devices' random streams are derived from seed {seed}: for tests and \
             demonstrations only. The coordinator needs the same seed, and anyone who knows it can \
             subtract the noise; provision a real fleet without `--seed`"
        );
    }
    let simulated = devices as usize - args.devices.len();
    print_commands(args, &experiment, simulated, helpers.count(), out)?;
    Ok(())
}

/// The experiment of a fleet, and its devices.
pub(super) fn prepare(
    file: Option<&PathBuf>,
    overrides: &[Override],
) -> Result<(Experiment, Federation), CliError> {
    let file = file.map(PathBuf::as_path);
    let config = Config::load(file, overrides)?;
    let (experiment, federation) = run::prepare(config, &DataFolders::of_experiment(file))?;
    // An experiment that real devices cannot run is refused before secrets are created.
    terms(&experiment)?;
    Ok((experiment, federation))
}

/// Refuses numbers that the federation does not have.
fn check_number(range: &Range<u32>, devices: u32) -> Result<(), CliError> {
    let Range { start, end } = *range;
    if end <= devices {
        return Ok(());
    }
    Err(CliError::Usage(format!(
        "`--devices {start}..{end}`: the experiment's federation has devices 0 to {}; `--set \
         data.devices={end}` adds devices unless the partition is natural",
        devices.saturating_sub(1)
    )))
}

/// What encrypts the keys at this path, if they are to be encrypted.
fn sealed(args: &Args, keys: &std::path::Path) -> Result<Option<Vault>, CliError> {
    let passphrase = args.passphrase_file.as_deref();
    let vault = passphrase.map(|path| vault(&PassphraseSource::find(Some(path)), keys));
    vault.transpose()
}

/// What encrypts new keys, under a passphrase that is not too short.
pub(super) fn vault(source: &PassphraseSource, keys: &std::path::Path) -> Result<Vault, CliError> {
    let passphrase = source.choose(keys)?;
    Vault::new(&passphrase).map_err(|error| CliError::Stopped(error.to_string()))
}

/// Prints the commands that start the coordinator and a device.
fn print_commands(
    args: &Args,
    experiment: &Experiment,
    simulated: usize,
    helpers: usize,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut simulated = match simulated {
        0 => String::new(),
        rest => format!(" --simulated {rest}"),
    };
    let folder = quoted(&args.out.display().to_string());
    let mut commands = String::new();
    for helper in 0..helpers {
        let port = 7100 + helper;
        commands.push_str(&format!(
            "  smolfed helper {folder}/helper-{helper}.toml --listen tcp:0.0.0.0:{port}\n"
        ));
        simulated.push_str(&format!(" --helper tcp:127.0.0.1:{port}"));
    }
    let others = match helpers {
        0 => "",
        _ => {
            ", helper-J.toml\nwith its ledger for helper J, which someone else runs: move them \
             there, and delete them here"
        }
    };
    let what = match args.device.element {
        true => {
            "device-K.bin for device K and\ndevice-K.element for its secure element: write the \
             64 bytes into it, and delete the file"
        }
        false => "device-K.bin for device K",
    };
    let file = args.file.as_ref();
    let file = file.map_or(String::new(), |file| {
        format!("{} ", quoted(&file.display().to_string()))
    });
    let overrides = args.device.overrides.iter();
    let settings = overrides.map(|set| format!(" --set {}", quoted(&set.to_string())));
    let settings: String = settings.collect();
    // It says how data are dealt: another one would give simulated devices, or the test set, the
    // samples that a device has.
    let seed = args
        .seed
        .map_or(String::new(), |seed| format!(" --seed {seed}"));
    let device = device_command(args, experiment);
    writeln!(
        out,
        "{} devices in {folder}: keys.toml is for the coordinator, {what}{others}.\n\n{commands}  \
         smolfed serve {file}--keys {folder}/keys.toml --listen \
         tcp:0.0.0.0:7000{simulated}{settings}{seed}{device}",
        args.devices.len(),
    )
}

/// The command that starts a device, and what is to be said of it.
fn device_command(args: &Args, experiment: &Experiment) -> String {
    if args.device.element {
        return String::new();
    }
    let properties = experiment.method().properties();
    if properties.arithmetic.feature_format().is_some() {
        return "\n\nThese devices train in integers, as boards do and `smolfed device` does not: \
                flash the record of\neach, and its ledger unless the board makes one."
            .to_owned();
    }
    let (folder, first) = (quoted(&args.out.display().to_string()), args.devices.start);
    let preprocessing = format!("--preprocessing {folder}/preprocessing.json");
    // Networks and encoders have no short name.
    let task = experiment.task();
    let has_name = task.network().is_none() && properties.uses_labels;
    let (model, own_samples) = match has_name {
        true => (
            format!("--model {task}"),
            format!("{preprocessing} --data FILE instead of --model"),
        ),
        false => (preprocessing, "--data FILE".to_owned()),
    };
    format!(
        "\n  smolfed device {model} --provision {folder}/device-{first}.bin --ledger \
         {folder}/device-{first}.ledger --connect tcp:127.0.0.1:7000\n\nA device with its own \
         samples: {own_samples}."
    )
}
