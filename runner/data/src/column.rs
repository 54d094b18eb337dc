//! Encoding of the cells of a column as features (numbers, categories, parts of dates and times):
//! the only module that defines the columns of a file that a trained model expects.
//!
//! The configuration determines an [`Encoding`], never the rows.

pub mod cell;
pub mod error;
pub mod name;
pub mod place;
pub(crate) mod signs;
pub mod time;

use serde::{Deserialize, Serialize};

use cell::{Notation, is_missing};
use error::CellError;
use place::Place;
use time::{Time, TimePart};

/// The encoding of the cells of a column as features.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encoding {
    /// One feature: a number. True and yes are 1, false and no are 0.
    #[default]
    Number,
    /// One feature per category: 1 for the cell's category, 0 for the others. A missing cell has
    /// none.
    Categories(Vec<String>),
    /// One feature per part of the date and time in the cell.
    Time(Vec<TimePart>),
}

/// The handling of an unknown category.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unknown {
    /// The cell is refused.
    #[default]
    Refuse,
    /// The cell has none of the categories, like a missing cell.
    Ignore {
        /// Number of such cells so far.
        cells: u64,
    },
}

/// The features of cells, in order.
#[derive(Clone, Debug, Default)]
pub struct Values {
    /// 32-bit numbers. 0 if the cell is missing.
    pub features: Vec<f32>,
    /// Places of missing features, ascending.
    pub missing: Vec<usize>,
    /// Places of large numbers, ascending, with the digits that 32 bits cannot hold: the number is
    /// the sum of both.
    pub rests: Vec<(usize, f64)>,
    /// The handling of unknown categories.
    pub unknown: Unknown,
}

impl Values {
    /// Returns the number at a place, with all digits. `None` for a missing one.
    ///
    /// # Panics
    /// If there is no such place.
    #[must_use]
    pub fn get(&self, place: usize) -> Option<f64> {
        if self.missing.binary_search(&place).is_ok() {
            return None;
        }
        let rest = self.rests.binary_search_by_key(&place, |(at, _)| *at);
        let rest = rest.map_or(0.0, |at| self.rests[at].1);
        Some(f64::from(self.features[place]) + rest)
    }

    /// Appends the features of more rows.
    pub(crate) fn append(&mut self, more: Self) {
        let offset = self.features.len();
        let missing = more.missing.into_iter().map(|place| place + offset);
        self.missing.extend(missing);
        let rests = more.rests.into_iter();
        self.rests
            .extend(rests.map(|(place, rest)| (place + offset, rest)));
        self.features.extend(more.features);
    }
}

/// A column of a file that becomes features.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeatureColumn {
    /// Its name in the header.
    pub name: String,
    /// The encoding of its cells.
    pub encoding: Encoding,
}

impl FeatureColumn {
    /// Iterates over the features, in order, and returns whether each indicates a category: 0 or 1.
    pub(crate) fn indicators(&self) -> impl Iterator<Item = bool> + use<> {
        let (is_indicator, count) = match &self.encoding {
            Encoding::Number => (false, 1),
            Encoding::Categories(categories) => (true, categories.len()),
            Encoding::Time(parts) => (false, parts.len()),
        };
        std::iter::repeat_n(is_indicator, count)
    }

    /// Returns the names of the features, in order: the column's, or `column=category` and
    /// `column:part`.
    pub fn feature_names(&self) -> Vec<String> {
        let name = &self.name;
        match &self.encoding {
            Encoding::Number => vec![name.clone()],
            Encoding::Categories(categories) => {
                let named = categories
                    .iter()
                    .map(|category| format!("{name}={category}"));
                named.collect()
            }
            Encoding::Time(parts) => {
                let named = parts.iter().map(|part| format!("{name}:{}", part.name()));
                named.collect()
            }
        }
    }

    /// Appends the features of a cell. For a missing cell it appends zeros and records their
    /// places.
    pub(crate) fn write(
        &self,
        cell: &str,
        place: Place,
        notation: &mut Notation,
        values: &mut Values,
    ) -> Result<(), CellError> {
        let Values {
            features,
            missing,
            rests,
            unknown,
        } = values;
        let start = features.len();
        match &self.encoding {
            Encoding::Categories(categories) => {
                let at = name::position(categories, cell);
                if at.is_none() && !is_missing(cell) {
                    match unknown {
                        Unknown::Refuse => return Err(CellError::UnknownCategory),
                        Unknown::Ignore { cells } => *cells += 1,
                    }
                }
                features.resize(start + categories.len(), 0.0);
                if let Some(at) = at {
                    features[start + at] = 1.0;
                }
            }
            Encoding::Number if is_missing(cell) => {
                missing.push(start);
                features.push(0.0);
            }
            Encoding::Number => {
                let number = notation.number(cell, place)?;
                if number.rest != 0.0 {
                    rests.push((start, number.rest));
                }
                features.push(number.value);
            }
            Encoding::Time(parts) if is_missing(cell) => {
                missing.extend(start..start + parts.len());
                features.resize(start + parts.len(), 0.0);
            }
            Encoding::Time(parts) => {
                let time = Time::parse(cell).ok_or(CellError::NotTime)?;
                features.extend(parts.iter().map(|part| time.part(*part)));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(encoding: Encoding) -> FeatureColumn {
        FeatureColumn {
            name: "c".into(),
            encoding,
        }
    }

    fn read(column: &FeatureColumn, cells: &[&str]) -> Result<(Vec<f32>, Vec<usize>), CellError> {
        let mut values = Values::default();
        for cell in cells {
            let notation = &mut Notation::new(false);
            column.write(cell, Place::Line(1), notation, &mut values)?;
        }
        Ok((values.features, values.missing))
    }

    #[test]
    fn unknown_categories_are_zeros_and_counted_where_that_is_asked_for() {
        let colour = column(Encoding::Categories(vec!["1".into(), "2".into()]));
        let mut values = Values {
            unknown: Unknown::Ignore { cells: 0 },
            ..Values::default()
        };
        for cell in ["2.0", "blue", "", "1"] {
            let notation = &mut Notation::new(false);
            let written = colour.write(cell, Place::Line(1), notation, &mut values);
            written.unwrap();
        }
        let expected = [0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0];
        assert_eq!(values.features, expected);
        assert_eq!(values.unknown, Unknown::Ignore { cells: 1 });
    }

    #[test]
    fn categories_have_one_feature_each() {
        let colour = column(Encoding::Categories(vec!["red".into(), "NA".into()]));
        assert_eq!(colour.feature_names(), ["c=red", "c=NA"]);
        let (features, missing) = read(&colour, &["NA", "", "red"]).unwrap();
        assert_eq!(features, [0.0, 1.0, 0.0, 0.0, 1.0, 0.0]);
        assert!(missing.is_empty());
        assert_eq!(read(&colour, &["blue"]), Err(CellError::UnknownCategory));
    }

    #[test]
    fn times_have_one_feature_a_part() {
        let time = column(Encoding::Time(vec![TimePart::Weekday, TimePart::Hour]));
        assert_eq!(time.feature_names(), ["c:weekday", "c:hour"]);
        let (features, missing) = read(&time, &["2024-03-04 12:30", "NA"]).unwrap();
        assert_eq!(features, [0.0, 12.5, 0.0, 0.0]);
        assert_eq!(missing, [2, 3]);
        assert_eq!(read(&time, &["soon"]), Err(CellError::NotTime));
    }
}
