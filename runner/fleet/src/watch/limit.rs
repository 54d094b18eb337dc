//! A limit on repeated log entries: a mass outage, a flood or a full disk must not fill the log.
//!
//! Events of one kind (one place in the code, one reason) are written [`MAX_A_WINDOW`] times per
//! minute and then counted. The count is written at the end of the minute. Time is monotonic:
//! setting the clock has no effect.

use std::collections::HashMap;
use std::time::Duration;

/// Maximum number of written events of one kind per [`WINDOW`].
pub const MAX_A_WINDOW: u32 = 5;

/// Time after which events of a kind are written again.
pub const WINDOW: Duration = Duration::from_secs(60);

/// Maximum number of distinct kinds. All others count as one. There are few reasons, but this
/// bounds the memory if they ever come from outside.
const MAX_KINDS: usize = 256;

/// A place in the code, and the reason.
type Kind = (usize, String);

/// State of each kind of event.
#[derive(Debug, Default)]
pub struct Limits {
    kinds: HashMap<Kind, Tally>,
}

#[derive(Debug)]
struct Tally {
    /// Start of its window.
    since: Duration,
    written: u32,
    left_out: u64,
}

impl Limits {
    /// Returns whether an event is written at this time.
    pub fn admits(&mut self, place: usize, reason: &str, now: Duration) -> bool {
        let kind = match self.kinds.len() < MAX_KINDS {
            true => (place, reason.to_owned()),
            false => (0, String::new()),
        };
        let tally = self.kinds.entry(kind).or_insert(Tally {
            since: now,
            written: 0,
            left_out: 0,
        });
        if tally.written < MAX_A_WINDOW {
            tally.written += 1;
            return true;
        }
        tally.left_out += 1;
        false
    }

    /// Ends the expired windows, or all of them. Returns the reasons of omitted events, and their
    /// numbers.
    pub fn over(&mut self, now: Duration, all: bool) -> Vec<(String, u64)> {
        let mut counts = Vec::new();
        self.kinds.retain(|(_, reason), tally| {
            let is_over = all || now.saturating_sub(tally.since) >= WINDOW;
            if is_over && tally.left_out > 0 {
                counts.push((reason.clone(), tally.left_out));
            }
            !is_over
        });
        counts.sort_unstable();
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_events_are_counted_for_a_minute() {
        let mut limits = Limits::default();
        let at = Duration::from_secs;
        let mut admitted = 0;
        for second in 0..50 {
            admitted += u32::from(limits.admits(1, "too late", at(second)));
        }
        assert_eq!(admitted, MAX_A_WINDOW);
        assert!(limits.admits(1, "not connected", at(50)), "another reason");
        assert!(limits.admits(2, "too late", at(50)), "another place");
        assert_eq!(limits.over(at(59), false), []);
        assert_eq!(limits.over(at(60), false), [("too late".to_owned(), 45)]);
        assert!(limits.admits(1, "too late", at(61)));
        assert_eq!(limits.over(at(62), true), []);
    }

    #[test]
    fn kinds_are_bounded() {
        let mut limits = Limits::default();
        for index in 0..10_000 {
            limits.admits(1, &index.to_string(), Duration::ZERO);
        }
        assert_eq!(limits.kinds.len(), MAX_KINDS + 1);
    }
}
