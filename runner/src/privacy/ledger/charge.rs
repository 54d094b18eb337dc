//! A charge of the ledger: one release of one round. Its line is the JSON of the charge, whose last
//! member is the CRC-32 of the JSON without it.

use serde::{Deserialize, Serialize};
use smolfed_accounting::event::{PrivacyEvent, Sampling};

/// What stands before the checksum of a line.
const CHECKSUM: &str = ",\"crc32\":\"";

/// One round of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Charge {
    /// Names the run: the same name means the same released bits.
    pub run: String,
    /// The seed of a simulation's random streams; `None` for secret randomness, which no two runs
    /// share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The round, from 0.
    pub round: u32,
    /// What the round releases; its count is 1.
    pub event: PrivacyEvent,
}

impl Charge {
    /// The charge of one line of a ledger, without its end.
    ///
    /// # Errors
    /// What is wrong with the line, to follow "damaged: ".
    pub fn from_line(line: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(line).map_err(|error| error.to_string())?;
        let (body, sum) = text
            .rsplit_once(CHECKSUM)
            .and_then(|(body, rest)| Some((body, rest.strip_suffix("\"}")?)))
            .ok_or("it does not end in a checksum")?;
        let body = format!("{body}}}");
        let expected = format!("{:08x}", crc32fast::hash(body.as_bytes()));
        if sum != expected {
            return Err(format!("its checksum is {sum}, but should be {expected}"));
        }
        serde_json::from_str(&body).map_err(|error| error.to_string())
    }

    /// The line that a ledger has for this charge, with its end.
    #[must_use]
    pub fn to_line(&self) -> String {
        // A charge is numbers and short names: it always has a JSON form.
        let mut text = serde_json::to_string(self).unwrap_or_default();
        let sum = crc32fast::hash(text.as_bytes());
        text.pop();
        format!("{text}{CHECKSUM}{sum:08x}\"}}\n")
    }
}

/// What other runs had spent before `run` began; what comes later does not change it.
#[must_use]
pub fn before(charges: &[Charge], run: &str) -> Vec<PrivacyEvent> {
    events(charges.iter().take_while(|charge| charge.run != run))
}

/// The events of charges: the rounds of one run and kind are one event, so that a bound on its
/// participations counts once. Kinds without such a bound are merged across runs.
pub fn events<'a>(charges: impl IntoIterator<Item = &'a Charge>) -> Vec<PrivacyEvent> {
    let mut events: Vec<(Option<&str>, PrivacyEvent)> = Vec::new();
    for charge in charges {
        let counts_apart = matches!(charge.event.sampling, Sampling::Unsampled { .. });
        let run = counts_apart.then_some(charge.run.as_str());
        let is_same = |(of, event): &&mut (Option<&str>, PrivacyEvent)| {
            *of == run && event.with_count(1) == charge.event.with_count(1)
        };
        match events.iter_mut().find(is_same) {
            Some((_, event)) => event.count = event.count.saturating_add(charge.event.count),
            None => events.push((run, charge.event)),
        }
    }
    events.into_iter().map(|(_, event)| event).collect()
}
