//! The lines of a ledger: the cost of a round, before it is released, and the digest of the
//! release. A line is a JSON object whose last member is the CRC-32 of the JSON without it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use smolfed_accounting::event::{Mechanism, PrivacyEvent, PrivacyUnit, Sampling};

use crate::condition::{Condition, Conditions, Randomness};

/// The text before the checksum of a line.
const CHECKSUM: &str = ",\"crc32\":\"";

/// The charge of one release of one round of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Charge {
    /// The name of the run: a digest of its configuration, data and version.
    pub run: String,
    /// The seed of the run's random streams. `None` for secret randomness, which no two runs share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The round, from 0.
    pub round: u32,
    /// How often the round was charged before, because a repetition released something else.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub repetition: u32,
    /// The number of planned rounds. Earlier versions of smolfed wrote none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned: Option<u32>,
    /// The event of the release. Its count is 1.
    pub event: PrivacyEvent,
    /// Whether the digest of the release follows in a separate line. Earlier versions of smolfed
    /// wrote none, so the releases of their rounds are unknown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_digest: bool,
    /// Whether the run also released something about the event's unit of privacy that no charge
    /// covers, for example because it read private rows without noise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_uncovered: bool,
    /// The seeds that somebody can know in a federation of real devices. `None` without seeds, for
    /// a simulation, where all randomness follows from `seed`, and in ledgers of earlier versions.
    /// In a federation, those of earlier runs on the ledger are included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_seeds: Option<Vec<(Randomness, u64)>>,
    /// The keys of the values that the user declared public.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub declared: Vec<String>,
    /// Whether the run is the best of several trials. The charges are those of one trial, and its
    /// statement has the cost of the selection.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_selected: bool,
}

/// The digest of a round's release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DigestRecord {
    /// The run.
    pub run: String,
    /// The round, from 0.
    pub round: u32,
    /// The repetition of the charge that it belongs to.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub repetition: u32,
    /// The digest of everything that the round released ([`ReleaseDigest`](crate::ReleaseDigest)).
    pub digest: String,
}

/// One line of a ledger.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Line {
    /// The cost of a round.
    Charge(Charge),
    /// The digest of its release.
    Digest(DigestRecord),
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Line {
    /// Parses a line of a ledger, without its line end.
    ///
    /// # Errors
    /// The reason, to follow "damaged: ".
    pub fn parse(line: &[u8]) -> Result<Self, String> {
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
        match serde_json::from_str(&body) {
            Ok(digest) => Ok(Self::Digest(digest)),
            Err(_) => serde_json::from_str(&body)
                .map(Self::Charge)
                .map_err(|error| error.to_string()),
        }
    }

    /// Returns the line with its line end.
    #[must_use]
    pub fn text(&self) -> String {
        // Numbers and short names: they always have a JSON form.
        let mut text = serde_json::to_string(self).unwrap_or_default();
        let sum = crc32fast::hash(text.as_bytes());
        text.pop();
        format!("{text}{CHECKSUM}{sum:08x}\"}}\n")
    }
}

/// Returns the conditions of a figure for these charges if they do not cover all releases.
pub(super) fn uncovered<'a>(
    charges: impl IntoIterator<Item = &'a Charge> + Clone,
) -> Vec<Condition> {
    let any = |is_so: fn(&Charge) -> bool| charges.clone().into_iter().any(is_so);
    let found = [
        (any(|charge| charge.repetition > 0), Condition::Repeated),
        (
            any(|charge| charge.has_uncovered),
            Condition::UnchargedRelease,
        ),
        (any(|charge| charge.is_selected), Condition::Selected),
    ];
    let found = found.into_iter().filter(|(is_so, _)| *is_so);
    found.map(|(_, condition)| condition).collect()
}

/// Returns the conditions of the total of a ledger for a unit of privacy: releases without a
/// charge, the known seeds, the values declared public, and whether the planned rounds were run.
#[must_use]
pub fn conditions(charges: &[Charge], unit: PrivacyUnit) -> Conditions {
    let mut found: Conditions = flaws(charges, unit).into_iter().collect();
    let about = about(charges, unit);
    let last = last_of_runs(&about);
    found.extend(last.iter().copied().flat_map(recorded));
    if last.len() > 1 {
        found.add(Condition::AfterOtherRuns);
    }
    // One release has the same cost for any number of its rounds.
    let several = last.iter().filter(|charge| !charge.event.is_one_release());
    found.extend(several.filter_map(|charge| match charge.planned {
        None => Some(Condition::NoPlan),
        Some(planned) if last_round(charges, &charge.run) + 1 < planned => Some(Condition::Stopped),
        Some(_) => None,
    }));
    found
}

/// Returns the last charge of each run, in the order of the runs.
fn last_of_runs<'a>(charges: impl IntoIterator<Item = &'a Charge>) -> Vec<&'a Charge> {
    let mut last: Vec<&Charge> = Vec::new();
    for charge in charges {
        match last.iter_mut().find(|known| known.run == charge.run) {
            Some(known) => *known = charge,
            None => last.push(charge),
        }
    }
    last
}

