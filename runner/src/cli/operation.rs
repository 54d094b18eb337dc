//! The options of `smolfed serve` for its operation, stopping, the log and the live page, and the
//! options of `smolfed helper` for its log.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::CliError;
use super::signals::Signals;
use smolfed_engine::experiment::Experiment;
use smolfed_engine::run::directory::RunDir;
use smolfed_fleet::coordinator::Coordinator;
use smolfed_fleet::monitor::{RunInfo, is_secret};
use smolfed_fleet::transport::Options;
use smolfed_fleet::watch::log::{Detail, Format, Log, LogSettings};
use smolfed_fleet::watch::token::Token;
use smolfed_fleet::watch::{HttpError, HttpServer, HttpSettings};
use smolfed_release::statement::PrivacyStatement;

/// Nothing is waited for longer than a day.
pub(super) const MAX_TIMEOUT: Duration = Duration::from_secs(86_400);

/// Operation of a coordinator.
#[derive(Debug, clap::Args)]
pub(super) struct Operation {
    /// Wait at most this long for the round in progress to end after SIGTERM or Ctrl-C.
    ///
    /// Devices that have not answered by then count as missing from the round, which completes.
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "30s")]
    grace: Duration,
    #[command(flatten)]
    log: LogArgs,
    /// Serve the live page of the run at this address, for example 127.0.0.1:8080.
    ///
    /// The address also serves /metrics, for Prometheus, and /healthz. Any address other than
    /// loopback requires a token file.
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    http: Option<SocketAddr>,
    /// Require the token in this file for figures from which participation can be inferred.
    ///
    /// Only the owner may read the file. Anyone with the token can see which devices take part.
    #[arg(long, value_name = "FILE", requires = "http")]
    http_token_file: Option<PathBuf>,
    /// Accept this additional host name in requests for the live page, behind a proxy (repeatable).
    #[arg(long = "http-name", value_name = "NAME", requires = "http")]
    http_names: Vec<String>,
}

/// Content and format of the log.
#[derive(Debug, clap::Args)]
pub(super) struct LogArgs {
    /// Set the level of detail of the log.
    ///
    /// Only "debug" names devices on standard error, because participation is secret.
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t)]
    log_level: Detail,
    /// Set the format of the log: text for people, or one JSON object per line.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    log_format: Format,
    /// Write the log to this file as well.
    ///
    /// The log in the file names devices, and only the owner may read it. To rotate it, rename it
    /// and send SIGHUP.
    #[arg(long, value_name = "FILE")]
    log_file: Option<PathBuf>,
}

impl LogArgs {
    /// Opens the log, and writes to it from now on.
    pub(super) fn open(&self) -> Result<Log, CliError> {
        let log = Log::open(LogSettings {
            detail: self.log_level,
            format: self.log_format,
            file: self.log_file.clone(),
        });
        let log = log.map_err(|error| CliError::Usage(error.to_string()))?;
        log.install();
        Ok(log)
    }
}

impl Operation {
    /// Opens the log, takes the address of the page, and handles signals from now on.
    pub(super) fn watch(&self) -> Result<Watch, CliError> {
        Ok(Watch {
            log: self.log.open()?,
            signals: Signals::handle(self.grace)?,
            http: self.http()?,
        })
    }

    /// Takes the address of the live page, if there is to be one.
    fn http(&self) -> Result<Option<HttpServer>, CliError> {
        let Some(address) = self.http else {
            return Ok(None);
        };
        let token = self.http_token_file.as_deref().map(Token::read);
        let token = token.transpose().map_err(HttpError::from)?;
        Ok(Some(HttpServer::bind(HttpSettings {
            address,
            names: self.http_names.clone(),
            token,
            is_public: false,
        })?))
    }
}

/// How the run is operated.
pub(super) struct Watch {
    pub(super) log: Log,
    pub(super) signals: Signals,
    http: Option<HttpServer>,
}

impl Watch {
    /// Shows a run on its page, from the first `done` rounds on.
    pub(super) fn begin(
        &mut self,
        fleet: &Coordinator,
        experiment: &Experiment,
        dir: &RunDir,
        done: u32,
        timeout: Duration,
    ) -> Result<(), CliError> {
        let mut records = dir.records()?;
        records.truncate(done as usize);
        let info = RunInfo {
            stopping: Arc::clone(self.signals.stopping()),
            timeout,
            ..run_info(experiment, dir.path())
        };
        let service = fleet.service();
        service.monitor().run_begins(info, &records);
        if let Some(http) = self.http.take() {
            let address = http.address();
            tracing::info!(reason = "http", %address, "the live page: http://{address}/");
            fleet.spawn(http.serve(service));
        }
        Ok(())
    }

