//! The arguments of `smolfed serve`.

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
  smolfed serve --keys fleet/keys.toml --listen unix:fleet.sock --simulated 50 --timeout 10s
  smolfed serve experiment.toml --keys fleet/keys.toml --listen tcp:0.0.0.0:7000 \\
      --over-select 0.25
  smolfed serve experiment.toml --keys fleet/keys.toml --listen tcp:0.0.0.0:7000 \\
      --helper tcp:helper.example.com:7100
  smolfed serve experiment.toml --keys fleet/keys.toml --device serial:/dev/ttyACM0@4800 \\
      --link slow --round-interval 2m
  smolfed serve --resume runs/digits-1700000000")]
pub(in crate::cli) struct Args {
    /// The experiment, a TOML file; by default the built-in one.
    pub(super) file: Option<PathBuf>,
    /// The keys of the fleet, written by `smolfed provision`.
    #[arg(long, value_name = "FILE", required_unless_present = "resume")]
    pub(super) keys: Option<PathBuf>,
    /// The file whose first line is the passphrase of encrypted keys. By default the one that
    /// SMOLFED_KEYS_PASSPHRASE_FILE names, or the systemd credential smolfed-keys-passphrase, or
    /// the terminal.
    #[arg(long, value_name = "FILE")]
    pub(super) passphrase_file: Option<PathBuf>,
    /// Connect to a device: serial:PATH[@BAUD], tcp:HOST:PORT, tls:HOST:PORT, unix:PATH, or in
    /// packets of SIZE bytes udp:HOST:PORT[/SIZE]; repeatable.
    #[arg(long = "device", value_name = "ADDRESS")]
    pub(super) devices: Vec<Address>,
    /// Accept connections from devices: tcp:HOST:PORT, tls:HOST:PORT, unix:PATH, in packets
    /// udp:HOST:PORT[/SIZE], or by way of a broker mqtt:HOST:PORT[/PREFIX]; repeatable.
    #[arg(long, value_name = "ADDRESS")]
    pub(super) listen: Vec<Address>,
    #[command(flatten)]
    pub(super) files: TransportFiles,
    /// Where a helper is: tcp:HOST:PORT, tls:HOST:PORT or unix:PATH; repeatable, in the order of
    /// the helpers' numbers. With `privacy.trust` = "distributed" each helper must be given.
    #[arg(long = "helper", value_name = "ADDRESS")]
    pub(super) helpers: Vec<Address>,
    /// What happens while a helper cannot be reached: no round begins until it can, or the run
    /// stops and can be resumed [default: wait].
    #[arg(long, value_name = "WHAT", value_enum)]
    pub(super) helper_missing: Option<WhenMissing>,
    /// Number of simulated devices alongside the real ones; sets data.devices.
    #[arg(long, value_name = "N", conflicts_with = "resume")]
    pub(super) simulated: Option<u32>,
    /// Time for a device to complete its part in a round, like 30s, 500ms or 2m [default: 30s, or
    /// as `--link` says].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(super) timeout: Option<Duration>,
    #[command(flatten)]
    pub(super) link: LinkArgs,
    /// The shortest time from the beginning of a round to that of the next one, so that a device
    /// that restarts misses none. Not with windows, which have their own times [default: rounds
    /// follow each other at once].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(super) round_interval: Option<Duration>,
    /// Devices without which no round begins: those that are connected, or were within
    /// `--away-after`. Devices whose key was revoked do not count. Cohorts are drawn from all
    /// devices all the same [default: half of the devices with keys in an expected cohort].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) min_devices: Option<u32>,
    /// How long a device counts towards `--min-devices` after it has disconnected. For devices that
    /// sleep, give the time between two wakings [default: the time-out].
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(super) away_after: Option<Duration>,
    /// How long the run waits without any connected device before it ends, and can be resumed
    /// [default: 1h].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(super) give_up_after: Option<Duration>,
    /// Connections that are accepted at most; by default 1024 more than there are devices. When all
    /// are taken, one without a session gives way to each new one.
    #[arg(long, value_name = "N")]
    pub(super) max_connections: Option<usize>,
    /// Devices that receive the model at the same time; the others wait for their turn.
    #[arg(long, value_name = "N", default_value_t = 256)]
    pub(super) in_flight: usize,
    /// End a round when this share of its cohort has answered, for example 0.8. Only where the
    /// accounting covers it: with uniform sampling, or under local trust.
    #[arg(long, value_name = "SHARE", conflicts_with = "resume")]
    pub(super) quorum: Option<Share>,
    /// Draw so many devices more than `cohort.cohort_size`, as a share of it, for example 0.25, and
    /// end a round with the first cohort_size updates, by whose number the sum is divided. Epsilon
    /// counts all devices that are drawn. Only with uniform sampling.
    #[arg(long, value_name = "SHARE", conflicts_with_all = ["quorum", "resume"])]
    pub(super) over_select: Option<OverSelection>,
    /// Rounds without an answer after which a device is no longer invited, until `smolfed keys
    /// readmit`; 0 for never. An answered round makes up for one of them. One that sends
    /// what no honest device sends is put into quarantine at once.
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(super) strikes: u32,
    /// Refuse devices that greet without an X25519 handshake, which `smolfed device --x25519` and
    /// firmware with the feature x25519 begin. Then nobody who records the connections now and gets
    /// the keys later can decrypt anything. Without the option both kinds take part. Resuming keeps
    /// it.
    #[arg(long)]
    pub(super) require_x25519: bool,
    /// Set a key of the experiment; repeatable.
    #[arg(long = "set", value_name = "KEY=VALUE", conflicts_with = "resume")]
    pub(super) overrides: Vec<Override>,
    /// The run directory to write; by default runs/<name>-<time>.
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    pub(super) out: Option<PathBuf>,
    /// Make the coordinator's randomness reproducible. For tests and demonstrations only: whoever
    /// knows the seed can subtract the noise.
    #[arg(long, value_name = "N", conflicts_with = "resume")]
    pub(super) seed: Option<u64>,
    /// Threads for simulated devices; by default one per core.
    #[arg(long, value_name = "N")]
    pub(super) threads: Option<NonZeroUsize>,
    /// Print exactly one JSON document to standard output.
    #[arg(long)]
    pub(super) json: bool,
    /// Continue an interrupted run. A round that had begun is not repeated.
    #[arg(long, value_name = "DIR", conflicts_with = "file")]
    pub(super) resume: Option<PathBuf>,
    #[command(flatten)]
    pub(super) operation: Operation,
}
