//! `smolfed serve`: one experiment with real devices.

mod helpers;

use std::io::IsTerminal;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use smolfed_core::stream::Root;

use super::CliError;
use super::operation::{MAX_TIMEOUT, Operation, Watch};
use super::run::{Print, conclude};
use super::screen::{self, Screen};
use super::session::{in_pool, warn_of};
use super::style::warn;
use crate::config::{Config, Override};
use crate::data::DataFolders;
use crate::data::config::SourceConfig;
use crate::data::partition::Dealing;
use crate::entropy::secret;
use crate::experiment::Experiment;
use crate::fleet::coordinator::{Coordinator, Endpoints, FleetError};
use crate::fleet::helpers::{HelperSettings, WhenMissing};
use crate::fleet::keys::FleetKeys;
use crate::fleet::keys::passphrase::PassphraseSource;
use crate::fleet::quorum::Quorum;
use crate::fleet::status::Table;
use crate::fleet::transport::{Address, Options, TransportFiles, read_options};
use crate::privacy::ledger::Ledger;
use crate::privacy::origin::Origin;
use crate::round::Start;
use crate::run::directory::RunDir;
use crate::run::fleet_file::FleetFile;
use crate::run::{self, Control, Ending, Run};
use crate::source::fleet::Fleet;
use crate::source::fleet::terms::{ServeError, check_devices, check_quorum, terms};
use crate::source::fleet::tuning::Delivered;
use crate::source::participation;
use helpers::{begin, check};

/// Train one experiment with real devices, optionally alongside simulated ones.
///
/// The devices named in the keys file are the real ones; their data never leave them. The
/// coordinator connects to the addresses of `--device` and accepts connections at those of
/// `--listen`; devices identify themselves. If a device is late, fails or is malicious, only its
/// own update is lost: it counts as zero, and neither the denominator nor the accounting changes.
/// Randomness comes from the operating system and is not stored. See docs/fleet.md.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  smolfed provision experiment.toml --devices 0..4 --out fleet
  smolfed serve experiment.toml --keys fleet/keys.toml --device serial:/dev/ttyACM0 \\
      --device serial:/dev/ttyACM1 --listen tcp:0.0.0.0:7000
  smolfed serve experiment.toml --keys fleet/keys.toml --listen tls:0.0.0.0:7443 \\
      --tls-certificate fullchain.pem --tls-key privkey.pem
  smolfed serve experiment.toml --keys fleet/keys.toml \\
      --listen mqtt:broker.example.org:1883/greenhouse --require-x25519
  smolfed serve experiment.toml --keys fleet/keys.toml --listen tcp:0.0.0.0:7000 \\
      --helper tcp:helper.example.com:7100
  smolfed serve --keys fleet/keys.toml --listen unix:fleet.sock --simulated 50 --timeout 10s
  smolfed serve --resume runs/digits-1700000000")]
