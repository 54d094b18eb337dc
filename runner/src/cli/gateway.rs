//! `smolfed gateway`: boards behind a machine that reaches the coordinator in their place.

use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::runtime::Builder;
use tokio::time::sleep;

use super::CliError;
use super::session::stop_on_ctrl_c;
use smolfed_fleet::gateway::Gateway;
use smolfed_fleet::transport::{Address, TransportFiles, read_options};

/// How often the command looks whether it is to end.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Carry bytes between boards and a coordinator that they cannot reach directly.
///
/// The boards are usually on serial lines of this machine, and the coordinator is reached over a
/// network or through a broker. The gateway has no keys and need not be trusted, because each board
/// and the coordinator encrypt and authenticate everything after the greeting. Each board has its
/// own connection, and the gateway reopens broken connections. It runs until Ctrl-C. See
/// docs/connections.md.
#[derive(Debug, clap::Args)]
#[command(
    // A gateway accepts no connections.
    mut_arg("tls_certificate", |arg| arg.hide(true)),
    mut_arg("tls_key", |arg| arg.hide(true)),
    after_help = "Examples:
  smolfed gateway --to mqtt:broker.example.org:1883/greenhouse \\
      --device serial:/dev/ttyACM0 --device serial:/dev/ttyACM1
  smolfed gateway --to tls:fleet.example.org:7443 --device serial:/dev/ttyUSB0@9600"
)]
pub(super) struct Args {
    /// Connect to the coordinator at this address, for example tls:fleet.example.org:7443.
    ///
    /// The address is mqtt:HOST:PORT[/PREFIX], tcp:HOST:PORT, tls:HOST:PORT, udp:HOST:PORT[/SIZE]
    /// or unix:PATH.
    #[arg(long, value_name = "ADDRESS")]
    to: Address,
    /// Connect to a board at this address, for example serial:/dev/ttyACM0 (repeatable).
    ///
    /// The address is serial:PATH[@BAUD], tcp:HOST:PORT, tls:HOST:PORT, udp:HOST:PORT[/SIZE] or
    /// unix:PATH. A serial line runs at 115200 baud by default.
    #[arg(long = "device", value_name = "ADDRESS", required = true)]
    devices: Vec<Address>,
    #[command(flatten)]
    files: TransportFiles,
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), CliError> {
    if let Some(address) = args.devices.iter().find(|address| address.has_broker()) {
        return Err(CliError::Usage(format!(
            "`--device {address}`: boards do not connect to brokers; the coordinator is there: \
             `--to {address}`"
        )));
    }
    let mut dial = args.devices.clone();
    dial.push(args.to.clone());
    let options = read_options(&args.files, &dial, &[]);
    let options = options.map_err(|error| CliError::Usage(error.to_string()))?;
    let gateways: Vec<Gateway<'_>> = args
        .devices
        .iter()
        .map(|board| Gateway {
            board,
            coordinator: &args.to,
            options: &options,
        })
        .collect();
    let asked = stop_on_ctrl_c()?;
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CliError::Stopped(error.to_string()))?;
    runtime.block_on(async {
        let report = |sentence| eprintln!("{sentence}");
        let stopped = async {
            while !asked.load(Ordering::Relaxed) {
                sleep(POLL_INTERVAL).await;
            }
        };
        tokio::select! {
            () = stopped => {}
            _ = join_all(gateways.iter().map(|gateway| gateway.carry(&report))) => {}
        }
    });
    Ok(())
}
