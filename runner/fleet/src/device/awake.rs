//! How long a device that is a process stays awake, and how fast it is.

use std::num::NonZeroU32;
use std::time::Duration;

use smolfed_core::session::Wake;
use tokio::time::Instant;

/// A wake, which begins with the process.
#[derive(Clone, Copy, Debug)]
pub struct Awake {
    /// Its length.
    pub duration: Duration,
    /// From a request to its answer, at most.
    pub round_trip: Duration,
    /// Bytes that the link carries, at least.
    pub bytes_per_second: NonZeroU32,
    /// Samples that the device trains on, at least.
    pub samples_per_second: NonZeroU32,
    /// Samples of a device, at most: the bound counts with as many, so that it says nothing about
    /// the number of samples.
    pub max_samples: NonZeroU32,
}

impl Awake {
    /// What is left of a wake that ends at `end`, for a device that can hold its updates or not.
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

/// A time as the core has it; 49 days at most.
fn milliseconds(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}
