//! What a process has used, and what it has written.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Clock ticks of `/proc/PID/stat` in a second, which Linux has fixed for programs.
const TICKS: f64 = 100.0;

/// What the coordinator took while rounds were measured.
#[derive(Default)]
pub(super) struct Usage {
    /// Seconds of processors, of the first round and of all.
    pub(super) first: f64,
    pub(super) all: f64,
    /// The largest resident set, in bytes.
    pub(super) resident: u64,
}

impl Usage {
    /// Takes the figures of a process that runs, maybe in its first round.
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

/// Seconds of processors that a process has used, in user and in system mode.
fn processor_seconds(process: u32) -> Option<f64> {
    let stat = fs::read_to_string(folder(process).join("stat")).ok()?;
    // The name of the program, in parentheses, may contain blanks. After it comes field 3.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |field: usize| fields.get(field - 3)?.parse::<f64>().ok();
    Some((ticks(14)? + ticks(15)?) / TICKS)
}

/// A resident set of a process in bytes: `VmHWM:` is the largest so far, `VmRSS:` that of now.
pub(super) fn resident(process: u32, field: &str) -> Option<u64> {
    let status = fs::read_to_string(folder(process).join("status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(1024 * kilobytes)
}

/// The objects of a file of JSON lines.
pub(super) fn lines(path: &Path) -> Result<Vec<Value>, Box<dyn Error>> {
    let text = fs::read_to_string(path)?;
    let lines = text.lines().map(serde_json::from_str);
    Ok(lines.collect::<Result<_, _>>()?)
}

/// A figure for people.
pub(super) fn rounded(value: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits);
    (value * scale).round() / scale
}
