//! How the cells of a column become features: the one place that says what a trained model expects
//! of the columns of a file.
//!
//! An [`Encoding`] is decided by the configuration, never by the rows.

pub mod cell;
pub mod error;
pub mod place;
pub mod time;

use serde::{Deserialize, Serialize};

use cell::{Notation, is_missing};
use error::CellError;
use place::Place;
use time::{Time, TimePart};

/// How the cells of a column become features.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encoding {
    /// One feature: a number; true and yes are 1, false and no are 0.
    #[default]
    Number,
    /// One feature a category: 1 for the cell's, 0 for the others. A missing cell has none.
    Categories(Vec<String>),
    /// One feature a part of the date and time in the cell.
    Time(Vec<TimePart>),
}

/// A column of a file that becomes features.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeatureColumn {
    /// Its name in the header.
    pub name: String,
    /// What becomes of its cells.
    pub encoding: Encoding,
}

impl FeatureColumn {
    /// For each feature, in order, whether it says if a cell is in one category: 0 or 1.
    pub(crate) fn indicators(&self) -> impl Iterator<Item = bool> + use<> {
        let (is_indicator, count) = match &self.encoding {
            Encoding::Number => (false, 1),
            Encoding::Categories(categories) => (true, categories.len()),
            Encoding::Time(parts) => (false, parts.len()),
        };
        std::iter::repeat_n(is_indicator, count)
    }

    /// Names of the features, in order: the column's, or `column=category` and `column:part`.
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

    /// Appends the features of a cell; of a missing one zeros, whose places go to `missing`.
    pub(crate) fn write(
        &self,
        cell: &str,
        place: Place,
        notation: &mut Notation,
        features: &mut Vec<f32>,
        missing: &mut Vec<usize>,
    ) -> Result<(), CellError> {
        let start = features.len();
        match &self.encoding {
            Encoding::Categories(categories) => {
                let at = categories.iter().position(|category| category == cell);
                if at.is_none() && !is_missing(cell) {
                    return Err(CellError::UnknownCategory);
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
            Encoding::Number => features.push(notation.number(cell, place)?),
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
        let (mut features, mut missing) = (Vec::new(), Vec::new());
        for cell in cells {
            let notation = &mut Notation::new(false);
            column.write(cell, Place::Line(1), notation, &mut features, &mut missing)?;
        }
        Ok((features, missing))
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
