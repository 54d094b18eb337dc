//! Number of answering devices: each counts as one.

/// Entries: 1 for each device.
pub(super) const LENGTH: usize = 1;
