//! The reasons why a helper does not answer, such as too few devices or a revoked key: one sentence
//! each, in logs without the number of the device, as participation is secret.

use serde::{Deserialize, Serialize};

/// The reason for which a helper does not answer. It has then recorded nothing, and the coordinator
/// may repeat the round with another list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum HelperRefusal {
    /// The federation has a different number of helpers.
    #[error(
        "the devices were asked to mask for {found} helpers, but this federation has {expected}"
    )]
    Helpers {
        /// The number in the terms.
        found: u8,
        /// The number in the policy.
        expected: u8,
    },
    /// No mask has this width.
    #[error("entries of {width} bits: masks have from 2 to 57")]
    Width {
        /// The width in the terms.
        width: u8,
    },
    /// The grid is too coarse for the noise.
    #[error(
        "with {grid_bits} grid bits the noise would be below {least} steps of the grid: more bits \
         are needed"
    )]
    Grid {
        /// The bits in the terms.
        grid_bits: u8,
        /// The minimum number of steps.
        least: u32,
    },
    /// The noise does not fit into the integers.
    #[error("with {grid_bits} grid bits the noise does not fit into 64 bits")]
    Noise {
        /// The bits in the terms.
        grid_bits: u8,
    },
    /// An update has no entries, or too many.
    #[error("updates of {entries} entries: this helper takes from 1 to {most}")]
    Entries {
        /// The number in the request.
        entries: u32,
        /// The largest number.
        most: u32,
    },
    /// The helper has already answered another request in this round.
    #[error("round {round} was answered already, and a second answer would reveal updates")]
    Answered {
        /// The round.
        round: u32,
    },
    /// A later round was answered.
    #[error("round {round} is over: the last answered round is {last}")]
    Passed {
        /// The round.
        round: u32,
        /// The last round.
        last: u32,
    },
    /// Its budget is used up.
    #[error("all {rounds} rounds that this helper answers are over")]
    Exhausted {
        /// The number of rounds that it answers.
        rounds: u32,
    },
    /// It does not have the sums of masks that the request combines.
    #[error(
        "the request combines the sums of {asked} earlier rounds, but this helper has {kept}, or \
         those of other rounds: both sides start again"
    )]
    History {
        /// The number of earlier rounds in the request.
        asked: u32,
        /// The number of earlier rounds of the helper.
        kept: u32,
    },
    /// The list has too few devices.
    #[error("{found} devices are on the list, but this helper answers for {least} or more")]
    SmallCohort {
        /// Devices on the list.
        found: u32,
        /// The minimum of the policy.
        least: u32,
    },
    /// The list is not in ascending order, or has a device twice.
    #[error("device {device} is on the list twice, or the list is not in ascending order")]
    Repeated {
        /// The device.
        device: u32,
    },
    /// The helper has no key of the device.
    #[error("device {device} is unknown: this helper shares no key with it")]
    Unknown {
        /// The device.
        device: u32,
    },
    /// The device was revoked.
    #[error("device {device} was revoked")]
    Revoked {
        /// The device.
        device: u32,
    },
    /// The device has a different ledger than before.
    #[error(
        "device {device} has a different ledger: its flash was erased, so its number of \
         participations is unknown"
    )]
    ChangedLedger {
        /// The device.
        device: u32,
    },
    /// Its last round is too recent.
    #[error("device {device} took part in round {last}, less than {separation} rounds before")]
    TooSoon {
        /// The device.
        device: u32,
        /// Its last round.
        last: u32,
        /// b.
        separation: u32,
    },
    /// The device has taken part as often as it may.
    #[error("device {device} took part {participations} times, as often as it may")]
    TooOften {
        /// The device.
        device: u32,
        /// k.
        participations: u32,
    },
    /// The device received another request, or did not take part.
    #[error(
        "the tag of device {device} is wrong: it got a different request or model, or did not take \
         part"
    )]
    Tag {
        /// The device.
        device: u32,
    },
}

impl HelperRefusal {
    /// Returns the device of the refusal, if there is one.
    #[must_use]
    pub const fn device(&self) -> Option<u32> {
        match self {
            Self::Repeated { device }
            | Self::Unknown { device }
            | Self::Revoked { device }
            | Self::ChangedLedger { device }
            | Self::TooSoon { device, .. }
            | Self::TooOften { device, .. }
            | Self::Tag { device } => Some(*device),
            _ => None,
        }
    }

    /// Returns the device at fault, if the coordinator is not: its ledger changed, or its tag
    /// belongs to another request. It would spoil every list that contains it.
    #[must_use]
    pub const fn of_device(&self) -> Option<u32> {
        match self {
            Self::ChangedLedger { device } | Self::Tag { device } => Some(*device),
            _ => None,
        }
    }

    /// Returns the sentence without the number of the device, for logs: participation is secret.
    #[must_use]
    pub fn in_public(&self) -> String {
        let sentence = self.to_string();
        match self.device() {
            Some(device) => sentence.replacen(&format!("device {device}"), "a device", 1),
            None => sentence,
        }
    }

    /// Returns the reason in one or two words, without numbers: `changed-ledger`.
    #[must_use]
    pub fn name(&self) -> String {
        let value = serde_json::to_value(self).unwrap_or_default();
        let names = value.as_object().and_then(|object| object.keys().next());
        names.cloned().unwrap_or_default()
    }

    /// Returns whether the same round can be answered if correlated noise restarts.
    #[must_use]
    pub const fn needs_new_history(&self) -> bool {
        matches!(self, Self::History { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_whose_fault_it_is_and_what_helps() {
        let changed = HelperRefusal::ChangedLedger { device: 7 };
        let forged = HelperRefusal::Tag { device: 8 };
        let unknown = HelperRefusal::Unknown { device: 9 };
        let history = HelperRefusal::History { asked: 2, kept: 1 };
        let all = [&changed, &forged, &unknown, &history];
        let devices = all.map(|refusal| (refusal.device(), refusal.of_device()));
        let expected = [
            (Some(7), Some(7)),
            (Some(8), Some(8)),
            (Some(9), None),
            (None, None),
        ];
        assert_eq!(devices, expected);
        let names = all.map(HelperRefusal::name);
        assert_eq!(names, ["changed-ledger", "tag", "unknown", "history"]);
        let needs_new_history = all.map(HelperRefusal::needs_new_history);
        assert_eq!(needs_new_history, [false, false, false, true]);
    }
}
