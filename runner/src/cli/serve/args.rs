//! The arguments of `smolfed serve`: keys, addresses, time-out, minimum number of devices, quorum,
//! helpers, and those that a resumed run keeps.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use crate::cli::link::LinkArgs;
use crate::cli::operation::{Operation, duration, time};
use smolfed_engine::config::Override;
use smolfed_fleet::helpers::WhenMissing;
use smolfed_fleet::quorum::Share;
use smolfed_fleet::source::over_selection::OverSelection;
use smolfed_fleet::transport::{Address, TransportFiles};

/// Options of a new run, which a resumed one keeps.
const OF_A_NEW_RUN: [&str; 7] = [
    "file",
    "simulated",
    "quorum",
    "over_select",
    "overrides",
    "out",
    "seed",
];

/// A new run needs keys, and a resumed one knows them.
fn keys_or_resume() -> clap::ArgGroup {
    let group = clap::ArgGroup::new("fleet").args(["keys", "resume"]);
    group.required(true).multiple(true)
}

/// Train one experiment with real devices, optionally alongside simulated ones.
///
/// The keys file names the real devices, and their data never leave them. The coordinator connects
/// to the addresses of `--device` and accepts connections at the addresses of `--listen`. Devices
/// identify themselves. If a device is late, fails or sends an invalid update, only its own update
/// is lost: it counts as zero, and neither the denominator nor the accounting changes. Randomness
/// comes from the operating system and is not stored. See docs/fleet.md.
#[derive(Debug, clap::Args)]
#[command(group = keys_or_resume(), after_help = "Examples:
  smolfed provision experiment.toml --devices 0..4 --out fleet
  smolfed serve experiment.toml --keys fleet/keys.toml --device serial:/dev/ttyACM0 \\
      --device serial:/dev/ttyACM1 --listen tcp:0.0.0.0:7000
  smolfed serve experiment.toml --keys fleet/keys.toml --listen tls:0.0.0.0:7443 \\
      --tls-certificate fullchain.pem --tls-key privkey.pem
  smolfed serve experiment.toml --keys fleet/keys.toml \\
      --listen mqtt:broker.example.org:1883/greenhouse --require-x25519
  smolfed serve --keys fleet/keys.toml --listen unix:fleet.sock --simulated 50 --timeout 10s
  smolfed serve experiment.toml --keys fleet/keys.toml --listen tcp:0.0.0.0:7000 \\
      --over-select 0.25
  smolfed serve experiment.toml --keys fleet/keys.toml --listen tcp:0.0.0.0:7000 \\
      --helper tcp:helper.example.com:7100
  smolfed serve experiment.toml --keys fleet/keys.toml --device serial:/dev/ttyACM0@4800 \\
      --link slow --round-interval 2m
  smolfed serve --resume runs/digits-1700000000")]
pub(in crate::cli) struct Args {
    /// Experiment, a TOML file [default: the built-in experiment].
    pub(super) file: Option<PathBuf>,
    #[command(flatten)]
    pub(super) fleet: FleetArgs,
    #[command(flatten)]
    pub(super) training: TrainingArgs,
    /// Set a key of the experiment (repeatable).
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(super) overrides: Vec<Override>,
    /// Write the run to this directory [default: runs/<name>-<time>].
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Use N threads for simulated devices [default: one per core].
    #[arg(long, value_name = "N")]
    pub(super) threads: Option<NonZeroUsize>,
    /// Print exactly one JSON document to standard output.
    #[arg(long)]
    pub(super) json: bool,
    /// Continue an interrupted run.
    ///
    /// A round that had begun is not repeated.
    #[arg(long, value_name = "DIR", conflicts_with_all = OF_A_NEW_RUN)]
    pub(super) resume: Option<PathBuf>,
}

