//! What a cell says: nothing, a number, yes or no.

use super::error::CellError;
use super::place::Place;

/// Texts that stand for a missing value, in any case.
const MISSING: [&str; 8] = ["", "?", "na", "n/a", "#n/a", "<na>", "nan", "null"];

/// Whether a cell says that its value is missing.
pub(crate) fn is_missing(cell: &str) -> bool {
    // The longest has four letters.
    cell.len() <= 4 && MISSING.iter().any(|text| cell.eq_ignore_ascii_case(text))
}

/// 1 for true and yes, 0 for false and no, in any case.
pub(crate) fn truth(cell: &str) -> Option<f32> {
    let is = |text: &&str| cell.eq_ignore_ascii_case(text);
    if ["true", "yes"].iter().any(is) {
        Some(1.0)
    } else {
        ["false", "no"].iter().any(is).then_some(0.0)
    }
}

/// How the numbers of a file are written.
///
/// A decimal comma is one only where commas do not separate cells, and not in a file that has
/// decimal points, too: `1.234` beside `5,6` may be a thousand.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Notation {
    allows_commas: bool,
    first_comma: Option<Place>,
    first_point: Option<Place>,
}

impl Notation {
    pub(crate) fn new(allows_commas: bool) -> Self {
        Self {
            allows_commas,
            ..Self::default()
        }
    }

    /// The number in a cell.
    ///
    /// # Errors
    /// [`CellError::NotNumber`], [`CellError::NotFinite`], [`CellError::MixedMarks`].
    pub(crate) fn number(&mut self, cell: &str, place: Place) -> Result<f32, CellError> {
        let parsed = match self.allows_commas && cell.contains(',') {
            true => cell.replacen(',', ".", 1).parse::<f32>(),
            false => cell.parse(),
        };
        let Ok(value) = parsed else {
            return truth(cell).ok_or(CellError::NotNumber);
        };
        if !value.is_finite() {
            return Err(CellError::NotFinite);
        }
        if self.allows_commas {
            self.note_marks(cell, place)?;
        }
        Ok(value)
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
            assert_eq!(notation.number(cell, HERE), Ok(value), "{cell}");
        }
        assert_eq!(notation.number("maybe", HERE), Err(CellError::NotNumber));
    }

    #[test]
    fn decimal_commas_are_read_where_they_can_be() {
        let read = |cell| Notation::new(true).number(cell, HERE);
        assert_eq!(read("-1,5e1"), Ok(-15.0));
        assert_eq!(read("1,234,5"), Err(CellError::NotNumber));
        assert_eq!(read("1.234,5"), Err(CellError::NotNumber));
        assert_eq!(
            Notation::new(false).number("1,5", HERE),
            Err(CellError::NotNumber)
        );
    }

    #[test]
    fn commas_and_points_do_not_mix() {
        let mut notation = Notation::new(true);
        let other = Place::Line(9);
        assert_eq!(notation.number("1.5", HERE), Ok(1.5));
        assert_eq!(notation.number("1", other), Ok(1.0));
        let expected = CellError::MixedMarks { other: HERE };
        assert_eq!(notation.number("1,5", other), Err(expected));
    }
}
