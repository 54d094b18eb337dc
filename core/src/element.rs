//! Devices with their secrets in a secure element: a chip such as ATECC608 or SE050, or the secure
//! side of a processor with TrustZone.
//!
//! The two secrets of a device, the root of its streams and its chain key, are then never in RAM,
//! not even during use: the element derives keys from them and only returns those keys.
//!
//! # Use in firmware
//!
//! Firmware implements [`SecureElement`], two functions around the driver of the element, and reads
//! its record with [`Record::read_with`](crate::provision::Record::read_with). Everything else is
//! the same as without an element.
//!
//! ```
//! use smolfed_core::{
//!     element::{Element, ElementFault, SecretSlot, SecureElement},
//!     provision::{ProvisionError, Record},
//! };
//!
//! # struct Driver;
//! # impl Driver {
//! #     fn hkdf_expand(&mut self, _: u8, _: &[u8], key: &mut [u8; 32]) -> Result<(), ()> {
//! #         key.fill(7);
//! #         Ok(())
//! #     }
//! #     fn hkdf_expand_to_slot(&mut self, _: u8, _: &[u8], _: u8) -> Result<(), ()> {
//! #         Ok(())
//! #     }
//! # }
//! /// An element behind a driver.
//! struct Chip(Driver);
//!
//! impl SecureElement for Chip {
//!     fn expand(
//!         &mut self,
//!         slot: SecretSlot,
//!         info: &[u8],
//!         key: &mut [u8; 32],
//!     ) -> Result<(), ElementFault> {
//!         let done = self.0.hkdf_expand(slot as u8, info, key);
//!         done.map_err(|_| ElementFault)
//!     }
//!
//!     fn expand_into(
//!         &mut self,
//!         from: SecretSlot,
//!         info: &[u8],
//!         to: SecretSlot,
//!     ) -> Result<(), ElementFault> {
//!         let done = self.0.hkdf_expand_to_slot(from as u8, info, to as u8);
//!         done.map_err(|_| ElementFault)
//!     }
//! }
//!
//! fn record(page: &[u8], driver: Driver) -> Result<Record<'_, Element<Chip>>, ProvisionError> {
//!     Record::read_with(page, Chip(driver))
//! }
//! ```
//!
//! # Derived keys
//!
//! All keys have 32 bytes and derive by HKDF-Expand with SHA-256 (RFC 5869, section 2.3):
//!
//! | slot | info | derived value | in RAM |
//! | --- | --- | --- | --- |
//! | root | "streams " ‖ ledger's nonce ‖ round u32 | root of streams | until the round ends |
//! | root | "smolfed mask" ‖ device u32 | root of masks, with the feature `masks` | always |
//! | chain key | as in `wire::keys` | keys of a session and its greeting | until it ends |
//! | root | "smolfed no round" | placeholder before the first round | until that |
//! | both | "smolfed check   " | 16 bytes that identify the secret | public |
//!
//! HKDF-Expand is a pseudo-random function: an attacker who reads the RAM learns the noise of the
//! round in training and the frames of the session, but of no other round or session. Masks are the
//! exception, because helpers share their keys: an attacker who has read the RAM of a device with
//! masks knows them in all rounds. An attacker who runs code on the device can ask the element for
//! any key.
//!
//! # The ratchet and power cuts
//!
//! The chain key after n steps is in slot [`SecretSlot::Even`] or [`SecretSlot::Odd`], by n.
//! Instead of a chain key, the ledger holds the check of the key, and n. A step derives the next
//! key into the other slot, and *then* the ledger records n + 1 with the participation. A power cut
//! between the two leaves n in the ledger, and the key of n in its slot: the step is repeated with
//! the same result. After both, n + 1 is in both. So neither the element nor the ledger needs to
//! know the state of the other. The previous slot has the key of the last session until the next
//! step, as the ledger has without an element: an attacker who can open the element can read that
//! session, and none before it.
//!
//! **A ledger rolled back** by two steps or more names an overwritten key: the check detects it,
//! and there is no session and no participation. A ledger rolled back by one step greets with the
//! key of the previous session, which reveals the rollback to the coordinator, as without an
//! element.
//!
//! **An erased ledger** can only be created again with the key of the provisioning record, which is
//! overwritten at the first start, as without an element. Here the key is a check and n = 0.
//!
//! **Another element**, or one without a root, does not match the record's check of the root, and
//! [`Record::read_with`](crate::provision::Record::read_with) refuses it. Nothing else would detect
//! it, and the noise would be predictable.
//!
//! A record for an element has a flag, so that firmware without an element refuses it. Otherwise
//! the firmware would use the name in the ledger as a key.

