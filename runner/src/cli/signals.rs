//! The signals of `smolfed serve` (SIGTERM, SIGINT from Ctrl-C, and SIGHUP), and the end of the
//! run. The first SIGTERM or SIGINT ends the run after the round in progress, which has a grace
//! period. The second one ends that round at once, with the updates that have arrived. The third
//! one ends the process, and burns the round. SIGHUP reloads the reloadable settings.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::CliError;
use smolfed_fleet::lock::lock;
use smolfed_fleet::stopping::Stopping;

/// What SIGHUP does.
type Reload = Box<dyn Fn() + Send>;

/// The signals of this process, from now on.
pub(super) struct Signals {
    shared: Arc<Shared>,
}

struct Shared {
    stopping: Arc<Stopping>,
    grace: Duration,
    /// Whether there is anything to finish: before that, a signal ends the process.
    is_running: AtomicBool,
    /// Whether the first signal was SIGTERM.
    is_terminated: AtomicBool,
    reload: Mutex<Option<Reload>>,
}

impl Signals {
    /// Handles the signals, on a thread of its own.
    pub(super) fn handle(grace: Duration) -> Result<Self, CliError> {
        let shared = Arc::new(Shared {
            stopping: Arc::default(),
            grace,
            is_running: AtomicBool::new(false),
            is_terminated: AtomicBool::new(false),
            reload: Mutex::new(None),
        });
        let failed = |error| CliError::Usage(format!("cannot handle signals: {error}"));
        let runtime = Builder::new_current_thread().enable_io().build();
        let runtime = runtime.map_err(failed)?;
        let within = runtime.enter();
        let kinds = [
            SignalKind::terminate(),
            SignalKind::interrupt(),
            SignalKind::hangup(),
        ];
        let [terminate, interrupt, hangup] = kinds.map(signal);
        let signals = (
            terminate.map_err(failed)?,
            interrupt.map_err(failed)?,
            hangup.map_err(failed)?,
        );
        drop(within);
        let receiver = Arc::clone(&shared);
        std::thread::spawn(move || runtime.block_on(receive(&receiver, signals)));
        Ok(Self { shared })
    }

    /// There is something to finish from now on.
    pub(super) fn run_begins(&self) {
        self.shared.is_running.store(true, Ordering::Relaxed);
    }

    /// How the run is to stop.
    pub(super) fn stopping(&self) -> &Arc<Stopping> {
        &self.shared.stopping
    }

    /// What SIGHUP does from now on.
    pub(super) fn on_hangup(&self, reload: Reload) {
        *lock(&self.shared.reload) = Some(reload);
    }

    /// Whether the run was stopped by SIGTERM, as supervisors do: it then ended as it was told to.
    pub(super) fn is_terminated(&self) -> bool {
        self.shared.is_terminated.load(Ordering::Relaxed)
    }
}

async fn receive(shared: &Shared, signals: (Signal, Signal, Signal)) {
    let (mut terminate, mut interrupt, mut hangup) = signals;
    let mut asked = 0;
    loop {
        let (name, code) = tokio::select! {
            _ = terminate.recv() => ("SIGTERM", 143),
            _ = interrupt.recv() => ("SIGINT", 130),
            _ = hangup.recv() => {
                if let Some(reload) = lock(&shared.reload).as_ref() {
                    reload();
                }
                continue;
            }
        };
        asked += 1;
        if asked > 2 || !shared.is_running.load(Ordering::Relaxed) {
            std::process::exit(code);
        }
        shared.stop(name, asked == 1);
    }
}

impl Shared {
    fn stop(&self, name: &str, is_first: bool) {
        let grace = if is_first {
            let is_terminated = name == "SIGTERM";
            self.is_terminated.store(is_terminated, Ordering::Relaxed);
            self.grace
        } else {
            Duration::ZERO
        };
        self.stopping.stop_within(grace);
        if is_first {
            let grace = humantime::format_duration(grace);
            tracing::warn!(
                reason = "stop",
                signal = name,
                "{name}: the round in progress ends within {grace}, and the run after it; a \
                 second signal ends the round at once"
            );
        } else {
            tracing::warn!(
                reason = "stop",
                signal = name,
                "{name} again: the round ends with the updates received so far; a third signal \
                 ends the process and burns the round"
            );
        }
    }
}
