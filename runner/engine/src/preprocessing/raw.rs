//! The text (JSON) of `preprocessing.json`, checked on reading: its fields, the version of the
//! format, and the errors of an unusable file.

mod features;
mod window;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smolfed_core::model::Sequential;

use super::{Column, Disclosure, Preprocessing, Target};
use crate::method::state::PersonalState;
use crate::tables::model::{ActivationName, LayerConfig, ModelConfig, ModelKind};
use crate::task::{Task, TaskError};
use features::{RawFeatures, RawFeaturesError};
use smolfed_data::column::FeatureColumn;
use smolfed_data::constants::{Affine, Bounds, ConstantError, FeatureMap};
use smolfed_data::features::FeatureRecipe;
use smolfed_data::large;
use smolfed_data::preparation::{ColumnMap, Fill, NumberMap};
use smolfed_data::text::{Alphabet, TextColumn};
use window::{RawWindow, WindowError};

/// Format version. Raised when readers of the previous version would misread a file.
const FORMAT: u32 = 1;

/// Maximum number of columns, far beyond use. It limits the memory that a file can request.
const MAX_COLUMNS: usize = 1 << 24;

/// Errors of a file.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
enum FormatError {
    #[error("`format` is {0}, but this version of smolfed reads format 1")]
    Format(u32),
    #[error("`task` is \"{0}\", which does not match `target`")]
    Target(&'static str),
    #[error("column {at}: {reason}")]
    Column { at: usize, reason: ColumnError },
    #[error("the features of `cells` do not match `columns`")]
    Cells,
    #[error("the alphabet of `text` is {0}")]
    Alphabet(String),
    #[error("`text` has {symbols} characters, but `target` has {classes}")]
    Symbols { symbols: u16, classes: usize },
    #[error(transparent)]
    Window(#[from] WindowError),
    #[error(transparent)]
    Features(#[from] RawFeaturesError),
    #[error("`norm_bound` is {0}, but must be a number above 0")]
    NormBound(f32),
    #[error("`target`: {0}")]
    Scale(ConstantError),
    #[error(transparent)]
    Model(TaskError),
    #[error("`shape` is {shape:?}, but there are {columns} columns")]
    Shape { shape: Vec<usize>, columns: usize },
}

/// Errors of a column.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
enum ColumnError {
    #[error("a number needs `mean` and `std`")]
    NoScale,
    #[error("`min` and `max` go together")]
    HalfBounds,
    #[error("`count` is 0, or goes with `name`")]
    Count,
    #[error(transparent)]
    Constants(#[from] ConstantError),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPreprocessing {
    format: u32,
    task: TaskName,
    model: RawModel,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target: Option<RawTarget>,
    shape: Vec<usize>,
    columns: Vec<RawColumn>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    features: Option<RawFeatures>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    norm_bound: Option<f32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    cells: Vec<FeatureColumn>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<RawText>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    window: Option<RawWindow>,
    privacy: Disclosure,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawText {
    column: String,
    alphabet: String,
    replaces_unknown: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum TaskName {
    Classification,
    Regression,
    Representation,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawModel {
    kind: ModelKind,
    outputs: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hidden: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    activation: Option<ActivationName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    personal: Option<PersonalState>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    input: Vec<u16>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    layers: Vec<LayerConfig>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTarget {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    column: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    classes: Option<Vec<String>>,
    #[serde(flatten)]
    scale: Option<RawAffine>,
}

#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
struct RawAffine {
    mean: f64,
    std: f64,
}

#[derive(PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawColumn {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Number of consecutive columns without names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    count: Option<usize>,
    kind: KindName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    missing: Option<RawFill>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    min: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mean: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    std: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    then: Option<RawAffine>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum KindName {
    Number,
    Zero,
}

#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(
    rename_all = "lowercase",
    expecting = "`missing` must be a number, \"mean\" or \"open\""
)]
enum RawFill {
    Mean,
    Open,
    #[serde(untagged)]
    Value(f64),
}

/// Rounds the value of a column to the fewest digits that read back the same.
fn short(value: f64) -> f64 {
    match large::is_large(value as f32) {
        true => value,
        // The value has 32 bits.
        false => (value as f32).to_string().parse().unwrap_or(value),
    }
}

impl Serialize for Preprocessing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawPreprocessing::from(self.clone()).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Preprocessing {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = RawPreprocessing::deserialize(deserializer)?;
        raw.try_into().map_err(D::Error::custom)
    }
}

impl From<Preprocessing> for RawPreprocessing {
    fn from(preprocessing: Preprocessing) -> Self {
        let Preprocessing {
            task,
            personal,
            target,
            axes,
            columns,
            features,
            norm_bound,
            cells,
            text,
            window,
            disclosure,
        } = preprocessing;
        let name = match target {
            Target::Classes { .. } => TaskName::Classification,
            Target::Value { .. } => TaskName::Regression,
            Target::Representation => TaskName::Representation,
        };
        Self {
            format: FORMAT,
            task: name,
            model: RawModel {
                kind: task.kind(),
                outputs: task.output_count(),
                hidden: task.hidden_count().map(|units| units as u32),
                activation: task.activation(),
                personal,
                input: task.input(),
                layers: layers_of(&task),
            },
            target: RawTarget::from_target(target),
            shape: match axes.is_empty() {
                true => vec![columns.len()],
                false => axes,
            },
            columns: merged(columns),
            features: features.as_ref().map(RawFeatures::from),
            norm_bound,
            cells,
            text: text.map(RawText::from),
            window: window.map(RawWindow::from),
            privacy: disclosure,
        }
    }
}

impl TryFrom<RawPreprocessing> for Preprocessing {
    type Error = FormatError;

    fn try_from(raw: RawPreprocessing) -> Result<Self, FormatError> {
        if raw.format != FORMAT {
            return Err(FormatError::Format(raw.format));
        }
        let counts = raw.columns.iter().map(|column| column.count.unwrap_or(1));
        let count = counts.fold(0usize, usize::saturating_add);
        let size = raw
            .shape
            .iter()
            .try_fold(1usize, |size, axis| size.checked_mul(*axis));
        if size != Some(count) || !(1..=MAX_COLUMNS).contains(&count) {
            return Err(FormatError::Shape {
                shape: raw.shape,
                columns: count,
            });
        }
        let mut columns = Vec::with_capacity(count);
        for (at, column) in raw.columns.into_iter().enumerate() {
            let parsed = column.parse();
            columns.extend(parsed.map_err(|reason| FormatError::Column { at, reason })?);
        }
        let target = RawTarget::parse(raw.target, raw.task)?;
        let made = raw.cells.iter().flat_map(FeatureColumn::feature_names);
        let names = columns.iter().map(|column| column.name.clone());
        if !raw.cells.is_empty() && !made.map(Some).eq(names) {
            return Err(FormatError::Cells);
        }
        let text = raw.text.map(|text| text.parse(&target)).transpose()?;
        let window = raw
            .window
            .map(|window| window.parse(&columns))
            .transpose()?;
        let axes = match raw.shape.len() {
            1 => Vec::new(),
            _ => raw.shape,
        };
        if let Some(bound) = raw
            .norm_bound
            .filter(|bound| !(bound.is_normal() && *bound > 0.0))
        {
            return Err(FormatError::NormBound(bound));
        }
        let features = raw.features.map(|features| features.parse(&axes, count));
        let features = features.transpose()?;
        let width = features
            .as_ref()
            .map_or(count, FeatureRecipe::feature_count);
        Ok(Self {
            text,
            window,
            task: raw.model.task(width, &target)?,
            personal: raw.model.personal,
            target,
            axes,
            columns,
            features,
            norm_bound: raw.norm_bound,
            cells: raw.cells,
            disclosure: raw.privacy,
        })
    }
}

impl From<TextColumn> for RawText {
    fn from(text: TextColumn) -> Self {
        Self {
            column: text.column,
            alphabet: text.alphabet.text(),
            replaces_unknown: text.alphabet.has_unknown(),
        }
    }
}

impl RawText {
    fn parse(self, target: &Target) -> Result<TextColumn, FormatError> {
        let alphabet = Alphabet::new(Some(&self.alphabet), self.replaces_unknown);
        let alphabet = alphabet.map_err(FormatError::Alphabet)?;
        let (symbols, column) = (alphabet.symbol_count(), self.column);
        match target {
            Target::Classes { labels, .. } if labels.len() != usize::from(symbols) => {
                let classes = labels.len();
                Err(FormatError::Symbols { symbols, classes })
            }
            _ => Ok(TextColumn { column, alphabet }),
        }
    }
}

impl RawModel {
    fn task(&self, features: usize, target: &Target) -> Result<Task, FormatError> {
        let config = ModelConfig {
            kind: Some(self.kind),
            hidden: self.hidden,
            activation: self.activation,
            input: self.input.clone(),
            layers: self.layers.clone(),
            ..ModelConfig::default()
        };
        let task = match target {
            Target::Classes { labels, .. } => Task::new(&config, &[], features, Some(labels.len())),
            Target::Value { .. } => Task::new(&config, &[], features, None),
            Target::Representation => Task::encoder(&config, &[], features, self.outputs),
        };
        task.map_err(FormatError::Model)
    }
}

/// Returns the layers of a network below the last one, which follows from the classes.
fn layers_of(task: &Task) -> Vec<LayerConfig> {
    let layers = task.network().map(Sequential::layers).unwrap_or_default();
    let below = layers.split_last().map_or(&[][..], |(_, below)| below);
    below.iter().copied().map(LayerConfig::from).collect()
}

impl RawTarget {
    fn from_target(target: Target) -> Option<Self> {
        Some(match target {
            Target::Classes { column, labels } => Self {
                column,
                classes: Some(labels),
                scale: None,
            },
            Target::Value { column, scale } => Self {
                column,
                classes: None,
                scale: Some(scale.into()),
            },
            Target::Representation => return None,
        })
    }

    fn parse(raw: Option<Self>, task: TaskName) -> Result<Target, FormatError> {
        let parts = raw.map(|raw| (raw.column, raw.classes, raw.scale));
        match (task, parts) {
            (TaskName::Classification, Some((column, Some(labels), None))) => {
                Ok(Target::Classes { column, labels })
            }
            (TaskName::Regression, Some((column, None, Some(scale)))) => {
                let scale = scale.parse().map_err(FormatError::Scale)?;
                Ok(Target::Value { column, scale })
            }
            (TaskName::Representation, None) => Ok(Target::Representation),
            (TaskName::Classification, _) => Err(FormatError::Target("classification")),
            (TaskName::Regression, _) => Err(FormatError::Target("regression")),
            (TaskName::Representation, _) => Err(FormatError::Target("representation")),
        }
    }
}

impl From<Affine> for RawAffine {
    fn from(affine: Affine) -> Self {
        Self {
            mean: affine.mean(),
            std: affine.std(),
        }
    }
}

impl RawAffine {
    fn parse(self) -> Result<Affine, ConstantError> {
        Affine::new(self.mean, self.std)
    }
}

/// Merges equal consecutive columns without names, such as the pixels of an image, into one entry.
fn merged(columns: Vec<Column>) -> Vec<RawColumn> {
    let mut merged: Vec<RawColumn> = Vec::new();
    for column in columns {
        let next = RawColumn::from_column(column);
        match merged.last_mut() {
            Some(last) if next.name.is_none() && last.is_like(&next) => {
                last.count = Some(last.count.unwrap_or(1) + 1);
            }
            _ => merged.push(next),
        }
    }
    merged
}

impl RawColumn {
    fn from_column(column: Column) -> Self {
        let mut raw = Self {
            name: column.name,
            count: None,
            kind: KindName::Zero,
            missing: None,
            min: None,
            max: None,
            mean: None,
            std: None,
            then: None,
        };
        if let ColumnMap::Number(number) = column.map {
            raw.kind = KindName::Number;
            raw.missing = number.missing.map(|fill| match fill {
                Fill::Mean => RawFill::Mean,
                Fill::Open => RawFill::Open,
                Fill::Value(value) => RawFill::Value(short(value)),
            });
            (raw.min, raw.max) = number.map.bounds.map(|[min, max]| (min, max)).unzip();
            (raw.mean, raw.std) = (
                Some(number.map.affine.mean()),
                Some(number.map.affine.std()),
            );
            raw.then = number.then.map(RawAffine::from);
        }
        raw
    }

    /// Returns whether it is the same except for the number of columns.
    fn is_like(&self, other: &Self) -> bool {
        let parts = |raw: &Self| (raw.missing, raw.min, raw.max, raw.mean, raw.std, raw.then);
        self.name == other.name && self.kind == other.kind && parts(self) == parts(other)
    }

    fn parse(self) -> Result<Vec<Column>, ColumnError> {
        let count = self.count.unwrap_or(1);
        if count == 0 || (self.name.is_some() && self.count.is_some()) {
            return Err(ColumnError::Count);
        }
        let column = Column {
            map: match self.kind {
                KindName::Zero => ColumnMap::Zero,
                KindName::Number => ColumnMap::Number(self.number()?),
            },
            name: self.name,
        };
        Ok(vec![column; count])
    }

    fn number(&self) -> Result<NumberMap, ColumnError> {
        let bounds = match (self.min, self.max) {
            (Some(min), Some(max)) => {
                Bounds::new(min, max)?;
                Some([min, max])
            }
            (None, None) => None,
            _ => return Err(ColumnError::HalfBounds),
        };
        let (Some(mean), Some(std)) = (self.mean, self.std) else {
            return Err(ColumnError::NoScale);
        };
        Ok(NumberMap {
            missing: self.missing.map(|fill| match fill {
                RawFill::Mean => Fill::Mean,
                RawFill::Open => Fill::Open,
                RawFill::Value(value) => Fill::Value(large::kept(value)),
            }),
            map: FeatureMap {
                bounds,
                affine: Affine::new(mean, std)?,
            },
            then: self.then.map(RawAffine::parse).transpose()?,
        })
    }
}

#[cfg(test)]
mod tests;
