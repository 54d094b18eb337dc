//! NumPy's arrays (.npy): a header with type and shape, then the values.
//!
//! Source: NEP 1, <https://numpy.org/neps/nep-0001-npy-format.html>. Booleans, integers and floats
//! of any byte order, in C or Fortran order.

use npyz::{DType, NpyFile, Order, TypeChar, TypeStr};

use super::array::Array;

/// The first bytes of a file.
pub const MAGIC: &[u8] = b"\x93NUMPY";

/// What can be wrong with a NumPy file.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NpyError {
    /// The header or the values are malformed.
    #[error("is not a NumPy array ({0})")]
    Malformed(String),
    /// Values that are no numbers.
    #[error(
        "holds values of the type {0}; only booleans, integers and floats are read: names become \
         numbers with np.unique(labels, return_inverse=True)"
    )]
    Type(String),
    /// No values.
    #[error("has the shape {0:?}: it contains no values")]
    Empty(Vec<u64>),
}

/// A checked array.
#[derive(Clone, Debug)]
pub struct NpyArray {
    dimensions: Vec<usize>,
    values: Values,
}

/// Values in memory; labels and devices may need all digits of an `f64`.
#[derive(Clone, Debug)]
enum Values {
    Bytes(Vec<u8>),
    Numbers(Vec<f64>),
}

/// Parses a file.
///
/// # Errors
/// [`NpyError`] if it is malformed, in Fortran order, or holds anything but numbers.
pub fn parse(bytes: &[u8]) -> Result<NpyArray, NpyError> {
    let malformed = |error: std::io::Error| NpyError::Malformed(error.to_string());
    if !bytes.starts_with(MAGIC) {
        return Err(NpyError::Malformed("it does not begin as one".into()));
    }
    let file = NpyFile::new(bytes).map_err(malformed)?;
    let shape = file.shape().to_vec();
    if shape.is_empty() || shape.contains(&0) {
        return Err(NpyError::Empty(shape));
    }
    let is_fortran = file.order() == Order::Fortran;
    let kind = match file.dtype() {
        DType::Plain(kind) if is_number(&kind) => kind,
        other => return Err(NpyError::Type(other.descr())),
    };
    // Nothing trusts the shape before the values are known to be there.
    let count = shape
        .iter()
        .try_fold(1u64, |count, length| count.checked_mul(*length));
    let size = count.and_then(|count| count.checked_mul(kind.num_bytes()? as u64));
    if size.is_none_or(|size| size > bytes.len() as u64) {
        return Err(NpyError::Malformed(format!(
            "its shape {shape:?} needs more values"
        )));
    }
    macro_rules! numbers {
        ($value:ty) => {{
            let values = file.into_vec::<$value>().map_err(malformed)?;
            Values::Numbers(values.into_iter().map(|value| value as f64).collect())
        }};
    }
    let values = match (kind.type_char(), kind.size_field()) {
        (TypeChar::Bool, _) => {
            let values = file.into_vec::<bool>().map_err(malformed)?;
            Values::Numbers(
                values
                    .into_iter()
                    .map(|value| f64::from(u8::from(value)))
                    .collect(),
            )
        }
        (TypeChar::Uint, 1) => Values::Bytes(file.into_vec().map_err(malformed)?),
        (TypeChar::Uint, 2) => numbers!(u16),
        (TypeChar::Uint, 4) => numbers!(u32),
        (TypeChar::Uint, 8) => numbers!(u64),
        (TypeChar::Int, 1) => numbers!(i8),
        (TypeChar::Int, 2) => numbers!(i16),
        (TypeChar::Int, 4) => numbers!(i32),
        (TypeChar::Int, 8) => numbers!(i64),
        (TypeChar::Float, 4) => numbers!(f32),
        (TypeChar::Float, 8) => numbers!(f64),
        _ => return Err(NpyError::Type(kind.to_string())),
    };
    let dimensions: Vec<usize> = shape.into_iter().map(|length| length as usize).collect();
    Ok(NpyArray {
        values: match (is_fortran, values) {
            (false, values) => values,
            (true, Values::Bytes(bytes)) => Values::Bytes(in_c_order(&bytes, &dimensions)),
            (true, Values::Numbers(numbers)) => Values::Numbers(in_c_order(&numbers, &dimensions)),
        },
        dimensions,
    })
}

