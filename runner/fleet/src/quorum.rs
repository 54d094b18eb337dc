//! A round that ends when part of the cohort has answered.
//!
//! # Privacy
//! The updates in the sum then depend on speed: a device that answers early displaces the one that
//! would have been last. Suppose that the time of a device's answer does not depend on the data of
//! *others*. If the data of one device change, the order of all others stays, and exactly the first
//! k updates count. So either the device's update is in both sums, or it replaces one other update
//! in one of them. The sums differ by two updates, each of norm at most L, and therefore by at most
//! 2L. This is the sensitivity under replace-one adjacency anyway, where a quorum costs nothing.
//! Under add-remove adjacency the sensitivity would be L without a quorum and 2L with one, so the
//! coordinator refuses it there under central trust. Under local trust every update is private by
//! itself, and any choice among them is post-processing.
//!
//! Exactly k updates must count, and not the updates present when the round was closed: the time of
//! closing depends on the device too, and could move several others. Each update is therefore
//! numbered at the moment when it is complete.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};

/// Number of updates that end a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quorum {
    /// A share of its cohort.
    Share(Share),
    /// This many, if more devices are drawn.
    Updates(u32),
}

/// A share of a cohort: above 0, at most 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share(f64);

/// Error for a share that is not above 0 and at most 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a share of the cohort above 0 and up to 1, for example 0.8")]
pub struct ShareError;

impl FromStr for Share {
    type Err = ShareError;

    fn from_str(text: &str) -> Result<Self, ShareError> {
        let share: f64 = text.parse().map_err(|_| ShareError)?;
        Self::new(share).ok_or(ShareError)
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Share {
    /// Returns a share, or `None` unless it is above 0 and at most 1.
    #[must_use]
    pub fn new(share: f64) -> Option<Self> {
        (share > 0.0 && share <= 1.0).then_some(Self(share))
    }

    /// Returns the share.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl Quorum {
    /// Returns how many of a cohort's updates end the round, at least 1. Shares are rounded up.
    #[must_use]
    pub fn updates_needed(self, cohort: usize) -> u32 {
        match self {
            // At most the size of the cohort, a `u32`.
            Self::Share(Share(share)) => ((share * cohort as f64).ceil() as u32).max(1),
            Self::Updates(count) => count.max(1),
        }
    }
}

/// Counts complete updates up to a limit.
#[derive(Debug)]
pub struct Places {
    limit: u32,
    taken: AtomicU32,
}

impl Places {
    /// Returns places for this many updates.
    #[must_use]
    pub const fn new(limit: u32) -> Self {
        Self {
            limit,
            taken: AtomicU32::new(0),
        }
    }

    /// Takes a place for a complete update. Returns whether one was left.
    pub fn take(&self) -> bool {
        let take = |taken: u32| (taken < self.limit).then_some(taken + 1);
        let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
        self.taken.fetch_update(success, failure, take).is_ok()
    }

    /// Returns whether all places are taken.
    #[must_use]
    pub fn are_taken(&self) -> bool {
        self.taken.load(Ordering::Acquire) >= self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_parsed_and_rounded_up() {
        for text in ["0", "-0.5", "1.01", "nan", "inf", "", "80%"] {
            assert_eq!(text.parse::<Share>(), Err(ShareError), "{text}");
        }
        let quorum = Quorum::Share("0.8".parse().unwrap());
        for (cohort, expected) in [(0, 1), (1, 1), (4, 4), (5, 4), (100, 80)] {
            assert_eq!(quorum.updates_needed(cohort), expected, "of {cohort}");
        }
        assert_eq!(Quorum::Share("1".parse().unwrap()).updates_needed(7), 7);
        assert_eq!(Quorum::Updates(100).updates_needed(125), 100);
    }

    #[test]
    fn no_more_than_the_limit_get_a_place() {
        let places = Places::new(3);
        let taken = std::thread::scope(|scope| {
            let takes = || (0..100).filter(|_| places.take()).count();
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(takes)).collect();
            let counts = threads.into_iter().map(|thread| thread.join().unwrap());
            counts.sum::<usize>()
        });
        assert_eq!(taken, 3);
        assert!(places.are_taken());
    }
}
