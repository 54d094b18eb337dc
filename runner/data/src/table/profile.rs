//! The kind of cells of each column (numbers, yes and no, dates and times, text), and the numbers
//! of missing and of different values, independent of the configuration.
//!
//! Only for the owner of the file (`smolfed data inspect`, `smolfed init`): a profile is a summary
//! of private rows, and no run computes one.

use std::collections::HashMap;

use csv::StringRecord;
use serde::Serialize;

use super::columns::is_unnamed;
use super::error::TableError;
use super::format::{TableFormat, open};
use super::frame::Frame;
use super::rows::Rows;
use crate::column::cell::{Notation, is_missing, truth};
use crate::column::name::name_of;
use crate::column::place::Place;
use crate::column::time::Time;

/// Maximum number of stored different values of a column. If there are more, only this fact is
/// recorded.
pub const MAX_DISTINCT: usize = 10_000;

/// A table, column by column.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Profile {
    /// Encoding and separator, or format.
    pub layout: String,
    /// Number of rows.
    pub rows: usize,
    /// The columns, in order.
    pub columns: Vec<ColumnProfile>,
}

/// The kind of cells of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CellKind {
    /// All cells are missing.
    Nothing,
    /// Numbers.
    Number,
    /// Yes and no, or true and false.
    Truth,
    /// Dates and times.
    Time,
    /// Anything else.
    Text,
}

impl CellKind {
    /// Returns the name in words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Number => "numbers",
            Self::Truth => "yes or no",
            Self::Time => "times",
            Self::Text => "text",
        }
    }
}

/// A column.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ColumnProfile {
    /// Its name in the header, which may be empty.
    pub name: String,
    /// The kind of its cells.
    pub kind: CellKind,
    /// Number of missing cells.
    pub missing: usize,
    /// Number of different values, up to [`MAX_DISTINCT`]. One more means that there are more.
    pub distinct: usize,
    /// Smallest and largest number. `None` if there is none.
    pub range: Option<[f32; 2]>,
    /// Whether all numbers are integers.
    pub is_whole: bool,
    /// Whether the numbers count the rows: each is one more than the previous one.
    pub is_counter: bool,
    /// Number of rows whose cell differs from the cell of the previous row.
    pub changes: usize,
    /// Whether any time is not midnight.
    pub has_hours: bool,
    /// The first cell that is not a number, in a column that also has numbers.
    pub odd: Option<OddCell>,
    /// The different values, by first occurrence.
    #[serde(skip)]
    pub values: Vec<String>,
}

/// A cell that is not a number in a column with numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OddCell {
    /// Its location, such as `line 3`.
    pub place: String,
    /// Its text.
    pub cell: String,
}

impl Profile {
    /// Reads an unpacked file.
    ///
    /// # Errors
    /// [`TableError`] if it is malformed.
    pub fn new(format: TableFormat, bytes: &[u8]) -> Result<Self, TableError> {
        Self::of_rows(open(format, bytes)?)
    }

    /// Reads a table in the memory of a program.
    ///
    /// # Errors
    /// [`TableError::NoHeader`] without columns.
    pub fn of_frame(frame: &Frame) -> Result<Self, TableError> {
        Self::of_rows(frame.rows())
    }

    fn of_rows(mut rows: Box<dyn Rows>) -> Result<Self, TableError> {
        let header = rows.header().clone();
        if header.iter().all(str::is_empty) {
            return Err(TableError::NoHeader);
        }
        let has_commas = rows.has_decimal_commas();
        let mut tallies: Vec<Tally> = header.iter().map(|_| Tally::new(has_commas)).collect();
        let (mut record, mut count) = (StringRecord::new(), 0);
        while let Some(place) = rows.next(&mut record)? {
            if record.len() != header.len() {
                return Err(TableError::ragged(place, header.len(), &record));
            }
            for (tally, cell) in tallies.iter_mut().zip(&record) {
                tally.add(cell, place);
            }
            count += 1;
        }
        let columns = tallies.into_iter().zip(&header);
        Ok(Self {
            layout: rows.layout(),
            rows: count,
            columns: columns.map(|(tally, name)| tally.finish(name)).collect(),
        })
    }

    /// Returns the column with this name.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&ColumnProfile> {
        self.columns.iter().find(|column| column.name == name)
    }
}

impl ColumnProfile {
    /// Returns whether it has no name, and is therefore left out.
    #[must_use]
    pub fn is_unnamed(&self) -> bool {
        is_unnamed(&self.name)
    }

    /// Returns the different values in the order of their names, by value if all are integers.
    /// `None` if not all are stored.
    #[must_use]
    pub fn sorted_values(&self) -> Option<Vec<String>> {
        if self.distinct > MAX_DISTINCT {
            return None;
        }
        let mut values = self.values.clone();
        match values.iter().all(|value| value.parse::<i64>().is_ok()) {
            true => values.sort_by_key(|value| value.parse::<i64>().unwrap_or_default()),
            false => values.sort_unstable(),
        }
        Some(values)
    }
}

/// The statistics of a column while its cells are read.
struct Tally {
    notation: Notation,
    /// Numbers of cells of each kind.
    numbers: usize,
    truths: usize,
    times: usize,
    texts: usize,
    missing: usize,
    range: Option<[f32; 2]>,
    is_whole: bool,
    last: Option<f32>,
    is_counter: bool,
    /// The previous cell.
    cell: Option<String>,
    changes: usize,
    has_hours: bool,
    odd: Option<OddCell>,
    values: HashMap<String, usize>,
    has_more: bool,
}

