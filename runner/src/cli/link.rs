//! The options of `smolfed serve` for the speed of links to devices: `--link`, time limits and
//! intervals, and the default of `--timeout`.

use std::time::Duration;

use super::CliError;
use super::operation::duration;
use smolfed_fleet::link::{Link, Preset};

/// Times of links to devices.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct LinkArgs {
    /// Set the speed of the links to devices [default: fast].
    ///
    /// It sets the defaults of the three times below and of `--timeout` (30s, 5m or 1h).
    #[arg(long, value_name = "KIND", value_enum)]
    link: Option<Preset>,
    /// Close a connection without a session after this time [default: 10s, slow: 60s, lorawan:
    /// 10m].
    ///
    /// The three messages of a greeting must fit into this time.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    session_timeout: Option<Duration>,
    /// Call a device without a session at this interval [default: 1s, slow: 10s, lorawan: 1m].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    call_interval: Option<Duration>,
    /// Wait at least this long before repeating an invitation [default: 500ms, slow: 5s,
    /// lorawan: 1m].
    ///
    /// The coordinator measures round trips, and waits longer than they take.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    invite_pause: Option<Duration>,
}

impl LinkArgs {
    /// The times that were asked for, and `known` ones for the others.
    pub(super) fn or(&self, known: Link) -> Link {
        let known = self.link.map_or(known, Preset::link);
        Link {
            session_timeout: self.session_timeout.unwrap_or(known.session_timeout),
            call_interval: self.call_interval.unwrap_or(known.call_interval),
            invite_pause: self.invite_pause.unwrap_or(known.invite_pause),
        }
    }

    /// The default of `--timeout`.
    pub(super) fn round_timeout(&self) -> Duration {
        self.link.unwrap_or_default().round_timeout()
    }
}

/// Refuses a round that ends before an invitation would be repeated.
pub(super) fn check_timeout(timeout: Duration, link: &Link) -> Result<(), CliError> {
    if timeout > link.invite_pause {
        return Ok(());
    }
    let pause = humantime::format_duration(link.invite_pause);
    let timeout = humantime::format_duration(timeout);
    Err(CliError::Usage(format!(
        "`--timeout {timeout}`: an invitation is repeated after {pause} (`--invite-pause`): give a \
         time-out longer than that"
    )))
}
