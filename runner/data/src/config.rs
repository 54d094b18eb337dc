//! The `[data]` table of an experiment: parsed and checked once, and written back completely.
//!
//! The keys are an enum tagged by `source`: `keys` has a struct for each source, and unknown keys
//! are refused. [`DataConfig`] has their meaning. A key without effect on the chosen source or
//! partition is refused. A written table contains every effective value, so reading it again gives
//! the same configuration.

mod conversion;
mod error;
mod features;
mod keys;
mod names;
mod reading;
mod scale;
mod sequence_keys;
mod set;
mod source_keys;
mod stored_keys;
mod synthetic_keys;
mod window;
mod written;

use serde::Serialize;
use smolfed_core::fixed_point::FeatureFormat;

use super::digits;
use super::features::FeatureKind;
use super::missing::Missing;
use super::partition::Dealing;
use super::recordings::Recordings;
use super::scale::{Scale, TargetScale};
use super::split::HoldOut;
use super::synthetic::{SyntheticConfig, SyntheticKind};
use super::text::TextColumn;

pub use error::DataConfigError;
pub use features::{FeaturesTable, FeaturesTableError};
pub use set::{ArraysConfig, ImagesConfig, LeafConfig, MemoryConfig, StoredSet, TableConfig};
pub use window::WindowTable;

/// Maximum number of samples of a device: far above practical values, and small enough that one
/// device fits in memory.
const MAX_SAMPLES: u32 = 10_000_000;

/// The source of samples.
#[derive(Clone, Debug, PartialEq)]
pub enum SourceConfig {
    /// A data set that is read, scaled and dealt to devices.
    Stored(Box<StoredConfig>),
    /// Generated devices, in any number.
    Synthetic(SyntheticConfig),
}

/// A data set and its preparation.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredConfig {
    /// The data set.
    pub set: StoredSet,
    /// The replacement of missing values.
    pub missing: Missing,
    /// The scale of features.
    pub scale: Scale,
    /// The fixed features of `[features]`, instead of `missing` and `scale`.
    pub features: Option<FeatureKind>,
    /// The format in which devices store these features, if they compute them and train in
    /// integers.
    pub integers: Option<FeatureFormat>,
    /// R: the largest length of a scaled sample. Longer ones are shortened.
    pub norm_bound: Option<f32>,
    /// The scale of regression targets.
    pub target_scale: TargetScale,
    /// The dealing of rows to devices.
    pub dealing: Dealing,
    /// Share of its samples that each device holds out to choose settings. 0 if devices are
    /// natural, since their parts are split device by device anyway.
    pub device_validation: f64,
    /// Share of its samples that each device holds out to test its model.
    pub device_test: f64,
}

/// A checked `[data]` table.
#[derive(Clone, Debug, PartialEq)]
pub struct DataConfig {
    /// The source of samples.
    pub source: SourceConfig,
    /// The part held out for choosing settings.
    pub validation: HoldOut,
    /// The part held out for reporting. None if the set has its own test part.
    pub test: HoldOut,
}

impl DataConfig {
    /// Returns the column to predict, if it has a name.
    pub fn target_column(&self) -> Option<&str> {
        match &self.source {
            SourceConfig::Stored(stored) => match &stored.set {
                StoredSet::Table(table) => Some(&table.columns.label),
                StoredSet::Digits => Some(digits::LABEL),
                _ => None,
            },
            SourceConfig::Synthetic(_) => None,
        }
    }

    /// Returns the computation of window features from the rows of a table, and the columns at
    /// whose changes a window ends.
    #[must_use]
    pub fn window_features(&self) -> Option<(&Recordings, Vec<String>)> {
        let SourceConfig::Stored(stored) = &self.source else {
            return None;
        };
        let StoredSet::Table(table) = &stored.set else {
            return None;
        };
        let recordings = table.recordings.as_ref()?;
        recordings.features.as_ref()?;
        let columns = [&table.columns.series, &table.columns.device];
        let breaks = columns.into_iter().flatten().cloned().collect();
        Some((recordings, breaks))
    }

    /// Returns the column of texts, if the features are characters.
    #[must_use]
    pub fn text_column(&self) -> Option<TextColumn> {
        let SourceConfig::Stored(stored) = &self.source else {
            return None;
        };
        match &stored.set {
            StoredSet::Text(text) => Some(TextColumn {
                column: text.text_column.clone(),
                alphabet: text.alphabet.clone(),
            }),
            _ => None,
        }
    }

    /// Returns the number of symbols, if the features are texts.
    #[must_use]
    pub fn symbol_count(&self) -> Option<u16> {
        match &self.source {
            SourceConfig::Stored(stored) => match &stored.set {
                StoredSet::Text(text) => Some(text.alphabet.symbol_count()),
                _ => None,
            },
            SourceConfig::Synthetic(synthetic) => match synthetic.kind {
                SyntheticKind::Text(_) => synthetic.kind.class_count(),
                _ => None,
            },
        }
    }
}

/// Returns a name as written in TOML.
fn name_of(name: impl Serialize) -> String {
    serde_json::to_string(&name).unwrap_or_default()
}

#[cfg(test)]
mod tests;
