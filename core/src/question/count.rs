//! How many devices answer.

/// Entries: 1 for each device.
pub(super) const LENGTH: usize = 1;
