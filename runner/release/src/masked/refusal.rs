//! Why a helper does not answer: each reason a sentence, with the device that is to blame.

use serde::{Deserialize, Serialize};

/// Why a helper does not answer. It has then recorded nothing, and the round may be asked for again
/// with another list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum HelperRefusal {
    /// The federation has another number of helpers.
    #[error(
        "the devices were asked to mask for {found} helpers, and this federation has {expected}"
    )]
    Helpers {
        /// By the terms.
        found: u8,
        /// By the policy.
        expected: u8,
    },
    /// A width that no mask has.
    #[error("entries of {width} bits: masks have from 2 to 57")]
    Width {
        /// By the terms.
        width: u8,
    },
    /// The grid is too coarse for the noise.
    #[error(
        "with {grid_bits} grid bits the noise would be below {least} steps of the grid: more bits \
         are needed"
    )]
    Grid {
        /// By the terms.
        grid_bits: u8,
        /// Steps.
        least: u32,
    },
    /// The noise does not fit into the integers.
    #[error("with {grid_bits} grid bits the noise does not fit into 64 bits")]
    Noise {
        /// By the terms.
        grid_bits: u8,
    },
    /// An update without entries, or with too many.
    #[error("updates of {entries} entries: this helper takes from 1 to {most}")]
    Entries {
        /// By the request.
        entries: u32,
        /// Largest number.
        most: u32,
    },
    /// It answered in this round before, and the question was another one.
    #[error("round {round} was answered already, and a second answer would reveal updates")]
    Answered {
        /// The round.
        round: u32,
    },
    /// A later round was answered.
    #[error("round {round} is over: the last one that was answered is round {last}")]
    Passed {
        /// The round.
        round: u32,
        /// The last round.
        last: u32,
    },
    /// Its budget is used up.
    #[error("all {rounds} rounds that this helper answers are over")]
    Exhausted {
        /// As many as it answers.
        rounds: u32,
    },
    /// It does not have the sums of masks that the request combines.
    #[error(
        "the request combines the sums of {asked} earlier rounds, and this helper has those of \
         {kept}, or of other rounds: both sides begin anew"
    )]
    History {
        /// Rounds of the request.
        asked: u32,
        /// Rounds of the helper.
        kept: u32,
    },
    /// Too few devices.
    #[error("{found} devices are on the list, and this helper answers for {least} or more")]
    SmallCohort {
        /// On the list.
        found: u32,
        /// By the policy.
        least: u32,
    },
    /// The list is not in ascending order, or has a device twice.
    #[error("device {device} is on the list twice, or the list is not in ascending order")]
    Repeated {
        /// The device.
        device: u32,
    },
    /// No key.
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
    /// Another ledger than before.
    #[error(
        "device {device} has another ledger than before: its flash was erased, so that nobody \
         knows how often it took part"
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
    /// It took part as often as it may.
    #[error("device {device} took part {participations} times, as often as it may")]
    TooOften {
        /// The device.
        device: u32,
        /// k.
        participations: u32,
    },
    /// The device was asked for something else, or did not take part.
    #[error(
        "the tag of device {device} is wrong: it was asked for something else, with another model, \
         or did not take part"
    )]
    Tag {
        /// The device.
        device: u32,
    },
}

impl HelperRefusal {
    /// The device that it is about, if it is about one.
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

    /// The device that is at fault, if the coordinator is not: its ledger changed, or its tag is of
    /// something else than what it was asked for. It would spoil every list that it is on.
    #[must_use]
    pub const fn of_device(&self) -> Option<u32> {
        match self {
            Self::ChangedLedger { device } | Self::Tag { device } => Some(*device),
            _ => None,
        }
    }

    /// The sentence without the number of the device, for logs: who takes part is secret.
    #[must_use]
    pub fn in_public(&self) -> String {
        let sentence = self.to_string();
        match self.device() {
            Some(device) => sentence.replacen(&format!("device {device}"), "a device", 1),
            None => sentence,
        }
    }

    /// The reason in a word or two, without numbers: `changed-ledger`.
    #[must_use]
    pub fn name(&self) -> String {
        let value = serde_json::to_value(self).unwrap_or_default();
        let names = value.as_object().and_then(|object| object.keys().next());
        names.cloned().unwrap_or_default()
    }

    /// Whether the same round can be answered if correlated noise begins anew.
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
