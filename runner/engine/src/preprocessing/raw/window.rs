//! Computation of features from recordings, in `preprocessing.json`.

use serde::{Deserialize, Serialize};

use super::super::{Column, WindowColumns};
use smolfed_data::config::{DataConfigError, WindowTable};
use smolfed_data::recordings::Recordings;

/// The text.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawWindow {
    channels: Vec<String>,
    breaks: Vec<String>,
    recipe: WindowTable,
}

/// Errors of the text.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(super) enum WindowError {
    #[error("`window`: {0}")]
    Recipe(#[from] DataConfigError),
    #[error("the features of `window` do not match `columns`")]
    Features,
}

impl From<WindowColumns> for RawWindow {
    fn from(window: WindowColumns) -> Self {
        Self {
            recipe: (&window.recordings).into(),
            channels: window.channels,
            breaks: window.breaks,
        }
    }
}

impl RawWindow {
    pub(super) fn parse(self, columns: &[Column]) -> Result<WindowColumns, WindowError> {
        let recordings = Recordings::try_from(self.recipe)?;
        let features = recordings.features.as_ref().ok_or(WindowError::Features)?;
        let channels = self.channels.iter().map(String::as_str);
        let names = columns.iter().map(|column| column.name.clone());
        match features.names(channels).into_iter().map(Some).eq(names) {
            true => Ok(WindowColumns {
                channels: self.channels,
                breaks: self.breaks,
                recordings,
            }),
            false => Err(WindowError::Features),
        }
    }
}