pub(super) struct Args {
    /// The experiment, a TOML file; by default the built-in one.
    file: Option<PathBuf>,
    /// The keys of the fleet, written by `smolfed provision`.
    #[arg(long, value_name = "FILE", required_unless_present = "resume")]
    keys: Option<PathBuf>,
    /// The file whose first line is the passphrase of encrypted keys. By default the one that
    /// SMOLFED_KEYS_PASSPHRASE_FILE names, or the systemd credential smolfed-keys-passphrase, or
    /// the terminal.
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
    /// Connect to a device: serial:PATH[@BAUD], tcp:HOST:PORT, tls:HOST:PORT or unix:PATH;
    /// repeatable.
    #[arg(long = "device", value_name = "ADDRESS")]
    devices: Vec<Address>,
    /// Accept connections from devices: tcp:HOST:PORT, tls:HOST:PORT, unix:PATH, or by way of a
    /// broker mqtt:HOST:PORT[/PREFIX]; repeatable.
    #[arg(long, value_name = "ADDRESS")]
    listen: Vec<Address>,
    #[command(flatten)]
    files: TransportFiles,
    /// Where a helper is: tcp:HOST:PORT, tls:HOST:PORT or unix:PATH; repeatable, in the order of
    /// the helpers' numbers. With `privacy.trust` = "distributed" each helper must be given.
    #[arg(long = "helper", value_name = "ADDRESS")]
    helpers: Vec<Address>,
    /// What happens while a helper cannot be reached: no round begins until it can, or the run
    /// stops and can be resumed [default: wait].
    #[arg(long, value_name = "WHAT", value_enum)]
    helper_missing: Option<WhenMissing>,
    /// Number of simulated devices alongside the real ones; sets data.devices.
    #[arg(long, value_name = "N", conflicts_with = "resume")]
    simulated: Option<u32>,
    /// Time for a device to complete its part in a round, like 30s, 500ms or 2m [default: 30s].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    timeout: Option<Duration>,
    /// Connections that are accepted at most; by default 1024 more than there are devices. When all
    /// are taken, one without a session gives way to each new one.
    #[arg(long, value_name = "N")]
    max_connections: Option<usize>,
    /// Devices that receive the model at the same time; the others wait for their turn.
    #[arg(long, value_name = "N", default_value_t = 256)]
    in_flight: usize,
    /// End a round when this share of its cohort has answered, for example 0.8. Only where the
    /// accounting covers it: with uniform sampling, or under local trust.
    #[arg(long, value_name = "SHARE", conflicts_with = "resume")]
    quorum: Option<Quorum>,
    /// Rounds in a row without an answer after which a device is no longer invited, until `smolfed
    /// keys readmit`; 0 for never. One that sends what no honest device sends is put into
    /// quarantine at once.
    #[arg(long, value_name = "N", default_value_t = 5)]
    strikes: u32,
    /// Refuse devices that greet without an X25519 handshake, which `smolfed device --x25519` and
    /// firmware with the feature x25519 begin. Then nobody who records the connections now and gets
    /// the keys later can decrypt anything. Without the option both kinds take part. Resuming keeps
    /// it.
    #[arg(long)]
    require_x25519: bool,
    /// Set a key of the experiment; repeatable.
    #[arg(long = "set", value_name = "KEY=VALUE", conflicts_with = "resume")]
    overrides: Vec<Override>,
    /// The run directory to write; by default runs/<name>-<time>.
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    out: Option<PathBuf>,
    /// Make the coordinator's randomness reproducible. For tests and demonstrations only: whoever
    /// knows the seed can subtract the noise.
    #[arg(long, value_name = "N", conflicts_with = "resume")]
    seed: Option<u64>,
    /// Threads for simulated devices; by default one per core.
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// Print exactly one JSON document to standard output.
    #[arg(long)]
    json: bool,
    /// Continue an interrupted run. A round that had begun is not repeated.
    #[arg(long, value_name = "DIR", conflicts_with = "file")]
    resume: Option<PathBuf>,
    #[command(flatten)]
    operation: Operation,
}

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

fn duration(text: &str) -> Result<Duration, String> {
    let time = humantime::parse_duration(text).ok();
    time.filter(|time| !time.is_zero() && *time <= MAX_TIMEOUT)
        .ok_or("expected a time of up to a day, for example 30s, 500ms or 2m".to_owned())
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let setup = match &args.resume {
        Some(dir) => Setup::resumed(args, dir)?,
        None => Setup::new(args)?,
    };
    if setup.endpoints.dial.is_empty() && setup.endpoints.listen.is_empty() {
        return Err(CliError::Usage(
            "no device can connect: give `--device ADDRESS` or `--listen ADDRESS`".to_owned(),
        ));
    }
    let watch = args.operation.watch()?;
    in_pool(args.threads, || setup.train(args, watch))?
}

/// A new or resumed run before it starts.
struct Setup {
    config: Config,
    folders: DataFolders,
    keys: FleetKeys,
    /// Where the helpers are, by number.
    helpers: Vec<Address>,
    endpoints: Endpoints,
    file: FleetFile,
    resumed: Option<RunDir>,
}

