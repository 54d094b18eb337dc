//! How a round went, for the device that took part in it and for nobody else.

use crate::{
    train::{Kept, TrainReport},
    wire::message::Decline,
};

/// How a round went. It describes private data: it must not leave the device.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct LastRound {
    /// The round's number.
    pub round: u32,
    /// Whether there is an update, and why not.
    pub outcome: Outcome,
    /// How training went: losses, norms and saturated values. All zeros if training did not
    /// end, and of an encoder's correlation matrix. An encoder has no loss of the first pass.
    #[cfg(feature = "reports")]
    pub training: TrainReport,
}

impl LastRound {
    /// A round, with how training went.
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
    /// The device has trained. Its update is sent as often as it takes, if the round has one.
    Updated,
    /// The device takes part with an update of zeros, for this reason. Noise or masks hide that
    /// from everybody else. The participation is spent.
    Zero(Decline),
    /// The device does not take part, for this reason, which the coordinator is told.
    Declined(Decline),
}