/// Returns the recorded conditions of a charge: the values declared public, and the known seeds.
fn recorded(charge: &Charge) -> impl Iterator<Item = Condition> + use<> {
    let declared = charge.declared.clone().into_iter();
    let of_simulation = || charge.seed.map(|seed| (Randomness::Simulation, seed));
    let seeds = charge.known_seeds.clone();
    let seeds = seeds.unwrap_or_else(|| of_simulation().into_iter().collect());
    let seeds = seeds.into_iter();
    declared
        .map(|key| Condition::Confirmed { key })
        .chain(seeds.map(|(of, seed)| Condition::KnownSeed { seed, of }))
}

/// Returns the last charged round of a run, which need not charge every unit of privacy.
fn last_round(charges: &[Charge], run: &str) -> u32 {
    let of_run = charges.iter().filter(|charge| charge.run == run);
    of_run.map(|charge| charge.round).max().unwrap_or(0)
}

/// Returns the conditions of figures for a unit of privacy if the charges do not cover all
/// releases. Moments of features are charged for devices alone.
fn flaws(charges: &[Charge], unit: PrivacyUnit) -> Vec<Condition> {
    let mut found = uncovered(&about(charges, unit));
    let mut events = charges.iter().map(|charge| charge.event);
    if unit == PrivacyUnit::Example && events.any(|event| event.is_moments()) {
        found.push(Condition::MomentsOfDevices);
    }
    found
}

/// Returns the charges on which a figure for this unit of privacy depends: those of the unit, and
/// all of the runs without any, since a run may also have released something without a charge.
fn about(charges: &[Charge], unit: PrivacyUnit) -> Vec<Charge> {
    let is_of_unit = |charge: &&Charge| charge.event.unit == unit;
    let of_unit = charges.iter().filter(is_of_unit);
    let runs: BTreeSet<&str> = of_unit.map(|charge| charge.run.as_str()).collect();
    let is_about = |charge: &&Charge| is_of_unit(charge) || !runs.contains(charge.run.as_str());
    charges.iter().filter(is_about).cloned().collect()
}

/// The charges of earlier runs on the same devices.
#[derive(Debug, Clone, Default)]
pub struct Spent {
    charges: Vec<Charge>,
    events: Vec<PrivacyEvent>,
}

impl Spent {
    /// Takes the charges of other runs from before `run` began.
    #[must_use]
    pub fn before(run: &str, charges: &[Charge]) -> Self {
        let first = charges.iter().position(|charge| charge.run == run);
        let charges = charges.get(..first.unwrap_or(charges.len()));
        let charges = charges.unwrap_or_default().to_vec();
        Self {
            events: events(&charges),
            charges,
        }
    }

    /// Returns their events.
    #[must_use]
    pub fn events(&self) -> &[PrivacyEvent] {
        &self.events
    }

    /// Returns the conditions that they add to later figures for this unit of privacy: releases
    /// without a charge, the known seeds, and the values declared public.
    #[must_use]
    pub fn conditions(&self, unit: PrivacyUnit) -> Vec<Condition> {
        let about = about(&self.charges, unit);
        let last = last_of_runs(&about);
        let mut found = flaws(&self.charges, unit);
        found.extend(last.into_iter().flat_map(recorded));
        found
    }
}

/// Returns the events of charges. The rounds of one run and kind are one event, so that a bound on
/// its participations counts once. In repeated rounds a device may take part once more. Kinds
/// without such a bound are merged across runs.
///
/// If parts of the population take turns, the bound applies to successive rounds. The rounds of a
/// run are successive, but repeated rounds need not be, and are counted separately.
pub fn events<'a>(charges: impl IntoIterator<Item = &'a Charge>) -> Vec<PrivacyEvent> {
    let mut events: Vec<(Option<(&str, u32)>, PrivacyEvent)> = Vec::new();
    for charge in charges {
        let takes_turns = matches!(charge.event.sampling, Sampling::BlockCyclic { .. });
        let is_bounded = takes_turns || matches!(charge.event.sampling, Sampling::Unsampled { .. });
        let run = is_bounded.then_some((charge.run.as_str(), charge.repetition));
        let is_alone = takes_turns && charge.repetition > 0;
        let is_same = |(of, event): &&mut (Option<(&str, u32)>, PrivacyEvent)| {
            *of == run && !is_alone && event.with_count(1) == charge.event.with_count(1)
        };
        match events.iter_mut().find(is_same) {
            Some((_, event)) => event.count = event.count.saturating_add(charge.event.count),
            None => events.push((run, charge.event)),
        }
    }
    // A statement names the mechanism of the last event: that of updates, if there are any.
    let is_matrix =
        |event: &PrivacyEvent| matches!(event.mechanism, Mechanism::CorrelationMatrix { .. });
    events.sort_by_key(|(_, event)| (!event.is_beside_updates(), !is_matrix(event)));
    events.into_iter().map(|(_, event)| event).collect()
}
