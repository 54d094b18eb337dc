//! A trained network in 8-bit integers: the tables of [`smolfed_core::quantised`], with the bits of
//! boards.
//!
//! Weights have a scale for each output, their largest magnitude over 127. Activations have one for
//! each layer, over a range that includes 0. Ranges follow from public calibration rows or, without
//! any, from the bounds of the features by interval arithmetic. The latter reads no data and is
//! never exceeded, but it is wide: each layer assumes the worst case of the layer below.

mod bounds;
mod network;
mod tables;

use smolfed_core::quantised::{Image, Quantised, Scale, probabilities_in_place};
use smolfed_data::dataset::DatasetView;
use smolfed_engine::evaluation::samples::Tally;

use super::error::InferenceError;
use super::input::Input;
use super::model::TrainedModel;
use super::prediction::{IntegerPredictions, Prediction};
use network::{Interval, Network};
use tables::{Table, Tables};

/// Maximum number of calibration rows: more would hardly change the ranges.
pub const CALIBRATION_ROWS: usize = 1_000;

/// One in the unit of scores and probabilities.
const ONE: f32 = 65_536.0;

/// A trained network with 8-bit integer weights and activations.
#[derive(Clone)]
pub struct QuantisedModel<'a> {
    model: &'a TrainedModel,
    input: Image,
    scale: Scale,
    /// The feature index of each value of the input, which is stored pixel by pixel.
    order: Vec<usize>,
    layers: Vec<Table>,
    head: Table,
    /// Number of calibration rows. `None` for ranges from bounds.
    rows: Option<usize>,
}

impl<'a> QuantisedModel<'a> {
    /// Quantises a network, with the ranges of these public rows or, without any, of the bounds of
    /// its features.
    ///
    /// # Errors
    /// [`InferenceError::NotFinite`], [`InferenceError::NoIntegerLayer`] for a layer without an
    /// integer form, [`InferenceError::NoRanges`] without rows if a feature has no bounds,
    /// [`InferenceError::Arithmetic`] for a model that is not a network of classes, and any error
    /// of the calibration rows.
    pub fn new(
        model: &'a TrainedModel,
        calibration: Option<&mut Input<'_>>,
    ) -> Result<Self, InferenceError> {
        let network = Network::of(model)?;
        let (ranges, rows) = match calibration {
            None => (network.ranges(&bounds::of_features(model)?), None),
            Some(input) => {
                let (ranges, rows) = calibrated(&network, input)?;
                (ranges, Some(rows))
            }
        };
        let Tables {
            scale,
            layers,
            head,
        } = Tables::new(&network, &ranges)?;
        Ok(Self {
            model,
            input: network.input(),
            scale,
            order: network.order().to_vec(),
            layers,
            head,
            rows,
        })
    }

    /// Returns the model in floating point.
    #[must_use]
    pub const fn model(&self) -> &'a TrainedModel {
        self.model
    }

    /// Returns the scale that converts features to integers.
    #[must_use]
    pub const fn scale(&self) -> Scale {
        self.scale
    }

    /// Returns the feature index of each value that the network reads.
    #[must_use]
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// Returns the source of the ranges, in a sentence.
    #[must_use]
    pub fn origin(&self) -> String {
        match self.rows {
            None => "Ranges of 8 bits follow from the bounds of the features: no data were read"
                .to_owned(),
            Some(rows) => format!(
                "Ranges of 8 bits come from {rows} calibration rows: no epsilon covers them, so \
                 they must be public"
            ),
        }
    }

    /// Calls a function with the network.
    ///
    /// # Errors
    /// [`InferenceError::Quantised`] for layers with too many values.
    pub fn with_network<R>(
        &self,
        call: impl FnOnce(&Quantised<'_>) -> R,
    ) -> Result<R, InferenceError> {
        let layers: Vec<_> = self.layers.iter().map(Table::layer).collect();
        let head = self.head.dense();
        Ok(call(&Quantised::new(self.input, &layers, &head)?))
    }

    /// Returns classes with probabilities of samples, whose features are rounded first.
    ///
    /// # Errors
    /// [`InferenceError`] if samples and model do not fit.
    pub fn predictions(
        &self,
        samples: DatasetView<'_>,
    ) -> Result<IntegerPredictions, InferenceError> {
        self.with_network(|network| self.predictions_of(network, samples))?
    }

    fn predictions_of(
        &self,
        network: &Quantised<'_>,
        samples: DatasetView<'_>,
    ) -> Result<IntegerPredictions, InferenceError> {
        let mut found = IntegerPredictions::default();
        let mut scratch = vec![0; network.scratch_bytes()];
        let mut scores = vec![0; network.score_count()];
        for index in 0..samples.len() {
            let (row, saturated) = self.integers(samples.features(index));
            found.saturated += saturated;
            let class = network.predict(&row, &mut scratch, &mut scores)?;
            found.scores.extend(differences(&scores));
            probabilities_in_place(&mut scores);
            found.predictions.push(Prediction::Class {
                class: class.into(),
                probabilities: scores.iter().map(|share| *share as f32 / ONE).collect(),
            });
        }
        Ok(found)
    }

    /// Returns the integers of a row, and the number of saturated features.
    fn integers(&self, features: &[f32]) -> (Vec<i8>, u64) {
        let half = 0.5 * self.scale.unit;
        let ends = [-128, 127].map(|end| self.scale.value(end));
        let is_beyond = |x: &&f32| **x < ends[0] - half || **x > ends[1] + half;
        let values = self.order.iter().filter_map(|at| features.get(*at));
        let saturated = values.clone().filter(is_beyond).count() as u64;
        (values.map(|x| self.scale.integer(*x)).collect(), saturated)
    }
}

/// Returns scores minus the largest. Classes keep the order of the integers, even where `f32` has
/// fewer digits.
fn differences(scores: &[i32]) -> impl Iterator<Item = f32> {
    let largest = scores.iter().copied().max().unwrap_or_default();
    let from_largest = move |score: &i32| (i64::from(*score) - i64::from(largest)) as f32 / ONE;
    scores.iter().map(from_largest)
}

/// Returns the ranges of the first rows of a file, and their number.
fn calibrated(
    network: &Network,
    input: &mut Input<'_>,
) -> Result<(Vec<Interval>, usize), InferenceError> {
    let mut ranges: Option<Vec<Interval>> = None;
    let mut rows = 0;
    while let Some(part) = input.next(Tally::PART.min(CALIBRATION_ROWS - rows))? {
        let samples = part.samples();
        for index in 0..samples.len() {
            let point = |x: &f32| Interval::point(f64::from(*x));
            let row: Vec<Interval> = samples.features(index).iter().map(point).collect();
            let found = network.ranges(&row);
            ranges = Some(match ranges {
                None => found,
                Some(before) => before.iter().zip(found).map(|(a, b)| a.hull(b)).collect(),
            });
        }
        rows += samples.len();
        if rows >= CALIBRATION_ROWS {
            break;
        }
    }
    let empty = || InferenceError::Empty {
        origin: input.origin().to_owned(),
    };
    Ok((ranges.ok_or_else(empty)?, rows))
}

#[cfg(test)]
mod tests;
