//! The record of a ledger as bytes in flash: its length, its checksum, and the correction of a
//! flipped bit. [`super`] has the layouts.

use crate::{
    bytes::{Reader, Writer},
    crc32::{crc32, flipped_bit},
    crypto::Key,
    identity::LedgerNonce,
    wipe::wipe,
    wire::keys::ChainKey,
};

/// Bytes of a copy of the record, a multiple of the write size of usual flash.
pub const RECORD_BYTES: usize = 64;

/// Bytes of the two copies in a slot. An image of a new ledger has the same length.
pub const SLOT_BYTES: usize = 2 * RECORD_BYTES;

const MAGIC: [u8; 4] = *b"sfL3";

/// Bytes before the checksum, which covers them.
const COVERED: usize = 56;

/// Flipped bits allowed at each end of a copy that counts as completed.
const TOLERANCE: u32 = 1;

/// Returns whether a copy was written from its first word to its last, up to a flipped bit in each.
/// A cut erase or write leaves an end erased, where several bits differ.
pub(super) fn is_whole(copy: &[u8; RECORD_BYTES]) -> bool {
    let [start @ .., _, _, _, _] = copy;
    let end = copy.get(start.len()..).unwrap_or_default();
    distance(copy, &MAGIC) <= TOLERANCE && distance(end, &[0; 4]) <= TOLERANCE
}

/// The past of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Past {
    /// Number of rounds begun.
    pub participations: u32,
    /// Lowest round number that can still begin.
    pub next_round: u32,
}

/// Returns whether a copy is erased, up to one byte, in which a bit may have flipped.
pub(super) fn is_blank(copy: &[u8; RECORD_BYTES]) -> bool {
    copy.iter().filter(|byte| **byte != 0xff).count() <= 1
}

/// Returns the number of different bits, up to the end of the shorter slice.
#[inline(never)]
fn distance(a: &[u8], b: &[u8]) -> u32 {
    a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum()
}

/// The contents of a copy.
#[derive(Clone)]
#[cfg_attr(test, derive(PartialEq))]
pub(super) struct Record {
    pub(super) sequence: u32,
    pub(super) past: Past,
    pub(super) chain: ChainKey,
    pub(super) nonce: LedgerNonce,
}

impl Record {
    /// Creates the record before the first one, with sequence number 0, which no record on flash
    /// has.
    pub(super) const fn first(chain: ChainKey, nonce: LedgerNonce) -> Self {
        Self {
            sequence: 0,
            past: Past {
                participations: 0,
                next_round: 0,
            },
            chain,
            nonce,
        }
    }

    /// Returns the record whose encoding differs from a copy in at most one bit.
    #[inline(never)]
    pub(super) fn of(copy: &[u8; RECORD_BYTES]) -> Option<Self> {
        let mut mended = *copy;
        let (message, rest) = mended.split_at_mut_checked(COVERED)?;
        let checksum = u32::from_le_bytes(*rest.first_chunk()?);
        if let Some(bit) = flipped_bit(crc32(message) ^ checksum, 8 * COVERED) {
            *message.get_mut(bit / 8)? ^= 1 << (bit % 8);
        }
        // Magic, checksum and zeros must also match, bit for bit, so they are replaced by those of
        // the encoding.
        seal(&mut mended);
        let record = match distance(&mended, copy) <= 1 {
            true => Self::read(&mut Reader(&mended)),
            false => None,
        };
        wipe(&mut mended);
        record
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let _magic = reader.u32()?;
        Some(Self {
            sequence: reader.u32()?,
            past: Past {
                participations: reader.u32()?,
                next_round: reader.u32()?,
            },
            chain: ChainKey::new(Key::from_secret(reader.array()?)),
            nonce: reader.array()?,
        })
    }

    /// Writes the encoding to `bytes`. A returned value would be on the stack twice.
    #[inline(never)]
    pub(super) fn write(&self, bytes: &mut [u8; RECORD_BYTES]) {
        Writer::new(bytes)
            .put(&MAGIC)
            .u32(self.sequence)
            .u32(self.past.participations)
            .u32(self.past.next_round)
            .put(self.chain.secret())
            .put(&self.nonce);
        seal(bytes);
    }
}

/// Writes the magic, the checksum and the zeros around the fields.
fn seal(copy: &mut [u8; RECORD_BYTES]) {
    if let Some((message, rest)) = copy.split_at_mut_checked(COVERED)
        && let Some(magic) = message.first_chunk_mut()
    {
        *magic = MAGIC;
        rest.fill(0);
        if let Some(checksum) = rest.first_chunk_mut() {
            *checksum = crc32(message).to_le_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers numbers, the chain key, the nonce, the checksum and the zeros.
    #[test]
    fn a_flipped_bit_of_a_copy_is_mended() {
        let record = Record {
            sequence: 0x0102_0304,
            past: Past {
                participations: 7,
                next_round: u32::MAX,
            },
            chain: ChainKey::new(Key::from_secret([0xa5; 32])),
            nonce: [0; 8],
        };
        let mut whole = [0; RECORD_BYTES];
        record.write(&mut whole);
        for bit in 0..8 * RECORD_BYTES {
            let mut flipped = whole;
            flipped[bit / 8] ^= 1 << (bit % 8);
            let mended = Record::of(&flipped);
            assert!(mended.is_some_and(|found| found == record), "bit {bit}");
        }
    }

    /// A copy cut at any byte is not whole, and neither is a copy with more than one flipped bit at
    /// an end.
    #[test]
    fn a_copy_is_whole_from_its_first_word_to_its_last() {
        let chain = ChainKey::new(Key::from_secret([0; 32]));
        let mut whole = [0; RECORD_BYTES];
        Record::first(chain, [0; 8]).write(&mut whole);
        assert!(is_whole(&whole));
        for end in 0..RECORD_BYTES {
            let mut cut = whole;
            cut[end..].fill(0xff);
            assert!(!is_whole(&cut), "cut at {end}");
        }
        for place in [0, RECORD_BYTES - 1] {
            let mut flipped = whole;
            flipped[place] ^= 0x01;
            assert!(is_whole(&flipped));
            flipped[place] ^= 0x80;
            assert!(!is_whole(&flipped));
        }
    }
}
