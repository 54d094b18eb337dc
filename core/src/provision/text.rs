//! A record as a line of text, for pasting or printing as a QR code.
//!
//! ```text
//! SMOLFED:17:<base32 of the record>
//! ```
//!
//! The number is the device's, in decimal. Base32 is as in RFC 4648, without padding. All
//! characters are in the alphanumeric set of QR codes (ISO/IEC 18004, table 5). A record without
//! questions, samples and recipe has at most 224 characters, which fit a code of version 7. Letters
//! may be lowercase, and whitespace after the number is skipped. The record's checksum also
//! protects the text.

use super::{HEADER_BYTES, ProvisionError, Record};

/// Prefix of a record as text.
pub const PREFIX: &[u8] = b"SMOLFED:";

/// Reason why a text is not a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum TextError {
    /// The text does not begin with `SMOLFED:`, a number and a colon.
    Prefix,
    /// The text has a character outside base32.
    Character,
    /// The text ends within a byte: characters are missing.
    Cut,
    /// The page is shorter than the record.
    Room,
    /// The number in the text differs from the one in the record.
    Number,
    /// The text does not encode a record.
    Record(ProvisionError),
}

impl core::fmt::Display for TextError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Prefix => f.write_str("the text does not begin with `SMOLFED:` and a number"),
            Self::Character => f.write_str("the text has a character other than A to Z and 2 to 7"),
            Self::Cut => f.write_str("characters are missing"),
            Self::Room => f.write_str("the record is longer than the page"),
            Self::Number => f.write_str("the number before the record belongs to another device"),
            Self::Record(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for TextError {}

/// Decodes a text to the start of `page`, and returns the length of the record.
///
/// # Errors
/// [`TextError`]. The page then holds no record, or the record of another device.
pub fn read(text: &[u8], page: &mut [u8]) -> Result<usize, TextError> {
    let (number, digits) = split(text).ok_or(TextError::Prefix)?;
    // Bits that do not yet fill a byte, and their number: fewer than 8 before each digit.
    let (mut bits, mut bit_count, mut length) = (0u16, 0u32, 0usize);
    for digit in digits {
        if digit.is_ascii_whitespace() {
            continue;
        }
        bits = bits << 5 | u16::from(value(*digit).ok_or(TextError::Character)?);
        bit_count += 5;
        if bit_count >= 8 {
            bit_count -= 8;
            let byte = page.get_mut(length).ok_or(TextError::Room)?;
            *byte = (bits >> bit_count) as u8;
            bits &= (1 << bit_count) - 1;
            length += 1;
        }
    }
    // A complete text ends with fewer than five bits, all zero.
    if bit_count >= 5 || bits != 0 || length < HEADER_BYTES {
        return Err(TextError::Cut);
    }
    let record = page.get(..length).ok_or(TextError::Room)?;
    let record = Record::read(record).map_err(TextError::Record)?;
    match record.identity.device == number {
        true => Ok(length),
        false => Err(TextError::Number),
    }
}

/// Splits a text into number and digits.
fn split(text: &[u8]) -> Option<(u32, &[u8])> {
    let (prefix, text) = text.trim_ascii().split_at_checked(PREFIX.len())?;
    let end = text.iter().position(|byte| *byte == b':')?;
    let (number, digits) = text.split_at_checked(end)?;
    let number = core::str::from_utf8(number).ok()?.parse().ok()?;
    let is_prefix = prefix.eq_ignore_ascii_case(PREFIX);
    is_prefix.then_some((number, digits.get(1..)?))
}

/// Returns the value of a base32 digit.
const fn value(digit: u8) -> Option<u8> {
    match digit.to_ascii_uppercase() {
        letter @ b'A'..=b'Z' => Some(letter - b'A'),
        digit @ b'2'..=b'7' => Some(digit - b'2' + 26),
        _ => None,
    }
}
