//! Reasons why rows cannot be dealt to devices: too few rows, or devices without enough
//! training rows.

/// The reason why rows cannot be dealt.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PartitionError {
    /// There are no devices.
    #[error("`devices` is 0, but the data must be distributed to at least one device")]
    NoDevices,
    /// There are too few rows.
    #[error(
        "{devices} devices of {samples} sample(s) need {} training rows, but there are {rows}; \
         lower `devices` or the samples of each",
        u64::from(*devices) * u64::from(*samples)
    )]
    TooFewRows {
        /// Number of devices.
        devices: u32,
        /// Number of samples (or shards) per device.
        samples: u32,
        /// Number of training rows.
        rows: usize,
    },
    /// A device has no or too few training rows.
    #[error("device {device} has {found} training sample(s), but needs at least {needed}")]
    EmptyDevice {
        /// Name or number of the device.
        device: String,
        /// Number of its training rows.
        found: usize,
        /// Minimum number.
        needed: u32,
    },
    /// No Dirichlet draw gave every device enough.
    #[error(
        "in {draws} draws with `alpha` = {alpha}, some device (the last time device {device}, with \
         {found}) always had fewer than {needed} samples; raise `alpha`, lower `devices`, or give \
         `samples_per_device`"
    )]
    Starved {
        /// Number of draws.
        draws: u32,
        /// Concentration.
        alpha: f64,
        /// Device with the fewest samples of the last draw.
        device: u32,
        /// Number of its samples.
        found: usize,
        /// Minimum number.
        needed: u32,
    },
    /// A partition by label needs classes, but the targets are numbers.
    #[error("`partition` = \"dirichlet\" needs classes, but this is regression; use another")]
    NotClasses,
    /// The data of a natural partition have no natural devices.
    #[error("`partition` = \"natural\" needs data with natural devices (for CSV, `device_column`)")]
    NotNatural,
}