impl Setup {
    fn new(args: &Args) -> Result<Self, CliError> {
        let path = args.keys.as_deref().unwrap_or(Path::new("keys.toml"));
        let keys = open_keys(path, args)?;
        let real = keys.members().len();
        let mut overrides = args.overrides.clone();
        overrides.extend(args.seed.map(seed).transpose()?);
        let mut config = Config::load(args.file.as_deref(), &overrides)?;
        // The data determine the number of natural devices.
        if let Some(simulated) = args.simulated.filter(|_| !is_natural(&config)) {
            let devices = i64::from(simulated).saturating_add(real as i64);
            overrides.push(Override::new("data.devices", devices.into()));
            config = Config::load(args.file.as_deref(), &overrides)?;
        }
        let random = secret().map_err(fleet_error)?;
        let texts = |addresses: &[Address]| addresses.iter().map(Address::to_string).collect();
        let timeout = args.timeout.unwrap_or(DEFAULT_TIMEOUT);
        let file = FleetFile {
            id: hex::encode(random.get(..8).unwrap_or_default()),
            seed: args.seed,
            first_number: keys.next_round(),
            keys: std::path::absolute(path)?,
            simulated: args.simulated.unwrap_or(0),
            timeout_ms: timeout.as_millis() as u64,
            quorum: args.quorum.map(Quorum::get),
            require_x25519: args.require_x25519,
            devices: texts(&args.devices),
            listen: texts(&args.listen),
            helpers: texts(&args.helpers),
            helper_missing: args.helper_missing.unwrap_or_default(),
            files: args.files.absolute()?,
        };
        let options = options(&args.files, (&args.devices, &args.helpers), &args.listen)?;
        Ok(Self {
            config,
            folders: DataFolders::of_experiment(args.file.as_deref()),
            helpers: args.helpers.clone(),
            keys,
            endpoints: Endpoints {
                dial: args.devices.clone(),
                listen: args.listen.clone(),
                options,
                timeout,
                max_connections: args.max_connections,
                in_flight: args.in_flight,
                strikes: args.strikes,
                requires_x25519: args.require_x25519,
            },
            file,
            resumed: None,
        })
    }

    fn resumed(args: &Args, path: &Path) -> Result<Self, CliError> {
        let dir = RunDir::resume(path)?;
        let file = dir.fleet()?.ok_or_else(|| {
            let path = path.display();
            CliError::Usage(format!(
                "{path} is a simulation: smolfed run --resume {path}"
            ))
        })?;
        let keys = args.keys.as_deref().unwrap_or(&file.keys);
        let keys = open_keys(keys, args)?;
        let is_given = !args.devices.is_empty() || !args.listen.is_empty();
        let known = |is_given, given: &[Address], stored: &[String]| {
            if is_given {
                return Ok(given.to_vec());
            }
            let parsed = stored.iter().map(|text| text.parse());
            let parsed: Result<_, _> = parsed.collect();
            parsed.map_err(|error| CliError::Usage(format!("{}: {error}", path.display())))
        };
        let (dial, listen) = (
            known(is_given, &args.devices, &file.devices)?,
            known(is_given, &args.listen, &file.listen)?,
        );
        let helpers = known(!args.helpers.is_empty(), &args.helpers, &file.helpers)?;
        // The files of the first call belong to its addresses.
        let files = match is_given {
            true => args.files.clone(),
            false => args.files.clone().or(&file.files),
        };
        let stored = Duration::from_millis(file.timeout_ms);
        Ok(Self {
            config: dir.config()?,
            folders: DataFolders::of_experiment(Some(&path.join("config.toml"))),
            keys,
            endpoints: Endpoints {
                options: options(&files, (&dial, &helpers), &listen)?,
                dial,
                listen,
                timeout: args.timeout.unwrap_or(stored),
                max_connections: args.max_connections,
                in_flight: args.in_flight,
                strikes: args.strikes,
                // What was promised of a run holds to its end.
                requires_x25519: args.require_x25519 || file.require_x25519,
            },
            file: FleetFile {
                helper_missing: args.helper_missing.unwrap_or(file.helper_missing),
                ..file
            },
            helpers,
            resumed: Some(dir),
        })
    }

    fn origin(&self) -> Origin {
        Origin::Fleet {
            id: self.file.id.clone(),
            seed: self.file.seed,
            device_seed: self.keys.device_seed(),
            simulated: self.file.simulated,
            has_quorum: self.file.quorum.is_some(),
        }
    }

