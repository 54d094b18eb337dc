//! `preprocessing.json`: the information that a model needs about a new row, besides its
//! parameters.
//!
//! The format is documented in `docs/inference.md`, and `raw` has its text. Every constant is the
//! one from training, so a row gives the same features, bit for bit.
//!
//! **What the file reveals about the devices' rows.** Nothing beyond the run's privacy statement.
//! The names and order of the columns, the shape, the target's name and the model come from the
//! configuration and the file's header, as in `model.safetensors`. For the rest, [`Disclosure`]
//! gives the origin of each constant:
//!
//! * *declared*: in the configuration, or by the format of the data.
//! * *released*: computed from moments that devices released under noise, which ε includes.
//! * *measured*: computed from the devices' rows without noise. ε does not cover it, and the
//!   statement of the run says so in the same words (`data_conditions`).
//!
//! Whether a column has its own fill-in, or is 0 because it never changed in training, follows from
//! the rows like its value, and is listed with it. The file contains no counts of rows, clipped
//! values or missing values, and no names of devices.

mod raw;

use std::path::Path;

use serde::{Deserialize, Serialize};
use smolfed_core::fixed_point::FeatureFormat;
use smolfed_core::recipe::Recipe;

use crate::data_conditions::of_read;
use crate::experiment::Experiment;
use crate::method::state::PersonalState;
use crate::run_files::error::{RunDirError, damaged, io};
use crate::task::Task;
use smolfed_data::column::{Encoding, FeatureColumn};
use smolfed_data::constants::Affine;
use smolfed_data::dataset::shorten;
use smolfed_data::features::{FeatureRecipe, FeaturesError};
use smolfed_data::federation::Federation;
use smolfed_data::preparation::{ColumnMap, Fill};
use smolfed_data::reads::{List, Read};
use smolfed_data::recipe;
use smolfed_data::recordings::Recordings;
use smolfed_data::text::TextColumn;
use smolfed_data::wording::of_json;

/// The information that a model needs about a new row.
#[derive(Clone, Debug)]
pub struct Preprocessing {
    /// The model.
    pub task: Task,
    /// State of devices, if there are personal models.
    pub personal: Option<PersonalState>,
    /// Meaning of the model's outputs.
    pub target: Target,
    /// Lengths of the axes of a grid row, slowest first. Empty otherwise.
    pub axes: Vec<usize>,
    /// One column per value of a row, in the order of the values.
    pub columns: Vec<Column>,
    /// The features computed from these values, or `None` if they are the features.
    pub features: Option<FeatureRecipe>,
    /// Maximum length of a row's features. Longer ones are scaled down.
    pub norm_bound: Option<f32>,
    /// The columns of a table whose cells become the features, in order. Empty if each feature is a
    /// column of numbers.
    pub cells: Vec<FeatureColumn>,
    /// The column of texts whose characters are the features, if there is one.
    pub text: Option<TextColumn>,
    /// Computation of the features from windows of recordings, if there are any.
    pub window: Option<WindowColumns>,
    /// Origins of the constants.
    pub disclosure: Disclosure,
}

/// The columns of recordings whose windows become features.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowColumns {
    /// The columns of the channels, in the order of the features.
    pub channels: Vec<String>,
    /// Columns whose changes end a window, if a table has them.
    pub breaks: Vec<String>,
    /// The cutting into windows, and the computed features.
    pub recordings: Recordings,
}

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name, if the source has names.
    pub name: Option<String>,
    /// The transformation of its values.
    pub map: ColumnMap,
}

/// Meaning of a model's outputs.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// Classes by their labels, with a score each, or one for two classes.
    Classes {
        /// Name of the column of their labels, if there is one.
        column: Option<String>,
        /// The labels in order.
        labels: Vec<String>,
    },
    /// A number.
    Value {
        /// Name of its column, if there is one.
        column: Option<String>,
        /// Its scaling: the output times `std`, plus `mean`, is in its own unit.
        scale: Affine,
    },
    /// A representation of the row, learned without labels.
    Representation,
}

