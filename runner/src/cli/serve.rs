//! `smolfed serve`: one experiment with real devices.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use smolfed_core::stream::Root;

use super::CliError;
use super::run::{conclude, create};
use super::screen::{self, Screen};
use super::session::{in_pool, stop_on_ctrl_c};
use crate::config::{Config, Override};
use crate::coordinator::address::Address;
use crate::coordinator::fleet::{Fleet, FleetError, Places, secret};
use crate::coordinator::keys::FleetKeys;
use crate::coordinator::status::Table;
use crate::data::DataFolders;
use crate::data::config::SourceConfig;
use crate::data::partition::Dealing;
use crate::experiment::{Experiment, Origin};
use crate::privacy::ledger::Ledger;
use crate::rounds::Start;
use crate::run::{self, Control};
use crate::run_dir::RunDir;
use crate::serve::{FleetFile, ServeError, Served, check_devices, terms};

/// Train one experiment with real devices, among simulated ones if need be.
///
/// The devices that the file of keys names are the real ones: their data stay with them. The
/// coordinator connects to those at `--device` and waits at `--listen` for others; which device is where
/// follows from what it says. A device that is late, dead or lies costs its own update: it counts as
/// zero, and neither the denominator nor the accounting changes. The randomness comes from the
/// operating system and is not kept. See docs/fleet.md.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  smolfed provision experiment.toml --devices 0..4 --out fleet
  smolfed serve experiment.toml --keys fleet/keys.toml --device serial:/dev/ttyACM0 \\
      --device serial:/dev/ttyACM1 --listen tcp:0.0.0.0:7000
  smolfed serve --keys fleet/keys.toml --listen unix:fleet.sock --simulated 50 --timeout 10s
  smolfed serve --resume runs/digits-1700000000")]
pub(super) struct Args {
    /// The experiment, a TOML file; by default the built-in one.
    file: Option<PathBuf>,
    /// The keys of the fleet, written by `smolfed provision`.
    #[arg(long, value_name = "FILE", required_unless_present = "resume")]
    keys: Option<PathBuf>,
    /// Connect to a device: serial:PATH[@BAUD], tcp:HOST:PORT or unix:PATH; can be repeated.
    #[arg(long = "device", value_name = "ADDRESS")]
    devices: Vec<Address>,
    /// Let devices connect: tcp:HOST:PORT or unix:PATH; can be repeated.
    #[arg(long, value_name = "ADDRESS")]
    listen: Vec<Address>,
    /// Simulate so many devices beside the real ones; sets data.devices.
    #[arg(long, value_name = "N", conflicts_with = "resume")]
    simulated: Option<u32>,
    /// Time for a device to complete its part in a round, like 30s, 500ms or 2m [default: 30s].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    timeout: Option<Duration>,
    /// Set a key of the experiment; can be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", conflicts_with = "resume")]
    overrides: Vec<Override>,
    /// The run directory to write; by default runs/<name>-<time>.
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    out: Option<PathBuf>,
    /// Make the coordinator's randomness reproducible. For tests and demonstrations only: who knows
    /// the seed can subtract the noise.
    #[arg(long, value_name = "N", conflicts_with = "resume")]
    seed: Option<u64>,
    /// Threads for simulated devices; by default one a core.
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// Print one JSON document to standard output and nothing else.
    #[arg(long)]
    json: bool,
    /// Go on with a run that was stopped. A round that was begun is not repeated.
    #[arg(long, value_name = "DIR", conflicts_with = "file")]
    resume: Option<PathBuf>,
}

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

