//! The log: events as lines of text or of JSON, on standard error and optionally in a file.
//!
//! Participation is secret. The field `private` of an event is a sentence that may name devices. It
//! replaces the event's message in the file, which only its owner can read, and on standard error
//! at the levels debug and trace. In all other cases it is omitted: supervisors forward standard
//! error to logs that others can read.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime};

use indicatif::ProgressBar;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use super::limit::{Limits, WINDOW};
use crate::lock::lock;
use smolfed_release::durable::is_private;

/// The field of an event that may name devices.
const PRIVATE: &str = "private";

/// Target of the logged events. Events of other crates are ignored.
const TARGET: &str = "smolfed";

/// How lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people: time, level and sentence.
    #[default]
    Text,
    /// For machines: one JSON object per line.
    Json,
}

/// How much is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Detail {
    /// Errors that stop the run or a part of it.
    Error,
    /// Also warnings that an operator should look at.
    Warn,
    /// Also normal events.
    #[default]
    Info,
    /// Everything, with the numbers of devices.
    Debug,
}

impl From<Detail> for Level {
    fn from(detail: Detail) -> Self {
        match detail {
            Detail::Error => Self::ERROR,
            Detail::Warn => Self::WARN,
            Detail::Info => Self::INFO,
            Detail::Debug => Self::DEBUG,
        }
    }
}

/// Settings of the log.
#[derive(Clone, Debug, Default)]
pub struct LogSettings {
    /// Level of detail.
    pub detail: Detail,
    /// Format of lines.
    pub format: Format,
    /// A private file, besides standard error.
    pub file: Option<PathBuf>,
}

/// Error when opening a log file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// It cannot be opened.
    #[error("`--log-file {path}`: {source}")]
    Io {
        /// The file.
        path: String,
        /// Cause.
        source: io::Error,
    },
    /// Others can read it.
    #[error("`--log-file {path}` can be read by others, and names devices: `chmod 600 {path}`")]
    Readable {
        /// The file.
        path: String,
    },
}

/// The log of this process.
#[derive(Clone)]
pub struct Log(Arc<Shared>);

struct Shared {
    settings: LogSettings,
    started: Instant,
    state: Mutex<State>,
}

struct State {
    file: Option<File>,
    /// Standard error.
    screen: Box<dyn Write + Send>,
    limits: Limits,
    /// A progress bar that lines must not overwrite.
    bar: Option<ProgressBar>,
}

impl Log {
    /// Opens the log.
    ///
    /// # Errors
    /// [`LogError`].
    pub fn open(settings: LogSettings) -> Result<Self, LogError> {
        Self::onto(settings, Box::new(io::stderr()))
    }

    fn onto(settings: LogSettings, screen: Box<dyn Write + Send>) -> Result<Self, LogError> {
        let file = open(&settings)?;
        Ok(Self(Arc::new(Shared {
            settings,
            started: Instant::now(),
            state: Mutex::new(State {
                file,
                screen,
                limits: Limits::default(),
                bar: None,
            }),
        })))
    }

    /// Writes the events of this process from now on. A process has one log. A later one gets
    /// nothing.
    pub fn install(&self) {
        let _ = tracing::subscriber::set_global_default(self.clone());
    }

    /// Writes the lines above a progress bar.
    pub fn write_above(&self, bar: &ProgressBar) {
        lock(&self.0.state).bar = Some(bar.clone());
    }

    /// Opens the file again after another process has renamed it. Logs a failure, and then keeps
    /// using the open file.
    pub fn reopen(&self) {
        match open(&self.0.settings) {
            Ok(file) => lock(&self.0.state).file = file,
            Err(error) => tracing::error!(reason = "log file", "{error}"),
        }
    }

    /// Writes the number of omitted events in the expired windows, or in all of them.
    pub fn flush(&self, all: bool) {
        let mut state = lock(&self.0.state);
        for (reason, count) in state.limits.over(self.0.started.elapsed(), all) {
            let seconds = WINDOW.as_secs();
            let mut line = Line::new(Level::INFO);
            line.message = format!("and {count} more within {seconds} s: {reason}");
            line.fields.insert("reason".to_owned(), reason.into());
            line.fields.insert("left_out".to_owned(), count.into());
            self.write(&mut state, line);
        }
    }

