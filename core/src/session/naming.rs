//! The name of a device in its greeting: its number or a pseudonym.
//!
//! Without the feature `pseudonym` a device that hides its number has no name and stays silent,
//! because its number is all it could show. [`Session::new`](super::Session::new) refuses it.

use crate::{
    secrets::{Held, Secrets},
    wire::greeting::Name,
};

/// Returns the name of a device under this chain key, or `None` if its secrets are unavailable.
#[cfg(feature = "pseudonym")]
#[inline(always)]
pub(super) fn name<S: Secrets>(
    hides_number: bool,
    chain: &mut Held<'_, S>,
    device: u32,
) -> Option<Name> {
    use crate::wire::keys::Chain;
    match hides_number {
        true => chain.pseudonym().ok().map(Name::Pseudonym),
        false => Some(Name::Number(device)),
    }
}

/// Returns the name of a device that does not hide its number.
#[cfg(not(feature = "pseudonym"))]
#[inline(always)]
pub(super) const fn name<S: Secrets>(
    hides_number: bool,
    _: &mut Held<'_, S>,
    device: u32,
) -> Option<Name> {
    match hides_number {
        true => None,
        false => Some(Name::Number(device)),
    }
}
