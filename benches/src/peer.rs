//! Another program that does the same work: a script in `benches/peers`, a line of standard
//! input for each round, and its milliseconds on standard output.
//!
//! It runs with the Python of the folder `benches/peers/venv-NAME`, or else with the `python3` on
//! the PATH.

use std::error::Error;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The folder of the scripts, as seen from the root of the repository.
const FOLDER: &str = "benches/peers";

/// What runs scripts, `NAME_WORK.py`, with its requirements, `NAME.txt`.
#[derive(Clone, Copy, Debug)]
pub struct Script {
    /// What is measured, as it is written.
    pub title: &'static str,
    /// NAME.
    pub name: &'static str,
    /// What it imports.
    pub module: &'static str,
}

impl Script {
    /// The command that installs what it needs.
    #[must_use]
    pub fn install(&self) -> String {
        let name = self.name;
        format!(
            "python3 -m venv {FOLDER}/venv-{name} && {FOLDER}/venv-{name}/bin/pip install -r \
             {FOLDER}/{name}.txt"
        )
    }

    /// A Python that has what it needs.
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
    /// A line is a request for a round.
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    /// What is measured, with its version.
    pub title: String,
}

impl Peer {
    /// Starts its script for this work; `None` if nobody has installed what it needs.
    ///
    /// # Errors
    /// If it fails.
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

    /// Milliseconds of one round.
    ///
    /// # Errors
    /// If it has failed.
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
        // The script ends with its input.
        drop(self.requests.take());
        let _ = self.process.wait();
    }
}
