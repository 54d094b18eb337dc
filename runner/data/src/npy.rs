//! NumPy's arrays (.npy): a header with type and shape, then the values.
//!
//! Source: NEP 1, <https://numpy.org/neps/nep-0001-npy-format.html>, and `numpy.lib.format`.
//! Booleans, integers and floats of any byte order, in C or Fortran order.

mod header;

use super::array::Array;
use header::{Kind, Number};

/// The first bytes of a file.
pub const MAGIC: &[u8] = b"\x93NUMPY";

/// Maximum length of a header. Headers of numbers have 118 bytes.
const MAX_HEADER: u32 = 1 << 16;

/// Errors in a NumPy file.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NpyError {
    /// The header or the values are malformed.
    #[error("is not a NumPy array ({0})")]
    Malformed(String),
    /// The values are not numbers.
    #[error(
        "holds values of the type {0}; only booleans, integers and floats are read: names become \
         numbers with np.unique(labels, return_inverse=True)"
    )]
    Type(String),
    /// There are no values.
    #[error("has the shape {0:?}: it contains no values")]
    Empty(Vec<u64>),
}

/// A checked array.
#[derive(Clone, Debug)]
pub struct NpyArray {
    dimensions: Vec<usize>,
    values: Values,
}

/// Values in memory. Labels and devices may need all digits of an `f64`.
#[derive(Clone, Debug)]
enum Values {
    Bytes(Vec<u8>),
    Numbers(Vec<f64>),
}

/// Parses a file.
///
/// # Errors
/// [`NpyError`] if it is malformed, or contains anything but numbers.
pub fn parse(bytes: &[u8]) -> Result<NpyArray, NpyError> {
    let (header, values) = split(bytes).map_err(NpyError::Malformed)?;
    let header = header::parse(header).map_err(NpyError::Malformed)?;
    let shape = header.shape;
    if shape.is_empty() || shape.contains(&0) {
        return Err(NpyError::Empty(shape));
    }
    let kind = match header.kind {
        Kind::Number(kind) => kind,
        Kind::Other(name) => return Err(NpyError::Type(name.to_owned())),
    };
    // The shape is not trusted until the number of values is checked.
    let size = shape
        .iter()
        .try_fold(kind.size as u64, |size, length| size.checked_mul(*length));
    let values = size
        .and_then(|size| values.get(..usize::try_from(size).ok()?))
        .ok_or_else(|| NpyError::Malformed(format!("its shape {shape:?} needs more values")))?;
    let values = read(kind, values)?;
    let dimensions: Vec<usize> = shape.into_iter().map(|length| length as usize).collect();
    Ok(NpyArray {
        values: match (header.is_fortran, values) {
            (false, values) => values,
            (true, Values::Bytes(bytes)) => Values::Bytes(in_c_order(&bytes, &dimensions)),
            (true, Values::Numbers(numbers)) => Values::Numbers(in_c_order(&numbers, &dimensions)),
        },
        dimensions,
    })
}

/// Splits the header from the rest.
fn split(bytes: &[u8]) -> Result<(&[u8], &[u8]), String> {
    let cut = "it ends inside its header";
    let rest = bytes
        .strip_prefix(MAGIC)
        .ok_or("it does not begin like one")?;
    let (version, rest) = rest.split_first_chunk::<2>().ok_or(cut)?;
    let (length, rest) = match version {
        [1, 0] => rest
            .split_first_chunk()
            .map(|(length, rest)| (u32::from(u16::from_le_bytes(*length)), rest)),
        [2 | 3, 0] => rest
            .split_first_chunk()
            .map(|(length, rest)| (u32::from_le_bytes(*length), rest)),
        [major, minor] => return Err(format!("unsupported version: ({major}, {minor})")),
    }
    .ok_or(cut)?;
    if length > MAX_HEADER {
        return Err(format!(
            "its header of {length} bytes is longer than {MAX_HEADER}"
        ));
    }
    Ok(rest.split_at_checked(length as usize).ok_or(cut)?)
}

/// Returns the values of whole chunks of bytes.
fn read(kind: Number, bytes: &[u8]) -> Result<Values, NpyError> {
    macro_rules! numbers {
        ($value:ty) => {{
            let number = match kind.is_big_endian {
                true => <$value>::from_be_bytes,
                false => <$value>::from_le_bytes,
            };
            let chunks = bytes.as_chunks().0.iter();
            Values::Numbers(chunks.map(|bytes| number(*bytes) as f64).collect())
        }};
    }
    Ok(match (kind.letter, kind.size) {
        (b'b', 1) => match bytes.iter().find(|byte| **byte > 1) {
            Some(byte) => {
                return Err(NpyError::Malformed(format!(
                    "invalid value for bool: {byte}"
                )));
            }
            None => Values::Numbers(bytes.iter().map(|byte| f64::from(*byte)).collect()),
        },
        (b'u', 1) => Values::Bytes(bytes.to_vec()),
        (b'u', 2) => numbers!(u16),
        (b'u', 4) => numbers!(u32),
        (b'u', 8) => numbers!(u64),
        (b'i', 1) => numbers!(i8),
        (b'i', 2) => numbers!(i16),
        (b'i', 4) => numbers!(i32),
        (b'i', 8) => numbers!(i64),
        (b'f', 2) => {
            let number = match kind.is_big_endian {
                true => u16::from_be_bytes,
                false => u16::from_le_bytes,
            };
            let chunks = bytes.as_chunks().0.iter();
            Values::Numbers(chunks.map(|bytes| half(number(*bytes))).collect())
        }
        (b'f', 4) => numbers!(f32),
        (b'f', 8) => numbers!(f64),
        _ => return Err(NpyError::Type(kind.name.to_owned())),
    })
}

/// Converts 16 bits of an IEEE 754 half: a sign, 5 bits of exponent, 10 bits of fraction.
fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (bits >> 10 & 0x1f, f64::from(bits & 0x3ff) / 1024.0);
    let power = |exponent: u16| libm::exp2(f64::from(exponent) - 15.0);
    let size = match exponent {
        0 => fraction * power(1),
        0x1f if fraction > 0.0 => f64::NAN,
        0x1f => f64::INFINITY,
        _ => (1.0 + fraction) * power(exponent),
    };
    if bits >> 15 == 1 { -size } else { size }
}

/// Reorders values so that the last dimension is the fastest instead of the first.
fn in_c_order<T: Copy>(values: &[T], dimensions: &[usize]) -> Vec<T> {
    let place = |index: usize| {
        let (mut rest, mut place) = (index, 0);
        for (at, length) in dimensions.iter().enumerate().rev() {
            let stride: usize = dimensions[..at].iter().product();
            place += rest % length * stride;
            rest /= length;
        }
        place
    };
    (0..values.len())
        .map(|index| values[place(index)])
        .collect()
}

impl Array for NpyArray {
    fn dimensions(&self) -> &[usize] {
        &self.dimensions
    }

    fn bytes(&self) -> Option<&[u8]> {
        match &self.values {
            Values::Bytes(bytes) => Some(bytes),
            Values::Numbers(_) => None,
        }
    }

    fn numbers(&self) -> Box<dyn Iterator<Item = f64> + '_> {
        match &self.values {
            Values::Bytes(bytes) => Box::new(bytes.iter().map(|byte| f64::from(*byte))),
            Values::Numbers(numbers) => Box::new(numbers.iter().copied()),
        }
    }
}

#[cfg(test)]
mod tests;
