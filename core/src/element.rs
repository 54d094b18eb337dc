//! Devices whose secrets are in a secure element: a chip such as ATECC608 or SE050, or the secure
//! side of a processor with TrustZone.
//!
//! The two secrets of a device, the root of its streams and its chain key, are then never in RAM,
//! not even while they are used: the element derives keys from them, and gives out those.
//!
//! # What firmware does
//!
//! It implements [`SecureElement`], two functions around the driver of the element, reads its
//! record with [`Record::read_with`](crate::provision::Record::read_with), and makes its ledger
//! with [`FIRST_CHAIN`] in the place of the key. All the rest is as without: the session takes the
//! identity, [`Ledger::begin`](crate::ledger::Ledger::begin) does.
//!
//! ```
//! use smolfed_core::{
//!     crypto::Key,
//!     element::{Element, ElementFault, SecureElement, Slot},
//!     identity::Identity,
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
//!     fn expand(&mut self, slot: Slot, info: &[u8]) -> Result<Key, ElementFault> {
//!         let mut key = [0; 32];
//!         let done = self.0.hkdf_expand(slot as u8, info, &mut key);
//!         done.map_err(|_| ElementFault)?;
//!         Ok(Key::from_secret(key))
//!     }
//!
//!     fn expand_into(&mut self, from: Slot, info: &[u8], to: Slot) -> Result<(), ElementFault> {
//!         let done = self.0.hkdf_expand_to_slot(from as u8, info, to as u8);
//!         done.map_err(|_| ElementFault)
//!     }
//! }
//!
//! # fn main() -> Result<(), ElementFault> {
//! # let driver = Driver;
//! let identity = Identity {
//!     device: 7,
//!     root: Element::new(Chip(driver))?,
//! };
//! # Ok(())
//! # }
//! ```
//!
//! # What derives from the secrets
//!
//! All by HKDF-Expand with SHA-256 (RFC 5869, section 2.3), 32 bytes:
//!
//! | slot | info | what it is | how long it is in RAM |
//! | --- | --- | --- | --- |
//! | root | "streams " ‖ nonce of the ledger ‖ round u32 | root of the streams of one round | until the next round |
//! | root | "smolfed mask" ‖ device u32 | root of the masks, with the feature `masks` | always |
//! | chain key | as of `wire::keys` | keys of one greeting or session | its session |
//!
//! HKDF-Expand is a pseudo-random function: whoever reads the RAM has the noise of this round and
//! the frames of this session, and neither those of another round nor of another session. The
//! exception are masks, whose keys helpers share: whoever has read the RAM of a device with masks
//! knows them in all rounds.
//!
//! # The ratchet and power cuts
//!
//! The chain key after n steps is in slot [`Slot::Even`] or [`Slot::Odd`], by n; n is in the ledger,
//! in the place of the chain key. A step derives the next key into the other slot, *then* the
//! ledger records n + 1 with the participation. A power cut between the two leaves n in the ledger,
//! and the key of n in its slot: the step is repeated with the same result. One after both finds
//! n + 1 in both. So neither the element nor the ledger needs to know what the other has done. The
//! slot before has the key of the last session until the next step, as the ledger has without an
//! element: whoever can open the element reads that session, and none before it.
//!
//! A record for an element says so: firmware without one refuses it, and with it the ledger, whose
//! number of steps it would take for a key.

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
pub enum Slot {
    /// The root of the device's streams: written once.
    Root = 0,
    /// The chain key after an even number of steps: at first, that of provisioning.
    Even = 1,
    /// The chain key after an odd number of steps: at first empty.
    Odd = 2,
}

/// That the element did nothing: it does not answer, or refuses.
///
/// A frame that needs it is left out, counted as [`Unexpected`], and comes again; a round
/// that needs it is declined, and not recorded.
///
/// [`Unexpected`]: crate::wire::refusal::Refusal::Unexpected
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ElementFault;

impl core::fmt::Display for ElementFault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the secure element does not answer, or refuses")
    }
}

