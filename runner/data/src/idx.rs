//! IDX files, the format of MNIST: magic, dimensions, then values, all big-endian.
//!
//! The file starts with a magic number: two zero bytes, a type byte (0x08 u8, 0x09 i8, 0x0B i16,
//! 0x0C i32, 0x0D f32, 0x0E f64) and the number of dimensions. One u32 per dimension follows, and
//! then the values, last dimension fastest. Source: LeCun, Cortes, Burges, "The MNIST database of
//! handwritten digits", file formats.

use super::array::Array;

/// Errors in an IDX file.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum IdxError {
    /// The first four bytes are not an IDX magic.
    #[error("starts with {found:#010x}, not an IDX magic (images of bytes: 0x00000803)")]
    Magic {
        /// The first four bytes, big-endian. Missing ones are zero.
        found: u32,
    },
    /// The file ends inside its header.
    #[error("ends inside its header of {needed} bytes, after {found}")]
    HeaderTruncated {
        /// Length of the header according to the magic.
        needed: usize,
        /// Length of the file.
        found: usize,
    },
    /// A dimension is zero.
    #[error("dimension {index} is 0: the file contains no values")]
    EmptyDimension {
        /// Position of the dimension, from 0.
        index: usize,
    },
    /// The dimensions do not match the number of bytes.
    #[error("its header declares {declared} bytes of values, but {found} follow")]
    Length {
        /// Number of bytes according to the header.
        declared: u128,
        /// Actual number of bytes.
        found: usize,
    },
}

/// Type of the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueType {
    U8,
    I8,
    I16,
    I32,
    F32,
    F64,
}

impl ValueType {
    fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            0x08 => Self::U8,
            0x09 => Self::I8,
            0x0b => Self::I16,
            0x0c => Self::I32,
            0x0d => Self::F32,
            0x0e => Self::F64,
            _ => return None,
        })
    }

    fn size(self) -> usize {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::I16 => 2,
            Self::I32 | Self::F32 => 4,
            Self::F64 => 8,
        }
    }
}

/// A checked IDX array. Its dimensions agree with its bytes, which are not copied.
#[derive(Clone, Debug)]
pub struct IdxArray<'a> {
    value_type: ValueType,
    dimensions: Vec<usize>,
    values: &'a [u8],
}

/// Parses an unpacked IDX file without copying its values.
///
/// # Errors
/// [`IdxError`] if the magic is unknown, a dimension is 0, or the number of bytes does not match
/// the dimensions.
pub fn parse(bytes: &[u8]) -> Result<IdxArray<'_>, IdxError> {
    let mut magic = [0; 4];
    for (to, from) in magic.iter_mut().zip(bytes) {
        *to = *from;
    }
    let unknown = IdxError::Magic {
        found: u32::from_be_bytes(magic),
    };
    let [0, 0, code, rank] = magic else {
        return Err(unknown);
    };
    let Some(value_type) = ValueType::from_code(code) else {
        return Err(unknown);
    };
    if rank == 0 {
        return Err(unknown);
    }
    let needed = 4 + 4 * usize::from(rank);
    let Some((header, values)) = bytes.split_at_checked(needed) else {
        return Err(IdxError::HeaderTruncated {
            needed,
            found: bytes.len(),
        });
    };
    let mut dimensions = Vec::with_capacity(usize::from(rank));
    let mut declared = value_type.size() as u128;
    for (index, chunk) in header[4..].as_chunks::<4>().0.iter().enumerate() {
        let dimension = u32::from_be_bytes(*chunk);
        if dimension == 0 {
            return Err(IdxError::EmptyDimension { index });
        }
        declared = declared.saturating_mul(u128::from(dimension));
        dimensions.push(dimension as usize);
    }
    if declared != values.len() as u128 {
        return Err(IdxError::Length {
            declared,
            found: values.len(),
        });
    }
    Ok(IdxArray {
        value_type,
        dimensions,
        values,
    })
}

