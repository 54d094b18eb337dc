//! The terminal while a fleet is at work: the table of devices with its maximum number of rows, and
//! the rounds. Elsewhere, the log.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::session::Warned;
use super::text::aligned;
use smolfed_engine::experiment::Experiment;
use smolfed_engine::round::RoundRecord;
use smolfed_fleet::service::Service;
use smolfed_fleet::status::{Status, Table};
use smolfed_fleet::watch::log::Log;

/// The table and the progress on a terminal.
pub(super) struct Screen {
    bar: ProgressBar,
    warned: Warned,
    over: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<()>,
    log: Log,
}

impl Screen {
    pub(super) fn new(rounds: u32, devices: Arc<Service>, log: &Log) -> Self {
        let bar = ProgressBar::new(u64::from(rounds));
        let template = "{msg}\nround {pos}/{len} {bar:30} [{elapsed}]";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        log.write_above(&bar);
        let over = Arc::new(AtomicBool::new(false));
        let thread = std::thread::spawn({
            let (bar, over, log) = (bar.clone(), Arc::clone(&over), log.clone());
            move || loop {
                let is_over = over.load(Ordering::Relaxed);
                log.flush(is_over);
                if is_over {
                    return;
                }
                if !bar.is_hidden() {
                    bar.set_message(text(&Table::new(&devices)).trim_end().to_owned());
                }
                std::thread::sleep(Duration::from_millis(200));
            }
        });
        Self {
            bar,
            warned: Warned::default(),
            over,
            thread,
            log: log.clone(),
        }
    }

    /// Shows that a round is over, and warns once of each thing that it shows.
    pub(super) fn round_done(&mut self, experiment: &Experiment, record: &RoundRecord) {
        let warned = &mut self.warned;
        self.bar.suspend(|| warned.see(experiment, record));
        self.bar.set_position(u64::from(record.round) + 1);
    }

    pub(super) fn close(self) {
        self.over.store(true, Ordering::Relaxed);
        // A thread that panicked has nothing more to show.
        let _ = self.thread.join();
        self.bar.finish_and_clear();
        self.log.write_above(&ProgressBar::hidden());
    }
}

/// The table of devices, as many as fit on a screen.
pub(super) fn text(table: &Table) -> String {
    const MAX_ROWS: usize = 40;
    let head = [
        "device",
        "state",
        "answered",
        "silent",
        "last missed",
        "refused frames",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(table.devices.iter().take(MAX_ROWS).map(row));
    let mut text = aligned(&rows);
    if let Some(more) = table
        .devices
        .len()
        .checked_sub(MAX_ROWS)
        .filter(|more| *more > 0)
    {
        text.push_str(&format!("and {more} more\n"));
    }
    text
}

fn row(status: &Status) -> Vec<String> {
    let silent = status.silent_seconds;
    let refused = status.refused.iter();
    let refused: Vec<String> = refused
        .map(|(why, count)| format!("{count} {why}"))
        .collect();
    vec![
        status.device.to_string(),
        status.state.clone(),
        format!("{}/{}", status.answered, status.drawn),
        silent.map_or_else(|| "-".to_owned(), |seconds| format!("{seconds:.0} s")),
        status.missed.clone().unwrap_or_default(),
        refused.join(", "),
    ]
}
