//! Signs around the digits of a number: currencies, percent, and thousands separators.
//!
//! They are removed if they are unambiguous, and counted. `45%` is 45, as in the cell.

use super::place::Place;

/// Currencies before or after a number.
const CURRENCIES: [char; 6] = ['$', '€', '£', '¥', '₹', '₩'];

/// Thousands separators that are never decimal marks.
const SPACES: [char; 5] = [' ', '\u{a0}', '\u{202f}', '\'', '’'];

/// Kinds of signs, in the order of their counts.
const KINDS: [&str; 3] = ["a currency sign", "a percent sign", "thousands separators"];

/// A number without its signs.
pub(super) struct Plain {
    pub(super) text: String,
    /// The [`KINDS`] of its signs.
    has: [bool; KINDS.len()],
}

/// The number of removed signs, and the first such cell.
#[derive(Clone, Debug, Default)]
pub(crate) struct Signs([Option<Found>; KINDS.len()]);

/// Cells with a sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// The sign, in words.
    pub(crate) kind: &'static str,
    /// Their number.
    pub(crate) cells: u64,
    /// The place of the first.
    pub(crate) place: Place,
    /// The content of the first.
    pub(crate) cell: String,
    /// The number that was read.
    pub(crate) text: String,
}

impl Signs {
    pub(super) fn add(&mut self, plain: &Plain, cell: &str, place: Place) {
        for (at, found) in self.0.iter_mut().enumerate() {
            if plain.has[at] {
                let found = found.get_or_insert_with(|| Found {
                    kind: KINDS[at],
                    cells: 0,
                    place,
                    cell: cell.to_owned(),
                    text: plain.text.clone(),
                });
                found.cells += 1;
            }
        }
    }

    pub(crate) fn found(&self) -> impl Iterator<Item = &Found> {
        self.0.iter().flatten()
    }
}

/// Returns the text of a number without signs. `None` if it has none. Commas are thousands
/// separators only if they are not decimal marks.
pub(super) fn without(cell: &str, has_comma_groups: bool) -> Option<Plain> {
    let (minus, rest) = match cell.strip_prefix(['-', '+']) {
        Some(rest) => (cell.starts_with('-'), rest.trim_start()),
        None => (false, cell),
    };
    let cut = |text| strip(text, &CURRENCIES).unwrap_or((text, false));
    let (rest, has_currency) = cut(rest);
    let (minus, rest) = match rest.strip_prefix('-') {
        Some(rest) if has_currency && !minus => (true, rest),
        _ => (minus, rest),
    };
    let (rest, has_percent) = match rest.strip_suffix('%') {
        Some(rest) if !has_currency => (rest.trim_end(), true),
        _ => (rest, false),
    };
    let comma = has_comma_groups.then_some(',');
    let decimal = if has_comma_groups { '.' } else { ',' };
    let mut marks = SPACES.into_iter().chain(comma);
    let joined = marks.find_map(|mark| without_groups(rest, mark, &['.', decimal]));
    let has = [has_currency, has_percent, joined.is_some()];
    let digits = joined.unwrap_or_else(|| rest.to_owned());
    // `$67,123`: a decimal comma, or thousands.
    let is_ambiguous =
        has_currency && !has_comma_groups && without_groups(&digits, ',', &['.']).is_some();
    let is_number = !digits.is_empty()
        && digits
            .chars()
            .all(|c| c.is_ascii_digit() || matches!(c, '.' | ','));
    (is_number && !is_ambiguous && has.contains(&true)).then(|| Plain {
        text: if minus { format!("-{digits}") } else { digits },
        has,
    })
}

/// Removes one of these signs at either end, and returns whether there was one.
fn strip<'a>(text: &'a str, signs: &[char]) -> Option<(&'a str, bool)> {
    let front = text.strip_prefix(signs).map(str::trim_start);
    let rest = front.or_else(|| text.strip_suffix(signs).map(str::trim_end))?;
    Some((rest, true))
}

/// Returns digits without the separators between groups of three, if all groups are complete.
fn without_groups(text: &str, mark: char, decimal: &[char]) -> Option<String> {
    let end = text.find(decimal).unwrap_or(text.len());
    let (whole, fraction) = text.split_at(end);
    let mut groups = whole.split(mark);
    let is_digits = |group: &str| group.bytes().all(|byte| byte.is_ascii_digit());
    let first = groups.next()?;
    let mut joined = first.to_owned();
    let mut count = 0;
    for group in groups {
        if group.len() != 3 || !is_digits(group) {
            return None;
        }
        joined += group;
        count += 1;
    }
    let is_grouped = count > 0 && (1..=3).contains(&first.len()) && is_digits(first);
    // `0,123` is a fraction, and `012 345` a code.
    (is_grouped && !first.starts_with('0')).then(|| joined + fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(cell: &str) -> Option<String> {
        without(cell, true).map(|plain| plain.text)
    }

    #[test]
    fn signs_are_left_out_where_they_mean_nothing_else() {
        for (cell, text) in [
            ("$5", "5"),
            ("-$5.50", "-5.50"),
            ("$ -5", "-5"),
            ("5 €", "5"),
            ("€1,234.50", "1234.50"),
            ("45%", "45"),
            ("-4.5 %", "-4.5"),
            ("67,123", "67123"),
            ("1,234,567.8", "1234567.8"),
            ("67 123", "67123"),
            ("1'234'567", "1234567"),
        ] {
            assert_eq!(plain(cell).as_deref(), Some(text), "{cell}");
        }
        // If commas are decimal marks, an amount of money may use them as thousands separators.
        let decimal = |cell| without(cell, false).map(|plain| plain.text);
        assert_eq!(decimal("$67,12").as_deref(), Some("67,12"));
        assert_eq!(decimal("1 234,56").as_deref(), Some("1234,56"));
        for cell in ["1,234", "$67,123", "67,123 €", "$1,234,567"] {
            assert_eq!(decimal(cell), None, "{cell}");
        }
    }

    #[test]
    fn other_text_keeps_its_signs() {
        for cell in [
            "",
            "5",
            "$",
            "%",
            "$5%",
            "1,23",
            "1,2345",
            "0,123",
            "012 345",
            "12,345,6",
            "1 2",
            "a,123",
            "$a",
            "1234,567",
            ",123",
            "2024-03-04",
            "10:15",
            "5 apples",
            "--5",
            "-$-5",
        ] {
            assert_eq!(plain(cell), None, "{cell}");
        }
    }

    #[test]
    fn signs_are_counted_with_the_first_cell() {
        let mut signs = Signs::default();
        for (line, cell) in [(2, "$1,000"), (3, "$7")] {
            signs.add(&without(cell, true).unwrap(), cell, Place::Line(line));
        }
        let found: Vec<_> = signs.found().map(|f| (f.kind, f.cells, &*f.cell)).collect();
        let expected = [
            ("a currency sign", 2, "$1,000"),
            ("thousands separators", 1, "$1,000"),
        ];
        assert_eq!(found, expected);
    }
}
