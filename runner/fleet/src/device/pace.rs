//! The pace of a device process: pauses before repeated messages (retries), as the core computes
//! them, on the machine's clock. Pauses vary, so that devices that lost their answers together do
//! not retry in lockstep.

use std::time::Duration;

use smolfed_core::session::{self, Heard, Phase};
use tokio::time::Instant;

use crate::link::Link;

/// The pace of one device.
#[derive(Debug)]
pub struct Pace {
    link: Link,
    pace: session::Pace,
    /// Start of its clock.
    begin: Instant,
    due: Instant,
}

impl Pace {
    /// Returns the pace of a device on a link of this kind that has sent nothing yet.
    #[must_use]
    pub fn new(link: Link) -> Self {
        let now = Instant::now();
        Self {
            pace: session::Pace::new(link.round_trip()),
            link,
            begin: now,
            due: now,
        }
    }

    /// Returns the times of the link.
    #[must_use]
    pub const fn link(&self) -> &Link {
        &self.link
    }

    /// See [`session::Pace::connected`].
    pub(super) const fn connected(&mut self, phase: Phase) {
        self.pace.connected(phase);
    }

    /// Notes that a message of this many bytes was sent, and the session's phase after it.
    pub(super) fn sent(&mut self, bytes: usize, phase: Phase) {
        if bytes > 0 {
            self.pace.sent(count(bytes), phase, self.now_ms());
            self.wait();
        }
    }

    /// Notes that the last message was sent again.
    pub(super) fn repeated(&mut self) {
        self.pace.repeated();
        self.wait();
    }

    /// Notes how many bytes were received, and their content.
    pub(super) fn received(&mut self, bytes: usize, heard: Heard) {
        if self.pace.received(count(bytes), heard, self.now_ms()) {
            self.wait();
        }
    }

    /// Returns when the next repetition is due. `None` if a session has nothing to repeat.
    pub(super) fn due(&self, phase: Phase) -> Option<Instant> {
        phase.is_awaited().then_some(self.due)
    }

    /// Milliseconds since the start. It wraps at 2³².
    fn now_ms(&self) -> u32 {
        self.begin.elapsed().as_millis() as u32
    }

    fn wait(&mut self) {
        let pause = Duration::from_millis(self.pace.timeout_ms().into());
        self.due = Instant::now() + varied(pause);
    }
}

fn count(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// Varies a pause by up to an eighth.
fn varied(pause: Duration) -> Duration {
    let mut byte = [0];
    // Without entropy the pause stays the same.
    let _ = getrandom::fill(&mut byte);
    pause.mul_f64(0.875 + f64::from(byte[0]) / 1024.0)
}