/// Origin of a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// The configuration, or the format of the data.
    Declared,
    /// A release under noise, which ε includes.
    Released,
    /// The devices' rows, without noise. ε does not cover it.
    Measured,
}

impl Basis {
    /// Returns the name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Declared => "declared",
            Self::Released => "released",
            Self::Measured => "measured",
        }
    }
}

/// Origins of the constants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disclosure {
    /// Bounds, means and deviations of the columns.
    pub scale: Basis,
    /// The values that replace missing ones. Absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Basis>,
    /// The list of classes. Absent without classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<Basis>,
    /// The lists of categories. Absent without columns of categories.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub categories: Option<Basis>,
    /// Mean and deviation of the target. Absent without a value to predict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_scale: Option<Basis>,
    /// The sentences of the run's privacy statement about them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Preprocessing {
    /// Name of the file in a run directory.
    pub const FILE: &'static str = "preprocessing.json";

    /// Returns how a device computes the features of its samples, if it computes any.
    #[must_use]
    pub fn recipe(&self) -> Option<Recipe> {
        match (&self.features, &self.window) {
            (Some(features), _) => features.on_devices(),
            (None, Some(window)) => {
                let features = window.recordings.features.as_ref()?;
                recipe::of_windows(features, window.channels.len())
            }
            (None, None) => None,
        }
    }

    /// Describes the preprocessing of an experiment on its federation, which has its scale.
    #[must_use]
    pub fn new(experiment: &Experiment, federation: &Federation) -> Self {
        let names = federation.names();
        let preparation = federation.preparation();
        let column = experiment.config.data.target_column().map(str::to_owned);
        let target = match federation.class_count() {
            _ if !experiment.method.properties().uses_labels => Target::Representation,
            None => Target::Value {
                column,
                scale: preparation.target,
            },
            Some(count) => Target::Classes {
                column,
                labels: match names.classes.is_empty() {
                    true => (0..count).map(|class| class.to_string()).collect(),
                    false => names.classes,
                },
            },
        };
        let window = experiment.config.data.window_features();
        let window = window.map(|(recordings, breaks)| WindowColumns {
            channels: names
                .columns
                .iter()
                .map(|column| column.name.clone())
                .collect(),
            breaks,
            recordings: recordings.clone(),
        });
        let is_number = |cells: &FeatureColumn| cells.encoding == Encoding::Number;
        let cells = match names.columns.iter().all(is_number) {
            true => Vec::new(),
            false => names.columns,
        };
        let inputs = federation.inputs();
        let names = inputs.map_or(names.features, |inputs| inputs.names.clone());
        let mut names = names.into_iter();
        let columns = preparation.columns.into_iter().map(|map| Column {
            name: names.next(),
            map,
        });
        let columns: Vec<Column> = columns.collect();
        Self {
            task: *experiment.task(),
            personal: experiment.method.properties().personal_state,
            disclosure: Disclosure::new(experiment, federation, &target, &columns, &cells),
            target,
            axes: inputs.map_or_else(|| federation.axes(), |inputs| inputs.axes.clone()),
            columns,
            features: inputs.map(|inputs| inputs.recipe.clone()),
            norm_bound: federation.norm_bound(),
            cells,
            text: experiment.config.data.text_column(),
            window,
        }
    }

    /// Returns the text of the file.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Finite numbers and texts have a form in JSON.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// Reads a file.
    ///
    /// # Errors
    /// [`RunDirError`] if it cannot be read, or is not of this format.
    pub fn read(path: &Path) -> Result<Self, RunDirError> {
        let text = std::fs::read_to_string(path).map_err(io("read", path))?;
        serde_json::from_str(&text).map_err(|error| damaged(path, of_json(&error)))
    }

    /// Returns the number of features that the model reads.
    #[must_use]
    pub fn feature_count(&self) -> usize {
        match &self.features {
            Some(recipe) => recipe.feature_count(),
            None => self.columns.len(),
        }
    }

    /// Returns the features of rows of prepared values. The first one is row `first`, from 0. With
    /// a format of `integers`, computed features are rounded to the integers of boards.
    ///
    /// # Errors
    /// [`FeaturesError`] with the row for a value that has no features.
    pub fn features_of(
        &self,
        values: Vec<f32>,
        first: usize,
        integers: Option<FeatureFormat>,
    ) -> Result<Vec<f32>, FeaturesError> {
        let mut features = match &self.features {
            Some(recipe) => recipe.compute_all(&values, self.columns.len(), first, integers)?,
            None => values,
        };
        if let Some(bound) = self.norm_bound {
            for row in features.chunks_exact_mut(self.feature_count()) {
                shorten(row, bound);
            }
        }
        Ok(features)
    }

    /// Returns the labels of the classes, or none without classes.
    #[must_use]
    pub fn labels(&self) -> &[String] {
        match &self.target {
            Target::Classes { labels, .. } => labels,
            Target::Value { .. } | Target::Representation => &[],
        }
    }

    /// Returns the name of the target's column, if there is one.
    #[must_use]
    pub fn target_column(&self) -> Option<&str> {
        match &self.target {
            Target::Classes { column, .. } | Target::Value { column, .. } => column.as_deref(),
            Target::Representation => None,
        }
    }

    /// Returns the columns of a table that become features, if they have names: one per feature,
    /// unless cells become several.
    #[must_use]
    pub fn cells(&self) -> Option<Vec<FeatureColumn>> {
        if !self.cells.is_empty() {
            return Some(self.cells.clone());
        }
        let number = |name: &str| FeatureColumn {
            name: name.to_owned(),
            encoding: Encoding::Number,
        };
        Some(self.names()?.into_iter().map(number).collect())
    }

    /// Returns the names of the columns, if all have one.
    #[must_use]
    pub fn names(&self) -> Option<Vec<&str>> {
        let names = self.columns.iter().map(|column| column.name.as_deref());
        names.collect()
    }
}

