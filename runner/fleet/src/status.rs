//! The state of all devices (last contact, drawn, answered and missed rounds, refused frames): the
//! table on the terminal, and `devices.json`.

use std::collections::BTreeMap;

use serde::Serialize;
use smolfed_core::wire::refusal::Refusals;

use super::peer::Peer;
use super::service::Service;

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Status {
    /// The device.
    pub device: u32,
    /// Its state in a few words.
    pub state: String,
    /// Seconds since its last authentic frame.
    pub silent_seconds: Option<f64>,
    /// Rounds for which it was drawn.
    pub drawn: u32,
    /// Rounds that it answered.
    pub answered: u32,
    /// Reason for its last missed round.
    pub missed: Option<String>,
    /// Number of its sessions that replaced one with an open connection.
    pub second_sessions: u32,
    /// Refused frames in its name, by reason.
    pub refused: BTreeMap<String, u32>,
}

/// All devices.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Table {
    /// Always false: the privacy statement does not cover who takes part.
    pub covered_by_the_privacy_statement: bool,
    /// The devices by number.
    pub devices: Vec<Status>,
    /// Refused frames that no device is known to have sent, by reason.
    #[serde(rename = "strangers")]
    pub unattributed: BTreeMap<String, u32>,
}

impl Table {
    /// Returns the current state.
    #[must_use]
    pub fn new(service: &Service) -> Self {
        let unattributed = by_reason(&service.unattributed());
        let now = service.now();
        let mut devices = Vec::new();
        service.registry().for_each(|device, peer: &Peer| {
            let tally = peer.tally();
            let silent = peer.last_received().map(|then| now.saturating_sub(then));
            devices.push(Status {
                device,
                state: peer.state(),
                silent_seconds: silent.map(|time| time.as_secs_f64()),
                drawn: tally.drawn,
                answered: tally.answered,
                missed: tally.missed.map(|absence| absence.to_string()),
                second_sessions: peer.second_sessions(),
                refused: by_reason(peer.refusals()),
            });
        });
        Self {
            covered_by_the_privacy_statement: false,
            devices,
            unattributed,
        }
    }
}

/// Returns the number of refused frames by reason.
pub(super) fn by_reason(refusals: &Refusals) -> BTreeMap<String, u32> {
    let refusals = refusals.iter();
    refusals
        .map(|(why, count)| (why.to_string(), count))
        .collect()
}
