//! What this build of the crate has code for, by its features, and what a round may ask of it.
//!
//! A device declines whatever asks for more: before it is recorded, and for a reason that depends
//! on the build and the invitation only.

use crate::wire::message::{Decline, Invitation};

/// Noise of the device's own: `local-noise`.
pub(super) const HAS_NOISE: bool = cfg!(feature = "local-noise");

/// Smoothing of local gradients: `gradient-smoothing`.
pub(super) const HAS_SMOOTHING: bool = cfg!(feature = "gradient-smoothing");

/// The bit of an adaptive clip norm: `adaptive-bit`.
pub(super) const HAS_BIT: bool = cfg!(feature = "adaptive-bit");

/// Pseudonyms: `pseudonym`.
pub(super) const HAS_PSEUDONYM: bool = cfg!(feature = "pseudonym");

/// Whether this build has code for all that an invitation asks for.
///
/// # Errors
/// The reason of the decline, by the part that is missing.
#[inline(always)]
pub(super) const fn check(invitation: &Invitation) -> Result<(), Decline> {
    if !HAS_NOISE && invitation.noise.is_some() {
        Err(Decline::NO_LOCAL_NOISE)
    } else if !HAS_SMOOTHING && invitation.gradient_smoothing.is_some() {
        Err(Decline::NO_SMOOTHING)
    } else if !HAS_BIT && invitation.bit.is_some() {
        Err(Decline::NO_BIT)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
