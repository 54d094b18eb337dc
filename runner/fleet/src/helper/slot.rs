//! One coordinator at a time. A coordinator whose connection broke returns and replaces its earlier
//! connection. Another one is refused until that connection is closed.

use std::sync::Mutex;

use tokio_util::sync::CancellationToken;

use crate::helper_link::Process;
use crate::lock::lock;

#[derive(Debug)]
struct Taken {
    process: Process,
    ends: CancellationToken,
}

/// The slot of the coordinator.
#[derive(Debug, Default)]
pub struct CoordinatorSlot(Mutex<Option<Taken>>);

impl CoordinatorSlot {
    /// Takes the slot for a connection of `process`. `None` if another process has it. The
    /// connection ends when the token is cancelled.
    #[must_use]
    pub fn take(&self, process: Process) -> Option<CancellationToken> {
        let mut slot = lock(&self.0);
        if let Some(taken) = &*slot {
            if taken.process != process {
                return None;
            }
            taken.ends.cancel();
        }
        let ends = CancellationToken::new();
        *slot = Some(Taken {
            process,
            ends: ends.clone(),
        });
        Some(ends)
    }

    /// Frees the slot when the connection with this token is closed.
    pub fn leave(&self, ends: &CancellationToken) {
        let mut slot = lock(&self.0);
        // Unless a later connection has the slot.
        if !ends.is_cancelled() {
            *slot = None;
        }
    }

    /// Returns whether a coordinator is connected.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        lock(&self.0).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_coordinator_comes_back_and_another_one_waits() {
        let slot = CoordinatorSlot::default();
        let first = slot.take([1; 16]).unwrap();
        assert!(slot.take([2; 16]).is_none());
        let again = slot.take([1; 16]).unwrap();
        assert!(first.is_cancelled() && !again.is_cancelled());
        // The first connection notices later that it is over.
        slot.leave(&first);
        assert!(slot.take([2; 16]).is_none() && slot.is_taken());
        slot.leave(&again);
        assert!(!slot.is_taken());
        assert!(slot.take([2; 16]).is_some());
    }
}
