//! Options of `cargo xtask load`, the number of measured rounds, and the time limits.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

/// Measured rounds. Devices connect in an additional round before them.
const ROUNDS: u32 = 5;

/// Interval for sampling the processes.
pub(super) const INTERVAL: Duration = Duration::from_millis(20);

/// Time limits of a round and of the whole run.
const TIMEOUT: &str = "120s";
pub(super) const PATIENCE: Duration = Duration::from_secs(900);

/// Measurement settings.
#[derive(Clone)]
pub(super) struct Options {
    pub(super) devices: u32,
    /// The program, if it should not be built, to compare two versions.
    pub(super) smolfed: Option<PathBuf>,
    /// Address of the coordinator, if it is not a port of this machine.
    pub(super) address: Option<String>,
    pub(super) rounds: u32,
    /// Number of those devices that are suspended after the first round.
    pub(super) stalled: u32,
    /// Option of `serve`.
    pub(super) quorum: Option<String>,
    pub(super) timeout: String,
    /// Silent connections of strangers, and megabytes of garbage from others.
    pub(super) silent: u32,
    pub(super) garbage_mb: u32,
    /// Number of times to kill the coordinator.
    pub(super) kills: u32,
    pub(super) is_memory: bool,
    /// Whether the devices use X25519 handshakes.
    pub(super) has_x25519: bool,
    /// Whether the devices connect over TLS.
    pub(super) has_tls: bool,
    pub(super) is_json: bool,
}

const USAGE: &str = "cargo xtask load [--devices N] [--address ADDRESS] [--rounds N] [--stalled N] \
                     [--quorum SHARE] [--timeout 120s] [--silent N] [--garbage MB] [--kills N] \
                     [--x25519] [--tls] [--memory] [--smolfed PATH] [--json]";

impl Options {
    pub(super) fn read(arguments: &[&str]) -> Result<Self, Box<dyn Error>> {
        let mut options = Self {
            devices: 1_000,
            smolfed: None,
            address: None,
            rounds: ROUNDS,
            stalled: 0,
            quorum: None,
            timeout: TIMEOUT.to_owned(),
            silent: 0,
            garbage_mb: 0,
            kills: 0,
            is_memory: false,
            has_x25519: false,
            has_tls: false,
            is_json: false,
        };
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            match *word {
                "--devices" => options.devices = number(words.next())?,
                "--smolfed" => options.smolfed = Some(words.next().ok_or(USAGE)?.into()),
                "--address" => options.address = Some((*words.next().ok_or(USAGE)?).to_owned()),
                "--rounds" => options.rounds = number(words.next())?,
                "--stalled" => options.stalled = number(words.next())?,
                "--silent" => options.silent = number(words.next())?,
                "--garbage" => options.garbage_mb = number(words.next())?,
                "--kills" => options.kills = number(words.next())?,
                "--quorum" => options.quorum = Some((*words.next().ok_or(USAGE)?).to_owned()),
                "--timeout" => options.timeout = (*words.next().ok_or(USAGE)?).to_owned(),
                "--memory" => options.is_memory = true,
                "--x25519" => options.has_x25519 = true,
                "--tls" => options.has_tls = true,
                "--json" => options.is_json = true,
                other => return Err(format!("{other}: {USAGE}").into()),
            }
        }
        if options.stalled >= options.devices {
            return Err("fewer devices than all of them can stall".into());
        }
        if options.has_tls && options.address.is_some() {
            return Err("TLS is measured at a port of this machine: leave `--address` out".into());
        }
        let has_strangers = options.silent > 0 || options.garbage_mb > 0;
        if has_strangers && options.address.is_some() {
            return Err(
                "strangers connect to a port of this machine: leave `--address` out".into(),
            );
        }
        Ok(options)
    }

    /// Returns the cargo feature that the program needs.
    pub(super) fn feature(&self) -> Option<&'static str> {
        let is_mqtt = |address: &String| address.starts_with("mqtt");
        match self.address.as_ref().is_some_and(is_mqtt) {
            true => Some("mqtt"),
            false => self.has_tls.then_some("tls"),
        }
    }

    /// Returns the rounds of the run, including the round in which devices connect.
    pub(super) const fn all_rounds(&self) -> u32 {
        self.rounds + 1
    }

    /// Returns the experiment, with all devices in each round. A quorum needs a uniformly drawn
    /// cohort, here all devices.
    pub(super) fn experiment(&self) -> String {
        let devices = self.devices;
        let cohort = match self.quorum {
            Some(_) => format!("sampling = \"uniform\"\ncohort_size = {devices}"),
            None => "sampling = \"full\"".to_owned(),
        };
        experiment(devices, self.all_rounds(), &cohort)
    }
}

fn number(word: Option<&&str>) -> Result<u32, Box<dyn Error>> {
    let number = word.and_then(|word| word.parse().ok());
    let number = number.filter(|number| *number > 0);
    Ok(number.ok_or(USAGE)?)
}

/// Returns an experiment of 650 parameters, with updates of 20 bits each. Steps do not shrink, so a
/// run may have any number of rounds.
pub(super) fn experiment(devices: u32, rounds: u32, cohort: &str) -> String {
    format!(
        "name = \"load\"\nmethod = \"dp-fed\"\nrounds = {rounds}\n[data]\nsource = \"synthetic\"\n\
         kind = \"tasks\"\ndevices = {devices}\nfeatures = 64\nclasses = 10\n\
         samples_per_device = 2\ntest = 200\n[cohort]\n{cohort}\n[train]\nepochs = 1\n\
         learning_rate_decay = 1.0\n[privacy]\nnoise_multiplier = 1.0\nclip_norm = 0.3\n"
    )
}
