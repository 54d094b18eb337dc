//! `fleet.toml` of a run directory: the identity of a run with real devices, and its addresses,
//! keys, time limits and further settings for resuming it.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::helpers::WhenMissing;
use crate::link::Link;
use crate::presence::PresenceSettings;
use crate::quorum::{Quorum, Share};
use crate::transport::TransportFiles;

/// Contents of `fleet.toml` in a run directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FleetFile {
    /// Random identifier that distinguishes runs of the same experiment.
    pub id: String,
    /// Seed of the coordinator's randomness. Absent if it is secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Offset from a round to the number that names its streams.
    pub first_number: u32,
    /// The file with the keys.
    pub keys: PathBuf,
    /// Simulated devices.
    pub simulated: u32,
    /// Milliseconds that a device has for its part in a round.
    pub timeout_ms: u64,
    /// Minimum number of devices for a round to begin. Absent for the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_devices: Option<u32>,
    /// Milliseconds for which a device counts as present after it has disconnected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub away_after_ms: Option<u64>,
    /// Milliseconds that the run waits without any device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub give_up_after_ms: Option<u64>,
    /// Share of a cohort whose updates end a round. Absent if all are awaited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quorum: Option<f64>,
    /// Number of updates that end a round, if more devices are drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updates: Option<u32>,
    /// Whether devices must greet with X25519.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub require_x25519: bool,
    /// Addresses at which the coordinator connects to devices.
    pub devices: Vec<String>,
    /// Addresses at which the coordinator accepts connections.
    pub listen: Vec<String>,
    /// Addresses of the helpers, by number. Empty without masked updates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub helpers: Vec<String>,
    /// Behaviour while a helper cannot be reached.
    #[serde(default, skip_serializing_if = "WhenMissing::is_wait")]
    pub helper_missing: WhenMissing,
    /// Minimum milliseconds between the beginnings of two rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_interval_ms: Option<u64>,
    /// Speed of the links. Absent for fast ones.
    #[serde(default, skip_serializing_if = "is_fast")]
    pub link: Link,
    /// The files that connections need.
    #[serde(default, skip_serializing_if = "TransportFiles::is_empty")]
    pub files: TransportFiles,
}

/// Returns whether all times are the defaults of fast links.
fn is_fast(link: &Link) -> bool {
    *link == Link::default()
}

impl FleetFile {
    /// Returns the presence rule for the start of a round.
    #[must_use]
    pub fn presence(&self) -> PresenceSettings {
        PresenceSettings {
            min_devices: self.min_devices,
            away_after: self.away_after_ms.map(Duration::from_millis),
            give_up_after: self.give_up_after_ms.map(Duration::from_millis),
        }
    }

    /// Returns the number of updates that end a round, if not the whole cohort's.
    #[must_use]
    pub fn quorum(&self) -> Option<Quorum> {
        let share = self.quorum.and_then(Share::new).map(Quorum::Share);
        self.updates.map(Quorum::Updates).or(share)
    }
}
