//! The pace of a device process: the core's on the clock of the machine. Pauses vary, so that
//! devices which lost their answers together do not ask together again.

use std::time::Duration;

use smolfed_core::session::{self, Heard, Phase};
use tokio::time::Instant;

use crate::link::Link;

/// The pace of one device.
#[derive(Debug)]
pub struct Pace {
    link: Link,
    pace: session::Pace,
    /// When its clock began.
    begin: Instant,
    due: Instant,
}

impl Pace {
    /// That of a device on a link of this kind, which has sent nothing yet.
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

    /// How fast the link is.
    #[must_use]
    pub const fn link(&self) -> &Link {
        &self.link
    }

    /// See [`session::Pace::connected`].
    pub(super) const fn connected(&mut self, phase: Phase) {
        self.pace.connected(phase);
    }

    /// A message of so many bytes was sent, if it has any, and the session is in this phase now.
    pub(super) fn sent(&mut self, bytes: usize, phase: Phase) {
        if bytes > 0 {
            self.pace.sent(count(bytes), phase, self.now_ms());
            self.wait();
        }
    }

    /// The last message was sent once more.
    pub(super) fn repeated(&mut self) {
        self.pace.repeated();
        self.wait();
    }

    /// So many bytes were received, and this was heard in them.
    pub(super) fn received(&mut self, bytes: usize, heard: Heard) {
        if self.pace.received(count(bytes), heard, self.now_ms()) {
            self.wait();
        }
    }

    /// When the next repetition is due; `None` where a session has nothing to repeat.
    pub(super) fn due(&self, phase: Phase) -> Option<Instant> {
        phase.is_awaited().then_some(self.due)
    }

    /// It begins anew after 2³².
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

/// Up to an eighth more or less.
fn varied(pause: Duration) -> Duration {
    let mut byte = [0];
    // Without entropy the pause is as it is.
    let _ = getrandom::fill(&mut byte);
    pause.mul_f64(0.875 + f64::from(byte[0]) / 1024.0)
}
