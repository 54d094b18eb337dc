//! The outcome of a round, for the participating device only: an update, zeros with a reason, or a
//! declined round with its reason.

use crate::{
    train::{Kept, TrainReport},
    wire::message::Decline,
};

/// How a round went. It describes private data and must not leave the device.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct LastRound {
    /// The round's number.
    pub round: u32,
    /// Whether there is an update, and the reason if not.
    pub outcome: Outcome,
    /// Losses, norms and saturated values of training. All zeros if training did not end, and for
    /// an encoder's correlation matrix. An encoder has no loss of the first pass.
    #[cfg(feature = "reports")]
    pub training: TrainReport,
}

impl LastRound {
    /// Creates the outcome of a round with its training report.
    pub(super) fn of(round: u32, outcome: Outcome, _report: Kept<TrainReport>) -> Self {
        Self {
            round,
            outcome,
            #[cfg(feature = "reports")]
            training: *_report.report(),
        }
    }
}

/// The outcome of a round on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Outcome {
    /// The device has trained. If the round has an update, it is sent until it arrives.
    Updated,
    /// The device takes part with an update of zeros, for this reason. Noise or masks hide that
    /// from everyone else. The participation is spent.
    Zero(Decline),
    /// The device does not take part. The coordinator learns the reason.
    Declined(Decline),
}
