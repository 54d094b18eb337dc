//! Resources used by a process, and its output.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Clock ticks per second in `/proc/PID/stat`, which Linux has fixed for programs.
const TICKS: f64 = 100.0;

/// Resources used by the coordinator during measured rounds.
#[derive(Default)]
pub(super) struct Usage {
    /// Processor seconds, of the first round and of all rounds.
    pub(super) first: f64,
    pub(super) all: f64,
    /// Peak resident set, in bytes.
    pub(super) resident: u64,
}

impl Usage {
    /// Reads the figures of a running process, possibly in its first round.
    pub(super) fn look_at(&mut self, process: u32, is_first: bool) {
        if let Some(seconds) = processor_seconds(process) {
            self.all = seconds;
            if is_first {
                self.first = seconds;
            }
        }
        self.resident = resident(process, "VmHWM:").unwrap_or(self.resident);
    }
}

fn folder(process: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{process}"))
}

/// Returns the processor seconds of a process, in user and system mode.
fn processor_seconds(process: u32) -> Option<f64> {
    let stat = fs::read_to_string(folder(process).join("stat")).ok()?;
    // The program's name, in parentheses, may contain spaces. Field 3 follows it.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |field: usize| fields.get(field - 3)?.parse::<f64>().ok();
    Some((ticks(14)? + ticks(15)?) / TICKS)
}

/// Returns a resident set size in bytes: `VmHWM:` is the peak, `VmRSS:` the current size.
pub(super) fn resident(process: u32, field: &str) -> Option<u64> {
    let status = fs::read_to_string(folder(process).join("status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(1024 * kilobytes)
}

/// Reads the objects of a file of JSON lines.
pub(super) fn lines(path: &Path) -> Result<Vec<Value>, Box<dyn Error>> {
    let text = fs::read_to_string(path)?;
    let lines = text.lines().map(serde_json::from_str);
    Ok(lines.collect::<Result<_, _>>()?)
}

/// Rounds a figure for display.
pub(super) fn rounded(value: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits);
    (value * scale).round() / scale
}
