//! The setup of a coordinator: a new run from the arguments, or a resumed run from its directory.

use std::path::Path;
use std::time::Duration;

use super::args::{FleetArgs, TrainingArgs};
use crate::cli::CliError;
use crate::cli::link::check_timeout;
use smolfed_data::DataFolders;
use smolfed_data::config::SourceConfig;
use smolfed_data::partition::Dealing;
use smolfed_engine::config::{Config, Override};
use smolfed_engine::run::directory::RunDir;
use smolfed_fleet::coordinator::{Endpoints, FleetError};
use smolfed_fleet::fleet_file::FleetFile;
use smolfed_fleet::helpers::HelperSettings;
use smolfed_fleet::keys::FleetKeys;
use smolfed_fleet::keys::passphrase::PassphraseSource;
use smolfed_fleet::link::Link;
use smolfed_fleet::presence::check_min_devices;
use smolfed_fleet::quorum::Share;
use smolfed_fleet::source::terms::ServeError;
use smolfed_fleet::transport::{Address, Options, TransportFiles, read_options};
use smolfed_release::entropy::secret;
use smolfed_release::origin::Origin;

/// Reads the configuration of an experiment, with these overrides.
pub(in crate::cli) type ReadConfig<'a> = &'a dyn Fn(&[Override]) -> Result<Config, CliError>;

/// A new or resumed run before it starts.
pub(in crate::cli) struct Setup {
    pub(super) config: Config,
    pub(super) folders: DataFolders,
    pub(super) keys: FleetKeys,
    /// Where the helpers are, by number.
    pub(super) helpers: Vec<Address>,
    pub(super) endpoints: Endpoints,
    pub(super) file: FleetFile,
    pub(super) resumed: Option<RunDir>,
}

impl Setup {
    /// Returns a new run of the experiment that `read` reads, with the data sets of `folders`.
    pub(in crate::cli) fn new(
        args: &FleetArgs,
        training: &TrainingArgs,
        read: ReadConfig<'_>,
        folders: DataFolders,
    ) -> Result<Self, CliError> {
        let path = args.keys.as_deref().unwrap_or(Path::new("keys.toml"));
        let keys = open_keys(path, args)?;
        let real = keys.members().len();
        let mut overrides: Vec<Override> = args.seed.map(seed).transpose()?.into_iter().collect();
        let mut config = read(&overrides)?;
        // The data determine the number of natural devices.
        if let Some(simulated) = args.simulated.filter(|_| !is_natural(&config)) {
            let devices = i64::from(simulated).saturating_add(real as i64);
            overrides.push(Override::new("data.devices", devices.into()));
            config = read(&overrides)?;
        }
        let updates = over_selected(args, training, &mut config, real)?;
        let random = secret().map_err(fleet_error)?;
        let texts = |addresses: &[Address]| addresses.iter().map(Address::to_string).collect();
        let timeout = args.timeout.unwrap_or(args.link.round_timeout());
        let link = args.link.or(Link::default());
        check_timeout(timeout, &link)?;
        let file = FleetFile {
            id: hex::encode(random.get(..8).unwrap_or_default()),
            seed: args.seed,
            first_number: keys.next_round(),
            keys: std::path::absolute(path)?,
            simulated: args.simulated.unwrap_or(0),
            timeout_ms: timeout.as_millis() as u64,
            min_devices: args.min_devices,
            away_after_ms: millis(args.away_after),
            give_up_after_ms: millis(args.give_up_after),
            quorum: training.quorum.map(Share::get),
            updates,
            require_x25519: args.require_x25519,
            devices: texts(&args.devices),
            listen: texts(&args.listen),
            helpers: texts(&training.helpers),
            helper_missing: training.helper_missing.unwrap_or_default(),
            round_interval_ms: millis(training.round_interval),
            link,
            files: args.files.absolute()?,
        };
        let options = options(&args.files, &args.devices, &training.helpers, &args.listen)?;
        check_addresses(&args.devices, &args.listen)?;
        Ok(Self {
            config,
            folders,
            helpers: training.helpers.clone(),
            keys,
            endpoints: Endpoints {
                dial: args.devices.clone(),
                listen: args.listen.clone(),
                options,
                timeout,
                link,
                round_interval: training.round_interval.unwrap_or_default(),
                max_connections: args.max_connections,
                in_flight: args.in_flight,
                strikes: args.strikes,
                requires_x25519: args.require_x25519,
            },
            file,
            resumed: None,
        })
    }

