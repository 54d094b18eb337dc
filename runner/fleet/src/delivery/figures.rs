//! Counts of the delivery service since it began: devices by version, open connections, sent files
//! and bytes, refusals. Only counts of devices leave it.

use std::collections::BTreeMap;
use std::sync::Mutex;

use serde::Serialize;
use smolfed_core::wire::refusal::{Refusal, Refusals};

use super::catalogue::Version;
use super::published::Published;
use crate::lock::lock;

/// Counters of the service.
#[derive(Debug, Default)]
pub struct Figures(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    /// The version that each device has last named.
    held: BTreeMap<u32, u32>,
    connected: u64,
    files: u64,
    bytes: u64,
    refused: u64,
    refusals: Refusals,
}

/// A version and its devices.
#[derive(Clone, Debug, Serialize)]
pub struct VersionFigures {
    /// The version, with its statement and its answers.
    #[serde(flatten)]
    pub version: Version,
    /// The share of devices that get it, in percent. 0 for an earlier version.
    pub percent: f64,
    /// Devices that have named it last.
    pub devices: u64,
}

/// All figures at one time.
#[derive(Clone, Debug, Serialize)]
pub struct Snapshot {
    /// Devices with keys.
    pub devices: u64,
    /// Devices that have been in contact.
    pub seen: u64,
    /// Devices without a model at their last contact.
    pub without_model: u64,
    /// Open connections with a session.
    pub connected: u64,
    /// Files whose installation devices have confirmed.
    pub files: u64,
    /// Bytes of sent files.
    pub bytes: u64,
    /// Devices that were refused for their model or their features.
    pub refused: u64,
    /// Skipped frames.
    pub refusals: u64,
    /// The versions, the newest first.
    pub versions: Vec<VersionFigures>,
}

impl Figures {
    /// Notes that a session has begun, or has ended.
    pub fn session(&self, begins: bool) {
        let mut counts = lock(&self.0);
        counts.connected = match begins {
            true => counts.connected + 1,
            false => counts.connected.saturating_sub(1),
        };
    }

    /// Notes the version that a device names.
    pub fn named(&self, device: u32, version: u32) {
        let mut counts = lock(&self.0);
        let before = counts.held.insert(device, version);
        counts.files += u64::from(before.is_some_and(|before| before < version));
    }

    /// Notes sent bytes of a file.
    pub fn sent(&self, bytes: usize) {
        lock(&self.0).bytes += bytes as u64;
    }

    /// Notes that a device was refused.
    pub fn refused(&self) {
        lock(&self.0).refused += 1;
    }

    /// Notes a skipped frame.
    pub fn skipped(&self, refusal: Refusal) {
        lock(&self.0).refusals.count(refusal);
    }

    /// Returns all figures.
    #[must_use]
    pub fn snapshot(&self, devices: usize, published: &Published) -> Snapshot {
        let counts = lock(&self.0);
        let mut held = BTreeMap::new();
        for version in counts.held.values() {
            *held.entry(*version).or_insert(0) += 1;
        }
        let holders = |version: u32| held.get(&version).copied().unwrap_or(0);
        let catalogue = &published.catalogue;
        let versions = catalogue.versions.iter().rev().map(|version| {
            let mut shares = catalogue.shares.iter();
            let share = shares.find(|share| share.version == version.number);
            VersionFigures {
                percent: share.map_or(0.0, |share| share.percent),
                devices: holders(version.number),
                version: version.clone(),
            }
        });
        Snapshot {
            devices: devices as u64,
            seen: counts.held.len() as u64,
            without_model: holders(0),
            connected: counts.connected,
            files: counts.files,
            bytes: counts.bytes,
            refused: counts.refused,
            refusals: counts.refusals.total().into(),
            versions: versions.collect(),
        }
    }
}
