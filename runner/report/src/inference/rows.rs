//! Predictions for rows in a program's memory, and metrics of rows with targets.

use super::assessment::scale_of;
use super::error::InferenceError;
use super::model::TrainedModel;
use super::prediction::Prediction;
use smolfed_data::column::name::position;
use smolfed_data::dataset::{Dataset, DatasetError, Targets};
use smolfed_data::error::DataError;
use smolfed_data::table::listed;
use smolfed_engine::evaluation::assessment::{Assessment, Assessor};
use smolfed_engine::evaluation::samples::Tally;
use smolfed_engine::preprocessing::Target;

/// Name of the rows in errors, instead of a file.
const ORIGIN: &str = "the rows in memory";

/// The targets of rows in memory.
#[derive(Clone, Copy, Debug)]
pub enum RowTargets<'a> {
    /// The label of each row, by the name of its class.
    Labels(&'a [String]),
    /// The value of each row, in its own unit.
    Values(&'a [f64]),
}

impl RowTargets<'_> {
    const fn len(&self) -> usize {
        match self {
            Self::Labels(labels) => labels.len(),
            Self::Values(values) => values.len(),
        }
    }
}

impl TrainedModel {
    /// Predicts rows, prepared as in training.
    ///
    /// * `features`: row after row, in the order and the units of the training samples. NaN is a
    ///   missing value if the run replaced missing values.
    ///
    /// # Errors
    /// [`InferenceError::Data`] for a wrong number of features, or one that is not finite.
    pub fn predict_rows(
        &self,
        features: Vec<f32>,
        feature_count: usize,
    ) -> Result<Vec<Prediction>, InferenceError> {
        let scores = self.score_rows(features, feature_count)?;
        Ok(self.predictions(&scores).collect())
    }

    /// Returns the scores of rows: for each, as many numbers as the model has outputs. For classes,
    /// they are logits.
    ///
    /// * `features` as in [`predict_rows`](Self::predict_rows).
    ///
    /// # Errors
    /// As `predict_rows`.
    pub fn score_rows(
        &self,
        features: Vec<f32>,
        feature_count: usize,
    ) -> Result<Vec<f32>, InferenceError> {
        let features = self.prepared(features, feature_count)?;
        if features.is_empty() {
            return Ok(Vec::new());
        }
        let rows = features.len() / self.preprocessing.feature_count();
        let targets = match self.preprocessing.target {
            Target::Value { .. } => Targets::Values(vec![0.0; rows]),
            // Encoders read samples as models of classes do.
            Target::Classes { .. } | Target::Representation => Targets::Classes {
                labels: vec![0; rows],
                class_count: self.task().output_count().max(2),
            },
        };
        let data = Dataset::new(features, self.preprocessing.feature_count(), targets);
        let data = data.map_err(DataError::at(ORIGIN))?;
        let all: Vec<u32> = (0..rows as u32).collect();
        match data.shared_view(&all) {
            Some(samples) => self.scores(samples),
            None => Ok(Vec::new()),
        }
    }

    /// Evaluates the model on rows with known targets. Returns the same metrics as
    /// [`assess`](super::assessment::assess) for the same rows in a file.
    ///
    /// * `features` as in [`predict_rows`](Self::predict_rows), with one target per row.
    ///
    /// # Errors
    /// As `predict_rows`. Also [`InferenceError::Label`] for a label that is not a class of the
    /// model, [`InferenceError::TargetCount`] and [`InferenceError::Target`] for other invalid
    /// targets, and [`InferenceError::Empty`] without rows.
    pub fn assess_rows(
        &self,
        features: Vec<f32>,
        feature_count: usize,
        targets: RowTargets<'_>,
    ) -> Result<Assessment, InferenceError> {
        let scale = scale_of(self)?;
        let features = self.prepared(features, feature_count)?;
        let width = self.preprocessing.feature_count();
        let rows = features.len() / width.max(1);
        if targets.len() != rows {
            let targets = targets.len();
            return Err(InferenceError::TargetCount { targets, rows });
        }
        let empty = || InferenceError::Empty {
            origin: ORIGIN.to_owned(),
        };
        if rows == 0 {
            return Err(empty());
        }
        let data = Dataset::new(features, width, self.targets(targets)?);
        let data = data.map_err(DataError::at(ORIGIN))?;
        let all: Vec<u32> = (0..rows as u32).collect();
        let mut assessor = Assessor::new(self.task(), scale);
        for samples in all
            .chunks(Tally::PART)
            .filter_map(|part| data.shared_view(part))
        {
            assessor.add(samples, self.scores(samples)?);
        }
        assessor.finish().ok_or_else(empty)
    }

