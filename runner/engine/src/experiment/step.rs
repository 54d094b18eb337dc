//! `train.learning_rate = "auto"`: a step derived from the model and from the largest length R of a
//! sample, before any data are read.
//!
//! One over the smoothness of a sample's loss is a step that never overshoots. With R² + 1 for the
//! sample and its bias, this is 1 / (R² + 1) for half the squared error and 4 / (R² + 1) for
//! logistic loss. For softmax loss, 2 / (R² + 1) is safe and far too small for many classes. The
//! curvature where all C classes are equally likely, which is where training begins, gives
//! C / (R² + 1), and both agree for two classes.

use smolfed_core::params::LearningRate;

use crate::check::{ExperimentError, number};
use crate::method::contract::MethodProperties;
use crate::tables::model::{ModelConfig, ModelKind};
use crate::tables::train::LearningRateSetting;
use smolfed_data::federation::Federation;

/// Refuses an automatic step for a loss without labels.
///
/// # Errors
/// [`ExperimentError::Contradiction`].
pub(super) fn suits(
    setting: LearningRateSetting,
    properties: &MethodProperties,
) -> Result<(), ExperimentError> {
    match setting == LearningRateSetting::Auto && !properties.uses_labels {
        false => Ok(()),
        true => Err(ExperimentError::Contradiction {
            first: "train.learning_rate",
            second: "method",
            advice: "\"auto\" is for models of labels; give a number",
        }),
    }
}

/// Returns the step for a model of the devices' samples.
///
/// # Errors
/// [`ExperimentError`] for a model of several layers, and if nothing bounds a sample.
pub(super) fn automatic(
    model: &ModelConfig,
    federation: &Federation,
) -> Result<LearningRate, ExperimentError> {
    if model.hidden.is_some() || !model.layers.is_empty() {
        return Err(ExperimentError::Contradiction {
            first: "train.learning_rate",
            second: "model",
            advice: "\"auto\" is for models of one layer; give a number",
        });
    }
    let Some(length) = federation.max_length() else {
        return Err(ExperimentError::Range {
            key: "train.learning_rate",
            value: "\"auto\"".to_owned(),
            expected: "a number where nothing bounds the length of a sample; `data.norm_bound`, \
                       `[features]` or a `data.scale` with bounds does"
                .to_owned(),
        });
    };
    let curvature = match (model.kind, federation.class_count()) {
        (Some(ModelKind::Logistic), _) => 4.0,
        (_, Some(classes)) => classes as f64,
        (_, None) => 1.0,
    };
    let step = curvature / (length * length + 1.0);
    number("train.learning_rate", step, LearningRate::new)
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use crate::experiment::Experiment;
    use smolfed_data::{DataFolders, Federation};

    const DIGITS: &str = "method = \"dp-fed\"\nrounds = 1\n[data]\nsource = \"digits\"\n\
                          devices = 9\nscale = \"unit\"\n[cohort]\nsampling = \"full\"\n[train]\n\
                          learning_rate = \"auto\"\n";

    fn step(changes: &[&str]) -> Result<f32, String> {
        let changes: Vec<_> = changes
            .iter()
            .map(|change| change.parse().unwrap())
            .collect();
        let config = Config::parse(DIGITS, "test", &changes).unwrap();
        let folders = DataFolders::of_experiment(None);
        let federation = Federation::new(&config.data, &folders, 1).unwrap();
        let experiment = Experiment::new(config, &federation).map_err(|error| error.to_string())?;
        Ok(experiment.training().learning_rate.get())
    }

    #[test]
    fn the_step_follows_from_classes_and_length() {
        // 64 pixels from 0 to 1.
        assert_eq!(step(&[]), Ok(10.0 / 65.0));
        assert_eq!(step(&["data.norm_bound=3"]), Ok(10.0 / 10.0));
        let gradients = "features={kind=\"gradients\",cell=2}";
        assert_eq!(step(&[gradients]), Ok(10.0 / 33.0));
        assert_eq!(step(&["train.learning_rate=0.25"]), Ok(0.25));
    }

    #[test]
    fn values_and_two_classes_have_steps_of_their_own() {
        let numbers = "data={source=\"synthetic\",kind=\"tasks\",devices=9}";
        let error = step(&[numbers]).unwrap_err();
        assert!(error.contains("bounds the length"), "{error}");
        let bounded = |task: &str, kind: &str| {
            let data = format!(
                "data={{source=\"memory\",task=\"{task}\",partition=\"iid\",devices=3,norm_bound=2,\
                 scale=\"none\"}}"
            );
            let changes = [data.as_str(), kind].map(|change| change.parse().unwrap());
            let config = Config::parse(DIGITS, "test", &changes).unwrap();
            let targets = match task {
                "regression" => smolfed_data::Targets::Values(vec![0.0; 30]),
                _ => smolfed_data::Targets::classes(&[0, 1].repeat(15), 2).unwrap(),
            };
            let data = smolfed_data::Dataset::new(vec![1.0; 60], 2, targets).unwrap();
            let federation = Federation::of_samples(data, 0, &config.data, 1).unwrap();
            Experiment::new(config, &federation)
                .unwrap()
                .training()
                .learning_rate
                .get()
        };
        assert_eq!(bounded("regression", "model.kind=\"linear\""), 1.0 / 5.0);
        assert_eq!(
            bounded("classification", "model.kind=\"logistic\""),
            4.0 / 5.0
        );
        assert_eq!(
            bounded("classification", "model.kind=\"softmax\""),
            2.0 / 5.0
        );
    }

    #[test]
    fn models_and_methods_without_such_a_step_are_refused() {
        for (change, words) in [
            ("model.hidden=4", "one layer"),
            ("method=\"fedavg-sc\"", "models of labels"),
            ("data.scale={mean=0.5,std=0.5}", "data.norm_bound"),
            // Unreleased moments determine the lengths of samples.
            ("data.scale=\"private\"", "data.norm_bound"),
        ] {
            let error = step(&[change]).unwrap_err();
            assert!(error.contains(words), "{change}: {error}");
        }
    }
}
