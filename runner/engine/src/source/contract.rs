//! What a source is.

use smolfed_core::stream::Root;

use crate::attendance::Attendance;
use crate::attendance::buffered::Arrivals;
use crate::method::contract::{Assignment, Learner, Store};
use crate::method::state::StateError;
use crate::question::Inquiry;
use crate::run_files::error::RunDirError;
use smolfed_release::masked::Asked;
use smolfed_release::{Outcome, PrivateSum};

/// A round, or a question after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The round, from 0.
    pub round: u32,
    /// Its number among all rounds and questions of the run, in their order.
    pub number: u32,
}

/// Who takes part in a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draw {
    /// The number that names the round's random streams, on devices and on the server.
    pub number: u32,
    /// The devices that were drawn, ascending; in a window of time, those whose updates have
    /// arrived.
    pub cohort: Vec<u32>,
    /// The version of the model that each of them has trained from, in their order; empty where
    /// all train from that of the round.
    pub versions: Vec<u32>,
    /// Devices that have spent a round without an update that counts.
    pub wasted: Vec<u32>,
    /// Whether what the mechanism kept of earlier rounds was lost before this one.
    pub history_lost: bool,
}

impl Draw {
    /// Of simulated devices, which forget nothing.
    #[must_use]
    pub fn of(number: u32, arrivals: Arrivals) -> Self {
        Self {
            number,
            cohort: arrivals.devices,
            versions: arrivals.versions,
            wasted: arrivals.wasted,
            history_lost: false,
        }
    }
}

/// The exact sum of what a cohort sent, and what came of each device.
#[derive(Debug)]
pub struct CohortSum {
    /// Without the server's noise yet: private.
    pub sum: PrivateSum,
    /// Outcomes in the order of the cohort.
    pub outcomes: Vec<Outcome>,
    /// Why messages beside the updates were left out, a reason each, if there are any.
    pub left_out_messages: Vec<String>,
    /// What devices with masks were asked, as their tags cover it; `None` without masks.
    pub asked: Option<Asked>,
}

/// Where devices are. With every source, a device that was drawn but has no update contributes zero
/// to the sum and changes nothing else.
pub trait Source {
    /// Called once, before the first round of a session, with the stored state from which the run
    /// begins or goes on; `None` for a run that leaves nothing behind.
    ///
    /// # Errors
    /// [`SourceError`] if the run cannot take place.
    fn begin(&mut self, _: Option<&Store<'_>>) -> Result<(), SourceError> {
        Ok(())
    }

    /// Called before the checkpoint after `rounds` rounds is written: what devices keep elsewhere
    /// is on the disk when this returns, and is not overwritten before the next checkpoint.
    ///
    /// # Errors
    /// [`SourceError`]: the checkpoint must not be written.
    fn before_checkpoint(&mut self, _rounds: u32) -> Result<(), SourceError> {
        Ok(())
    }

    /// Waits until `round` can take place, before it is drawn and charged; whether it had to wait.
    /// Also returns when the run is asked to stop, before which the round can take place or not.
    ///
    /// Must depend on nothing that is drawn or that devices answer: that a round takes place is
    /// public.
    ///
    /// # Errors
    /// [`SourceError`] if it is waited for no longer.
    fn ready(&mut self, _round: u32) -> Result<bool, SourceError> {
        Ok(false)
    }

    /// Called at the beginning of a window of time: devices that ask from now on train from this
    /// version of the model, `assignment.round`. Only where rounds are windows.
    ///
    /// # Errors
    /// [`SourceError`] if the window cannot take place.
    fn offer(
        &mut self,
        _assignment: &Assignment<'_>,
        _learner: &dyn Learner,
    ) -> Result<(), SourceError> {
        Ok(())
    }

    /// The cohort of a round or of a question, drawn by the accounted sampling scheme or by a
    /// timetable. `None` if the round was already charged in the ledger but interrupted: its random
    /// streams may have been used and must not be used for another sum. A window of time has ended
    /// when this returns.
    ///
    /// # Errors
    /// [`SourceError`] if the round cannot take place.
    fn draw(
        &mut self,
        attendance: &Attendance,
        root: &Root,
        step: Step,
    ) -> Result<Option<Draw>, SourceError>;

    /// Has the devices of a cohort train, and sums up what they send. In a window of time the
    /// cohort are the devices of one version, of which `assignment` is.
    ///
    /// # Errors
    /// [`SourceError`] if the round cannot take place; not if devices fail.
    fn sum(
        &mut self,
        assignment: &Assignment<'_>,
        learner: &mut dyn Learner,
        cohort: &[u32],
    ) -> Result<CohortSum, SourceError>;

    /// Has the devices of a cohort answer a question, and sums up what they send.
    ///
    /// # Errors
    /// [`SourceError`] if nobody can be asked; not if devices fail.
    fn answers(&mut self, inquiry: &Inquiry<'_>, cohort: &[u32]) -> Result<CohortSum, SourceError>;

    /// Called after the sum of a round, or of answers, was released, or came to nothing, before
    /// anything else happens.
    ///
    /// # Errors
    /// [`SourceError`] if the round cannot be recorded.
    fn round_finished(&mut self, _is_lost: bool) -> Result<(), SourceError> {
        Ok(())
    }
}

/// Why a source has no sum.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// What devices keep.
    #[error(transparent)]
    States(#[from] StateError),
    /// A fleet, such as its round numbers.
    #[error(transparent)]
    Fleet(Box<dyn std::error::Error + Send + Sync>),
    /// The record of who took part could not be written.
    #[error(transparent)]
    RunDir(#[from] RunDirError),
}
