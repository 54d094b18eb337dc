//! How a test runs the program: in an empty directory, as a user would.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// Returns the program under test: Cargo's build for tests of its package, else `SMOLFED_BIN`, else
/// this workspace's, built now if necessary. Cargo and nextest do not build programs of other
/// packages.
pub(crate) fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let own = option_env!("CARGO_BIN_EXE_smolfed").map(PathBuf::from);
        let named = || std::env::var_os("SMOLFED_BIN").map(PathBuf::from);
        own.or_else(named).unwrap_or_else(build)
    })
}

fn build() -> PathBuf {
    let output = Command::new(env!("CARGO"))
        .args(["build", "--package", "smolfed", "--bin", "smolfed"])
        .args(["--message-format", "json", "--locked"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .output()
        .expect("cargo starts");
    let messages = String::from_utf8_lossy(&output.stdout);
    let built = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find_map(|message| message["executable"].as_str().map(PathBuf::from));
    built.unwrap_or_else(|| {
        let errors = String::from_utf8_lossy(&output.stderr);
        panic!("cargo built no program:\n{errors}")
    })
}

/// Longer than any test on a busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(120);

/// Returns a coordinator's time limit. `SMOLFED_TIME_LIMIT` sets seconds for longer tests.
pub(crate) fn time_limit() -> Duration {
    let given = std::env::var("SMOLFED_TIME_LIMIT").ok();
    given.map_or(TIMEOUT, |text| {
        Duration::from_secs(text.parse().expect("seconds"))
    })
}

/// Waits until a process or thread makes a condition true.
#[track_caller]
pub(crate) fn wait_until(mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !condition() {
        assert!(Instant::now() < deadline, "timed out");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// An empty directory in which the program runs, removed on drop.
pub(crate) struct Place {
    dir: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let dir = TempDir::new().expect("a temporary directory");
        Self { dir }
    }

    /// Returns a path in the directory.
    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a file into the directory.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).expect("the test's file is written");
    }

    /// Returns the sorted names of all its entries.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.dir.path()).expect("the test's directory is read");
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// Returns a command in this directory that finds no data sets or passphrases elsewhere.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.dir.path())
            .env_remove("SMOLFED_DATA")
            .env_remove("SMOLFED_KEYS_PASSPHRASE_FILE")
            .env_remove("CREDENTIALS_DIRECTORY")
            .stdin(Stdio::null());
        command
    }

    /// Runs `smolfed` with arguments in one line, separated by spaces.
    pub(crate) fn smolfed(&self, arguments: &str) -> Outcome {
        let mut command = self.command(program());
        command.args(arguments.split_whitespace());
        Outcome::of(command.output().expect("smolfed starts"), arguments)
    }

    /// Starts `smolfed` and does not wait for it.
    pub(crate) fn start(&self, arguments: &str) -> Child {
        self.command(program())
            .args(arguments.split_whitespace())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("smolfed starts")
    }
}

/// Outcome of one call of the program.
pub(crate) struct Outcome {
    /// The command line, without the program.
    arguments: String,
    /// The exit code, or `None` after a signal.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Outcome {
    pub(crate) fn of(output: Output, arguments: &str) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8 output");
        Self {
            arguments: arguments.to_owned(),
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    /// Returns an artificial outcome, to test checks.
    pub(crate) fn with(code: i32, stdout: &str, stderr: &str) -> Self {
        Self {
            arguments: "made up".to_owned(),
            code: Some(code),
            stdout: stdout.to_owned(),
            stderr: stderr.to_owned(),
        }
    }

    /// Returns the outcome, which must be a success.
    #[track_caller]
    pub(crate) fn success(self) -> Self {
        assert_eq!(self.code, Some(0), "{self}");
        self
    }

    /// Returns the only JSON document on stdout.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("stdout is not one JSON document: {error}: {self}"))
    }

    /// Checks that this is a refusal whose sentence contains all of `words`.
    #[track_caller]
    pub(crate) fn refused(&self, code: i32, words: &[&str]) {
        let sentence = self.refusal(code);
        for word in words {
            assert!(sentence.contains(word), "no `{word}`: {self}");
        }
    }

    /// Returns the sentence of a refusal: exit code `code`, nothing on stdout, one line on stderr.
    #[track_caller]
    pub(crate) fn refusal(&self, code: i32) -> &str {
        assert_eq!(self.code, Some(code), "{self}");
        assert_eq!(self.stdout, "", "{self}");
        assert_eq!(self.stderr.trim_end().lines().count(), 1, "{self}");
        let sentence = self.stderr.strip_prefix("error: ");
        sentence.unwrap_or_else(|| panic!("no `error: `: {self}"))
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            arguments,
            code,
            stdout,
            stderr,
        } = self;
        write!(
            f,
            "smolfed {arguments}\nended with {code:?}\nstdout: {stdout}\nstderr: {stderr}"
        )
    }
}