    fn write(&self, state: &mut State, line: Line) {
        let settings = &self.0.settings;
        // An unwritable log must not stop the run: the disk may be full.
        if let Some(file) = &mut state.file {
            let _ = file.write_all(line.format(settings.format, true).as_bytes());
        }
        let text = line.format(settings.format, settings.detail == Detail::Debug);
        let State { screen, bar, .. } = state;
        let mut print = || {
            let _ = screen.write_all(text.as_bytes());
        };
        match bar {
            Some(bar) if !bar.is_hidden() => bar.suspend(print),
            _ => print(),
        }
    }
}

fn open(settings: &LogSettings) -> Result<Option<File>, LogError> {
    let Some(path) = &settings.file else {
        return Ok(None);
    };
    let name = path.display().to_string();
    let mut options = OpenOptions::new();
    let opened = options.create(true).append(true).mode(0o600).open(path);
    let checked = opened.and_then(|file| Ok((is_private(&file)?, file)));
    match checked {
        Ok((true, file)) => Ok(Some(file)),
        // A device or a pipe stores nothing.
        Ok((false, file)) if file.metadata().is_ok_and(|data| !data.is_file()) => Ok(Some(file)),
        Ok((false, _)) => Err(LogError::Readable { path: name }),
        Err(source) => Err(LogError::Io { path: name, source }),
    }
}

/// An event, ready to be written.
struct Line {
    time: SystemTime,
    level: Level,
    message: String,
    private: Option<String>,
    fields: Map<String, Value>,
}

impl Line {
    fn new(level: Level) -> Self {
        Self {
            time: SystemTime::now(),
            level,
            message: String::new(),
            private: None,
            fields: Map::new(),
        }
    }

    fn reason(&self) -> String {
        let reason = self.fields.get("reason").and_then(Value::as_str);
        reason.unwrap_or_default().to_owned()
    }

    /// Returns the line with its end. Untrusted text cannot end it: control characters are escaped.
    fn format(&self, format: Format, names_devices: bool) -> String {
        let time = humantime::format_rfc3339_millis(self.time).to_string();
        let private = self.private.as_ref().filter(|_| names_devices);
        let message = private.unwrap_or(&self.message);
        match format {
            Format::Text => {
                let mut line = format!("{time} {:>5} ", self.level);
                for character in message.chars() {
                    match character.is_control() {
                        true => line.extend(character.escape_default()),
                        false => line.push(character),
                    }
                }
                line + "\n"
            }
            Format::Json => {
                let mut object = Map::new();
                object.insert("time".to_owned(), time.into());
                let level = self.level.as_str().to_ascii_lowercase();
                object.insert("level".to_owned(), level.into());
                object.insert("message".to_owned(), message.as_str().into());
                object.extend(self.fields.clone());
                let mut line = String::new();
                // Writing to a string does not fail.
                let _ = writeln!(line, "{}", Value::Object(object));
                line
            }
        }
    }
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => self.message = value.to_owned(),
            PRIVATE => self.private = Some(value.to_owned()),
            name => {
                self.fields.insert(name.to_owned(), value.into());
            }
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.fields.insert(field.name().to_owned(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.fields.insert(field.name().to_owned(), value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.fields.insert(field.name().to_owned(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.fields.insert(field.name().to_owned(), value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event()
            && metadata.target().starts_with(TARGET)
            && *metadata.level() <= Level::from(self.0.settings.detail)
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::new(*event.metadata().level());
        event.record(&mut line);
        // Its place in the code. The metadata of an event are static.
        let place = std::ptr::from_ref(event.metadata()).addr();
        let now = self.0.started.elapsed();
        let mut state = lock(&self.0.state);
        if state.limits.admits(place, &line.reason(), now) {
            self.write(&mut state, line);
        }
    }

    // Spans are not used.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Log({:?})", self.0.settings)
    }
}

#[cfg(test)]
mod tests;
