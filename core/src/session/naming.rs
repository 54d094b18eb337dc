//! What a device calls itself in its greeting: its number, or a pseudonym.
//!
//! Without the feature `pseudonym` a device that hides its number has no name, and is silent: all
//! that it could show is its number. [`Session::new`](super::Session::new) refuses it.

use crate::{
    secrets::{Held, Secrets},
    wire::greeting::Name,
};

/// The name of a device under this chain key, if it has one and its secrets are there.
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

/// The name of a device that does not hide its number.
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
