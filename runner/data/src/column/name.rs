//! Names of classes, categories and devices: equal numbers are one name, in any spelling.
//!
//! Programs write a column of integers as `0` and `1`, but as `0.0` and `1.0` if it has a gap. A
//! number with a leading zero (`007`) is a code, which keeps its spelling. So is an exponent
//! without a sign (`1E5`).

use std::borrow::Cow;

/// Integers below this are exact in 64 bits.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// Converts a cell to a name: a number with a point or a signed exponent to its shortest form,
/// anything else unchanged.
#[must_use]
pub fn name_of(cell: &str) -> Cow<'_, str> {
    match number(cell) {
        Some(value) if value.fract() == 0.0 => Cow::Owned(format!("{:.0}", value + 0.0)),
        Some(value) => Cow::Owned(value.to_string()),
        None => Cow::Borrowed(cell),
    }
}

/// Returns the position of a name in a list: by its spelling, or by its number.
#[must_use]
pub fn position(names: &[String], cell: &str) -> Option<usize> {
    let exact = names.iter().position(|name| name == cell);
    exact.or_else(|| {
        let cell = name_of(cell);
        names.iter().position(|name| name_of(name) == cell)
    })
}

/// Returns the number in a cell if it has another spelling.
fn number(cell: &str) -> Option<f64> {
    let digits = cell.strip_prefix(['-', '+']).unwrap_or(cell);
    let is_plain = |c: char| c.is_ascii_digit();
    let whole = digits.split(|c| !is_plain(c)).next().unwrap_or_default();
    let is_code = whole.len() > 1 && whole.starts_with('0');
    let has_form = whole.len() < digits.len() || cell.len() > digits.len();
    if is_code || !has_form || !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    if let Some((_, exponent)) = digits.split_once(['e', 'E'])
        && !exponent.starts_with(['-', '+'])
    {
        return None;
    }
    let value: f64 = cell.parse().ok()?;
    (value.abs() < MAX_EXACT).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_numbers_have_one_name() {
        for (cell, name) in [
            ("0.0", "0"),
            ("-0.0", "0"),
            ("1.", "1"),
            ("+3", "3"),
            ("-3.00", "-3"),
            ("1.50", "1.5"),
            (".5", "0.5"),
            ("1e+05", "100000"),
            ("1.000000000000000000e+00", "1"),
        ] {
            assert_eq!(name_of(cell), name, "{cell}");
        }
    }

    #[test]
    fn codes_and_texts_keep_their_spelling() {
        for cell in [
            "",
            "-",
            "+",
            ".",
            "0",
            "12",
            "-12",
            "007",
            "00.5",
            "1E5",
            "1.2.3",
            "red",
            "1,5",
            "nan",
            "inf",
            "-inf",
            "1.5.",
            "0x1p-2",
            "e+5",
            "12345678901234567890",
            "1e+300",
        ] {
            assert_eq!(name_of(cell), cell);
        }
    }

    #[test]
    fn a_spelling_comes_before_a_number() {
        let names = ["1.0", "1", "2"].map(str::to_owned);
        assert_eq!(position(&names, "1"), Some(1));
        assert_eq!(position(&names, "1.00"), Some(0));
        assert_eq!(position(&names, "2.0"), Some(2));
        assert_eq!(position(&names, "3"), None);
    }
}
