//! Predictions for rows that a program has in memory.

use super::error::InferenceError;
use super::model::TrainedModel;
use super::prediction::Prediction;
use smolfed_data::dataset::{Dataset, DatasetError, Targets};
use smolfed_data::error::DataError;
use smolfed_engine::preprocessing::Target;

/// What errors name in the place of a file.
const ORIGIN: &str = "the rows in memory";

impl TrainedModel {
    /// What the model says of rows, prepared as those of the training were.
    ///
    /// * `features`: row after row, in the order and the units of the samples that it was trained
    ///   on. NaN stands for a missing value where the run replaced those.
    ///
    /// # Errors
    /// [`InferenceError::Data`] for another number of features, or one that is not finite.
    pub fn predict_rows(
        &self,
        mut features: Vec<f32>,
        feature_count: usize,
    ) -> Result<Vec<Prediction>, InferenceError> {
        let columns = &self.preprocessing.columns;
        if feature_count != columns.len() {
            return Err(InferenceError::FeatureCount {
                origin: ORIGIN.to_owned(),
                expected: columns.len(),
                found: feature_count,
                hint: "",
            });
        }
        if features.is_empty() {
            return Ok(Vec::new());
        }
        for (at, value) in features.iter_mut().enumerate() {
            let (row, column) = (at / feature_count, at % feature_count);
            let known = (!value.is_nan()).then_some(f64::from(*value));
            let prepared = columns[column].map.apply(known);
            // One that nothing stands for is refused as what it is.
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
        let rows = features.len() / feature_count;
        let features = self.preprocessing.features_of(features, 0);
        let features = features.map_err(DataError::at(ORIGIN))?;
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
        let Some(samples) = data.shared_view(&all) else {
            return Ok(Vec::new());
        };
        let scores = self.scores(samples)?;
        Ok(self.predictions(&scores).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    use super::*;
    use smolfed_data::{DataFolders, Federation};
    use smolfed_engine::config::{Config, DEFAULT};
    use smolfed_engine::experiment::Experiment;
    use smolfed_engine::preprocessing::Preprocessing;
    use smolfed_engine::run::{self, Control};

    /// A model of the built-in digits, whose pixels are 0 to 16.
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
        // Back to pixels, which are exact.
        let raw = (0..prepared.len()).flat_map(|row| prepared.features(row));
        let raw: Vec<f32> = raw.map(|x| ((x + 0.5) * 8.0).round()).collect();
        assert_eq!(model.predict_rows(raw, 64).unwrap(), expected);
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
    }
}
