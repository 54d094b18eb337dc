//! CRC-32 as in IEEE 802.3 (polynomial 0x04C11DB7, reflected, initially and finally inverted). It
//! detects line noise and does not authenticate.

/// Remainders of the 16 values of half a byte: 64 bytes of flash, two steps per byte.
const REMAINDERS: [u32; 16] = {
    let mut table = [0; 16];
    let mut value = 0;
    while value < 16 {
        let mut remainder = value as u32;
        let mut bit = 0;
        while bit < 4 {
            remainder = if remainder & 1 == 1 {
                (remainder >> 1) ^ 0xedb8_8320
            } else {
                remainder >> 1
            };
            bit += 1;
        }
        table[value] = remainder;
        value += 1;
    }
    table
};

/// Returns the checksum of `bytes`, 0xCBF43926 for the text `123456789`.
///
/// Processes two bytes at a time, which halves the number of loads and of iterations.
pub fn crc32(bytes: &[u8]) -> u32 {
    let (pairs, last) = bytes.as_chunks();
    let crc = pairs.iter().fold(u32::MAX, |crc, pair| {
        let crc = crc ^ u32::from(u16::from_le_bytes(*pair));
        half(half(half(half(crc))))
    });
    !last
        .iter()
        .fold(crc, |crc, byte| half(half(crc ^ u32::from(*byte))))
}

/// Returns the bit of a message of `bits` bits whose flip changes the checksum by `difference`, if
/// any. Bits are numbered from the lowest bit of each byte.
///
/// CRC-32 is linear: the change depends only on the position, and differs for each position in a
/// message of less than 2³² − 1 bits.
pub(crate) fn flipped_bit(difference: u32, bits: usize) -> Option<usize> {
    // Starts at the last bit, and moves one bit further from the end at each step.
    let mut change = 0xedb8_8320;
    for bit in (0..bits).rev() {
        if change == difference {
            return Some(bit);
        }
        change = if change & 1 == 1 {
            (change >> 1) ^ 0xedb8_8320
        } else {
            change >> 1
        };
    }
    None
}

fn half(crc: u32) -> u32 {
    // Four bits are always within the table.
    REMAINDERS
        .get((crc & 15) as usize)
        .map_or(0, |remainder| remainder ^ (crc >> 4))
}
