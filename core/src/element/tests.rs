//! An element for tests of its surroundings. `session::tests::element` tests it in sessions.

use super::{ElementFault, SecretSlot, SecureElement};
use crate::crypto::{Key, kdf::expand};

/// An element with this secret in each slot, which accepts no other.
pub(crate) struct Rooted(pub(crate) [u8; 32]);

impl SecureElement for Rooted {
    fn expand(
        &mut self,
        _: SecretSlot,
        info: &[u8],
        place: &mut [u8; 32],
    ) -> Result<(), ElementFault> {
        *place = *expand(&Key::from_secret(self.0), info).secret();
        Ok(())
    }

    fn expand_into(&mut self, _: SecretSlot, _: &[u8], _: SecretSlot) -> Result<(), ElementFault> {
        Err(ElementFault)
    }
}
