//! The request to a helper in a round, and its answer.

use serde::{Deserialize, Serialize};
use smolfed_core::mask::{Tag, Terms};
use smolfed_core::wire::keys::Fingerprint;

/// A device that sent a masked update.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attendee {
    /// Its number.
    pub device: u32,
    /// The fingerprint of its ledger, which names its masks.
    pub ledger: Fingerprint,
    /// Its tag for each helper, by the helper's number.
    pub tags: Vec<Tag>,
}

/// A device on the list that a helper gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its number.
    pub device: u32,
    /// The fingerprint of its ledger.
    pub ledger: Fingerprint,
    /// Its tag for this helper.
    pub tag: Tag,
}

/// The request of a round. None of it is secret from the helper, and it contains no update.
#[derive(Clone, Debug, PartialEq)]
pub struct HelperRequest {
    /// The number that names the masks of the round.
    pub round: u32,
    /// Grid, width and number of helpers, which every tag covers.
    pub terms: Terms,
    /// The request to the devices, as their tags cover it.
    pub invitation: Vec<u8>,
    /// The model sent to the devices, as their tags cover it.
    pub model: Vec<f32>,
    /// Number of entries of an update.
    pub entries: u32,
    /// The devices whose masked updates are in the sum, in ascending order.
    pub devices: Vec<Listed>,
    /// The earlier rounds whose masked sums are combined with the sum of this round, the latest
    /// first. Empty if noise is independent, or if correlated noise restarts.
    pub earlier: Vec<u32>,
}

/// The sum of the masks minus the helper's noise: integers from 0 to 2^w - 1.
#[derive(Clone, PartialEq, Eq)]
pub struct HelperAnswer {
    /// The round.
    pub round: u32,
    /// One integer per entry.
    pub integers: Vec<i64>,
}

impl std::fmt::Debug for HelperAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (round, length) = (self.round, self.integers.len());
        write!(f, "HelperAnswer of {length} integers in round {round}")
    }
}
