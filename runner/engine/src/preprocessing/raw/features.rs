//! Computation of fixed features from the values of a row, in `preprocessing.json`.

use serde::{Deserialize, Serialize};
use smolfed_core::features::{Range, Steps};
use smolfed_data::features::{FeatureRecipe, FeaturesError, ImageFeatures};

/// The text.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, tag = "kind", rename_all = "kebab-case")]
pub(super) enum RawFeatures {
    Gradients {
        cell: usize,
        levels: f32,
    },
    Pool {
        cell: usize,
        levels: f32,
    },
    Steps {
        count: usize,
        bounds: Vec<Option<[f32; 2]>>,
    },
}

/// Errors of the text.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(super) enum RawFeaturesError {
    #[error("`features`: {0}")]
    Recipe(#[from] FeaturesError),
    #[error("`features`: `bounds` list {found} columns, but there are {expected}")]
    Columns { found: usize, expected: usize },
    #[error("`features`: `levels` is {0}, but must be a finite number, 1 or more")]
    Levels(f32),
}

impl From<&FeatureRecipe> for RawFeatures {
    fn from(recipe: &FeatureRecipe) -> Self {
        match recipe {
            FeatureRecipe::Image {
                features, levels, ..
            } => {
                let (cell, levels) = (features.cells().cell(), *levels);
                match features {
                    ImageFeatures::Gradients(_) => Self::Gradients { cell, levels },
                    ImageFeatures::Pool(_) => Self::Pool { cell, levels },
                }
            }
            FeatureRecipe::Steps { steps, ranges } => {
                let bounds = |range: Range<f32>| [range.low(), range.high()];
                Self::Steps {
                    count: steps.count(),
                    bounds: ranges.iter().map(|range| range.map(bounds)).collect(),
                }
            }
        }
    }
}

impl RawFeatures {
    /// Parses the features for rows of this shape.
    pub(super) fn parse(
        self,
        axes: &[usize],
        columns: usize,
    ) -> Result<FeatureRecipe, RawFeaturesError> {
        let (cell, levels, of_cells) = match self {
            Self::Steps { count, bounds } => return steps(count, bounds, columns),
            Self::Gradients { cell, levels } => {
                (cell, levels, ImageFeatures::Gradients as fn(_) -> _)
            }
            Self::Pool { cell, levels } => (cell, levels, ImageFeatures::Pool as fn(_) -> _),
        };
        match levels.is_finite() && levels >= 1.0 {
            true => Ok(FeatureRecipe::of_image(axes, cell, levels, of_cells)?),
            false => Err(RawFeaturesError::Levels(levels)),
        }
    }
}

fn steps(
    count: usize,
    bounds: Vec<Option<[f32; 2]>>,
    columns: usize,
) -> Result<FeatureRecipe, RawFeaturesError> {
    if bounds.len() != columns {
        let (found, expected) = (bounds.len(), columns);
        return Err(RawFeaturesError::Columns { found, expected });
    }
    let range = |[low, high]: [f32; 2]| Range::new(low, high).map_err(FeaturesError::Core);
    let ranges = bounds
        .into_iter()
        .map(|bounds| bounds.map(range).transpose());
    Ok(FeatureRecipe::Steps {
        steps: Steps::new(count).map_err(FeaturesError::Core)?,
        ranges: ranges.collect::<Result<_, _>>()?,
    })
}