    fn train(self, args: &Args, mut watch: Watch) -> Result<(), CliError> {
        let started = Instant::now();
        let origin = self.origin();
        let (experiment, federation) = run::prepare_from(self.config, &self.folders, origin)?;
        check_devices(&federation, &self.keys, self.file.simulated)?;
        let terms = terms(&experiment)?;
        let policy = experiment.helper_policy(1);
        check(policy.as_ref(), &self.keys, &self.helpers)?;
        let links = self.keys.links().clone();
        let quorum = quorum(&self.file, &experiment)?;
        warn_of(&experiment, &federation);
        let name = run::name(&experiment.config, &federation, &experiment.origin)?;
        let paid = match &self.resumed {
            Some(dir) => paid(&experiment, dir, &name)?,
            None => 0,
        };
        // Neither rounds that were paid for nor numbers that the fleet has used are begun again.
        let unused = self.keys.next_round().saturating_sub(paid);
        let first_number = self.file.first_number.max(unused);
        let fleet =
            Coordinator::new(self.keys, terms, &self.endpoints).map_err(ServeError::Fleet)?;
        let mut fleet = fleet.stopped_by(Arc::clone(watch.signals.stopping()));
        let dir = match self.resumed {
            Some(dir) => dir,
            None => create_private(args, &experiment, &self.file)?,
        };
        watch.reload_on_hangup(&mut fleet, &self.endpoints.options)?;
        let parameters = experiment.method.shared_count();
        let checkpoint = dir.load_checkpoint(&name, parameters)?;
        let done = checkpoint.map_or(0, |checkpoint| checkpoint.round);
        let service = fleet.service();
        tell_of_restart(&experiment, done, paid);
        let numbers = (first_number, paid);
        let records = dir.participation(done)?;
        let rounds = participation::read(&dir.participation_path())?;
        let mut served = Fleet::new(fleet, &federation, terms, numbers, records)
            .resumed_after(done.max(paid))
            .with_personal(experiment.method.personal_request(), &rounds)
            .with_quorum(quorum);
        let screen = Screen::new(experiment.config.rounds, Arc::clone(&service), &watch.log);
        let timeout = self.endpoints.timeout;
        watch.begin(served.fleet(), &experiment, &dir, (done, timeout))?;
        let settings = HelperSettings {
            addresses: self.helpers,
            options: self.endpoints.options,
            missing: self.file.helper_missing,
            timeout,
        };
        let stopping = watch.signals.stopping();
        let helpers = policy.map(|policy| begin(&settings, links, policy, (stopping, &service)));
        let control = Control {
            stop: watch.signals.stopping().flag(),
            // Each round is on disk before the next one begins.
            checkpoint_every: Duration::ZERO,
            on_round: &mut |record| {
                service.monitor().round_done(record);
                screen.bar.set_position(u64::from(record.round) + 1);
            },
        };
        let run = Run {
            experiment: &experiment,
            federation: &federation,
            dir: Some(&dir),
            start: start(&experiment, self.file.seed)?,
            helpers: helpers.transpose()?,
        };
        watch.signals.run_begins();
        let result = run.execute(&mut served, control);
        if let Ok(run) = &result
            && matches!(run.ending, Ending::Done)
        {
            deliver(&mut served, &experiment, &run.model);
        }
        let table = Table::new(&service);
        drop(served);
        screen.close();
        keep(&table, &dir, result.is_ok(), args.json)?;
        let print = Print::of(false, args.json, true);
        let is_stopped = matches!(&result, Ok(run) if matches!(run.ending, Ending::Interrupted));
        let concluded = conclude(&experiment, &dir, result, started, print, "serve");
        match concluded {
            Err(CliError::Stopped(sentence)) if is_stopped => watch.stopped(sentence),
            concluded => concluded,
        }
    }
}

/// Has the devices fine-tune the final model, if the experiment says so. The run is complete
/// without them, whatever fails here: resuming it asks again.
fn deliver(served: &mut Fleet<'_>, experiment: &Experiment, model: &[f32]) {
    match served.fine_tune(experiment, model) {
        Ok(None) => {}
        Ok(Some(Delivered { tuned, asked })) => tracing::info!(
            reason = "fine-tuned",
            tuned,
            asked,
            "{tuned} of {asked} devices have fine-tuned the final model; `smolfed serve --resume` \
             asks them again"
        ),
        Err(error) => tracing::error!(
            reason = "fine-tuned",
            "no device was asked to fine-tune the final model: {error}; `smolfed serve --resume` \
             asks them"
        ),
    }
}

/// The quorum, if there is one and the accounting covers it.
fn quorum(file: &FleetFile, experiment: &Experiment) -> Result<Option<Quorum>, CliError> {
    let quorum = file.quorum.and_then(Quorum::new);
    if quorum.is_some() {
        check_quorum(experiment)?;
    }
    Ok(quorum)
}

/// Writes the table of devices, and shows it on a terminal.
fn keep(table: &Table, dir: &RunDir, is_ok: bool, is_json: bool) -> Result<(), CliError> {
    match (is_ok, dir.write_devices(table)) {
        (true, written) => written?,
        // Why the run failed comes first: on a full disk, the file that it needed.
        (false, written) => written.unwrap_or_else(warn),
    }
    if !is_json && std::io::stderr().is_terminal() {
        eprint!("{}", screen::text(table));
    }
    Ok(())
}