impl core::error::Error for ElementFault {}

/// What a secure element does, around its driver. Both functions wait for it.
pub trait SecureElement {
    /// HKDF-Expand with SHA-256 (RFC 5869, section 2.3) of the secret in `slot`, with at most 20
    /// bytes of `info`: 32 bytes, which are HMAC-SHA-256(secret; info ‖ 1).
    ///
    /// # Errors
    /// [`ElementFault`].
    fn expand(&mut self, slot: Slot, info: &[u8]) -> Result<Key, ElementFault>;

    /// The same, into another slot: it does not leave the element. What was there is overwritten.
    ///
    /// # Errors
    /// [`ElementFault`]. Slot `to` may then have anything, and `from` what it had.
    fn expand_into(&mut self, from: Slot, info: &[u8], to: Slot) -> Result<(), ElementFault>;
}

/// What a new ledger takes in the place of the first chain key: no step was done.
pub const FIRST_CHAIN: Key = Key::from_secret([0; 32]);

/// The secrets of a device in a secure element, in the place of the [`Root`] of its
/// [`Identity`](crate::identity::Identity).
pub struct Element<E> {
    chip: E,
    /// That of the round which was begun last.
    streams: Root,
}

impl<E: SecureElement> Element<E> {
    /// Asks the element for the first time.
    ///
    /// # Errors
    /// [`ElementFault`].
    pub fn new(mut chip: E) -> Result<Self, ElementFault> {
        // Before the first round nothing draws from it; if anything did, it would be secret.
        let streams = root_of(&mut chip, b"smolfed no round")?;
        Ok(Self { chip, streams })
    }

    /// The element.
    pub const fn chip(&mut self) -> &mut E {
        &mut self.chip
    }
}

fn root_of(chip: &mut impl SecureElement, info: &[u8]) -> Result<Root, ElementFault> {
    let root = chip.expand(Slot::Root, info)?;
    Ok(Root::from_secret(*root.secret()))
}

/// How many steps the chain key has done, as the ledger has it.
fn steps(chain: &ChainKey) -> u32 {
    let [a, b, c, d, ..] = *chain.secret();
    u32::from_le_bytes([a, b, c, d])
}

/// Where the chain key is after so many steps.
const fn slot(steps: u32) -> Slot {
    match steps.is_multiple_of(2) {
        true => Slot::Even,
        false => Slot::Odd,
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
        root_of(&mut self.chip, &info)
    }

    fn bind(&mut self, _: &LedgerNonce) {}

    fn begin(&mut self, ledger: &LedgerNonce, round: u32) -> Result<(), ElementFault> {
        self.streams = self.streams(ledger, round)?;
        Ok(())
    }

    fn current(&self) -> &Root {
        &self.streams
    }

    fn masks(&mut self, device: u32) -> Result<MaskRoot, ElementFault> {
        let root = self.chip.expand(Slot::Root, &MaskRoot::input(device))?;
        Ok(MaskRoot::from_derived(root))
    }

    fn derive(&mut self, chain: &ChainKey, inputs: &[&[u8; 16]]) -> Result<Key, ElementFault> {
        let (first, rest) = inputs.split_first().ok_or(ElementFault)?;
        let key = self.chip.expand(slot(steps(chain)), *first)?;
        Ok(key.cascade(rest))
    }

    fn next(&mut self, chain: &ChainKey) -> Result<Option<ChainKey>, ElementFault> {
        let steps = steps(chain);
        // A ledger has fewer than 2³² − 1 records.
        let next = steps.wrapping_add(1);
        self.chip.expand_into(slot(steps), RATCHET, slot(next))?;
        let mut named = [0; 32];
        let [a, b, c, d, ..] = &mut named;
        [*a, *b, *c, *d] = next.to_le_bytes();
        Ok(Some(ChainKey::new(Key::from_secret(named))))
    }
}

impl<E> core::fmt::Debug for Element<E> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Element(..)")
    }
}
