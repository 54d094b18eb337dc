//! Privacy cost (ε) of a device's correlation matrices, for one of its examples and for the whole
//! device, with the notes of their statement.

use smolfed_accounting::event::{Mechanism, PrivacyEvent, PrivacyUnit, Sampling, TrustModel};
use smolfed_accounting::params::{ClipNorm, Delta, Epsilon, NoiseMultiplier};

use super::settings::MIN_SAMPLES;
use crate::check::{ExperimentError, refuse};
use crate::data_conditions::of_data;
use crate::method::setup::Setup;
use smolfed_data::federation::Federation;
use smolfed_release::condition::Condition;
use smolfed_release::number::{significant, upper};
use smolfed_release::plan::{PrivacyPlan, earlier, of_unit, release_of_all};

/// Requirements of real devices.
const OF_RECORD: &str = "A real device enforces this even if its coordinator does not: it sends no \
                         matrix with less noise than its provisioning record requires (`smolfed \
                         provision` writes this noise minus a millionth), and at most one matrix \
                         for each participation of its budget.";

/// Default δ of the matrices.
const DEFAULT_DELTA: f64 = 1e-5;

/// Returns the cost of a device's correlation matrices, at most `max_releases` of them. It protects
/// one example against everybody. `bound` is μ.
pub(super) fn of_matrices(
    setup: &Setup<'_>,
    max_releases: u32,
    bound: smolfed_core::params::ClipNorm,
) -> Result<PrivacyPlan, ExperimentError> {
    let privacy = &setup.contrast.privacy;
    let delta = privacy.delta.unwrap_or(DEFAULT_DELTA);
    let delta = Delta::new(delta).map_err(refuse("contrast.privacy.delta", delta))?;
    let devices = setup.federation.device_count();
    let sampling = Sampling::unsampled(devices, max_releases);
    let noise_multiplier = NoiseMultiplier::NONE;
    let event = PrivacyEvent {
        mechanism: Mechanism::CorrelationMatrix { noise_multiplier },
        sampling: sampling.map_err(refuse("contrast.max_releases", max_releases))?,
        trust: TrustModel::Local,
        unit: PrivacyUnit::Example,
        count: 1,
        releases: 1,
        devices_per_user: std::num::NonZeroU32::MIN,
    };
    let bound = ClipNorm::new(f64::from(bound.get()))
        .map_err(refuse("contrast.norm_bound", bound.get()))?;
    let spent = of_unit(setup.spent.events(), PrivacyUnit::Example);
    let mut plan = PrivacyPlan::new(event, delta, privacy.accountant, spent).with_clip_norm(bound);
    let noise_multiplier = noise_multiplier_of(setup, &mut plan, max_releases)?;
    plan.mechanism.event = event.with_noise_multiplier(noise_multiplier);
    plan.is_accountable(u64::from(max_releases))?;
    let (seed, trust) = (Some(setup.seed), TrustModel::Local);
    let mut notes = setup.origin.notes(seed, trust, false);
    notes.extend(earlier(&plan.spent));
    notes.extend(matrix_notes(&plan, setup.federation));
    if !setup.origin.is_simulation() {
        notes.push(OF_RECORD.to_owned());
    }
    plan.note(notes);
    plan.depend_on(setup.origin.conditions(seed, trust));
    plan.depend_on(of_data(setup.federation));
    plan.depend_on(setup.spent.conditions(PrivacyUnit::Example));
    if setup.federation.private_scale().is_some() {
        plan.depend_on([Condition::MomentsOfDevices]);
    }
    Ok(plan)
}

/// Returns z of the matrices, from any of the keys.
fn noise_multiplier_of(
    setup: &Setup<'_>,
    plan: &mut PrivacyPlan,
    max_releases: u32,
) -> Result<NoiseMultiplier, ExperimentError> {
    let privacy = &setup.contrast.privacy;
    match (privacy.epsilon, privacy.noise_multiplier) {
        (None, None) => Ok(NoiseMultiplier::NONE),
        (None, Some(value)) => {
            NoiseMultiplier::new(value).map_err(refuse("contrast.privacy.noise_multiplier", value))
        }
        (Some(epsilon), _) => {
            let target =
                Epsilon::new(epsilon).map_err(refuse("contrast.privacy.epsilon", epsilon))?;
            plan.for_target(target, u64::from(max_releases))
                .map_err(|reason| ExperimentError::MatrixCalibration { epsilon, reason })
        }
    }
}

/// Returns notes for readers of the matrices' statement, besides the numbers.
fn matrix_notes(plan: &PrivacyPlan, federation: &Federation) -> Vec<String> {
    let counts = (0..federation.device_count()).map(|device| federation.sample_count(device));
    let senders = counts.filter(|count| *count >= MIN_SAMPLES);
    let (min, max) = senders.fold((usize::MAX, 0), |(min, max), count| {
        (min.min(count), max.max(count))
    });
    let std = |samples: usize| significant(plan.noise_std() / samples.max(1) as f64, 4);
    let noise = match plan.multiplier().get() > 0.0 {
        false => "The matrices carry no noise.".to_owned(),
        true if min == max => format!(
            "The std of the noise on a matrix is {}, as each device has {max} samples.",
            std(max)
        ),
        true => format!(
            "The std of the noise on a matrix is {} for a device of {max} samples and {} for one \
             of {min}.",
            std(max),
            std(min)
        ),
    };
    let mut notes = vec![
        "This statement is only about the correlation matrices, not about the encoder, which has \
         its own statement. The number of samples of a device is public."
            .to_owned(),
        noise,
    ];
    if plan.delta.get() * max as f64 >= 1.0 {
        notes.push(format!(
            "Delta is {}, not below 1 in {max} samples: a mechanism that publishes one random \
             sample of a device would pass.",
            upper(plan.delta.get(), 4)
        ));
    }
    notes
}

/// Returns the cost of one correlation matrix for a whole device. The encoder's account needs it: a
/// device's matrices steer the updates of all others, so the bound on its own update does not cover
/// its whole effect on their sum.
///
/// A device with n samples adds a matrix of norm at most n·μ to nothing, or replaces one by
/// another: n times the effect of an example, against the same noise. `plan` is the plan for
/// examples. Adjacency and trust are those of the updates.
pub(super) fn of_device(
    setup: &Setup<'_>,
    plan: &PrivacyPlan,
    max_samples: u32,
) -> Result<PrivacyEvent, ExperimentError> {
    let multiplier = plan.multiplier().get() / f64::from(max_samples.max(1));
    let noise_multiplier = NoiseMultiplier::new(multiplier)
        .map_err(refuse("contrast.privacy.noise_multiplier", multiplier))?;
    let (sampling, keys) = (setup.sampling, setup.keys);
    let event = release_of_all(
        Mechanism::CorrelationMatrix { noise_multiplier },
        sampling.device_count(),
        sampling,
        keys.trust,
        keys.devices_per_user,
    );
    Ok(event?)
}
