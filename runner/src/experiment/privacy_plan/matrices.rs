//! What a device's correlation matrices cost.

use super::{PrivacyPlan, earlier, of_unit, refuse};
use crate::config::Config;
use crate::contrast::Sharing;
use crate::contrast::updates::LEAST_SAMPLES;
use crate::data::federation::Federation;
use crate::experiment::{ExperimentError, Origin};
use crate::number::{significant, upper};
use crate::privacy::accountant::{Accountant, AccountingError};
use crate::privacy::event::{
    Adjacency, Mechanism, PrivacyEvent, PrivacyUnit, Sampling, TrustModel,
};
use crate::privacy::params::{ClipNorm, Delta, Epsilon, NoiseMultiplier};
use crate::privacy::statement::PrivacyStatement;

/// δ of the matrices where none is given.
const MATRIX_DELTA: f64 = 1e-5;

impl PrivacyPlan {
    /// What a device's correlation matrices cost, of which it sends at most `max_releases`; one example is
    /// protected, against everybody. `bound` is μ.
    pub(in crate::experiment) fn of_matrices(
        config: &Config,
        federation: &Federation,
        max_releases: u32,
        bound: smolfed_core::params::ClipNorm,
        spent: &[PrivacyEvent],
        origin: &Origin,
    ) -> Result<Self, ExperimentError> {
        let privacy = &config.contrast.privacy;
        let delta = privacy.delta.unwrap_or(MATRIX_DELTA);
        let delta = Delta::new(delta).map_err(refuse("contrast.privacy.delta", delta))?;
        let devices = federation.device_count();
        let sampling = Sampling::unsampled(devices, max_releases);
        let noise_multiplier = NoiseMultiplier::NONE;
        let event = PrivacyEvent {
            mechanism: Mechanism::CorrelationMatrix { noise_multiplier },
            sampling: sampling.map_err(refuse("contrast.max_releases", max_releases))?,
            trust: TrustModel::Local,
            unit: PrivacyUnit::Example,
            count: 1,
            releases: 1,
        };
        let tightest = || Accountant::tightest_for(&[event]);
        let accountant = privacy.accountant.unwrap_or_else(tightest);
        let bound = ClipNorm::new(f64::from(bound.get()))
            .map_err(refuse("contrast.norm_bound", bound.get()))?;
        let mut plan = Self {
            event,
            delta,
            accountant,
            budget: None,
            spent: of_unit(spent, PrivacyUnit::Example),
            noise: None,
            matrices: None,
            clip_norm: Some(bound),
            notes: origin.notes(config.seed, true),
        };
        let noise_multiplier = match (privacy.epsilon, privacy.noise_multiplier) {
            (Some(_), Some(_)) => {
                return Err(ExperimentError::Contradiction {
                    first: "contrast.privacy.epsilon",
                    second: "contrast.privacy.noise_multiplier",
                    advice: "say in one way how much noise there is",
                });
            }
            (None, None) => NoiseMultiplier::NONE,
            (None, Some(value)) => NoiseMultiplier::new(value)
                .map_err(refuse("contrast.privacy.noise_multiplier", value))?,
            (Some(value), None) => {
                let target =
                    Epsilon::new(value).map_err(refuse("contrast.privacy.epsilon", value))?;
                plan.for_target(target, u64::from(max_releases))
                    .map_err(|reason| ExperimentError::MatrixCalibration {
                        epsilon: value,
                        reason,
                    })?
            }
        };
        plan.event = event.with_noise_multiplier(noise_multiplier);
        plan.estimate(u64::from(max_releases))
            .map_err(|reason| ExperimentError::Accounting {
                accountant: accountant.name(),
                reason,
            })?;
        plan.notes.extend(earlier(&plan.spent));
        plan.notes.extend(matrix_notes(&plan, federation));
        Ok(plan)
    }

    /// The statements where devices have sent between `least` and `most` matrices: ε is that of a device that has
    /// sent most, and a note says that of one that has sent least.
    pub(in crate::experiment) fn statements_of_matrices(
        &self,
        (least, most): (u32, u32),
    ) -> Result<Vec<PrivacyStatement>, AccountingError> {
        let mut plan = self.with_most_releases(most);
        if least < most {
            let fewest = self.with_most_releases(least).estimate(u64::from(least))?;
            plan.notes.push(format!(
                "Devices sent between {least} and {most} matrices: this is the epsilon of one that sent {most}; for one \
                 that sent {least} it is {}, all else the same.",
                upper(fewest.epsilon, 4)
            ));
        }
        plan.statements(u64::from(most))
    }

