//! The meaning of a cell of a table: the texts of a missing value (such as `NA`), numbers with a
//! decimal point or comma, yes and no.

use std::borrow::Cow;

use super::error::CellError;
use super::place::Place;
use super::signs::{self, Signs};
use crate::large;

/// Texts of a missing value, in any case.
const MISSING: [&str; 8] = ["", "?", "na", "n/a", "#n/a", "<na>", "nan", "null"];

/// Returns whether a cell is a missing value.
pub(crate) fn is_missing(cell: &str) -> bool {
    // The longest has four letters.
    cell.len() <= 4 && MISSING.iter().any(|text| cell.eq_ignore_ascii_case(text))
}

/// Returns 1 for true and yes, 0 for false and no, in any case.
pub(crate) fn truth(cell: &str) -> Option<f32> {
    let is = |text: &&str| cell.eq_ignore_ascii_case(text);
    if ["true", "yes"].iter().any(is) {
        Some(1.0)
    } else {
        ["false", "no"].iter().any(is).then_some(0.0)
    }
}

/// The number in a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Number {
    /// The nearest number of 32 bits.
    pub(crate) value: f32,
    /// The rest of a large number. 0 for others.
    pub(crate) rest: f64,
}

/// The notation of the numbers of a file.
///
/// A comma is a decimal mark only if commas do not separate cells, and if the file has no decimal
/// points: `1.234` in a file with `5,6` may be a thousand.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notation {
    allows_commas: bool,
    first_comma: Option<Place>,
    first_point: Option<Place>,
    signs: Signs,
}

impl Notation {
    pub(crate) fn new(allows_commas: bool) -> Self {
        Self {
            allows_commas,
            ..Self::default()
        }
    }

    /// Returns the number in a cell.
    ///
    /// # Errors
    /// [`CellError::NotNumber`], [`CellError::NotFinite`], [`CellError::MixedMarks`].
    pub(crate) fn number(&mut self, cell: &str, place: Place) -> Result<Number, CellError> {
        match self.plain_number(cell, place) {
            Err(CellError::NotNumber) => {}
            result => return result,
        }
        if let Some(value) = truth(cell) {
            return Ok(Number { value, rest: 0.0 });
        }
        let plain = signs::without(cell, !self.allows_commas).ok_or(CellError::NotNumber)?;
        let number = self.plain_number(&plain.text, place)?;
        self.signs.add(&plain, cell, place);
        Ok(number)
    }

    /// Returns the signs removed from numbers.
    pub(crate) const fn signs(&self) -> &Signs {
        &self.signs
    }

    fn plain_number(&mut self, cell: &str, place: Place) -> Result<Number, CellError> {
        let with_point = match self.allows_commas && cell.contains(',') {
            true => Cow::Owned(cell.replacen(',', ".", 1)),
            false => Cow::Borrowed(cell),
        };
        let Ok(value) = with_point.parse::<f32>() else {
            return Err(CellError::NotNumber);
        };
        if !value.is_finite() {
            return Err(CellError::NotFinite);
        }
        if self.allows_commas {
            self.note_marks(cell, place)?;
        }
        let rest = match large::is_large(value) {
            // A text that parses as `f32` also parses as `f64`.
            true => with_point.parse().unwrap_or(f64::from(value)) - f64::from(value),
            false => 0.0,
        };
        Ok(Number { value, rest })
    }

    fn note_marks(&mut self, cell: &str, place: Place) -> Result<(), CellError> {
        let other = if cell.contains(',') {
            self.first_comma.get_or_insert(place);
            self.first_point
        } else if cell.contains('.') {
            self.first_point.get_or_insert(place);
            self.first_comma
        } else {
            None
        };
        other.map_or(Ok(()), |other| Err(CellError::MixedMarks { other }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Place = Place::Line(7);

    fn value_of(notation: &mut Notation, cell: &str) -> Result<f32, CellError> {
        Ok(notation.number(cell, HERE)?.value)
    }

    #[test]
    fn missing_values_have_many_names() {
        for cell in [
            "", "?", "NA", "na", "N/A", "#N/A", "<NA>", "NaN", "nan", "null", "NULL",
        ] {
            assert!(is_missing(cell), "{cell}");
        }
        for cell in ["0", "none", "-", "no", "n", "nano", "annul"] {
            assert!(!is_missing(cell), "{cell}");
        }
    }

    #[test]
    fn truth_is_a_number() {
        let mut notation = Notation::new(false);
        for (cell, value) in [("True", 1.0), ("yes", 1.0), ("FALSE", 0.0), ("No", 0.0)] {
            assert_eq!(value_of(&mut notation, cell), Ok(value), "{cell}");
        }
        assert_eq!(notation.number("maybe", HERE), Err(CellError::NotNumber));
    }

    #[test]
    fn decimal_commas_are_read_where_they_can_be() {
        let read = |cell| value_of(&mut Notation::new(true), cell);
        assert_eq!(read("-1,5e1"), Ok(-15.0));
        assert_eq!(read("1,234,5"), Err(CellError::NotNumber));
        assert_eq!(read("1.234,5"), Err(CellError::NotNumber));
        assert_eq!(
            value_of(&mut Notation::new(false), "1,5"),
            Err(CellError::NotNumber)
        );
    }

    #[test]
    fn commas_and_points_do_not_mix() {
        let mut notation = Notation::new(true);
        let other = Place::Line(9);
        assert_eq!(value_of(&mut notation, "1.5"), Ok(1.5));
        assert!(notation.number("1", other).is_ok());
        let expected = CellError::MixedMarks { other: HERE };
        assert_eq!(notation.number("1,5", other), Err(expected));
    }
    #[test]
    fn large_numbers_keep_all_digits_and_others_their_bits() {
        let read = |cell: &str| Notation::new(false).number(cell, HERE).unwrap();
        for cell in ["1700000000123", "45292.510416667", "-16777217"] {
            let number = read(cell);
            let exact: f64 = cell.parse().unwrap();
            assert_eq!(f64::from(number.value) + number.rest, exact, "{cell}");
            assert_ne!(number.rest, 0.0, "{cell}");
        }
        for cell in ["0.1", "-32767.9", "1e6", "1e38"] {
            let number = read(cell);
            assert_eq!(
                number.value.to_bits(),
                cell.parse::<f32>().unwrap().to_bits()
            );
            assert!(cell == "1e38" || number.rest == 0.0, "{cell}");
        }
    }
}