    /// The end of a run that was stopped: no failure if a supervisor did it, and was obeyed.
    pub(super) fn stopped(&self, sentence: String) -> Result<(), CliError> {
        if !self.signals.is_terminated() {
            return Err(CliError::Stopped(sentence));
        }
        tracing::info!(reason = "stop", "{sentence}");
        Ok(())
    }

    /// SIGHUP reopens the log file, reads the certificate again, and has the keys read again.
    /// Commands that change keys may send it from now on.
    pub(super) fn reload_on_hangup(
        &self,
        fleet: &mut Coordinator,
        options: &Options,
    ) -> Result<(), CliError> {
        let (log, service, options) = (self.log.clone(), fleet.service(), options.clone());
        self.signals.on_hangup(Box::new(move || {
            log.reopen();
            service.request_reload();
            match options.reload() {
                Ok(true) => tracing::info!(reason = "reload", "the certificate was read again"),
                Ok(false) => {}
                Err(error) => tracing::error!(
                    reason = "certificate",
                    "the certificate was not changed: {error}"
                ),
            }
            tracing::info!(
                reason = "reload",
                "SIGHUP: the log file was opened again, and the keys will be read again"
            );
        }));
        Ok(fleet.reload_on_hangup()?)
    }
}

/// What the page shows of a run before it begins.
fn run_info(experiment: &Experiment, dir: &Path) -> RunInfo {
    let (config, privacy) = (experiment.config(), experiment.privacy());
    let statements = experiment.statements(config.rounds, &[]);
    let statements = statements.unwrap_or_default();
    // That of the updates, with the accountant of the plan.
    let statement = statements.first();
    let epsilon = statement.map(|statement| statement.epsilon);
    RunInfo {
        name: run_name(dir),
        rounds: config.rounds,
        epsilon: epsilon.filter(|epsilon| epsilon.is_finite()),
        epsilon_is_upper_bound: statement.map(PrivacyStatement::is_upper_bound),
        epsilon_limit: privacy.budget.map(|budget| budget.get()),
        delta: privacy
            .mechanism
            .sampler
            .is_some()
            .then(|| privacy.delta.get()),
        is_cohort_secret: is_secret(config.cohort.sampling) || experiment.has_secret_sizes(),
        ..RunInfo::default()
    }
}

/// The name of a run on its page: its folder, and the one in which that is. Under a supervisor all
/// runs are in folders of one name.
fn run_name(dir: &Path) -> String {
    let absolute = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    let folder = absolute.parent().and_then(Path::file_name);
    let name = Path::new(folder.unwrap_or_default()).join(absolute.file_name().unwrap_or_default());
    name.display().to_string()
}

pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    let expected = "expected an address and a port, for example 127.0.0.1:8080";
    text.parse().map_err(|_| expected.to_owned())
}

/// A time above zero.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let time = humantime::parse_duration(text).ok();
    time.filter(|time| !time.is_zero() && *time <= MAX_TIMEOUT)
        .ok_or("expected a time of up to a day, for example 30s, 500ms or 2m".to_owned())
}

/// A time, which may be zero.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    let time = humantime::parse_duration(text).ok();
    time.filter(|time| *time <= MAX_TIMEOUT)
        .ok_or("expected a time of up to a day, for example 30s, 0s or 2m".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit() {
        assert_eq!(duration("30s").unwrap(), Duration::from_secs(30));
        assert_eq!(duration("500ms").unwrap(), Duration::from_millis(500));
        assert_eq!(duration("2m").unwrap(), Duration::from_secs(120));
        assert_eq!(duration("1.5s").unwrap(), Duration::from_millis(1_500));
        for text in ["", "30", "s", "-1s", "0s", "25h", "1e9s", "nans"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_run_is_named_with_the_folder_that_it_is_in() {
        let name = run_name(Path::new("/var/lib/smolfed/greenhouse/run"));
        assert_eq!(name, "greenhouse/run");
        assert!(run_name(Path::new("run")).ends_with("/run"));
        assert_eq!(run_name(Path::new("/run")), "run");
    }
}
