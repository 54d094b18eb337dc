//! Messages about the progress of devices: a line for each event if there are few devices,
//! otherwise one line for all of them at an interval.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use smolfed_core::session::Phase;
use smolfed_core::wire::message::WhyRefused;

use smolfed_fleet::device::client::Event;
use smolfed_fleet::device::line::Watcher;
use smolfed_fleet::lock::lock;

/// Devices whose events are printed one by one.
const FEW: usize = 16;

/// Sentences that are printed of many devices.
const MOST_SENTENCES: usize = 10;

/// How often the line of many devices is printed, if it has changed.
const INTERVAL: Duration = Duration::from_secs(5);

/// What devices have done.
pub(super) struct Progress {
    devices: usize,
    connected: AtomicUsize,
    participations: AtomicU64,
    sentences: AtomicUsize,
    shown: Mutex<(Instant, String)>,
}

impl Progress {
    pub(super) fn new(devices: usize) -> Self {
        Self {
            devices,
            connected: AtomicUsize::new(0),
            participations: AtomicU64::new(0),
            sentences: AtomicUsize::new(0),
            shown: Mutex::new((Instant::now(), String::new())),
        }
    }

    fn print_if_few(&self, sentence: impl FnOnce() -> String) {
        if self.devices <= FEW {
            eprintln!("{}", sentence());
        }
    }

    /// Prints the line of many devices when it is time to.
    pub(super) fn show(&self) {
        if self.devices <= FEW {
            return;
        }
        let mut shown = lock(&self.shown);
        let (when, before) = &mut *shown;
        if when.elapsed() < INTERVAL {
            return;
        }
        let line = format!(
            "{} devices: {} sessions opened, {} updates computed",
            self.devices,
            self.connected.load(Ordering::Relaxed),
            self.participations.load(Ordering::Relaxed)
        );
        if line != *before {
            eprintln!("{line}");
        }
        (*when, *before) = (Instant::now(), line);
    }
}

impl Watcher for Progress {
    fn note(&self, device: u32, budget: u32, event: Event) {
        match event {
            Event::Connected => {
                self.connected.fetch_add(1, Ordering::Relaxed);
                self.print_if_few(|| format!("device {device}: connected"));
            }
            Event::Trained { participations } => {
                self.participations.fetch_add(1, Ordering::Relaxed);
                self.print_if_few(|| {
                    format!("device {device}: participation {participations} of at most {budget}")
                });
            }
            Event::Refused(Phase::Refused(why)) => {
                let advice = match why {
                    WhyRefused::HANDSHAKE => ": start the device with `--x25519`",
                    WhyRefused::Shape => {
                        ": its log names both models, and a process trains only in `f32`"
                    }
                    _ => "",
                };
                self.print(format!(
                    "device {device}: refused by the coordinator: {why}{advice}"
                ));
            }
            Event::Resumed { round } => self.print_if_few(|| {
                format!("device {device}: continues with its update of round {round}")
            }),
            Event::NotHeld => self.print(format!(
                "device {device}: its update cannot be kept next to the ledger: a restart loses it"
            )),
            Event::Refused(_) | Event::Idle => {}
        }
    }

    /// Prints a sentence, unless too many were printed of many devices.
    fn print(&self, sentence: String) {
        let printed = self.sentences.fetch_add(1, Ordering::Relaxed);
        if self.devices <= FEW || printed < MOST_SENTENCES {
            eprintln!("{sentence}");
        }
    }
}