    /// Returns features in the model's form.
    fn prepared(
        &self,
        mut features: Vec<f32>,
        feature_count: usize,
    ) -> Result<Vec<f32>, InferenceError> {
        let columns = &self.preprocessing.columns;
        if feature_count != columns.len() {
            return Err(InferenceError::FeatureCount {
                origin: ORIGIN.to_owned(),
                expected: columns.len(),
                found: feature_count,
                hint: "",
            });
        }
        for (at, value) in features.iter_mut().enumerate() {
            let (row, column) = (at / feature_count, at % feature_count);
            let known = (!value.is_nan()).then_some(f64::from(*value));
            let prepared = columns[column].map.apply(known);
            // A value without a replacement is reported unchanged.
            let is_usable = |x: &f32| x.is_finite() || known.is_none();
            *value = prepared.filter(is_usable).ok_or_else(|| {
                let value = *value;
                DataError::at(ORIGIN)(DatasetError::FeatureNotFinite {
                    row,
                    feature: column,
                    value,
                })
            })?;
        }
        if features.is_empty() {
            return Ok(features);
        }
        let features = self.preprocessing.features_of(features, 0, None);
        Ok(features.map_err(DataError::at(ORIGIN))?)
    }

    /// Returns targets in the model's form.
    fn targets(&self, targets: RowTargets<'_>) -> Result<Targets, InferenceError> {
        match (&self.preprocessing.target, targets) {
            (Target::Value { scale, .. }, RowTargets::Values(values)) => {
                if let Some(row) = values.iter().position(|value| !value.is_finite()) {
                    let value = values[row];
                    return Err(InferenceError::Target { row, value });
                }
                let scaled = values.iter().map(|value| scale.apply(*value as f32));
                Ok(Targets::Values(scaled.collect()))
            }
            (Target::Classes { labels, .. }, RowTargets::Labels(found)) => {
                let class = |(row, label): (usize, &String)| {
                    let class = position(labels, label);
                    // Below 2¹⁶.
                    class
                        .map(|class| class as u16)
                        .ok_or_else(|| InferenceError::Label {
                            origin: ORIGIN.to_owned(),
                            place: format!("the label of row {row}"),
                            label: label.chars().take(40).collect(),
                            classes: listed(labels.iter().map(String::as_str)),
                        })
                };
                let labels_of_rows: Result<_, _> = found.iter().enumerate().map(class).collect();
                Ok(Targets::Classes {
                    labels: labels_of_rows?,
                    class_count: labels.len(),
                })
            }
            (Target::Classes { .. }, RowTargets::Values(_)) => Err(InferenceError::NoTargets {
                origin: ORIGIN.to_owned(),
                advice: "the model needs the labels of their classes",
            }),
            _ => Err(InferenceError::NoTargets {
                origin: ORIGIN.to_owned(),
                advice: "the model needs numbers",
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    use super::*;
    use smolfed_core::fixed_point::FeatureFormat;
    use smolfed_data::constants::Affine;
    use smolfed_data::{DataFolders, Federation};
    use smolfed_engine::config::{Config, DEFAULT};
    use smolfed_engine::evaluation::assessment::assess;
    use smolfed_engine::experiment::Experiment;
    use smolfed_engine::preprocessing::Preprocessing;
    use smolfed_engine::run::{self, Control};

    /// Returns a model of the built-in digits, whose pixels are 0 to 16.
    fn trained() -> (TrainedModel, Experiment, Federation) {
        let overrides = [
            "rounds=3".parse().unwrap(),
            "train.epochs=1".parse().unwrap(),
        ];
        let config = Config::parse(DEFAULT, "the test", &overrides).unwrap();
        let folders = DataFolders::of_experiment(None);
        let (experiment, federation) = run::prepare(config, &folders).unwrap();
        let control = Control {
            stop: &AtomicBool::new(false),
            checkpoint_every: Duration::MAX,
            on_round: &mut |_| {},
        };
        let result = run::execute(&experiment, &federation, None, control).unwrap();
        let preprocessing = Preprocessing::new(&experiment, &federation);
        let model = TrainedModel::of_run(preprocessing, result.model).unwrap();
        (model, experiment, federation)
    }

    #[test]
    fn rows_are_prepared_as_those_of_the_training() {
        let (model, _, federation) = trained();
        let test = federation.test();
        let rows: Vec<u32> = (0..test.len() as u32).collect();
        let mut buffer = smolfed_data::DeviceBuffer::default();
        let prepared = test.piece(0..rows.len(), &mut buffer);
        let expected = model.scores(prepared).unwrap();
        let expected: Vec<Prediction> = model.predictions(&expected).collect();
        // Back to exact pixels.
        let raw = (0..prepared.len()).flat_map(|row| prepared.features(row));
        let raw: Vec<f32> = raw.map(|x| ((x + 0.5) * 8.0).round()).collect();
        assert_eq!(model.predict_rows(raw, 64).unwrap(), expected);
    }

    #[test]
    fn figures_of_test_rows_are_those_of_the_run() {
        let (model, experiment, federation) = trained();
        let test = federation.test();
        let mut buffer = smolfed_data::DeviceBuffer::default();
        let samples = test.piece(0..test.len(), &mut buffer);
        let labels: Vec<String> = (0..samples.len())
            .map(|row| samples.label(row).to_string())
            .collect();
        let raw = (0..samples.len()).flat_map(|row| samples.features(row));
        let raw: Vec<f32> = raw.map(|x| ((x + 0.5) * 8.0).round()).collect();
        let found = model.assess_rows(raw.clone(), 64, RowTargets::Labels(&labels));
        let parameters = model.parameters().unwrap();
        let expected = assess(experiment.task(), parameters, test, Affine::IDENTITY);
        assert_eq!(found.unwrap(), expected.unwrap().unwrap());
        let refused = |targets: RowTargets<'_>| {
            let found = model.assess_rows(raw.clone(), 64, targets);
            found.unwrap_err().to_string()
        };
        assert!(refused(RowTargets::Labels(&labels[1..])).contains("targets for"));
        assert!(refused(RowTargets::Values(&vec![1.0; labels.len()])).contains("labels"));
        let mut other = labels.clone();
        other[2] = "eleven".to_owned();
        let error = refused(RowTargets::Labels(&other));
        assert!(
            error.contains("row 2") && error.contains("`eleven`"),
            "{error}"
        );
        let none = model.assess_rows(Vec::new(), 64, RowTargets::Labels(&[]));
        assert!(matches!(none, Err(InferenceError::Empty { .. })));
    }

    #[test]
    fn rows_that_do_not_fit_are_refused() {
        let (model, ..) = trained();
        let error = model.predict_rows(vec![0.0; 10], 5).unwrap_err();
        assert!(error.to_string().contains("64"), "{error}");
        let error = model.predict_rows(vec![f32::NAN; 64], 64).unwrap_err();
        assert!(error.to_string().contains("finite"), "{error}");
        assert!(model.predict_rows(Vec::new(), 64).unwrap().is_empty());
        let short = TrainedModel::of_run(model.preprocessing.clone(), vec![0.0; 3]);
        assert!(matches!(short, Err(InferenceError::NotWhole { .. })));
        // Opening files with such parameters fails.
        let infinite = vec![f32::INFINITY; model.parameters().unwrap().len()];
        let infinite = TrainedModel::of_run(model.preprocessing.clone(), infinite).unwrap();
        let format = FeatureFormat::new(false, 6).unwrap();
        let weights = infinite.in_integers(format).unwrap().weights();
        assert!(matches!(weights, Err(InferenceError::NotFinite)));
    }
}
