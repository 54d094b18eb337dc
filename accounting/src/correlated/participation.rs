//! The largest number of rounds of one device in a run (participations) and their smallest distance
//! (separation), with their limits, for correlated noise.

use serde::{Deserialize, Serialize};

use super::error::CorrelatedError;
use super::sensitivity::MAX_ROUNDS;

/// (k, b) participation: in a run of n rounds, a device takes part at most k times, and any two of
/// its rounds are at least b apart, with b - 1 or more rounds between them.
///
/// There is no other assumption on who takes part, or on the order. Each device enforces the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Raw", into = "Raw")]
pub struct Participation {
    rounds: u32,
    separation: u32,
    participations: u32,
}

/// [`Participation`] before its numbers are checked against each other.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    rounds: u32,
    separation: u32,
    participations: u32,
}

impl TryFrom<Raw> for Participation {
    type Error = CorrelatedError;

    fn try_from(raw: Raw) -> Result<Self, CorrelatedError> {
        Self::new(raw.rounds, raw.separation, raw.participations)
    }
}

impl From<Participation> for Raw {
    fn from(checked: Participation) -> Self {
        Self {
            rounds: checked.rounds,
            separation: checked.separation,
            participations: checked.participations,
        }
    }
}

impl Participation {
    /// Creates a bound of at most `participations` (k) of `rounds` (n) rounds, `separation` (b) or
    /// more apart.
    ///
    /// At most ⌈n / b⌉ rounds are that far apart, so k is limited to this number.
    /// [`participations`](Self::participations) returns the limited k.
    ///
    /// # Errors
    /// [`CorrelatedError::Rounds`], [`CorrelatedError::Separation`] or
    /// [`CorrelatedError::NoParticipations`] for a number outside its range.
    pub const fn new(
        rounds: u32,
        separation: u32,
        participations: u32,
    ) -> Result<Self, CorrelatedError> {
        if rounds == 0 || rounds > MAX_ROUNDS {
            return Err(CorrelatedError::Rounds { rounds });
        }
        if separation == 0 || separation > rounds {
            return Err(CorrelatedError::Separation { separation, rounds });
        }
        if participations == 0 {
            return Err(CorrelatedError::NoParticipations);
        }
        let checked = Self {
            rounds,
            separation,
            participations,
        };
        let possible = checked.max_participations();
        Ok(if participations < possible {
            checked
        } else {
            Self {
                participations: possible,
                ..checked
            }
        })
    }

    /// Returns ⌈n / b⌉, the largest number of rounds that are at least b apart.
    #[must_use]
    pub const fn max_participations(self) -> u32 {
        self.rounds.div_ceil(self.separation)
    }

    /// Returns n, the number of rounds of the run.
    #[must_use]
    pub const fn rounds(self) -> u32 {
        self.rounds
    }

    /// Returns b, the smallest difference of two rounds in which one device takes part.
    #[must_use]
    pub const fn separation(self) -> u32 {
        self.separation
    }

    /// Returns k, the largest number of rounds in which one device takes part. At most ⌈n / b⌉.
    #[must_use]
    pub const fn participations(self) -> u32 {
        self.participations
    }

    /// Returns the bound for b successive rounds, in one of which a device takes part.
    #[must_use]
    pub(crate) const fn of_one_block(self) -> Self {
        Self {
            rounds: self.separation,
            participations: 1,
            ..self
        }
    }

    /// Returns the rounds of a device that takes part as early and as often as allowed: 0, b, 2b,
    /// ...
    pub(super) fn earliest(self) -> impl Iterator<Item = usize> {
        let separation = self.separation as usize;
        (0..self.participations as usize).map(move |index| index * separation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn participations_are_cut_to_what_is_possible() {
        let k = |n, b, k| Participation::new(n, b, k).unwrap().participations();
        assert_eq!(k(2052, 342, 6), 6);
        assert_eq!(k(2052, 342, 100), 6);
        assert_eq!(k(2053, 342, 100), 7);
        assert_eq!(k(10, 10, 3), 1);
        assert_eq!(k(10, 1, u32::MAX), 10);
    }

    #[test]
    fn impossible_numbers_are_refused() {
        let refused = |n, b, k| Participation::new(n, b, k).unwrap_err();
        assert_eq!(refused(0, 1, 1), CorrelatedError::Rounds { rounds: 0 });
        let rounds = MAX_ROUNDS + 1;
        assert_eq!(refused(rounds, 1, 1), CorrelatedError::Rounds { rounds });
        for separation in [0, 11] {
            let expected = CorrelatedError::Separation {
                separation,
                rounds: 10,
            };
            assert_eq!(refused(10, separation, 1), expected);
        }
        assert_eq!(refused(10, 2, 0), CorrelatedError::NoParticipations);
    }

    #[test]
    fn files_pass_the_same_checks_as_code() {
        let good = r#"{"rounds":30,"separation":20,"participations":2}"#;
        let read: Participation = serde_json::from_str(good).unwrap();
        assert_eq!(read, Participation::new(30, 20, 2).unwrap());
        assert_eq!(serde_json::to_string(&read).unwrap(), good);
        let bad = r#"{"rounds":30,"separation":31,"participations":2}"#;
        assert!(serde_json::from_str::<Participation>(bad).is_err());
    }
}