fn duration(text: &str) -> Result<Duration, String> {
    let parse = || {
        let unit = text.find(|c: char| c.is_ascii_alphabetic())?;
        let (number, unit) = text.split_at(unit);
        let seconds = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            _ => return None,
        };
        let time =
            Duration::try_from_secs_f64(number.trim().parse::<f64>().ok()? * seconds).ok()?;
        (!time.is_zero() && time <= Duration::from_secs(86_400)).then_some(time)
    };
    parse().ok_or("expected a time of up to a day, for example 30s, 500ms or 2m".to_owned())
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let plan = match &args.resume {
        Some(dir) => Plan::resumed(args, dir)?,
        None => Plan::new(args)?,
    };
    if plan.places.dial.is_empty() && plan.places.listen.is_empty() {
        return Err(CliError::Usage(
            "no device can be reached: give `--device ADDRESS` or `--listen ADDRESS`".to_owned(),
        ));
    }
    in_pool(args.threads, || plan.train(args))?
}

/// A run before it begins or goes on.
struct Plan {
    config: Config,
    folders: DataFolders,
    keys: FleetKeys,
    places: Places,
    file: FleetFile,
    resumed: Option<RunDir>,
}

impl Plan {
    fn new(args: &Args) -> Result<Self, CliError> {
        let path = args.keys.as_deref().unwrap_or(Path::new("keys.toml"));
        let keys = FleetKeys::open(path).map_err(fleet)?;
        let real = keys.keys().len();
        let mut overrides = args.overrides.clone();
        overrides.extend(args.seed.map(seed).transpose()?);
        let mut config = Config::load(args.file.as_deref(), &overrides)?;
        // Natural devices are as many as the data have.
        if let Some(simulated) = args.simulated.filter(|_| !is_natural(&config)) {
            let devices = i64::from(simulated).saturating_add(real as i64);
            overrides.push(Override::new("data.devices", devices.into()));
            config = Config::load(args.file.as_deref(), &overrides)?;
        }
        let id = secret().map_err(fleet)?;
        let id = id
            .iter()
            .take(8)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let texts = |addresses: &[Address]| addresses.iter().map(Address::to_string).collect();
        let timeout = args.timeout.unwrap_or(DEFAULT_TIMEOUT);
        let file = FleetFile {
            id,
            seed: args.seed,
            first_number: keys.next_round(),
            keys: std::path::absolute(path)?,
            simulated: args.simulated.unwrap_or(0),
            timeout_ms: timeout.as_millis() as u64,
            devices: texts(&args.devices),
            listen: texts(&args.listen),
        };
        Ok(Self {
            config,
            folders: DataFolders::of_experiment(args.file.as_deref()),
            keys,
            places: Places {
                dial: args.devices.clone(),
                listen: args.listen.clone(),
                timeout,
            },
            file,
            resumed: None,
        })
    }

    fn resumed(args: &Args, path: &Path) -> Result<Self, CliError> {
        let dir = RunDir::open(path)?;
        let file = dir.fleet()?.ok_or_else(|| {
            let path = path.display();
            CliError::Usage(format!(
                "{path} is a simulation: smolfed run --resume {path}"
            ))
        })?;
        let keys = args.keys.as_deref().unwrap_or(&file.keys);
        let keys = FleetKeys::open(keys).map_err(fleet)?;
        let known = |given: &[Address], kept: &[String]| -> Result<Vec<Address>, CliError> {
            if !args.devices.is_empty() || !args.listen.is_empty() {
                return Ok(given.to_vec());
            }
            let parsed = kept.iter().map(|text| text.parse());
            let parsed: Result<_, _> = parsed.collect();
            parsed.map_err(|error| CliError::Usage(format!("{}: {error}", path.display())))
        };
        let kept = Duration::from_millis(file.timeout_ms);
        Ok(Self {
            config: dir.config()?,
            folders: DataFolders::of_experiment(Some(&path.join("config.toml"))),
            keys,
            places: Places {
                dial: known(&args.devices, &file.devices)?,
                listen: known(&args.listen, &file.listen)?,
                timeout: args.timeout.unwrap_or(kept),
            },
            file,
            resumed: Some(dir),
        })
    }

