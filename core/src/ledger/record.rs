//! The record of a ledger as bytes, and how a flipped bit is found: [`super`] has the layouts.

use crate::wire::crc32::{crc32, flipped_bit};

/// Bytes of a copy of the record, a multiple of the write size of usual flash.
pub const RECORD_BYTES: usize = 64;

/// Bytes of the two copies in a slot; an image of a new ledger is as long.
pub const SLOT_BYTES: usize = 2 * RECORD_BYTES;

/// How a copy of the record is laid out: magic, three numbers, perhaps a nonce, and zeros to its
/// end but for a checksum.
pub(super) struct Format {
    magic: [u8; 4],
    /// Bytes before the checksum, which covers them.
    covered: usize,
    /// Bytes of a copy.
    pub(super) bytes: usize,
    /// Bits that may have flipped at each end of a copy that counts as completed.
    tolerance: u32,
}

/// One copy in a slot: a cut write of format 2 must not be taken for a completed one.
pub(super) const FORMAT_1: Format = Format {
    magic: *b"sfL1",
    covered: 16,
    bytes: 32,
    tolerance: 0,
};

pub(super) const FORMAT_2: Format = Format {
    magic: *b"sfL2",
    covered: 56,
    bytes: RECORD_BYTES,
    tolerance: 1,
};

impl Format {
    /// Whether a copy was written from its first word to its last, up to a flipped bit in each. A
    /// cut erase or write leaves an end erased, where several bits differ.
    pub(super) fn is_whole(&self, copy: &[u8; RECORD_BYTES]) -> bool {
        let end = copy.get(self.bytes - 4..self.bytes).unwrap_or_default();
        distance(copy, &self.magic) <= self.tolerance && distance(end, &[0; 4]) <= self.tolerance
    }
}

/// What tells a ledger from all others of the same device: 16 random bytes.
pub type LedgerNonce = [u8; 16];

/// What a device knows of its past.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Past {
    /// Rounds that it began.
    pub participations: u32,
    /// Lowest round number that it may still begin.
    pub next_round: u32,
}

/// Whether a copy is erased, up to one byte, in which a bit may have flipped.
pub(super) fn is_blank(copy: &[u8; RECORD_BYTES]) -> bool {
    copy.iter().filter(|byte| **byte != 0xff).count() <= 1
}

/// In how many bits two pieces differ, up to the end of the shorter one.
#[inline(never)]
fn distance(a: &[u8], b: &[u8]) -> u32 {
    a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum()
}

/// What a copy says.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) sequence: u32,
    pub(super) past: Past,
    pub(super) nonce: LedgerNonce,
}

impl Record {
    /// The record whose encoding differs from a copy in one bit at most.
    #[inline(never)]
    pub(super) fn of(copy: &[u8; RECORD_BYTES], format: &Format) -> Option<Self> {
        let mut mended = *copy;
        let (message, rest) = mended.split_at_mut_checked(format.covered)?;
        let checksum = u32::from_le_bytes(*rest.first_chunk()?);
        if let Some(bit) = flipped_bit(crc32(message) ^ checksum, 8 * format.covered) {
            *message.get_mut(bit / 8)? ^= 1 << (bit % 8);
        }
        let [_, sequence, participations, next_round, ..] = mended.as_chunks().0 else {
            return None;
        };
        let record = Self {
            sequence: u32::from_le_bytes(*sequence),
            past: Past {
                participations: u32::from_le_bytes(*participations),
                next_round: u32::from_le_bytes(*next_round),
            },
            nonce: *mended.get(32..)?.first_chunk()?,
        };
        // Also the magic, the checksum and the zeros, bit for bit.
        (distance(&record.to_bytes(format), copy) <= 1).then_some(record)
    }

    #[inline(never)]
    pub(super) fn to_bytes(self, format: &Format) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        if let [magic, sequence, participations, next_round, ..] = bytes.as_chunks_mut().0 {
            *magic = format.magic;
            *sequence = self.sequence.to_le_bytes();
            *participations = self.past.participations.to_le_bytes();
            *next_round = self.past.next_round.to_le_bytes();
        }
        if let Some(place) = bytes.get_mut(32..48) {
            place.copy_from_slice(&self.nonce);
        }
        if let Some((message, rest)) = bytes.split_at_mut_checked(format.covered)
            && let Some(checksum) = rest.first_chunk_mut()
        {
            *checksum = crc32(message).to_le_bytes();
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Wherever it is: in a number, in the nonce, in the checksum or in the zeros.
    #[test]
    fn a_flipped_bit_of_a_copy_is_mended() {
        let record = Record {
            sequence: 0x0102_0304,
            past: Past {
                participations: 7,
                next_round: u32::MAX,
            },
            nonce: [0; 16],
        };
        for format in [FORMAT_1, FORMAT_2] {
            let whole = record.to_bytes(&format);
            for bit in 0..8 * format.bytes {
                let mut flipped = whole;
                flipped[bit / 8] ^= 1 << (bit % 8);
                let mended = Record::of(&flipped, &format);
                assert!(mended.is_some_and(|found| found == record), "bit {bit}");
            }
        }
    }

    /// A copy that was cut at any byte is not whole, nor is one with more
    /// flipped bits at an end than its format tolerates.
    #[test]
    fn a_copy_is_whole_from_its_first_word_to_its_last() {
        for format in [FORMAT_1, FORMAT_2] {
            let whole = Record::default().to_bytes(&format);
            assert!(format.is_whole(&whole));
            for end in 0..format.bytes {
                let mut cut = whole;
                cut[end..].fill(0xff);
                assert!(!format.is_whole(&cut), "cut at {end}");
            }
            for place in [0, format.bytes - 1] {
                let mut flipped = whole;
                flipped[place] ^= 0x01;
                assert_eq!(format.is_whole(&flipped), format.tolerance == 1);
                flipped[place] ^= 0x80;
                assert!(!format.is_whole(&flipped));
            }
        }
    }
}