/// The fleet, and the coordinator's connections to it.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct FleetArgs {
    /// Read the fleet's keys from this file, written by `smolfed provision`.
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) keys: Option<PathBuf>,
    /// Read the passphrase of encrypted keys from the first line of this file.
    ///
    /// By default, the passphrase comes from the file named by SMOLFED_KEYS_PASSPHRASE_FILE, from
    /// the systemd credential smolfed-keys-passphrase, or from the terminal.
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) passphrase_file: Option<PathBuf>,
    /// Connect to a device at this address, for example serial:/dev/ttyACM0 (repeatable).
    ///
    /// The address is serial:PATH[@BAUD], tcp:HOST:PORT, tls:HOST:PORT, unix:PATH, or
    /// udp:HOST:PORT[/SIZE] in packets of SIZE bytes.
    #[arg(long = "device", value_name = "ADDRESS")]
    pub(in crate::cli) devices: Vec<Address>,
    /// Accept connections from devices at this address, for example tcp:0.0.0.0:7000 (repeatable).
    ///
    /// The address is tcp:HOST:PORT, tls:HOST:PORT, unix:PATH, udp:HOST:PORT[/SIZE] in packets of
    /// SIZE bytes, or mqtt:HOST:PORT[/PREFIX] on a broker.
    #[arg(long, value_name = "ADDRESS")]
    pub(in crate::cli) listen: Vec<Address>,
    #[command(flatten)]
    pub(in crate::cli) files: TransportFiles,
    /// Simulate N devices alongside the real ones.
    ///
    /// It also sets data.devices to N plus the number of real devices.
    #[arg(long, value_name = "N")]
    pub(in crate::cli) simulated: Option<u32>,
    /// Wait at most this long for a device to complete its part in a round, for example 30s, 500ms
    /// or 2m.
    ///
    /// The default depends on `--link`: 30s, 5m or 1h.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(in crate::cli) timeout: Option<Duration>,
    #[command(flatten)]
    pub(in crate::cli) link: LinkArgs,
    /// Begin a round only if at least N devices are connected.
    ///
    /// Devices that were connected within `--away-after` count as well. Devices with a revoked key
    /// do not count. Cohorts are still drawn from all devices. The default is half the expected
    /// number of devices with keys in a cohort.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(in crate::cli) min_devices: Option<u32>,
    /// Count a disconnected device towards `--min-devices` for this long [default: the time-out].
    ///
    /// For devices that sleep, give the time between two wakes. The default is at most
    /// `--give-up-after`.
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(in crate::cli) away_after: Option<Duration>,
    /// End the run after this time without any connected device [default: 1h].
    ///
    /// The run can be resumed.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(in crate::cli) give_up_after: Option<Duration>,
    /// Accept at most N connections [default: 1024 more than there are devices].
    ///
    /// When all are taken, each new connection replaces one without a session.
    #[arg(long, value_name = "N")]
    pub(in crate::cli) max_connections: Option<usize>,
    /// Send the model to at most N devices at the same time.
    ///
    /// The others wait for their turn.
    #[arg(long, value_name = "N", default_value_t = 256)]
    pub(in crate::cli) in_flight: usize,
    /// Quarantine a device after N strikes, or never if N is 0.
    ///
    /// A device gets a strike if it sends a malformed message, or if it is connected for a whole
    /// round and does not answer. An answered or declined round cancels one. Unless N is 0, a
    /// message that no honest device sends, such as an update above its bound, quarantines a device
    /// immediately. `smolfed keys readmit` ends the quarantine.
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(in crate::cli) strikes: u32,
    /// Refuse devices that greet without an X25519 handshake.
    ///
    /// `smolfed device --x25519` and firmware with the feature x25519 begin the handshake. Then
    /// nobody who records the connections and later obtains the keys can decrypt the recording.
    /// Without the flag, both kinds of devices take part. A resumed run keeps the setting.
    #[arg(long)]
    pub(in crate::cli) require_x25519: bool,
    /// Make the coordinator's randomness reproducible.
    ///
    /// For tests and demonstrations only: anyone who knows the seed can subtract the noise.
    #[arg(long, value_name = "N")]
    pub(in crate::cli) seed: Option<u64>,
    #[command(flatten)]
    pub(in crate::cli) operation: Operation,
}

/// Options of rounds in which devices train.
#[derive(Debug, Default, clap::Args)]
pub(in crate::cli) struct TrainingArgs {
    /// Connect to a helper at this address, for example tcp:helper.example.com:7100 (repeatable).
    ///
    /// The address is tcp:HOST:PORT, tls:HOST:PORT or unix:PATH. Give the addresses in the order of
    /// the helpers' numbers. With `privacy.trust` = "distributed", every helper needs an
    /// address.
    #[arg(long = "helper", value_name = "ADDRESS")]
    pub(super) helpers: Vec<Address>,
    /// Choose how to react to an unreachable helper [default: wait].
    ///
    /// With wait, no round begins until the helper can be reached. With stop, the run stops and can
    /// be resumed.
    #[arg(long, value_name = "WHAT", value_enum)]
    pub(super) helper_missing: Option<WhenMissing>,
    /// Wait at least this long between the beginnings of two rounds, for example 2m.
    ///
    /// If devices restart after each round, set it to more than a round and a restart take
    /// together. The interval does not apply to time windows, which set their own. By default, the
    /// next round begins as soon as one ends.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(super) round_interval: Option<Duration>,
    /// End a round when this share of its cohort has answered, for example 0.8.
    ///
    /// It is available only if the accounting covers it: with uniform sampling, or under local
    /// trust.
    #[arg(long, value_name = "SHARE")]
    pub(super) quorum: Option<Share>,
    /// Over-select devices by this share of `cohort.cohort_size`, for example 0.25.
    ///
    /// A round ends with the first cohort_size updates, and their sum is divided by cohort_size.
    /// Epsilon counts all devices that are drawn. It is available only with uniform sampling.
    #[arg(long, value_name = "SHARE", conflicts_with = "quorum")]
    pub(super) over_select: Option<OverSelection>,
}
