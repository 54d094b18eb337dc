//! When a device repeats its last message: once nothing was heard for a measured round trip.
//!
//! Each authentic frame restarts the wait, so that nothing is repeated while an answer of many
//! frames arrives. Pauses grow, so that a coordinator that is behind is not asked ever more often,
//! and they vary, so that devices which lost their answers together do not ask together again.

use std::time::Duration;

use smolfed_core::session::Phase;
use smolfed_core::wire::round_trip::RoundTrip;
use tokio::time::Instant;

use crate::link::{Link, to_ms};

/// The pace of one device.
#[derive(Debug)]
pub struct Pace {
    link: Link,
    round_trip: RoundTrip,
    /// When the last message was sent first.
    sent: Instant,
    /// Whether it waits for an answer.
    is_awaited: bool,
    /// Bytes of the last message, and all that were received since.
    bytes: usize,
    /// When a frame was heard last since then.
    heard: Option<Instant>,
    due: Instant,
}

impl Pace {
    /// That of a device on a link of this kind, which has sent nothing yet.
    #[must_use]
    pub fn new(link: Link) -> Self {
        let now = Instant::now();
        Self {
            round_trip: link.round_trip(),
            link,
            sent: now,
            is_awaited: false,
            bytes: 0,
            heard: None,
            due: now,
        }
    }

    /// How fast the link is.
    #[must_use]
    pub const fn link(&self) -> &Link {
        &self.link
    }

    /// A message of so many bytes was sent, if it has any, and the session is in this phase now.
    pub(super) fn sent(&mut self, bytes: usize, phase: Phase) {
        if bytes == 0 {
            return;
        }
        if let Some(heard) = self.heard.take() {
            let elapsed = to_ms(heard.duration_since(self.sent));
            self.round_trip.transferred(count(self.bytes), elapsed);
        }
        self.round_trip.sent(count(bytes));
        self.bytes = bytes;
        self.sent = Instant::now();
        self.is_awaited = is_awaited(phase);
        self.wait();
    }

    /// The last message was sent once more. If `is_in_doubt`, the coordinator may have restarted,
    /// and answers nothing then: the pause stays, and after a few repetitions, which the session
    /// counts, the device greets again.
    pub(super) fn repeated(&mut self, is_in_doubt: bool) {
        if is_in_doubt {
            // Its answer says nothing about time.
            (self.is_awaited, self.heard) = (false, None);
        } else {
            self.round_trip.repeated();
        }
        self.wait();
    }

    /// So many bytes were received, and were part of an authentic answer or not.
    pub(super) fn received(&mut self, bytes: usize, is_answer: bool) {
        self.bytes += bytes;
        if !is_answer {
            return;
        }
        let now = Instant::now();
        if std::mem::take(&mut self.is_awaited) {
            if !self.round_trip.is_repeated() {
                self.heard = Some(now);
            }
            let elapsed = to_ms(now.duration_since(self.sent));
            self.round_trip.answered(elapsed);
        } else if let Some(heard) = &mut self.heard {
            *heard = now;
        }
        self.wait();
    }

    /// When the next repetition is due; `None` where a session has nothing to repeat.
    pub(super) fn due(&self, phase: Phase) -> Option<Instant> {
        is_awaited(phase).then_some(self.due)
    }

    fn wait(&mut self) {
        let pause = Duration::from_millis(self.round_trip.timeout_ms().into());
        self.due = Instant::now() + varied(pause);
    }
}

/// Whether a session in this phase waits for an answer.
const fn is_awaited(phase: Phase) -> bool {
    !matches!(phase, Phase::Idle | Phase::Refused(_))
}

fn count(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// Up to an eighth more or less.
fn varied(pause: Duration) -> Duration {
    let mut byte = [0];
    // Without entropy the pause is as it is.
    let _ = getrandom::fill(&mut byte);
    pause.mul_f64(0.875 + f64::from(byte[0]) / 1024.0)
}
