//! The interface (trait) of a source of devices: the draw of a round, the sum of its updates, the
//! answers to questions, and errors.

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

/// The participants of a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draw {
    /// The number that names the round's random streams, on devices and on the server.
    pub number: u32,
    /// The drawn devices, ascending. In a time window, the devices whose updates have arrived.
    pub cohort: Vec<u32>,
    /// Model version from which each of them trained, in the same order. Empty if all train from
    /// the round's model.
    pub versions: Vec<u32>,
    /// Devices that used a participation without an update that counts.
    pub wasted: Vec<u32>,
    /// Whether the mechanism's state from earlier rounds was lost before this one.
    pub history_lost: bool,
}

impl Draw {
    /// Creates the draw of simulated devices, which lose no state.
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

/// The exact sum of a cohort's contributions, and the outcome of each device.
#[derive(Debug)]
pub struct CohortSum {
    /// The private sum, still without the server's noise.
    pub sum: PrivateSum,
    /// Outcomes in the order of the cohort.
    pub outcomes: Vec<Outcome>,
    /// One reason for each omitted message besides the updates.
    pub left_out_messages: Vec<String>,
    /// The question to devices with masks, as covered by their tags, or `None` without masks.
    pub asked: Option<Asked>,
}

/// A source of devices. With every source, a drawn device without an update contributes zero to the
/// sum and changes nothing else.
pub trait Source {
    /// Prepares a session. Called once, before its first round, with the stored state from which
    /// the run starts or resumes, or `None` for a run that leaves nothing behind.
    ///
    /// # Errors
    /// [`SourceError`] if the run cannot take place.
    fn begin(&mut self, _: Option<&Store<'_>>) -> Result<(), SourceError> {
        Ok(())
    }

    /// Prepares the checkpoint after `rounds` rounds. Device states stored elsewhere are on disk
    /// when this returns, and are not overwritten before the next checkpoint.
    ///
    /// # Errors
    /// [`SourceError`]: the checkpoint must not be written.
    fn before_checkpoint(&mut self, _rounds: u32) -> Result<(), SourceError> {
        Ok(())
    }

    /// Waits until `round` can take place, before it is drawn and charged. Returns whether it had
    /// to wait. Also returns when the run is asked to stop, whether or not the round can take
    /// place.
    ///
    /// Must not depend on draws or on answers of devices: it is public that a round takes place.
    ///
    /// # Errors
    /// [`SourceError`] if it stops waiting.
    fn ready(&mut self, _round: u32) -> Result<bool, SourceError> {
        Ok(false)
    }

    /// Starts a time window: devices that ask from now on train from this version of the model,
    /// `assignment.round`. Called only if rounds are windows.
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

    /// Draws the cohort of a round or of a question, by the accounted sampling scheme or by a
    /// timetable. Returns `None` if the round was already charged in the ledger but interrupted:
    /// its random streams may have been used and must not be used for another sum. A time window
    /// has ended when this returns.
    ///
    /// # Errors
    /// [`SourceError`] if the round cannot take place.
    fn draw(
        &mut self,
        attendance: &Attendance,
        root: &Root,
        step: Step,
    ) -> Result<Option<Draw>, SourceError>;

    /// Trains the devices of a cohort, and sums up their updates. In a time window, the cohort
    /// consists of the devices of one version, to which `assignment` belongs.
    ///
    /// # Errors
    /// [`SourceError`] if the round cannot take place. A failing device is not an error.
    fn sum(
        &mut self,
        assignment: &Assignment<'_>,
        learner: &mut dyn Learner,
        cohort: &[u32],
    ) -> Result<CohortSum, SourceError>;

    /// Asks the devices of a cohort a question, and sums up their answers.
    ///
    /// # Errors
    /// [`SourceError`] if nobody can be asked. A failing device is not an error.
    fn answers(&mut self, inquiry: &Inquiry<'_>, cohort: &[u32]) -> Result<CohortSum, SourceError>;

    /// Finishes a round or a question. Called after its sum was released or lost, before anything
    /// else happens.
    ///
    /// # Errors
    /// [`SourceError`] if the round cannot be recorded.
    fn round_finished(&mut self, _is_lost: bool) -> Result<(), SourceError> {
        Ok(())
    }
}

/// Why a source cannot provide a sum.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The states of devices failed.
    #[error(transparent)]
    States(#[from] StateError),
    /// A fleet failed, for example in its round numbers.
    #[error(transparent)]
    Fleet(Box<dyn std::error::Error + Send + Sync>),
    /// The record of who took part could not be written.
    #[error(transparent)]
    RunDir(#[from] RunDirError),
}
