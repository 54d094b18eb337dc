//! Another program that does the same work: a script in `benches/peers` that reads a line of
//! standard input for each round, and prints its milliseconds on standard output.
//!
//! It runs with the Python of the folder `benches/peers/venv-NAME`, or otherwise with the `python3`
//! on the PATH.

use std::error::Error;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Folder of the scripts, relative to the repository root.
const FOLDER: &str = "benches/peers";

/// A program with scripts `NAME_WORK.py` and requirements `NAME.txt`.
#[derive(Clone, Copy, Debug)]
pub struct Script {
    /// Title in the output.
    pub title: &'static str,
    /// NAME.
    pub name: &'static str,
    /// Python module that it imports.
    pub module: &'static str,
}

impl Script {
    /// Returns the command that installs its requirements.
    #[must_use]
    pub fn install(&self) -> String {
        let name = self.name;
        format!(
            "python3 -m venv {FOLDER}/venv-{name} && {FOLDER}/venv-{name}/bin/pip install -r \
             {FOLDER}/{name}.txt"
        )
    }

    /// Returns a Python with its requirements.
    fn python(&self) -> Option<String> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/peers");
        let own = format!("{folder}/venv-{}/bin/python3", self.name);
        [own, "python3".to_owned()].into_iter().find(|python| {
            Command::new(python)
                .args(["-c", &format!("import {}", self.module)])
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|status| status.success())
        })
    }
}

/// A running script.
#[derive(Debug)]
pub struct Peer {
    process: Child,
    /// Input of the script, where each line requests a round.
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    /// Title in the output, with its version.
    pub title: String,
}

impl Peer {
    /// Starts its script for this work. Returns `None` if its requirements are not installed.
    ///
    /// # Errors
    /// The script fails.
    pub fn start(
        script: &Script,
        work: &str,
        arguments: &[OsString],
    ) -> Result<Option<Self>, Box<dyn Error>> {
        let Some(python) = script.python() else {
            return Ok(None);
        };
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers");
        let path = path.join(format!("{}_{work}.py", script.name));
        let mut process = Command::new(python)
            .args(["-W", "ignore"])
            .arg(&path)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let requests = process.stdin.take();
        let answers = process.stdout.take().ok_or("python3 has no output")?;
        let mut peer = Self {
            process,
            requests,
            answers: BufReader::new(answers),
            title: String::new(),
        };
        let greeting = peer.line()?;
        let Some(version) = greeting.strip_prefix("ready ") else {
            return Err(format!("{} failed", path.display()).into());
        };
        peer.title = format!("{} {version}", script.title);
        Ok(Some(peer))
    }

    /// Runs one round and returns its milliseconds.
    ///
    /// # Errors
    /// The script has failed.
    pub fn step(&mut self) -> Result<f64, Box<dyn Error>> {
        if let Some(requests) = &mut self.requests {
            requests.write_all(b"\n")?;
            requests.flush()?;
        }
        Ok(self.line()?.parse()?)
    }

    fn line(&mut self) -> std::io::Result<String> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // The script exits at the end of its input.
        drop(self.requests.take());
        let _ = self.process.wait();
    }
}
