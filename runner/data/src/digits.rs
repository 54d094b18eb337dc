//! The built-in set: 1,797 handwritten digits of 8 × 8 pixels from 0 to 16.
//!
//! Source: Alpaydin, Kaynak 1998, "Optical Recognition of Handwritten Digits", UCI Machine Learning
//! Repository, doi:10.24432/C50P49, CC BY 4.0. It is the test part, as in scikit-learn.

use super::archive;
use super::classes::Classes;
use super::dataset::{Dataset, TaskKind};
use super::error::DataError;
use super::table::{self, Columns, TableFormat};

const PACKED: &[u8] = include_bytes!("../assets/digits/optdigits_8x8.csv.gz");
/// The name of the set in errors.
pub(super) const ORIGIN: &str = "built-in digits";
/// The column of the classes.
pub(super) const LABEL: &str = "digit";
const CLASSES: u16 = 10;
const SIDE: usize = 8;
const MAXIMUM: f32 = 16.0;

/// Returns all digits, in the order of the set.
///
/// # Errors
/// None in practice. The type is the same for all sources.
pub fn load() -> Result<Dataset, DataError> {
    let columns = Columns {
        label: LABEL.into(),
        task: Some(TaskKind::Classification),
        classes: Some(Classes::numbered(CLASSES)),
        ..Columns::default()
    };
    let contents = archive::unpack(PACKED, "csv").map_err(DataError::at(ORIGIN))?;
    let table = table::parse(TableFormat::Csv, &contents.concat(), &columns);
    let table = table.map_err(DataError::at(ORIGIN))?;
    let data = table
        .into_dataset()
        .and_then(|data| data.with_axes(vec![SIDE, SIDE]))
        .map_err(DataError::at(ORIGIN))?;
    Ok(data.with_maximum(Some(MAXIMUM)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::Targets;

    #[test]
    fn all_digits_are_there() {
        let data = load().unwrap();
        assert_eq!(
            (data.len(), data.feature_count(), data.axes()),
            (1797, 64, &[8, 8][..])
        );
        let Targets::Classes {
            labels,
            class_count: 10,
        } = data.targets()
        else {
            unreachable!()
        };
        let count = |digit| labels.iter().filter(|&&label| label == digit).count();
        let counts: Vec<usize> = (0..10).map(count).collect();
        // The counts in the set's documentation.
        assert_eq!(counts, [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]);
        let first = [0.0, 0.0, 5.0, 13.0, 9.0, 1.0, 0.0, 0.0];
        assert!(data.row(0).take(8).eq(first));
        let pixels = data.features().to_vec();
        assert!(pixels.iter().all(|pixel| (0.0..=MAXIMUM).contains(pixel)));
        assert!(data.missing().is_empty());
    }
}
