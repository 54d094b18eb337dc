//! `fleet.toml` of a run directory: where real devices are, and what tells the run from others.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::helpers::WhenMissing;
use crate::link::Link;
use crate::presence::PresenceSettings;
use crate::quorum::{Quorum, Share};
use crate::transport::TransportFiles;

/// What `fleet.toml` of a run directory says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FleetFile {
    /// Tells the run from others of the same experiment; random.
    pub id: String,
    /// The seed of the coordinator's randomness; absent if that is secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// What is added to a round to get the number that names its streams.
    pub first_number: u32,
    /// The file with the keys.
    pub keys: PathBuf,
    /// Simulated devices.
    pub simulated: u32,
    /// Milliseconds that a device has for its part in a round.
    pub timeout_ms: u64,
    /// Devices without which no round begins; absent for the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_devices: Option<u32>,
    /// Milliseconds for which a device counts as present after it has disconnected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub away_after_ms: Option<u64>,
    /// Milliseconds that the run waits without any device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub give_up_after_ms: Option<u64>,
    /// The share of a cohort whose updates end a round; absent if all are awaited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quorum: Option<f64>,
    /// How many updates end a round, where more devices are drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updates: Option<u32>,
    /// Whether devices must greet with X25519.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub require_x25519: bool,
    /// Where the coordinator connects to devices.
    pub devices: Vec<String>,
    /// Where devices connect to the coordinator.
    pub listen: Vec<String>,
    /// Where the helpers are, by number; none without masked updates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub helpers: Vec<String>,
    /// What happens while one cannot be reached.
    #[serde(default, skip_serializing_if = "WhenMissing::is_wait")]
    pub helper_missing: WhenMissing,
    /// Milliseconds from the beginning of a round to that of the next one, at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_interval_ms: Option<u64>,
    /// How fast links are; absent for fast ones.
    #[serde(default, skip_serializing_if = "is_fast")]
    pub link: Link,
    /// The files that connections need.
    #[serde(default, skip_serializing_if = "TransportFiles::is_empty")]
    pub files: TransportFiles,
}

/// Whether all times are those of fast links.
fn is_fast(link: &Link) -> bool {
    *link == Link::default()
}

impl FleetFile {
    /// When a round may begin.
    #[must_use]
    pub fn presence(&self) -> PresenceSettings {
        PresenceSettings {
            min_devices: self.min_devices,
            away_after: self.away_after_ms.map(Duration::from_millis),
            give_up_after: self.give_up_after_ms.map(Duration::from_millis),
        }
    }

    /// How many updates end a round, if not those of its whole cohort.
    #[must_use]
    pub fn quorum(&self) -> Option<Quorum> {
        let share = self.quorum.and_then(Share::new).map(Quorum::Share);
        self.updates.map(Quorum::Updates).or(share)
    }
}
