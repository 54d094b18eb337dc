//! The features that this build of the crate has code for, and the check of rounds against them.
//!
//! A device declines rounds that need more, before they are recorded and for a reason that depends
//! only on the build and the invitation.

use crate::wire::message::{Decline, Invitation};

/// The device's own noise: `local-noise`.
pub(super) const HAS_NOISE: bool = cfg!(feature = "local-noise");

/// Smoothing of local gradients: `gradient-smoothing`.
pub(super) const HAS_SMOOTHING: bool = cfg!(feature = "gradient-smoothing");

/// The bit of an adaptive clip norm: `adaptive-bit`.
pub(super) const HAS_BIT: bool = cfg!(feature = "adaptive-bit");

/// Pseudonyms: `pseudonym`.
pub(super) const HAS_PSEUDONYM: bool = cfg!(feature = "pseudonym");

/// Checks that this build has code for everything an invitation asks for.
///
/// # Errors
/// Returns the reason of the decline, by the missing part.
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