    /// The same plan where no device has sent more than `most` matrices.
    fn with_most_releases(&self, most: u32) -> Self {
        let devices = self.event.sampling.device_count();
        let mut plan = self.clone();
        if let Ok(sampling) = Sampling::unsampled(devices, most) {
            plan.event.sampling = sampling;
        }
        plan
    }
}

/// What a reader of the matrices' statement must know beside the numbers.
fn matrix_notes(plan: &PrivacyPlan, federation: &Federation) -> Vec<String> {
    let counts = (0..federation.device_count()).map(|device| federation.sample_count(device));
    let senders = counts.filter(|count| *count >= LEAST_SAMPLES);
    let (least, most) = senders.fold((usize::MAX, 0), |(least, most), count| {
        (least.min(count), most.max(count))
    });
    let std = |samples: usize| significant(plan.noise_std() / samples.max(1) as f64, 4);
    let noise = match plan.multiplier().get() > 0.0 {
        false => "The matrices carry no noise.".to_owned(),
        true if least == most => format!(
            "The std of the noise on a matrix is {}, as each device has {most} samples.",
            std(most)
        ),
        true => format!(
            "The std of the noise on a matrix is {} for a device of {most} samples and {} for one of {least}.",
            std(most),
            std(least)
        ),
    };
    let mut notes = vec![
        "This is about the correlation matrices alone and says nothing about the encoder, which has a \
         statement of its own. How many samples a device has is public."
            .to_owned(),
        noise,
    ];
    if plan.delta.get() * most as f64 >= 1.0 {
        notes.push(format!(
            "Delta is {}, not below 1 in {most} samples: a mechanism that publishes one random sample of a \
             device would pass.",
            upper(plan.delta.get(), 4)
        ));
    }
    notes
}

/// What its correlation matrices tell of a whole device. The encoder's account needs it: a device's matrices steer the
/// updates of all others, so that the bound on its own update is not all that it does to their sum.
///
/// A device with n samples adds a matrix of norm at most n·μ to nothing, or replaces one by another: n times what an
/// example does, against the same noise.
#[derive(Clone, Debug)]
pub(super) struct DeviceMatrices {
    event: PrivacyEvent,
    sharing: Sharing,
}

impl DeviceMatrices {
    /// For devices of at most as many samples as `plan` knows of, under the adjacency and the trust of the updates.
    pub(super) fn new(
        plan: &PrivacyPlan,
        sharing: &Sharing,
        of_updates: Sampling,
        trust: TrustModel,
    ) -> Result<Self, ExperimentError> {
        let devices = of_updates.device_count();
        let sampling = match of_updates.adjacency() {
            Adjacency::AddRemove => Sampling::full(devices),
            Adjacency::ReplaceOne => Sampling::uniform(devices, devices),
        };
        let most = f64::from(sharing.most_samples.max(1));
        let multiplier = plan.multiplier().get() / most;
        let noise_multiplier = NoiseMultiplier::new(multiplier)
            .map_err(refuse("contrast.privacy.noise_multiplier", multiplier))?;
        Ok(Self {
            event: PrivacyEvent {
                mechanism: Mechanism::CorrelationMatrix { noise_multiplier },
                sampling: sampling.map_err(refuse("data.devices", devices))?,
                trust,
                unit: PrivacyUnit::Device,
                count: 1,
                releases: 1,
            },
            sharing: sharing.clone(),
        })
    }

    /// Those of the first `rounds` rounds; `None` if there are none.
    pub(super) fn events(&self, rounds: u64) -> Option<PrivacyEvent> {
        let rounds = u32::try_from(rounds).unwrap_or(u32::MAX);
        let count = self.sharing.count(rounds).min(self.sharing.max_releases);
        (count > 0).then(|| self.event.with_count(u64::from(count)))
    }

    /// That of one round: every device is counted as if it sent whenever matrices are sent, until it may send no more.
    pub(super) fn event_in(&self, round: u32) -> Option<PrivacyEvent> {
        let is_counted = self.sharing.count(round) < self.sharing.max_releases;
        (self.sharing.is_in(round) && is_counted).then_some(self.event)
    }
}
