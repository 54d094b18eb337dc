//! The minimum noise that a record makes a device require: the noise of the experiment or, on a
//! coarse grid, a little less than the accountant counts of it.

use smolfed_accounting::event::Mechanism;
use smolfed_core::NoiseMultiplier;
use smolfed_core::session::GRID_LOSS;

/// The noise multiplier of the devices' own noise: z or, on a coarse grid, what the accountant
/// counts of it, which a device would otherwise decline, less a share that covers the rounding of
/// both. Never 0, which trusts the coordinator.
pub(super) fn device_noise(mechanism: &Mechanism) -> NoiseMultiplier {
    let multiplier = mechanism.noise_multiplier().get();
    let counted = mechanism.continuous_multiplier();
    let share = 1.0 - 0.5 * GRID_LOSS;
    let is_fine = counted >= multiplier * share;
    let accepted = if is_fine { multiplier } else { counted * share };
    rounded_down(accepted).max(NoiseMultiplier::from_units(1))
}

/// In units of 2^-32, rounded down: never more than the experiment adds.
pub(super) fn rounded_down(multiplier: f64) -> NoiseMultiplier {
    NoiseMultiplier::from_units((multiplier * 2f64.powi(32)) as u64)
}
