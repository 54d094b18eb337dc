//! The table of devices: what a person sees while a fleet is at work, and what is kept about it.

use std::collections::BTreeMap;

use serde::Serialize;
use smolfed_core::wire::refusal::Refusals;

use super::links::Switchboard;
use super::peer::Peer;

/// A line of the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Status {
    /// The device.
    pub device: u32,
    /// Where it stands, in a few words.
    pub state: String,
    /// Seconds since it was heard.
    pub silent_seconds: Option<f64>,
    /// Rounds that it was drawn for.
    pub drawn: u32,
    /// Rounds that it answered.
    pub answered: u32,
    /// Why it missed the last round that it missed.
    pub missed: Option<String>,
    /// Frames in its name that were left out, by reason.
    pub refused: BTreeMap<String, u32>,
}

/// All devices, and what came from nobody in particular.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Table {
    /// Always false: who takes part is not covered by the privacy statement.
    pub covered_by_the_privacy_statement: bool,
    /// The devices by number.
    pub devices: Vec<Status>,
    /// Frames of no known device that were left out, by reason.
    pub strangers: BTreeMap<String, u32>,
}

impl Table {
    /// The table as it is now.
    #[must_use]
    pub fn new(switchboard: &Switchboard) -> Self {
        let strangers = by_reason(&switchboard.strangers());
        let now = switchboard.now();
        let status = |(device, peer): (&u32, &Peer)| {
            let tally = peer.tally();
            let silent = peer.heard().map(|then| now.saturating_sub(then));
            Status {
                device: *device,
                state: peer.state(),
                silent_seconds: silent.map(|time| time.as_secs_f64()),
                drawn: tally.drawn,
                answered: tally.answered,
                missed: tally.missed.map(|absence| absence.to_string()),
                refused: by_reason(peer.refusals()),
            }
        };
        Self {
            covered_by_the_privacy_statement: false,
            devices: switchboard.roster().peers.iter().map(status).collect(),
            strangers,
        }
    }
}

fn by_reason(refusals: &Refusals) -> BTreeMap<String, u32> {
    let refusals = refusals.iter();
    refusals
        .map(|(why, count)| (why.to_string(), count))
        .collect()
}
