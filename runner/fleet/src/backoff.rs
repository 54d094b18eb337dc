//! Pauses between attempts to connect (back-off) of the coordinator, devices, gateways, links to
//! helpers, the delivery service and MQTT: their first length, growth and limit.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep};

const FIRST: Duration = Duration::from_millis(100);
const MAX: Duration = Duration::from_secs(5);

/// Interval at which a waiting task checks whether to stop.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Pause before the next attempt: 0.1 s, doubling each time up to 5 s.
#[derive(Debug)]
pub struct BackOff {
    pause: Duration,
}

impl BackOff {
    /// Returns a back-off before its first failed attempt.
    #[must_use]
    pub const fn new() -> Self {
        Self { pause: FIRST }
    }

    /// Returns the pause before the next attempt, and lengthens the one after it.
    pub fn next_pause(&mut self) -> Duration {
        let pause = self.pause;
        self.pause = (2 * pause).min(MAX);
        pause
    }

    /// Waits, or returns early once `stop` is set. The next pause is longer.
    pub async fn wait(&mut self, stop: &AtomicBool) {
        let end = Instant::now() + self.next_pause();
        while !stop.load(Ordering::Relaxed) && Instant::now() < end {
            sleep(POLL_INTERVAL).await;
        }
    }
}

impl Default for BackOff {
    fn default() -> Self {
        Self::new()
    }
}
