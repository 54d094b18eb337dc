//! The time that a device process stays awake, the rest of this time, and the assumed speed of its
//! link and training.

use std::num::NonZeroU32;
use std::time::Duration;

use smolfed_core::session::Wake;
use tokio::time::Instant;

/// A wake, which begins with the process.
#[derive(Clone, Copy, Debug)]
pub struct Awake {
    /// Its length.
    pub duration: Duration,
    /// Maximum time from a request to its answer.
    pub round_trip: Duration,
    /// Minimum number of bytes per second on the link.
    pub bytes_per_second: NonZeroU32,
    /// Minimum number of samples per second in training.
    pub samples_per_second: NonZeroU32,
    /// Maximum number of samples of a device. The bound assumes this number, so that it reveals
    /// nothing about the actual one.
    pub max_samples: NonZeroU32,
}

impl Awake {
    /// Returns the rest of a wake that ends at `end`. `resumes` says whether updates can be held.
    pub(super) fn left(&self, end: Instant, resumes: bool) -> Wake {
        Wake {
            awake_ms: milliseconds(end.saturating_duration_since(Instant::now())),
            round_trip_ms: milliseconds(self.round_trip),
            bytes_per_second: self.bytes_per_second,
            samples_per_second: self.samples_per_second,
            resumes,
        }
    }
}

/// Converts a time to milliseconds for the core, at most 49 days.
fn milliseconds(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}