#[cfg(test)]
pub(crate) mod tests;

use crate::{
    crypto::Key,
    identity::LedgerNonce,
    mask::MaskRoot,
    secrets::{STREAMS, Secrets, sealed::Sealed},
    stream::Root,
    wire::keys::{ChainKey, RATCHET},
};

/// A secret in a secure element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SecretSlot {
    /// The root of the device's streams, written when the device is provisioned.
    Root = 0,
    /// The chain key after an even number of steps. Initially the key from provisioning.
    Even = 1,
    /// The chain key after an odd number of steps. Initially empty.
    Odd = 2,
}

/// Error if the secure element did not answer, refused, or has the wrong secrets.
///
/// The session skips a frame that needs it, counts the frame as [`Unexpected`], and gets it again.
/// It declines a round that needs it, and does not record the round.
///
/// [`Unexpected`]: crate::wire::refusal::Refusal::Unexpected
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ElementFault;

impl core::fmt::Display for ElementFault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the secure element did not answer, or has other secrets")
    }
}

impl core::error::Error for ElementFault {}

/// The functions of a secure element, around its driver. Both wait for the element, and return its
/// answer to this request, never a late answer to an earlier, abandoned request.
pub trait SecureElement {
    /// HKDF-Expand with SHA-256 (RFC 5869, section 2.3) of the secret in `slot`, with at most 20
    /// bytes of `info`: 32 bytes, which are HMAC-SHA-256(secret; info ‖ 1). They are written to
    /// `key`, which the caller overwrites after use. Keep no copy.
    ///
    /// # Errors
    /// [`ElementFault`].
    fn expand(
        &mut self,
        slot: SecretSlot,
        info: &[u8],
        key: &mut [u8; 32],
    ) -> Result<(), ElementFault>;

    /// Like [`Self::expand`], into another slot, so that the result does not leave the element. It
    /// replaces the contents of the slot, and survives a power failure.
    ///
    /// # Errors
    /// [`ElementFault`]. Slot `to` may then hold anything, and `from` is unchanged.
    fn expand_into(
        &mut self,
        from: SecretSlot,
        info: &[u8],
        to: SecretSlot,
    ) -> Result<(), ElementFault>;
}

/// The secrets of a device in a secure element, instead of the [`Root`] of its
/// [`Identity`](crate::identity::Identity).
#[derive(Clone)]
pub struct Element<E> {
    chip: E,
    /// Root of the current round, until it ends.
    streams: Root,
}

/// A value that identifies a secret and reveals nothing about it.
pub type Check = [u8; 16];

/// Input of the derivation of a check.
const CHECK: &[u8; 16] = b"smolfed check   ";

/// Input of the derivation of the root after the end of a round.
const ENDED: &[u8; 16] = b"smolfed no round";

/// Returns the check of a secret, for provisioning.
#[must_use]
pub fn check(secret: &Key) -> Check {
    crate::crypto::kdf::expand(secret, CHECK).truncated()
}

/// Returns the ledger's name for a chain key: its check and its number of steps.
#[must_use]
pub fn named(steps: u32, check: &Check) -> Key {
    let mut name = Key::from_secret([0; 32]);
    let places = name.secret_mut().iter_mut();
    let bytes = check.iter().copied().chain(steps.to_le_bytes());
    for (place, byte) in places.zip(bytes) {
        *place = byte;
    }
    name
}

