//! Errors in a LEAF file: malformed JSON, devices that are listed twice or have no data, counts
//! that do not agree, samples of different lengths.

use crate::dataset::DatasetError;

/// Errors in a LEAF file.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LeafError {
    /// The JSON is malformed or of another shape.
    #[error("is not LEAF JSON ({0})")]
    Json(String),
    /// A device is listed twice.
    #[error("names the device `{device}` twice")]
    DuplicateDevice {
        /// Name of the device.
        device: String,
    },
    /// `num_samples` does not have one entry per device.
    #[error("`num_samples` has {found} entries for the {expected} devices of `users`")]
    CountsLength {
        /// Devices in `users`.
        expected: usize,
        /// Entries of `num_samples`.
        found: usize,
    },
    /// A device of `users` has no data.
    #[error("`users` names the device `{device}`, but `user_data` does not")]
    NoData {
        /// Name of the device.
        device: String,
    },
    /// A device with data is not in `users`.
    #[error("`user_data` names the device `{device}`, but `users` does not")]
    NotListed {
        /// Name of the device.
        device: String,
    },
    /// A device has no sample.
    #[error("the device `{device}` has no samples")]
    EmptyDevice {
        /// Name of the device.
        device: String,
    },
    /// Features, labels and `num_samples` disagree.
    #[error(
        "the device `{device}` has {x} entries in `x`, {y} in `y` and {declared} by `num_samples`"
    )]
    SampleCounts {
        /// Name of the device.
        device: String,
        /// Entries of `x`.
        x: usize,
        /// Entries of `y`.
        y: usize,
        /// Entry of `num_samples`.
        declared: u64,
    },
    /// A sample has another number of features than the first.
    #[error(
        "sample {sample} of the device `{device}` has {found} features, but the first sample \
         has {expected}"
    )]
    Ragged {
        /// Name of the device.
        device: String,
        /// Position within the device, from 0.
        sample: usize,
        /// Number of features of the very first sample.
        expected: usize,
        /// Number of features of this sample.
        found: usize,
    },
    /// A label of a classification task is not an integer of at least 0.
    #[error(
        "sample {sample} of the device `{device}` has label {value}, but labels are whole numbers \
         from 0 to 65535"
    )]
    Label {
        /// Name of the device.
        device: String,
        /// Position within the device, from 0.
        sample: usize,
        /// The label.
        value: f64,
    },
    /// The content is well-formed but cannot be learned from.
    #[error(transparent)]
    Content(#[from] DatasetError),
}
