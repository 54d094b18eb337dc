//! The keys of texts and of recordings, which are cut into samples: alphabet, length and windows,
//! with their defaults and limits.

use super::error::{in_range, needed, wrong};
use super::keys::{TableKeys, TextKeys};
use super::names::UnknownCharacters;
use super::set::StoredSet;
use super::window::{MAX_WINDOW, WindowKey};
use super::{DataConfigError, MAX_SAMPLES, name_of};
use crate::dataset::TaskKind;
use crate::recordings::Recordings;
use crate::text::{Alphabet, TextConfig};

/// Default number of characters of a sample.
const LENGTH: u32 = 80;
/// Maximum number of characters of a sample: a sequence has fewer than 2¹⁶ steps.
pub(super) const MAX_LENGTH: u32 = 65_535;

impl TextKeys {
    pub(super) fn set(&mut self) -> Result<StoredSet, DataConfigError> {
        let purpose = "the table with a text in each row, plain or .gz";
        let path = needed("path", self.path.take(), purpose)?;
        let purpose = "the column of the texts";
        let text_column = needed("text_column", self.text_column.take(), purpose)?;
        let one = self.device_column.take().map(|column| vec![column]);
        let device_columns = match (self.device_columns.take(), one) {
            (Some(columns), None) | (None, Some(columns)) => columns,
            (None, None) => Vec::new(),
            (Some(_), Some(_)) => {
                let expected = "left out with `data.device_column`";
                return Err(wrong("device_columns", "given", expected));
            }
        };
        let length = self.length.take().unwrap_or(LENGTH);
        let length = in_range("length", length, 1..=MAX_LENGTH)?;
        let stride = self.stride.take().unwrap_or(length);
        // Without devices, the key belongs to the partition.
        let min_samples = match device_columns.is_empty() {
            true => 1,
            false => self.min_samples.take().unwrap_or(1),
        };
        Ok(StoredSet::Text(TextConfig {
            path,
            text_column,
            device_columns,
            length,
            stride: in_range("stride", stride, 1..=MAX_SAMPLES)?,
            min_samples: in_range("min_samples", min_samples, 1..=MAX_SAMPLES)?,
            alphabet: self.alphabet()?,
        }))
    }

    fn alphabet(&mut self) -> Result<Alphabet, DataConfigError> {
        let replaces = self.unknown_characters.take() == Some(UnknownCharacters::Replace);
        let text = self.alphabet.take();
        Alphabet::new(text.as_deref(), replaces).map_err(|fault| {
            let expected = "a text of 2 to 255 different characters";
            wrong("alphabet", fault, expected)
        })
    }
}

impl TableKeys {
    /// Returns how rows of a table become windows. Without `window`, the other keys have no effect.
    pub(super) fn recordings(
        &mut self,
        task: Option<TaskKind>,
    ) -> Result<Option<Recordings>, DataConfigError> {
        let Some(window) = self.window.take() else {
            return Ok(None);
        };
        if task == Some(TaskKind::Regression) {
            let expected = "left out for regression: windows of a recording have a class";
            return Err(wrong("window", name_of(window), expected));
        }
        let window = match window {
            WindowKey::Table(table) => return Ok(Some(table.try_into()?)),
            WindowKey::Length(window) => in_range("window", window, 2..=MAX_WINDOW)?,
        };
        let every = in_range("every", self.every.take().unwrap_or(1), 1..=window)?;
        if !window.is_multiple_of(every) {
            let expected = format!("a divisor of `data.window` = {window}");
            return Err(wrong("every", every, &expected));
        }
        Ok(Some(Recordings {
            window,
            step: window,
            every,
            features: None,
        }))
    }
}