impl<E: SecureElement> Element<E> {
    /// Creates the secrets from an element whose root has this check.
    ///
    /// # Errors
    /// [`ElementFault`].
    pub fn new(chip: E, root: &Check) -> Result<Self, ElementFault> {
        let mut element = Self {
            chip,
            // Replaced at once by a secret one. Nothing draws from either.
            streams: Root::from_secret([0; 32]),
        };
        element.streams = element.root_of(ENDED)?;
        match element.check_of(SecretSlot::Root)? == *root {
            true => Ok(element),
            false => Err(ElementFault),
        }
    }

    fn derived(&mut self, slot: SecretSlot, info: &[u8]) -> Result<Key, ElementFault> {
        let mut key = Key::from_secret([0; 32]);
        self.chip.expand(slot, info, key.secret_mut())?;
        Ok(key)
    }

    fn check_of(&mut self, slot: SecretSlot) -> Result<Check, ElementFault> {
        let key = self.derived(slot, CHECK)?;
        Ok(key.truncated())
    }

    fn root_of(&mut self, info: &[u8]) -> Result<Root, ElementFault> {
        let root = self.derived(SecretSlot::Root, info)?;
        Ok(Root::from_secret(*root.secret()))
    }
}

impl<E> Element<E> {
    /// Returns the element.
    pub const fn chip(&mut self) -> &mut E {
        &mut self.chip
    }
}

/// Returns the number of steps of a chain key in the ledger.
fn steps(chain: &ChainKey) -> u32 {
    let steps = chain.secret().get(size_of::<Check>()..);
    let steps = steps.and_then(<[u8]>::first_chunk).copied();
    u32::from_le_bytes(steps.unwrap_or_default())
}

/// Returns the slot of the chain key after `steps` steps.
const fn slot(steps: u32) -> SecretSlot {
    match steps.is_multiple_of(2) {
        true => SecretSlot::Even,
        false => SecretSlot::Odd,
    }
}

impl<E> Sealed for Element<E> {}

impl<E: SecureElement> Secrets for Element<E> {
    type Fault = ElementFault;

    fn streams(&mut self, ledger: &LedgerNonce, round: u32) -> Result<Root, ElementFault> {
        let mut info = [0; 20];
        let parts = [&STREAMS[..], ledger, &round.to_le_bytes()];
        for (place, byte) in info.iter_mut().zip(parts.into_iter().flatten()) {
            *place = *byte;
        }
        self.root_of(&info)
    }

    fn recognise(&mut self, chain: &ChainKey) -> Result<(), ElementFault> {
        let steps = steps(chain);
        let check = self.check_of(slot(steps))?;
        match *named(steps, &check).secret() == *chain.secret() {
            true => Ok(()),
            false => Err(ElementFault),
        }
    }

    fn bind(&mut self, _: &LedgerNonce) {}

    fn begin(&mut self, ledger: &LedgerNonce, round: u32) -> Result<(), ElementFault> {
        self.streams = self.streams(ledger, round)?;
        Ok(())
    }

    fn end(&mut self) {
        let ended = Key::from_secret(*self.streams.secret()).derive(ENDED);
        self.streams = Root::from_secret(*ended.secret());
    }

    fn current(&self) -> &Root {
        &self.streams
    }

    fn masks(&mut self, device: u32) -> Result<MaskRoot, ElementFault> {
        let root = self.derived(SecretSlot::Root, &MaskRoot::input(device))?;
        Ok(MaskRoot::from_derived(root))
    }

    fn derive(&mut self, chain: &ChainKey, inputs: &[&[u8; 16]]) -> Result<Key, ElementFault> {
        let (first, rest) = inputs.split_first().ok_or(ElementFault)?;
        let key = self.derived(slot(steps(chain)), *first)?;
        Ok(key.cascade(rest))
    }

    fn next(&mut self, chain: &ChainKey) -> Result<Option<ChainKey>, ElementFault> {
        let steps = steps(chain);
        // A ledger has fewer than 2³² − 1 records.
        let next = steps.wrapping_add(1);
        self.chip.expand_into(slot(steps), RATCHET, slot(next))?;
        let check = self.check_of(slot(next))?;
        Ok(Some(ChainKey::new(named(next, &check))))
    }
}

impl<E> core::fmt::Debug for Element<E> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Element(..)")
    }
}