impl Array for IdxArray<'_> {
    fn dimensions(&self) -> &[usize] {
        &self.dimensions
    }

    fn bytes(&self) -> Option<&[u8]> {
        (self.value_type == ValueType::U8).then_some(self.values)
    }

    fn numbers(&self) -> Box<dyn Iterator<Item = f64> + '_> {
        let value_type = self.value_type;
        let values = self.values.chunks_exact(value_type.size());
        Box::new(values.map(move |bytes| match (value_type, bytes) {
            (ValueType::U8, &[a]) => f64::from(a),
            (ValueType::I8, &[a]) => f64::from(a.cast_signed()),
            (ValueType::I16, &[a, b]) => f64::from(i16::from_be_bytes([a, b])),
            (ValueType::I32, &[a, b, c, d]) => f64::from(i32::from_be_bytes([a, b, c, d])),
            (ValueType::F32, &[a, b, c, d]) => f64::from(f32::from_be_bytes([a, b, c, d])),
            (ValueType::F64, &[a, b, c, d, e, f, g, h]) => {
                f64::from_be_bytes([a, b, c, d, e, f, g, h])
            }
            // `chunks_exact` gives `size()` bytes. Every caller would refuse NaN.
            _ => f64::NAN,
        }))
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;
    use crate::array::ArrayError;

    fn file(code: u8, dimensions: &[u32], values: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0, 0, code, dimensions.len() as u8];
        for dimension in dimensions {
            bytes.extend(dimension.to_be_bytes());
        }
        bytes.extend(values);
        bytes
    }

    #[test]
    fn bytes_become_features_in_file_order() {
        let bytes = file(8, &[2, 1, 2], &[0, 255, 3, 4]);
        let array = parse(&bytes).unwrap();
        assert_eq!(array.dimensions(), [2, 1, 2]);
        assert_eq!(array.sample_count(), 2);
        assert_eq!(array.bytes(), Some(&[0, 255, 3, 4][..]));
        assert_eq!(array.features().to_vec(), [0.0, 255.0, 3.0, 4.0]);
    }

    #[test]
    fn every_value_type_is_read_big_endian() {
        let cases: [(u8, Vec<u8>, f32); 6] = [
            (0x08, vec![200], 200.0),
            (0x09, vec![0xff], -1.0),
            (0x0b, vec![0x01, 0x00], 256.0),
            (0x0c, vec![0xff, 0xff, 0xff, 0xfe], -2.0),
            (0x0d, 1.5f32.to_be_bytes().to_vec(), 1.5),
            (0x0e, (-0.25f64).to_be_bytes().to_vec(), -0.25),
        ];
        for (code, values, expected) in cases {
            let bytes = file(code, &[1], &values);
            assert_eq!(
                parse(&bytes).unwrap().features().to_vec(),
                [expected],
                "{code:#x}"
            );
        }
    }

    #[test]
    fn wrong_magic_is_refused() {
        for bytes in [
            &b""[..],
            b"\0\0\x08",
            b"\x1f\x8b\x08\0",
            b"\0\0\x07\x01\0\0\0\x01x",
            b"\0\0\x08\0",
        ] {
            assert!(
                matches!(parse(bytes).unwrap_err(), IdxError::Magic { .. }),
                "{bytes:?}"
            );
        }
    }

    #[test]
    fn header_cut_short_is_refused() {
        let bytes = file(8, &[2, 2], &[]);
        let error = parse(&bytes[..7]).unwrap_err();
        assert_eq!(
            error,
            IdxError::HeaderTruncated {
                needed: 12,
                found: 7
            }
        );
    }

    #[test]
    fn dimension_zero_is_refused() {
        let bytes = file(8, &[2, 0], &[]);
        assert_eq!(
            parse(&bytes).unwrap_err(),
            IdxError::EmptyDimension { index: 1 }
        );
    }

    #[test]
    fn dimensions_must_fit_the_bytes() {
        let short = file(8, &[2, 2], &[1, 2, 3]);
        assert_eq!(
            parse(&short).unwrap_err(),
            IdxError::Length {
                declared: 4,
                found: 3
            }
        );
        let long = file(8, &[2], &[1, 2, 3]);
        assert_eq!(
            parse(&long).unwrap_err(),
            IdxError::Length {
                declared: 2,
                found: 3
            }
        );
    }

    #[test]
    fn oversized_dimensions_are_refused_without_memory() {
        let huge = file(0x0e, &[u32::MAX; 255], &[0; 8]);
        assert!(matches!(
            parse(&huge).unwrap_err(),
            IdxError::Length { found: 8, .. }
        ));
    }

    #[test]
    fn indices_must_be_whole_and_in_range() {
        let bytes = file(8, &[3], &[0, 9, 10]);
        let array = parse(&bytes).unwrap();
        assert_eq!(array.indices(10).unwrap(), [0, 9, 10]);
        let error = array.indices(9).unwrap_err();
        assert_eq!(
            error,
            ArrayError::NotAnIndex {
                index: 2,
                value: 10.0,
                largest: 9
            }
        );
        for wrong in [-1.0f32, 0.5, f32::NAN, f32::INFINITY] {
            let bytes = file(0x0d, &[1], &wrong.to_be_bytes());
            let error = parse(&bytes).unwrap().indices(9).unwrap_err();
            assert!(
                matches!(error, ArrayError::NotAnIndex { index: 0, .. }),
                "{wrong}"
            );
        }
    }

    #[test]
    fn indices_have_one_dimension() {
        let bytes = file(8, &[1, 2], &[0, 0]);
        let error = parse(&bytes).unwrap().indices(9).unwrap_err();
        assert!(matches!(error, ArrayError::Dimensions { found: 2, .. }));
    }

    proptest! {
        /// Any bytes cause an error or give an array of exactly that size.
        #[test]
        fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..64)) {
            if let Ok(array) = parse(&bytes) {
                let size: usize = array.dimensions().iter().product();
                prop_assert_eq!(array.features().len(), size);
            }
        }
    }
}