impl Disclosure {
    /// Returns the origin of each kind of constant, by the names of the file.
    pub fn origins(&self) -> impl Iterator<Item = (&'static str, Basis)> {
        let all = [
            ("scale", Some(self.scale)),
            ("missing", self.missing),
            ("classes", self.classes),
            ("categories", self.categories),
            ("target_scale", self.target_scale),
        ];
        let all = all.into_iter();
        all.filter_map(|(name, basis)| Some((name, basis?)))
    }

    fn new(
        experiment: &Experiment,
        federation: &Federation,
        target: &Target,
        columns: &[Column],
        cells: &[FeatureColumn],
    ) -> Self {
        let reads = federation.reads();
        let is_category = |cells: &FeatureColumn| matches!(cells.encoding, Encoding::Categories(_));
        let of = |read: Read| match reads.contains(&read) {
            true => Basis::Measured,
            false => Basis::Declared,
        };
        let is_released = !federation.released_moments().is_empty();
        let scale = match is_released {
            true => Basis::Released,
            false => of(Read::Scale),
        };
        let fills = columns.iter().filter_map(|column| match column.map {
            ColumnMap::Number(number) => number.missing,
            ColumnMap::Zero => None,
        });
        let basis_of_fill = |fill| match fill {
            Fill::Mean => scale,
            Fill::Value(_) => of(Read::Missing),
            Fill::Open => Basis::Declared,
        };
        let release = experiment.scale_release.as_ref().filter(|_| is_released);
        let notes = reads.iter().filter_map(|read| of_read(read).sentence());
        Self {
            scale,
            // With several origins, the least public one.
            missing: fills.map(basis_of_fill).max_by_key(|basis| *basis as u8),
            classes: matches!(target, Target::Classes { .. }).then(|| {
                match of(Read::List(List::Classes)) {
                    Basis::Measured => Basis::Measured,
                    _ => of(Read::Classes),
                }
            }),
            categories: (cells.iter().any(is_category)).then(|| of(Read::List(List::Categories))),
            target_scale: matches!(target, Target::Value { .. }).then(|| of(Read::TargetScale)),
            notes: notes.chain(release.map(|release| release.note())).collect(),
        }
    }
}
