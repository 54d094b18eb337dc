//! The table `[features]`: the kind and settings of the fixed features of each sample (`gradients`,
//! `pool`, `steps`), and errors in it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smolfed_core::features::{MAX_SIDE, MAX_STEPS, Steps};
use smolfed_core::fixed_point::FeatureFormat;

use super::{DataConfig, SourceConfig, StoredSet, name_of};
use crate::constants::Bounds;
use crate::features::FeatureKind;
use crate::missing::Missing;
use crate::scale::Scale;

/// `[features]`: fixed features of each sample, in the place of its pixels or columns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FeaturesTable {
    /// `"gradients"` or `"pool"` for images, `"steps"` for columns of numbers.
    kind: KindName,
    /// For images: side of a cell in pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cell: Option<u32>,
    /// Steps for each number, at most 255.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    count: Option<u32>,
    /// Documented bounds `{ min = .., max = .. }`. Each is a number, or a list with one for each
    /// column of numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bounds: Option<Bounds>,
}

/// The names of the features.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum KindName {
    Gradients,
    Pool,
    Steps,
}

/// Errors in `[features]`.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FeaturesTableError {
    /// A key required by the kind is missing.
    #[error("`features.{key}` is missing: {purpose}")]
    Missing {
        /// The key.
        key: &'static str,
        /// The purpose of the key.
        purpose: &'static str,
    },
    /// A key belongs to another kind.
    #[error("`features.{key}` has no effect with kind = {kind}; remove it")]
    Unused {
        /// The key.
        key: &'static str,
        /// The kind.
        kind: String,
    },
    /// A value is out of range.
    #[error("`features.{key}` is {value}, but must be from 1 to {max}")]
    Range {
        /// The key.
        key: &'static str,
        /// Its value.
        value: u32,
        /// The largest valid value.
        max: usize,
    },
    /// The samples have no such features.
    #[error(
        "`[features]` are computed from images and columns of numbers, but {0}; remove the table"
    )]
    Source(&'static str),
}

impl FeaturesTable {
    /// Returns the features that the table describes.
    ///
    /// # Errors
    /// [`FeaturesTableError`] for a key that is missing, of another kind or out of range.
    fn kind(&self) -> Result<FeatureKind, FeaturesTableError> {
        let unused = match self.kind {
            KindName::Gradients | KindName::Pool => [
                ("count", self.count.is_some()),
                ("bounds", self.bounds.is_some()),
            ]
            .into_iter()
            .find(|(_, is_given)| *is_given),
            KindName::Steps => self.cell.map(|_| ("cell", true)),
        };
        if let Some((key, _)) = unused {
            let kind = name_of(self.kind);
            return Err(FeaturesTableError::Unused { key, kind });
        }
        let missing = |key, purpose| FeaturesTableError::Missing { key, purpose };
        let cell = || {
            let cell = self.cell;
            let cell = cell.ok_or(missing("cell", "the side of a square cell in pixels"))?;
            in_range("cell", cell, MAX_SIDE)
        };
        Ok(match self.kind {
            KindName::Gradients => FeatureKind::Gradients { cell: cell()? },
            KindName::Pool => FeatureKind::Pool { cell: cell()? },
            KindName::Steps => {
                let count = self.count;
                let count = count.ok_or(missing("count", "the number of steps per number"))?;
                let bounds = self.bounds.clone();
                let purpose = "documented bounds of the numbers, as { min = .., max = .. }, with \
                               one number for all or a list with one for each column of numbers";
                in_range("count", count, MAX_STEPS)?;
                FeatureKind::Steps {
                    // In range.
                    steps: Steps::new(count as usize).map_err(|_| missing("count", ""))?,
                    bounds: bounds.ok_or(missing("bounds", purpose))?,
                }
            }
        })
    }
}

impl From<&FeatureKind> for FeaturesTable {
    fn from(kind: &FeatureKind) -> Self {
        let of_image = |kind, cell| Self {
            kind,
            cell: Some(cell as u32),
            count: None,
            bounds: None,
        };
        match kind {
            FeatureKind::Gradients { cell } => of_image(KindName::Gradients, *cell),
            FeatureKind::Pool { cell } => of_image(KindName::Pool, *cell),
            FeatureKind::Steps { steps, bounds } => Self {
                kind: KindName::Steps,
                cell: None,
                count: Some(steps.count() as u32),
                bounds: Some(bounds.clone()),
            },
        }
    }
}

fn in_range(key: &'static str, value: u32, max: usize) -> Result<usize, FeaturesTableError> {
    match (1..=max).contains(&(value as usize)) {
        true => Ok(value as usize),
        false => Err(FeaturesTableError::Range { key, value, max }),
    }
}

impl DataConfig {
    /// Adds the features of a table, which replace `data.scale` and `data.missing`.
    ///
    /// # Errors
    /// [`FeaturesTableError`] for an invalid table, and for data without such features.
    pub fn with_features(mut self, table: &FeaturesTable) -> Result<Self, FeaturesTableError> {
        let SourceConfig::Stored(stored) = &mut self.source else {
            return Err(FeaturesTableError::Source("these samples are generated"));
        };
        match &stored.set {
            StoredSet::Text(_) => return Err(FeaturesTableError::Source("these are texts")),
            StoredSet::Table(table) if table.recordings.is_some() => {
                let advice = "these are windows of recordings, whose features are in `data.window`";
                return Err(FeaturesTableError::Source(advice));
            }
            _ => {}
        }
        stored.features = Some(table.kind()?);
        stored.scale = Scale::None;
        stored.missing = Missing::Mean;
        Ok(self)
    }

    /// Sets the integer format of devices that compute the features and train in integers.
    #[must_use]
    pub fn with_integers(mut self, format: Option<FeatureFormat>) -> Self {
        if let SourceConfig::Stored(stored) = &mut self.source {
            stored.integers = format;
        }
        self
    }

    /// Returns the data from which the features are computed.
    #[must_use]
    pub fn without_features(mut self) -> Self {
        if let SourceConfig::Stored(stored) = &mut self.source {
            stored.features = None;
            stored.integers = None;
            stored.norm_bound = None;
        }
        self
    }
}