    fn train(self, args: &Args) -> Result<(), CliError> {
        let started = Instant::now();
        let origin = Origin::Fleet {
            id: self.file.id.clone(),
            seed: self.file.seed,
            device_seed: self.keys.device_seed(),
            simulated: self.file.simulated,
        };
        let (experiment, federation) = run::prepare_from(self.config, &self.folders, origin)?;
        check_devices(&federation, &self.keys, self.file.simulated)?;
        let terms = terms(&experiment)?;
        if !experiment.privacy.is_local() {
            warn_of_open_lines(&self.places);
        }
        let name = run::name(&experiment.config, &federation, &experiment.origin)?;
        // Rounds that were paid for are never begun again; nor are numbers that the fleet has used.
        let paid = match &self.resumed {
            Some(dir) => paid(&experiment, dir, &name)?,
            None => 0,
        };
        let unused = self.keys.next_round().saturating_sub(paid);
        let first_number = self.file.first_number.max(unused);
        let (reports, told) = mpsc::channel::<String>();
        let report = Box::new(move |text: &str| {
            // Nobody listens any more when the run is over.
            let _ = reports.send(text.to_owned());
        });
        let fleet =
            Fleet::new(self.keys, terms, &self.places, report).map_err(ServeError::Fleet)?;
        let dir = match self.resumed {
            Some(dir) => dir,
            None => {
                let dir = create(args.out.as_deref(), &experiment)?;
                dir.keep_private()?;
                dir.write_fleet(&self.file)?;
                dir
            }
        };
        let parameters = experiment.task.parameter_count();
        let checkpoint = dir.load_checkpoint(&name, parameters)?;
        let done = checkpoint.map_or(0, |checkpoint| checkpoint.round);
        let switchboard = fleet.switchboard();
        let numbers = (first_number, paid);
        let records = dir.participation(done)?;
        let mut served = Served::new(fleet, &federation, terms, numbers, records);
        let screen = Screen::new(experiment.config.rounds, Arc::clone(&switchboard), told);
        let control = Control {
            stop: stop_on_ctrl_c()?,
            // A round that is done is safe before the next one begins.
            checkpoint_every: Duration::ZERO,
            on_round: &mut |record| screen.bar.set_position(u64::from(record.round) + 1),
        };
        let root = match self.file.seed {
            Some(seed) => Root::from_seed(seed),
            None => Root::from_secret(secret().map_err(ServeError::Fleet)?),
        };
        let start = Start {
            root,
            ..Start::simulation(&experiment)
        };
        let updates = (start, &mut served as &mut dyn crate::rounds::Updates);
        let result = run::execute_with(&experiment, &federation, Some(&dir), control, updates);
        let table = Table::new(&switchboard);
        drop(served);
        screen.close();
        dir.write_devices(&table)?;
        if !args.json {
            eprint!("{}", screen::text(&table));
        }
        conclude(&experiment, &dir, result, started, args.json, "serve")
    }
}

/// Sets the seed of an experiment, whose file has numbers up to 2^63.
pub(super) fn seed(seed: u64) -> Result<Override, CliError> {
    let number = i64::try_from(seed)
        .map_err(|_| CliError::Usage(format!("`--seed {seed}`: expected a number below 2^63")))?;
    Ok(Override::new("seed", number.into()))
}

/// With central trust, updates without noise must not cross a network that others can see.
fn warn_of_open_lines(places: &Places) {
    let open = places.dial.iter().chain(&places.listen);
    for address in open.filter(|address| address.leaves_this_machine()) {
        eprintln!(
            "warning: {address}: updates have no noise of their own (central trust), and this line \
             is not encrypted: use it inside of a VPN only"
        );
    }
}

/// Rounds of the run that its ledger has charges for.
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

fn is_natural(config: &Config) -> bool {
    match &config.data.source {
        SourceConfig::Stored(stored) => stored.dealing == Dealing::Natural,
        SourceConfig::Synthetic(_) => false,
    }
}

fn fleet(error: impl Into<FleetError>) -> CliError {
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
        for text in ["", "30", "s", "-1s", "0s", "2h", "1e9s", "nans"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
