//! The early end of a run, by request of the system or a person.
//!
//! A round is charged before its devices are invited, and a charged round that is not completed is
//! burned. A round in progress is therefore never abandoned: its deadline is brought forward to the
//! end of a grace period. Devices that have not answered by then are missing as at any other
//! deadline, and count as zero updates under the planned sampling. Neither the denominator nor the
//! accounting depends on the deadline. No further round is charged.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::lock::lock;

/// Whether a run must stop, and when its round in progress ends.
#[derive(Debug, Default)]
pub struct Stopping {
    is_asked: AtomicBool,
    deadline: Mutex<Option<Instant>>,
}

impl Stopping {
    /// Begins no further round, and ends the round in progress after `grace` at the latest. A later
    /// call can only bring that forward.
    pub fn stop_within(&self, grace: Duration) {
        let mut deadline = lock(&self.deadline);
        let asked = Instant::now() + grace;
        *deadline = Some(deadline.map_or(asked, |earlier| earlier.min(asked)));
        self.is_asked.store(true, Ordering::Relaxed);
    }

    /// Returns the flag that is set once no further round may begin.
    #[must_use]
    pub const fn flag(&self) -> &AtomicBool {
        &self.is_asked
    }

    /// Returns whether no further round may begin.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        self.is_asked.load(Ordering::Relaxed)
    }

    /// Returns the deadline of a round planned to end at `deadline`.
    #[must_use]
    pub fn deadline(&self, deadline: Instant) -> Instant {
        let asked = *lock(&self.deadline);
        asked.map_or(deadline, |earlier| deadline.min(earlier))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_only_brought_forward() {
        let stopping = Stopping::default();
        let planned = Instant::now() + Duration::from_secs(60);
        assert!(!stopping.is_asked());
        assert_eq!(stopping.deadline(planned), planned);
        stopping.stop_within(Duration::from_secs(600));
        assert!(stopping.is_asked());
        assert_eq!(stopping.deadline(planned), planned);
        stopping.stop_within(Duration::ZERO);
        assert!(stopping.deadline(planned) <= Instant::now());
        stopping.stop_within(Duration::from_secs(30));
        assert!(stopping.deadline(planned) <= Instant::now());
    }
}