/// Where a run begins, with randomness that is not stored unless there is a seed.
fn start(experiment: &Experiment, seed: Option<u64>) -> Result<Start, CliError> {
    let root = match seed {
        Some(seed) => Root::from_seed(seed),
        None => Root::from_secret(*secret().map_err(fleet_error)?),
    };
    Ok(Start {
        root,
        ..Start::simulation(experiment)
    })
}

/// Says what it means for correlated noise that `done` rounds were run and `paid` charged before.
fn tell_of_restart(experiment: &Experiment, done: u32, paid: u32) {
    let Some(last) = done.max(paid).checked_sub(1) else {
        return;
    };
    if !experiment.history().is_kept() {
        return;
    }
    let burned = match paid.saturating_sub(done) {
        0 => String::new(),
        rounds => format!(
            " {rounds} of the rounds came to nothing, and count for all devices that may have \
             taken part."
        ),
    };
    eprintln!(
        "note: the exact sums up to round {last} were lost with the process that held them: \
         correlated noise begins anew, and its errors add to those of the earlier rounds; epsilon \
         is the same.{burned}"
    );
}

/// The run directory of a new run, which only its owner can access.
fn create_private(
    args: &Args,
    experiment: &Experiment,
    file: &FleetFile,
) -> Result<RunDir, CliError> {
    let dir = RunDir::create_for(args.out.as_deref(), &experiment.config)?;
    dir.keep_private()?;
    dir.write_fleet(file)?;
    Ok(dir)
}

/// Sets the seed of an experiment. Integers of TOML are below 2^63.
pub(super) fn seed(seed: u64) -> Result<Override, CliError> {
    let number = i64::try_from(seed)
        .map_err(|_| CliError::Usage(format!("`--seed {seed}`: expected a number below 2^63")))?;
    Ok(Override::new("seed", number.into()))
}

/// Rounds of the run that are charged in its ledger.
fn paid(experiment: &Experiment, dir: &RunDir, name: &str) -> Result<u32, CliError> {
    let shared = experiment.config.privacy.ledger.clone();
    let path = shared.unwrap_or_else(|| dir.ledger());
    if !path.is_file() {
        return Ok(0);
    }
    let charges = Ledger::read(&path)?;
    let own = charges.iter().filter(|charge| charge.run == name);
    Ok(own
        .map(|charge| charge.round.saturating_add(1))
        .max()
        .unwrap_or(0))
}

/// Reads the files that connections need: whatever is wrong with them, they were given.
fn options(
    files: &TransportFiles,
    (dial, helpers): (&[Address], &[Address]),
    listen: &[Address],
) -> Result<Options, CliError> {
    let is_refused = |address: &&Address| address.has_broker() || address.scheme() == "serial";
    if let Some(address) = helpers.iter().find(is_refused) {
        return Err(CliError::Usage(format!(
            "`--helper {address}`: a helper is at tcp:HOST:PORT, tls:HOST:PORT or unix:PATH"
        )));
    }
    if let Some(address) = dial.iter().find(|address| address.has_broker()) {
        return Err(CliError::Usage(format!(
            "`--device {address}`: at a broker the coordinator listens: `--listen {address}`"
        )));
    }
    let dial = [dial, helpers].concat();
    let options = read_options(files, &dial, listen);
    options.map_err(|error| CliError::Usage(error.to_string()))
}

fn open_keys(path: &Path, args: &Args) -> Result<FleetKeys, CliError> {
    let passphrase = PassphraseSource::find(args.passphrase_file.as_deref());
    FleetKeys::open(path, passphrase).map_err(fleet_error)
}

fn is_natural(config: &Config) -> bool {
    match &config.data.source {
        SourceConfig::Stored(stored) => stored.dealing == Dealing::Natural,
        SourceConfig::Synthetic(_) => false,
    }
}

fn fleet_error(error: impl Into<FleetError>) -> CliError {
    ServeError::Fleet(error.into()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit() {
        assert_eq!(duration("30s").unwrap(), Duration::from_secs(30));
        assert_eq!(duration("500ms").unwrap(), Duration::from_millis(500));
        assert_eq!(duration("2m").unwrap(), Duration::from_secs(120));
        assert_eq!(duration("1.5s").unwrap(), Duration::from_millis(1_500));
        for text in ["", "30", "s", "-1s", "0s", "25h", "1e9s", "nans"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
