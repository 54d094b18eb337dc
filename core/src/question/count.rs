//! Number of answering devices.

/// Entries: 1 for each device.
pub(super) const LENGTH: usize = 1;
