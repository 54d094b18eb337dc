//! Secrets in a secure element: the feature `element`.
//!
//! The element is on the second line of the board, and does what it is asked for in frames:
//!
//! | from the board | bytes |
//! | --- | --- |
//! | slot | 1 |
//! | slot to put the key into, or 255: give it out | 1 |
//! | length of the info | 1 |
//! | info | up to 20 |
//!
//! It answers with a byte, 0 if it has done it, and the key behind that if it was to give it out.
//! Real elements have protocols of their own, which their drivers follow; what stays is
//! [`SecureElement`]. Beside emulated boards, a thread of the test is the element.

use smolfed_core::{
    crypto::Key,
    element::{Element, ElementFault, FIRST_CHAIN, SecureElement, Slot},
    identity::Identity,
    provision::{ProvisionError, Record},
};

use crate::board;

/// Where the board has its secrets.
pub type Secrets = Element<Bus>;

/// The record of the board.
///
/// # Errors
/// [`ProvisionError`]: the device must then not take part. Also if the element does not answer.
pub fn record() -> Result<Record<'static, Secrets>, ProvisionError> {
    let element = Element::new(Bus).map_err(|ElementFault| ProvisionError::Element)?;
    Record::read_with(board::provisioning(), element)
}

/// What a new ledger begins with.
pub const fn first_chain(_: &mut Record<'_, Secrets>) -> Option<Key> {
    Some(FIRST_CHAIN)
}

/// Who the board is.
///
/// # Errors
/// [`ElementFault`].
pub fn identity(record: &Record<'_, Secrets>) -> Result<Identity<Secrets>, ElementFault> {
    Ok(Identity {
        device: record.identity.device,
        root: Element::new(Bus)?,
    })
}

/// The line to the element.
pub struct Bus;

/// No slot: the key is given out.
const NOWHERE: u8 = 255;

/// How often the board looks for a byte that the element owes: seconds, on the emulated ones.
const PATIENCE: u32 = 50_000_000;

impl Bus {
    fn ask(from: Slot, to: u8, info: &[u8]) -> Result<(), ElementFault> {
        board::start_second();
        // What was on the way when the board gave up before.
        while board::receive_second().is_some() {}
        let length = u8::try_from(info.len()).map_err(|_| ElementFault)?;
        for byte in [from as u8, to, length].iter().chain(info) {
            while !board::transmit_second(*byte) {}
        }
        match Self::byte()? {
            0 => Ok(()),
            _ => Err(ElementFault),
        }
    }

    fn byte() -> Result<u8, ElementFault> {
        let mut looks = (0..PATIENCE).map(|_| board::receive_second());
        looks.find_map(|byte| byte).ok_or(ElementFault)
    }
}

impl SecureElement for Bus {
    fn expand(&mut self, slot: Slot, info: &[u8]) -> Result<Key, ElementFault> {
        Self::ask(slot, NOWHERE, info)?;
        let mut key = [0; 32];
        for byte in &mut key {
            *byte = Self::byte()?;
        }
        Ok(Key::from_secret(key))
    }

    fn expand_into(&mut self, from: Slot, info: &[u8], to: Slot) -> Result<(), ElementFault> {
        Self::ask(from, to as u8, info)
    }
}
