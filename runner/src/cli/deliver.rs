//! `smolfed deliver` and its arguments: published models are sent to devices that only infer,
//! within a limit on open connections.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::CliError;
use super::operation::{LogArgs, address};
use smolfed_fleet::delivery::serve_figures;
use smolfed_fleet::delivery::service::DeliveryService;
use smolfed_fleet::keys::FleetKeys;
use smolfed_fleet::keys::passphrase::PassphraseSource;
use smolfed_fleet::link::Preset;
use smolfed_fleet::transport::{Address, Listener, Options, TransportFiles, read_options};
use smolfed_fleet::watch::log::Log;
use smolfed_fleet::watch::{HttpServer, HttpSettings};

/// Open files besides connections.
const OTHER_FILES: u64 = 128;

/// How long connections get to end.
const GRACE: Duration = Duration::from_millis(200);

/// Send the published models to devices that only infer.
///
/// Each device, provisioned with `smolfed provision --infer`, gets its assigned version and resumes
/// after a lost connection. The service picks up folder changes within a second, needs no publisher
/// secret, and stores nothing. It runs until SIGTERM or Ctrl-C. See docs/delivery.md.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  smolfed deliver --keys shop/keys.toml --listen tcp:0.0.0.0:7200
  smolfed deliver --keys shop/keys.toml --models shop/models --listen tls:0.0.0.0:7443 \\
      --tls-certificate fullchain.pem --tls-key privkey.pem --http 127.0.0.1:8080
  smolfed deliver --keys shop/keys.toml --device serial:/dev/ttyACM0")]
pub(super) struct Args {
    /// Read the keys of the devices from this file, written by `smolfed provision --infer`.
    #[arg(long, value_name = "FILE")]
    keys: PathBuf,
    /// Read the passphrase of encrypted keys from the first line of this file.
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
    /// Deliver the models in this folder.
    #[arg(long, value_name = "DIR", default_value = "models")]
    models: PathBuf,
    /// Connect to a device at this address, for example serial:/dev/ttyACM0 (repeatable).
    ///
    /// The address is serial:PATH[@BAUD], tcp:HOST:PORT, tls:HOST:PORT, udp:HOST:PORT[/SIZE] or
    /// unix:PATH.
    #[arg(long = "device", value_name = "ADDRESS")]
    devices: Vec<Address>,
    /// Accept connections from devices at this address, for example tcp:0.0.0.0:7200 (repeatable).
    ///
    /// The address is tcp:HOST:PORT, tls:HOST:PORT, udp:HOST:PORT[/SIZE], unix:PATH or
    /// mqtt:HOST:PORT[/PREFIX].
    #[arg(long, value_name = "ADDRESS")]
    listen: Vec<Address>,
    #[command(flatten)]
    files: TransportFiles,
    /// Set the speed of the links to devices.
    #[arg(long, value_name = "KIND", value_enum, default_value_t)]
    link: Preset,
    /// Accept at most N connections [default: 1024 more than there are devices].
    #[arg(long, value_name = "N")]
    max_connections: Option<NonZeroUsize>,
    /// Serve a page of versions and their device counts at this address, for example
    /// 127.0.0.1:8080.
    ///
    /// The paths are /, /models.json, /metrics for Prometheus, and /healthz. They name no device.
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    http: Option<SocketAddr>,
    /// Accept this additional host name in requests for the page, behind a proxy (repeatable).
    #[arg(long = "http-name", value_name = "NAME", requires = "http")]
    http_names: Vec<String>,
    #[command(flatten)]
    log: LogArgs,
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), CliError> {
    if args.devices.is_empty() && args.listen.is_empty() {
        return Err(CliError::Usage(
            "no device can connect: give `--device ADDRESS` or `--listen ADDRESS`".to_owned(),
        ));
    }
    if let Some(address) = args.devices.iter().find(|address| address.has_broker()) {
        return Err(CliError::Usage(format!(
            "`--device {address}`: the service listens at brokers: `--listen {address}`"
        )));
    }
    let options = read_options(&args.files, &args.devices, &args.listen);
    let options = options.map_err(|error| CliError::Usage(error.to_string()))?;
    let passphrase = PassphraseSource::find(args.passphrase_file.as_deref());
    let mut keys = FleetKeys::open(&args.keys, passphrase)?;
    if !keys.infer_only() {
        return Err(CliError::Usage(format!(
            "{}: these devices train, and `smolfed serve` works with them; `smolfed provision \
             --infer` provisions devices that only infer",
            args.keys.display()
        )));
    }
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
    let connections = args.max_connections;
    let connections = connections.map_or(keys.keys().len() + 1024, NonZeroUsize::get);
    // Without an answer of the system, the refused connections say so.
    let _ = rlimit::increase_nofile_limit(connections as u64 + OTHER_FILES);
    let (folder, link) = (args.models.clone(), args.link.link());
    let service = DeliveryService::open(folder, keys.keys().clone(), link, connections)?;
    let runtime = Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CliError::Stopped(error.to_string()))?;
    runtime.block_on(async {
        let signals = Signals::handle()?;
        keys.reload_on_hangup()?;
        let listeners = args.listen.iter().map(|address| listen(address, &options));
        let listeners: Vec<_> = listeners.collect::<Result<_, _>>()?;
        tracing::info!(reason = "versions", "{}", service.shares());
        for (listener, address) in listeners.into_iter().zip(&args.listen) {
            tracing::info!(reason = "listening", %address, "waiting for devices at {address}");
            tokio::spawn(Arc::clone(&service).accept(listener));
        }
        for device in &args.devices {
            tokio::spawn(Arc::clone(&service).dial(device.clone(), options.clone()));
        }
        tokio::spawn(Arc::clone(&service).follow());
        if let Some(http) = http {
            let address = http.address();
            tracing::info!(reason = "http", %address, "the page: http://{address}/");
            tokio::spawn(serve_figures(http, Arc::clone(&service)));
        }
        signals.wait(&service, &mut keys, &log, &options).await;
        service.stop();
        tokio::time::sleep(GRACE).await;
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

/// The signals of the service.
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

    /// Waits until the service is to stop. SIGHUP reads the keys and the certificate again, and
    /// opens the log file again.
    async fn wait(
        mut self,
        service: &DeliveryService,
        keys: &mut FleetKeys,
        log: &Log,
        options: &Options,
    ) {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return,
                _ = self.interrupt.recv() => return,
                _ = self.hangup.recv() => {}
            }
            log.reopen();
            if let Err(error) = options.reload() {
                tracing::error!(
                    reason = "certificate",
                    "the certificate stays as it was: {error}"
                );
            }
            match tokio::task::block_in_place(|| keys.reload()) {
                Ok(_) => {
                    service.set_keys(keys.keys().clone());
                    tracing::info!(reason = "reload", "SIGHUP: the keys were read again");
                }
                Err(error) => {
                    tracing::error!(reason = "keys", "the keys stay as they were: {error}");
                }
            }
        }
    }
}
