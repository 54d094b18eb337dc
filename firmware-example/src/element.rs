//! Secrets in a secure element (the feature `element`): the frames on its line, the attempts per
//! request, and the wait for an answer.
//!
//! The element is on the board's second line and answers requests in frames:
//!
//! | from the board | bytes |
//! | --- | --- |
//! | request number | 1 |
//! | slot | 1 |
//! | destination slot for the key, or 255 to return it | 1 |
//! | length of the info | 1 |
//! | info | up to 20 |
//! | CRC-32 of all of it | 4 |
//!
//! It answers with the request number, the key if requested, and the CRC-32 of both. It does not
//! answer a damaged frame. Real elements have their own protocols and drivers, and only
//! [`SecureElement`] remains. For emulated boards, a thread of the test is the element.

use core::sync::atomic::{AtomicU8, Ordering};

use smolfed_core::{
    element::{Element, ElementFault, SecretSlot, SecureElement},
    provision::{ProvisionError, Record},
    wire::crc32::crc32,
};
use zeroize::Zeroizing;

use crate::board;

/// Source of the board's secrets.
pub type Secrets = Element<Bus>;

/// Reads the board's record.
///
/// # Errors
/// [`ProvisionError`]. The device must not take part.
pub fn record() -> Result<Record<'static, Secrets>, ProvisionError> {
    Record::read_with(board::provisioning(), Bus)
}

/// The line to the element.
#[derive(Clone)]
pub struct Bus;

/// No slot: the element returns the key.
const NOWHERE: u8 = 255;

/// Longest info.
const INFO: usize = 20;

/// Bytes before the info.
const HEAD: usize = 4;

/// Bytes of a checksum.
const CRC: usize = 4;

/// Number of attempts per request. Repeated requests are harmless.
const ATTEMPTS: u8 = 3;

/// Number of polls for a byte, or for room for a byte.
const PATIENCE: u32 = 1_000_000;

/// Spins between two polls: a byte takes longer than that on any line, and an emulator needs the
/// time for the other end.
const SPINS: u32 = 100;

/// Number of the next request. An answer with another number is ignored.
static NUMBER: AtomicU8 = AtomicU8::new(0);

/// Returns an iterator of polls with delays.
fn looks() -> impl Iterator<Item = ()> {
    (0..PATIENCE).map(|_| (0..SPINS).for_each(|_| core::hint::spin_loop()))
}

impl Bus {
    /// Sends a request until an answer of `A` bytes arrives: the number, the key and the checksum.
    fn ask<const A: usize>(
        [from, to]: [u8; 2],
        info: &[u8],
        answer: &mut [u8; A],
    ) -> Result<(), ElementFault> {
        board::start_second();
        let attempt = |_| Self::attempt([from, to], info, answer);
        (0..ATTEMPTS).find_map(attempt).ok_or(ElementFault)
    }

    fn attempt<const A: usize>(
        [from, to]: [u8; 2],
        info: &[u8],
        answer: &mut [u8; A],
    ) -> Option<()> {
        // There is no other writer: only the main loop sends requests.
        let number = NUMBER.load(Ordering::Relaxed).wrapping_add(1);
        NUMBER.store(number, Ordering::Relaxed);
        // Discard late answers to the previous request.
        while board::receive_second().is_some() {}
        let mut frame = [0; HEAD + INFO + CRC];
        let length = HEAD + info.len();
        let head = [number, from, to, u8::try_from(info.len()).ok()?];
        for (place, byte) in frame.iter_mut().zip(head.iter().chain(info)) {
            *place = *byte;
        }
        let crc = crc32(frame.get(..length)?).to_le_bytes();
        frame.get_mut(length..length + CRC)?.copy_from_slice(&crc);
        for byte in frame.get(..length + CRC)? {
            looks().find(|()| board::transmit_second(*byte))?;
        }
        for place in answer.iter_mut() {
            *place = looks().find_map(|()| board::receive_second())?;
        }
        let (said, crc) = answer.split_last_chunk::<CRC>()?;
        let is_own = said.first() == Some(&number) && crc32(said).to_le_bytes() == *crc;
        is_own.then_some(())
    }
}

impl SecureElement for Bus {
    fn expand(
        &mut self,
        slot: SecretSlot,
        info: &[u8],
        key: &mut [u8; 32],
    ) -> Result<(), ElementFault> {
        let mut answer = Zeroizing::new([0; 1 + 32 + CRC]);
        Self::ask([slot as u8, NOWHERE], info, &mut answer)?;
        let [_, given @ .., _, _, _, _] = &*answer;
        *key = *given;
        Ok(())
    }

    fn expand_into(
        &mut self,
        from: SecretSlot,
        info: &[u8],
        to: SecretSlot,
    ) -> Result<(), ElementFault> {
        Self::ask([from as u8, to as u8], info, &mut [0; 1 + CRC])
    }
}
