//! The speed of links to devices by presets (`fast`, `slow`, `lorawan`): the time limit of a
//! connection without a session, and the intervals of calls and invitations.
//!
//! Both sides measure round trips (`smolfed_core::wire::round_trip`). These times are for what
//! comes before any measurement, and for limits that no measurement sets.

use std::io::{self, ErrorKind};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use smolfed_core::wire::round_trip::RoundTrip;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use crate::transport::Transport;

/// A kind of link, by a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Preset {
    /// Networks and serial lines: an answer within half a second.
    #[default]
    Fast,
    /// A few hundred bytes per second, or seconds each way.
    Slow,
    /// One downlink per uplink, and a duty cycle.
    Lorawan,
}

/// The times of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// How long an accepted connection may stay without a session. A handshake and a greeting take
    /// a few round trips.
    #[serde(with = "millis", rename = "session_timeout_ms")]
    pub session_timeout: Duration,
    /// Interval at which `Call` is sent on a connection without a session.
    #[serde(with = "millis", rename = "call_interval_ms")]
    pub call_interval: Duration,
    /// The shortest pause before an unanswered invitation is repeated, and on the device any
    /// message.
    #[serde(with = "millis", rename = "invite_pause_ms")]
    pub invite_pause: Duration,
}

impl Preset {
    /// Returns the times of this kind of link.
    #[must_use]
    pub const fn link(self) -> Link {
        let (session_timeout, call_interval, invite_pause) = match self {
            Self::Fast => (10_000, 1_000, 500),
            // Three round trips of 12 s, or a greeting of 200 bytes at 10 bytes per second.
            Self::Slow => (60_000, 10_000, 5_000),
            // A duty cycle of 1 % and a second of airtime leave 100 s between two uplinks.
            Self::Lorawan => (600_000, 60_000, 60_000),
        };
        Link {
            session_timeout: Duration::from_millis(session_timeout),
            call_interval: Duration::from_millis(call_interval),
            invite_pause: Duration::from_millis(invite_pause),
        }
    }

    /// Returns the default time-out of a round.
    #[must_use]
    pub const fn round_timeout(self) -> Duration {
        Duration::from_secs(match self {
            Self::Fast => 30,
            Self::Slow => 300,
            Self::Lorawan => 3_600,
        })
    }
}

impl Default for Link {
    fn default() -> Self {
        Preset::default().link()
    }
}

impl Link {
    /// Writes these bytes to a connection.
    ///
    /// # Errors
    /// The errors of the connection, and [`ErrorKind::TimedOut`] if it takes none of the bytes for
    /// [`Self::write_timeout`]. All bytes together may take longer on a slow line.
    pub(crate) async fn write(
        &self,
        transport: &mut dyn Transport,
        mut bytes: &[u8],
    ) -> io::Result<()> {
        let limit = self.write_timeout();
        while !bytes.is_empty() {
            let written = timeout(limit, transport.write(bytes)).await??;
            if written == 0 {
                return Err(ErrorKind::WriteZero.into());
            }
            bytes = bytes.get(written..).unwrap_or_default();
        }
        timeout(limit, transport.flush()).await?
    }

    /// Returns the time for which a connection may take none of the bytes written to it: two
    /// seconds on a fast link, where a serial line of 9,600 baud needs 0.3 s for a frame.
    #[must_use]
    pub fn write_timeout(&self) -> Duration {
        self.session_timeout / 5
    }

    /// Returns the silence after which a device closes its connection, as the peer may have
    /// disappeared unnoticed: ten minutes on a fast link.
    #[must_use]
    pub fn idle_timeout(&self) -> Duration {
        (self.session_timeout * 6).max(Duration::from_secs(600))
    }

    /// Returns the estimate for a link without measurements.
    #[must_use]
    pub fn round_trip(&self) -> RoundTrip {
        RoundTrip::new(to_ms(self.invite_pause))
    }
}

/// Converts a time to milliseconds of the core's estimate.
pub(crate) fn to_ms(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}

/// Times in files are whole milliseconds.
mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_millis)
    }
}
