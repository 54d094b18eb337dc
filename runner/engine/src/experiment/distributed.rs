//! Masks and helpers of distributed trust: the masking of updates, and the policy that an
//! experiment requires of each helper.

use smolfed_accounting::TrustModel;
use smolfed_accounting::correlated::Strategy;

use super::keys::Keys;
use crate::check::ExperimentError;
use crate::combinations::Conflict;
use crate::combinations::rules::MASKED_TREE;
use smolfed_release::Mechanism;
use smolfed_release::Timing;
use smolfed_release::masked::{Combination, HelperPolicy};
use smolfed_release::masking::Masking;
use smolfed_release::masking::Ring;
use smolfed_release::plan::PrivacyPlan;

/// Returns the masking of the updates, or `None` under another trust model, or if nothing is sent.
///
/// # Errors
/// [`ExperimentError`] without a clip norm, for a tree, and for integers that do not fit.
pub(super) fn masking(
    keys: &Keys,
    privacy: &PrivacyPlan,
    timing: Timing,
) -> Result<Option<Masking>, ExperimentError> {
    let TrustModel::Distributed(parties) = keys.privacy.trust else {
        return Ok(None);
    };
    if timing == Timing::Never {
        return Ok(None);
    }
    let Some(grid) = keys.encoding.grid() else {
        return Err(ExperimentError::Missing {
            key: "privacy.clip_norm",
            purpose: "masked updates are integers on the grid of a clip norm",
        });
    };
    let combination = Combination::from_strategy(privacy.mechanism.strategy.as_deref());
    let combination = combination.ok_or(Conflict::of(&MASKED_TREE))?;
    let most = keys.attendance.largest_drawn();
    let largest = (most as u128 * u128::from(combination.weight())) << grid.bits();
    // σ of all parties in steps, rounded up.
    let sigma = privacy.mechanism.sampler.map_or(0.0, |noise| {
        let (numerator, denominator) = noise.sigma().ratio();
        numerator as f64 / denominator as f64
    });
    let sigma = (sigma * f64::from(parties.count()).sqrt()).ceil() as u64 + 1;
    let ring = Ring::holding(largest, sigma).map_err(|reason| ExperimentError::Range {
        key: "privacy.grid_bits",
        value: grid.bits().to_string(),
        expected: format!("smaller, or cohorts of fewer than {most} devices: {reason}"),
    })?;
    Ok(Some(Masking {
        helpers: parties.helpers(),
        grid_bits: grid.bits() as u8,
        ring,
        max_devices: u32::try_from(most).unwrap_or(u32::MAX),
        // Below 2^57, or it would not fit.
        largest_norm: u64::try_from(largest).unwrap_or(u64::MAX),
    }))
}

/// Returns the requirements of each helper of an experiment with this plan, for cohorts of at least
/// `min_cohort` devices, or `None` without masks.
pub(super) fn policy(
    masking: Option<Masking>,
    mechanism: &Mechanism,
    rounds: u32,
    min_cohort: u32,
) -> Option<HelperPolicy> {
    let masking = masking?;
    let strategy = mechanism.strategy.as_deref();
    let sensitivity = strategy.map_or(1.0, Strategy::sensitivity);
    let (participations, separation) = match strategy.map(Strategy::participation) {
        None => (mechanism.event.sampling.max_rounds_of_one(rounds.into()), 1),
        Some(allowed) => (allowed.participations().into(), allowed.separation()),
    };
    Some(HelperPolicy {
        helpers: masking.helpers,
        noise_multiplier: mechanism.party_multiplier().get() * sensitivity,
        min_cohort,
        max_rounds: rounds,
        participations: u32::try_from(participations).unwrap_or(u32::MAX),
        separation,
        coefficients: Combination::from_strategy(strategy)?
            .coefficients()
            .to_vec(),
    })
}