    pub(super) fn resumed(
        args: &FleetArgs,
        training: &TrainingArgs,
        path: &Path,
    ) -> Result<Self, CliError> {
        let dir = RunDir::resume(path)?;
        let file: FleetFile = dir.fleet()?.ok_or_else(|| {
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
        let helpers = known(
            !training.helpers.is_empty(),
            &training.helpers,
            &file.helpers,
        )?;
        // The files of the first call belong to its addresses.
        let files = match is_given {
            true => args.files.clone(),
            false => args.files.clone().or(&file.files),
        };
        check_addresses(&dial, &listen)?;
        let stored = Duration::from_millis(file.timeout_ms);
        let timeout = args.timeout.unwrap_or(stored);
        let link = args.link.or(file.link);
        check_timeout(timeout, &link)?;
        let round_interval_ms = millis(training.round_interval).or(file.round_interval_ms);
        Ok(Self {
            config: dir.config()?,
            folders: DataFolders::of_experiment(Some(&path.join("config.toml"))),
            keys,
            endpoints: Endpoints {
                options: options(&files, &dial, &helpers, &listen)?,
                dial,
                listen,
                timeout,
                link,
                round_interval: Duration::from_millis(round_interval_ms.unwrap_or(0)),
                max_connections: args.max_connections,
                in_flight: args.in_flight,
                strikes: args.strikes,
                // What was promised of a run holds to its end.
                requires_x25519: args.require_x25519 || file.require_x25519,
            },
            file: FleetFile {
                helper_missing: training.helper_missing.unwrap_or(file.helper_missing),
                min_devices: args.min_devices.or(file.min_devices),
                away_after_ms: millis(args.away_after).or(file.away_after_ms),
                give_up_after_ms: millis(args.give_up_after).or(file.give_up_after_ms),
                round_interval_ms,
                link,
                ..file
            },
            helpers,
            resumed: Some(dir),
        })
    }

    /// How the helpers are asked, if there are any.
    pub(super) fn helper_settings(&self) -> HelperSettings {
        HelperSettings {
            addresses: self.helpers.clone(),
            options: self.endpoints.options.clone(),
            missing: self.file.helper_missing,
            timeout: self.endpoints.timeout,
            keys: self.keys.path().to_owned(),
            strikes: self.endpoints.strikes,
        }
    }

    pub(super) fn origin(&self) -> Origin {
        Origin::Fleet {
            id: self.file.id.clone(),
            seed: self.file.seed,
            device_seed: self.keys.device_seed(),
            simulated: self.file.simulated,
            has_quorum: self.file.quorum().is_some(),
        }
    }
}

fn millis(time: Option<Duration>) -> Option<u64> {
    time.map(|time| time.as_millis() as u64)
}

/// Draws more devices where this is requested, with `real` real devices among them. Returns the
/// number of updates that then end a round.
fn over_selected(
    args: &FleetArgs,
    training: &TrainingArgs,
    config: &mut Config,
    real: usize,
) -> Result<Option<u32>, CliError> {
    let Some(over) = training.over_select else {
        return Ok(None);
    };
    let real = u32::try_from(real).unwrap_or(u32::MAX);
    let devices = real.saturating_add(args.simulated.unwrap_or(0));
    let updates = over.apply(config, devices).map_err(ServeError::from)?;
    Ok(Some(updates))
}

fn check_addresses(dial: &[Address], listen: &[Address]) -> Result<(), CliError> {
    match dial.is_empty() && listen.is_empty() {
        true => Err(CliError::Usage(
            "no device can connect: give `--device ADDRESS` or `--listen ADDRESS`".to_owned(),
        )),
        false => Ok(()),
    }
}

/// Reads the files that connections need: whatever is wrong with them, they were given.
fn options(
    files: &TransportFiles,
    dial: &[Address],
    helpers: &[Address],
    listen: &[Address],
) -> Result<Options, CliError> {
    if let Some(address) = helpers.iter().find(|address| !address.is_reliable()) {
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

fn open_keys(path: &Path, args: &FleetArgs) -> Result<FleetKeys, CliError> {
    let passphrase = PassphraseSource::find(args.passphrase_file.as_deref());
    let keys = FleetKeys::open(path, passphrase).map_err(fleet_error)?;
    if keys.infer_only() {
        return Err(CliError::Usage(format!(
            "{}: these devices only infer: `smolfed deliver` sends them models",
            path.display()
        )));
    }
    // A resumed run keeps its number, which applies to the keys that remain.
    let devices = u32::try_from(keys.keys().len()).unwrap_or(u32::MAX);
    let given = args
        .min_devices
        .map(|given| check_min_devices(given, devices));
    given.transpose().map_err(ServeError::from)?;
    Ok(keys)
}

fn is_natural(config: &Config) -> bool {
    match &config.data.source {
        SourceConfig::Stored(stored) => stored.dealing == Dealing::Natural,
        SourceConfig::Synthetic(_) => false,
    }
}

/// Sets the seed of an experiment. Integers of TOML are below 2^63.
pub(in crate::cli) fn seed(seed: u64) -> Result<Override, CliError> {
    let number = i64::try_from(seed)
        .map_err(|_| CliError::Usage(format!("`--seed {seed}`: expected a number below 2^63")))?;
    Ok(Override::new("seed", number.into()))
}

pub(super) fn fleet_error(error: impl Into<FleetError>) -> CliError {
    ServeError::Fleet(error.into()).into()
}
