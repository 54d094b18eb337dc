//! `smolfed helper` and its arguments for keys, addresses, the minimum cohort and metrics: a helper
//! of a fleet with masked updates.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::CliError;
use super::operation::{LogArgs, address};
use smolfed_fleet::helper::serve_figures;
use smolfed_fleet::helper::server::Server;
use smolfed_fleet::helper::service::HelperService;
use smolfed_fleet::lock::lock;
use smolfed_fleet::transport::{Address, Listener, Options, TransportFiles, read_options};
use smolfed_fleet::watch::log::Log;
use smolfed_fleet::watch::{HttpServer, HttpSettings};

/// Run a helper of a fleet, which removes the masks from sums of updates but never sees an update.
///
/// With `privacy.trust` = "distributed", devices mask their updates. The coordinator adds up the
/// masked updates. The helper knows the masks, and answers once per round with their sum plus its
/// own noise. It must belong to a different party than the coordinator and run on another machine:
/// anyone with the files of both can read every update.
///
/// The helper refuses device lists that are too short or name non-participants. It also refuses a
/// second, different request in a round. FILE.ledger records its answers and must not be lost. The
/// helper runs until SIGTERM or Ctrl-C, and can be restarted at any time. See docs/masked.md.
#[derive(Debug, clap::Args)]
#[command(
    // A helper opens no connections.
    mut_arg("tls_ca", |arg| arg.hide(true)),
    mut_arg("mqtt_login", |arg| arg.hide(true)),
    after_help = "Examples:
  smolfed helper helper-0.toml --listen tcp:0.0.0.0:7100
  smolfed helper helper-0.toml --listen tls:0.0.0.0:7443 --tls-certificate fullchain.pem \\
      --tls-key privkey.pem --http 127.0.0.1:9100 --min-cohort 100
  smolfed helper fleet/helper-0.toml --listen unix:helper.sock"
)]
pub(super) struct Args {
    /// Keys of the helper, written by `smolfed provision`.
    #[arg(value_name = "FILE")]
    keys: PathBuf,
    /// Accept the coordinator's connection at this address, for example tcp:0.0.0.0:7100
    /// (repeatable).
    ///
    /// The address is tcp:HOST:PORT, tls:HOST:PORT or unix:PATH.
    #[arg(long, value_name = "ADDRESS", required = true)]
    listen: Vec<Address>,
    #[command(flatten)]
    files: TransportFiles,
    /// Require at least N devices in a sum, where N is at least the minimum in FILE.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    min_cohort: Option<u32>,
    /// Serve metrics at this address, for example 127.0.0.1:9100.
    ///
    /// The paths are /metrics, for Prometheus, and /healthz. The metrics do not name devices.
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    http: Option<SocketAddr>,
    /// Accept this additional host name in requests for metrics, behind a proxy (repeatable).
    #[arg(long = "http-name", value_name = "NAME", requires = "http")]
    http_names: Vec<String>,
    #[command(flatten)]
    log: LogArgs,
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), CliError> {
    if let Some(address) = args.listen.iter().find(|address| !address.is_reliable()) {
        return Err(CliError::Usage(format!(
            "`--listen {address}`: a helper listens at tcp:HOST:PORT, tls:HOST:PORT or unix:PATH"
        )));
    }
    let options = read_options(&args.files, &[], &args.listen);
    let options = options.map_err(|error| CliError::Usage(error.to_string()))?;
    let log = args.log.open()?;
    let http = args.http.map(|address| {
        HttpServer::bind(HttpSettings {
            address,
            names: args.http_names.clone(),
            token: None,
            is_public: true,
        })
    });
    let http = http.transpose()?;
    let runtime = Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CliError::Stopped(error.to_string()))?;
    runtime.block_on(async {
        let signals = Signals::handle()?;
        let listeners = args.listen.iter().map(|address| listen(address, &options));
        let listeners: Vec<_> = listeners.collect::<Result<_, _>>()?;
        let server = Server::new(HelperService::open(&args.keys, args.min_cohort)?);
        for (listener, address) in listeners.into_iter().zip(&args.listen) {
            let sentence = format!("waiting for the coordinator at {address}");
            tracing::info!(reason = "listening", %address, "{sentence}");
            tokio::spawn(Arc::clone(&server).accept(listener));
        }
        if let Some(http) = http {
            let address = http.address();
            tracing::info!(reason = "http", %address, "figures: http://{address}/metrics");
            tokio::spawn(serve_figures(http, Arc::clone(&server)));
        }
        signals.wait(&server, &log, &options).await;
        server.stop().await;
        Ok(())
    })
}

fn listen(address: &Address, options: &Options) -> Result<Box<dyn Listener>, CliError> {
    address.listen(options).map_err(|error| {
        CliError::Stopped(format!(
            "cannot listen at {address}: {error}; choose another address with `--listen`"
        ))
    })
}

/// The signals of a helper, from now on.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    fn handle() -> Result<Self, CliError> {
        let handle = |kind| {
            let failed = |error| CliError::Stopped(format!("cannot handle signals: {error}"));
            signal(kind).map_err(failed)
        };
        Ok(Self {
            terminate: handle(SignalKind::terminate())?,
            interrupt: handle(SignalKind::interrupt())?,
            hangup: handle(SignalKind::hangup())?,
        })
    }

    /// Waits until the helper is to stop. SIGHUP opens the log file again, and reads the
    /// certificate and the keys of devices again.
    async fn wait(mut self, server: &Server, log: &Log, options: &Options) {
        loop {
            let name = tokio::select! {
                _ = self.terminate.recv() => "SIGTERM",
                _ = self.interrupt.recv() => "SIGINT",
                _ = self.hangup.recv() => {
                    tokio::task::block_in_place(|| reload(server, log, options));
                    continue;
                }
            };
            tracing::info!(
                reason = "stop",
                signal = name,
                "{name}: the helper stops after sending any answer in progress"
            );
            return;
        }
    }
}

fn reload(server: &Server, log: &Log, options: &Options) {
    log.reopen();
    if let Err(error) = options.reload() {
        tracing::error!(
            reason = "certificate",
            "the certificate was not changed: {error}"
        );
    }
    let reloaded = lock(server.service()).reload();
    match reloaded {
        Ok(devices) => tracing::info!(
            reason = "reload",
            "SIGHUP: the log file was opened again, and the keys were read again: {devices} devices"
        ),
        Err(error) => tracing::error!(reason = "keys", "the keys were not changed: {error}"),
    }
}
