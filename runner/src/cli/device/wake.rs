//! The options for the time that a device stays awake (`--awake-for`), and for the assumed speed of
//! its link and training.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::cli::operation::duration;
use smolfed_fleet::device::awake::Awake;

/// Wake times of a sleeping device.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct WakeArgs {
    /// Stay awake for this long, then exit, for example 500ms.
    ///
    /// Use it with a timer that starts the device at each wake. If the model cannot arrive in time
    /// or, with helpers, the round cannot end in time, the device declines before its ledger counts
    /// the round. An unsent update goes out at the next wake.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    awake_for: Option<Duration>,
    /// Assume that the link carries at least N bytes per second.
    #[arg(
        long,
        value_name = "N",
        default_value = "100000",
        requires = "awake_for",
        value_parser = positive
    )]
    bytes_per_second: NonZeroU32,
    /// Assume at most this time from a request to its answer.
    #[arg(
        long,
        value_name = "TIME",
        default_value = "50ms",
        requires = "awake_for",
        value_parser = duration
    )]
    round_trip: Duration,
    /// Assume that training processes at least N samples per second.
    ///
    /// The speed matters in rounds with helpers, whose updates cannot wait for the next wake.
    #[arg(
        long,
        value_name = "N",
        default_value = "10000",
        requires = "awake_for",
        value_parser = positive
    )]
    samples_per_second: NonZeroU32,
    /// Assume at most N samples on any device of the fleet.
    ///
    /// The device assumes this number instead of its own, so that a decline reveals nothing about
    /// its samples.
    #[arg(
        long,
        value_name = "N",
        default_value = "10000",
        requires = "awake_for",
        value_parser = positive
    )]
    max_samples: NonZeroU32,
}

impl WakeArgs {
    /// The wake, of a device that sleeps.
    pub(super) fn awake(&self) -> Option<Awake> {
        Some(Awake {
            duration: self.awake_for?,
            round_trip: self.round_trip,
            bytes_per_second: self.bytes_per_second,
            samples_per_second: self.samples_per_second,
            max_samples: self.max_samples,
        })
    }
}

fn positive(text: &str) -> Result<NonZeroU32, String> {
    let number = text.parse().ok();
    number.ok_or_else(|| format!("expected a whole number from 1 to {}", u32::MAX))
}
