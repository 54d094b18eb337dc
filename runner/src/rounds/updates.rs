//! Where the updates of a round come from: simulated devices, real ones, or a recorded participation.

use smolfed_core::stream::Root;

use super::RoundError;
use crate::contrast::Matrices;
use crate::data::federation::Federation;
use crate::personal::{PersonalPlan, States};
use crate::privacy::event::Sampling;
use crate::sampling::draw_cohort;
use crate::simulate::{CohortSum, RoundPlan, train_cohort};

/// Who takes part in a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draw {
    /// The number that names the round's random streams, on devices and on the server.
    pub number: u32,
    /// The devices that were drawn, ascending.
    pub cohort: Vec<u32>,
}

/// A source of updates. Whatever it is, a device that was drawn and has no update is a zero in the
/// sum and changes nothing else.
pub trait Updates {
    /// Draws a round's cohort, as it is accounted. `None` for a round that was paid for and is
    /// burned: its random streams may have been used, and must not be used on another sum.
    ///
    /// # Errors
    /// [`RoundError`] if the round cannot take place.
    fn draw(
        &mut self,
        sampling: &Sampling,
        root: &Root,
        round: u32,
    ) -> Result<Option<Draw>, RoundError>;

    /// The exact sum of the cohort's updates from the model `global`, and what came of each device, in
    /// the order of the cohort.
    ///
    /// # Errors
    /// [`RoundError`] if the round cannot take place; not if devices fail.
    fn sum(
        &mut self,
        plan: &RoundPlan<'_>,
        root: &Root,
        global: &[f32],
        cohort: &[u32],
    ) -> Result<CohortSum, RoundError>;

    /// The models that simulated devices keep, if they keep some.
    fn personal(&self) -> Option<(&PersonalPlan, &States)> {
        None
    }

    /// The correlation matrices that devices have sent, if they send some.
    fn matrices(&self) -> Option<&Matrices> {
        None
    }

    /// The models that devices keep, to be synced.
    fn states(&mut self) -> Option<&mut States> {
        None
    }
}

/// Devices that train in this process.
#[derive(Clone, Copy, Debug)]
pub struct Simulated<'a>(pub &'a Federation);

impl Updates for Simulated<'_> {
    fn draw(
        &mut self,
        sampling: &Sampling,
        root: &Root,
        round: u32,
    ) -> Result<Option<Draw>, RoundError> {
        Ok(Some(Draw {
            number: round,
            cohort: draw_cohort(sampling, root, round),
        }))
    }

    fn sum(
        &mut self,
        plan: &RoundPlan<'_>,
        root: &Root,
        global: &[f32],
        cohort: &[u32],
    ) -> Result<CohortSum, RoundError> {
        Ok(train_cohort(plan, self.0, root, global, cohort))
    }
}