/// Values of which the first dimension is the fastest, with the last as the fastest.
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

fn is_number(kind: &TypeStr) -> bool {
    use TypeChar::{Bool, Float, Int, Uint};
    matches!(kind.type_char(), Bool | Float | Int | Uint)
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
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A file as `numpy.save` writes it (version 1.0).
    fn file(kind: &str, is_fortran: bool, shape: &str, values: &[u8]) -> Vec<u8> {
        let order = if is_fortran { "True" } else { "False" };
        let header = format!("{{'descr': '{kind}', 'fortran_order': {order}, 'shape': {shape}, }}");
        let padded = format!("{header:<117}\n");
        let mut bytes = [MAGIC, &[1, 0], &(padded.len() as u16).to_le_bytes()].concat();
        bytes.extend(padded.as_bytes());
        bytes.extend(values);
        bytes
    }

    #[test]
    fn numbers_of_all_types_are_read() {
        let read = |kind: &str, values: &[u8]| {
            let array = parse(&file(kind, false, "(2,)", values)).unwrap();
            array.numbers().collect::<Vec<_>>()
        };
        assert_eq!(read("|b1", &[1, 0]), [1.0, 0.0]);
        assert_eq!(read("|i1", &[255, 1]), [-1.0, 1.0]);
        assert_eq!(read(">u2", &[1, 0, 0, 2]), [256.0, 2.0]);
        assert_eq!(read("<i4", &[254, 255, 255, 255, 7, 0, 0, 0]), [-2.0, 7.0]);
        let floats: Vec<u8> = [0.5f64, -3.0]
            .iter()
            .flat_map(|x| x.to_le_bytes())
            .collect();
        assert_eq!(read("<f8", &floats), [0.5, -3.0]);
    }

    #[test]
    fn bytes_stay_bytes_with_their_shape() {
        let array = parse(&file("|u1", false, "(2, 1, 2)", &[0, 255, 3, 4])).unwrap();
        assert_eq!(array.dimensions(), [2, 1, 2]);
        assert_eq!(array.bytes(), Some(&[0, 255, 3, 4][..]));
    }

    #[test]
    fn fortran_order_becomes_c_order() {
        // np.arange(12).reshape(2, 3, 2), saved as np.asfortranarray(..).
        let saved = [0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11];
        let array = parse(&file("|u1", true, "(2, 3, 2)", &saved)).unwrap();
        let expected: Vec<u8> = (0..12).collect();
        assert_eq!(array.bytes(), Some(&expected[..]));
    }

    #[test]
    fn columns_of_one_are_entries() {
        let array = parse(&file("|u1", false, "(3, 1)", &[0, 2, 1])).unwrap();
        assert_eq!(array.indices(9).unwrap(), [0, 2, 1]);
        assert!(
            array
                .indices(1)
                .unwrap_err()
                .to_string()
                .contains("entry 1 is 2")
        );
        let matrix = parse(&file("|u1", false, "(1, 3)", &[0, 2, 1])).unwrap();
        assert!(matrix.entries().is_err());
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        for (bytes, words) in [
            (b"numpy".to_vec(), "does not begin"),
            (file("<U3", false, "(1,)", &[0; 12]), "np.unique"),
            (file("|O", false, "(1,)", &[0; 12]), "type"),
            (file("|u1", false, "(2, 0)", &[]), "no values"),
            (file("|u1", false, "()", &[1]), "no values"),
            (file("|u1", false, "(400,)", &[0; 4]), "needs more values"),
            (
                file("<f8", false, "(99999999999, 9999)", &[]),
                "needs more values",
            ),
        ] {
            let error = parse(&bytes).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    proptest! {
        /// Damage anywhere ends in an error or in some array, never in a panic.
        #[test]
        fn damaged_files_do_not_panic(position in 0usize..140, byte: u8) {
            let mut bytes = file("<f4", false, "(2, 2)", &[0; 16]);
            let position = position % bytes.len();
            bytes[position] = byte;
            let _ = parse(&bytes);
        }
    }
}
