//! Fine-tuning on real devices: after the last round each receives the final model, trains it
//! further, and keeps it.
//!
//! Nothing depends on the data: a device answers with an empty update whatever the result of
//! training. The privacy statement therefore does not change. Fine-tuning is a participation in the
//! device's own ledger, which bounds the work that a coordinator can request.

use smolfed_core::params::Penalty;
use smolfed_core::personal::{Personal, PersonalRequest};
use smolfed_core::wire::message::{Invitation, Request};

use super::Fleet;
use crate::exchange::{ExchangeOutcome, Offer};
use smolfed_engine::experiment::Experiment;
use smolfed_engine::method::tuning::FineTune;
use smolfed_engine::source::contract::SourceError;
use smolfed_release::Encoding;

/// Number of devices with the final model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// Devices that have fine-tuned it.
    pub tuned: usize,
    /// Devices asked to do so.
    pub asked: usize,
}

/// Returns λ and the number of epochs of fine-tuning, if real devices support it.
#[must_use]
pub fn fine_tuning(experiment: &Experiment) -> Option<(Penalty, u32)> {
    let (objective, epochs) = experiment.method().properties().fine_tuning?;
    match objective {
        FineTune::Plain => Some((Penalty::NONE, epochs)),
        FineTune::MeanRegularised(pull) => Some((pull, epochs)),
        FineTune::SymmetrisedKl(_) | FineTune::Ewc(_) => None,
    }
}

impl Fleet<'_> {
    /// Makes all real devices fine-tune the final model, if the experiment requires it.
    ///
    /// # Errors
    /// [`SourceError`] if the round number cannot be recorded.
    pub fn fine_tune(
        &mut self,
        experiment: &Experiment,
        model: &[f32],
    ) -> Result<Option<Delivered>, SourceError> {
        let (Some((pull, epochs)), Encoding::Clipped(grid)) =
            (fine_tuning(experiment), experiment.release().encoding)
        else {
            return Ok(None);
        };
        let number = self.fleet.next_round();
        let training = &experiment.training();
        let invitation = Invitation {
            shape: self.terms.shape,
            epochs,
            batch_size: training.batch_size,
            learning_rate: training.learning_rate,
            weight_decay: training.weight_decay,
            proximal: Penalty::NONE,
            clipping: training.clipping,
            gradient_smoothing: None,
            grid,
            noise: None,
            bit: None,
            masks: None,
            request: Some(Request::Personal(PersonalRequest {
                personal: Personal::Tuned { pull },
                steps: None,
                shared: 0,
                last: None,
            })),
        };
        let offer = Offer {
            short: self.recent.offer(number, model),
            ..Offer::new(number, invitation, model.to_vec())
        };
        let devices = self.fleet.devices();
        let (outcomes, ()) = self.fleet.round(offer, &devices, || ())?;
        let is_tuned = |outcome: &&ExchangeOutcome| matches!(outcome, ExchangeOutcome::Answered(_));
        Ok(Some(Delivered {
            tuned: outcomes.values().filter(is_tuned).count(),
            asked: devices.len(),
        }))
    }
}