impl Tally {
    fn new(has_commas: bool) -> Self {
        Self {
            notation: Notation::new(has_commas),
            numbers: 0,
            truths: 0,
            times: 0,
            texts: 0,
            missing: 0,
            range: None,
            is_whole: true,
            last: None,
            is_counter: true,
            cell: None,
            changes: 0,
            has_hours: false,
            odd: None,
            values: HashMap::new(),
            has_more: false,
        }
    }

    fn add(&mut self, cell: &str, place: Place) {
        match &mut self.cell {
            Some(last) if last == cell => {}
            Some(last) => {
                self.changes += 1;
                cell.clone_into(last);
            }
            None => self.cell = Some(cell.to_owned()),
        }
        if is_missing(cell) {
            self.missing += 1;
            self.is_counter = false;
            return;
        }
        let name = name_of(cell);
        if !self.values.contains_key(&*name) {
            match self.values.len() < MAX_DISTINCT {
                true => drop(self.values.insert(name.into_owned(), self.values.len())),
                false => self.has_more = true,
            }
        }
        if truth(cell).is_some() {
            self.truths += 1;
        } else if let Ok(number) = self.notation.number(cell, place) {
            self.add_number(number.value);
            return;
        } else if let Some(has_hours) = Time::parse(cell).map(Time::has_hours) {
            self.times += 1;
            self.has_hours |= has_hours;
        } else {
            self.texts += 1;
        }
        self.is_counter = false;
        self.odd.get_or_insert_with(|| OddCell {
            place: place.to_string(),
            cell: super::shortened(cell),
        });
    }

    fn add_number(&mut self, number: f32) {
        self.numbers += 1;
        let [min, max] = self.range.unwrap_or([number; 2]);
        self.range = Some([min.min(number), max.max(number)]);
        self.is_whole &= number.fract() == 0.0;
        let is_next = |last: f32| (last + 1.0).to_bits() == number.to_bits();
        self.is_counter &= self.last.is_none_or(is_next);
        self.last = Some(number);
    }

    fn finish(self, name: &str) -> ColumnProfile {
        let kind = match (self.numbers, self.truths, self.times, self.texts) {
            (0, 0, 0, 0) => CellKind::Nothing,
            (0, _, 0, 0) => CellKind::Truth,
            (_, _, 0, 0) => CellKind::Number,
            (0, 0, _, 0) => CellKind::Time,
            _ => CellKind::Text,
        };
        let mut values: Vec<(String, usize)> = self.values.into_iter().collect();
        values.sort_unstable_by_key(|(_, at)| *at);
        let is_number = kind == CellKind::Number;
        ColumnProfile {
            name: name.to_owned(),
            kind,
            missing: self.missing,
            distinct: values.len() + usize::from(self.has_more),
            range: self.range.filter(|_| is_number),
            is_whole: is_number && self.is_whole,
            // Two successive rows may be a coincidence.
            is_counter: is_number && self.is_whole && self.is_counter && self.numbers > 2,
            changes: self.changes,
            has_hours: self.has_hours,
            odd: self.odd.filter(|_| self.numbers > 0 && !is_number),
            values: values.into_iter().map(|(value, _)| value).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(text: &str) -> Profile {
        Profile::new(TableFormat::Csv, text.as_bytes()).unwrap()
    }

    #[test]
    fn columns_are_told_apart_by_their_cells() {
        let text = ";n;t;at;day;c;odd;e\n1;1,5;True;2024-03-04 10:00;2024-03-04;red;1;\n\
                    2;NA;no;2024-03-05 00:00;2024-03-05;blue;x;?\n3;-2;no;NA;2024-03-05;red;2;\n";
        let found = profile(text);
        assert_eq!((found.rows, found.columns.len()), (3, 8));
        assert_eq!(found.layout, "UTF-8 text, separated by semicolons");
        let kinds: Vec<CellKind> = found.columns.iter().map(|column| column.kind).collect();
        use CellKind::{Nothing, Number, Text, Time, Truth};
        assert_eq!(
            kinds,
            [Number, Number, Truth, Time, Time, Text, Text, Nothing]
        );
        let [index, n, t, at, day, c, odd, e] = &found.columns[..] else {
            panic!("eight columns")
        };
        assert!(index.is_counter && index.is_unnamed() && !n.is_counter);
        assert_eq!(
            (n.range, n.missing, n.is_whole),
            (Some([-2.0, 1.5]), 1, false)
        );
        assert_eq!((t.distinct, at.has_hours, day.has_hours), (2, true, false));
        assert_eq!(c.sorted_values().unwrap(), ["blue", "red"]);
        let cell = odd.odd.as_ref().unwrap();
        assert_eq!((cell.place.as_str(), cell.cell.as_str()), ("line 3", "x"));
        assert_eq!((e.missing, e.distinct), (3, 0));
        assert_eq!((n.changes, day.changes), (2, 1));
    }

    #[test]
    fn equal_numbers_are_one_value() {
        let found = profile("a,b\n0,x\n0.0,y\n1,x\n1.0,y\n-0.0,x\n");
        let values = found.column("a").unwrap().sorted_values();
        assert_eq!(values.unwrap(), ["0", "1"]);
    }

    #[test]
    fn many_values_are_only_more() {
        let rows: String = (0..MAX_DISTINCT + 5)
            .map(|row| format!("{row},9\n"))
            .collect();
        let found = profile(&format!("a,b\n{rows}"));
        assert_eq!(found.column("a").unwrap().distinct, MAX_DISTINCT + 1);
        assert_eq!(found.column("a").unwrap().sorted_values(), None);
        assert_eq!(found.column("b").unwrap().distinct, 1);
    }
}
