//! The metric of a sweep's table: one figure of the last evaluation of a run, such as accuracy,
//! error or loss on test or validation samples.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use smolfed_engine::evaluation::devices::{DeviceMeans, ModelFigures};
use smolfed_engine::evaluation::samples::Evaluation;
use smolfed_engine::round::RoundRecord;
use smolfed_release::provenance::{Figure, Provenance};

/// A part of the held-out samples and a figure on it, named as in `smolfed run --json`.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Share of correctly classified test samples.
    TestAccuracy,
    /// Root mean squared error on the test samples, in units of the scaled targets.
    TestRmse,
    /// Mean loss on the test samples.
    TestLoss,
    /// As [`Self::TestAccuracy`], on the samples to choose settings by.
    ValidationAccuracy,
    /// As [`Self::TestRmse`], on the samples to choose settings by.
    ValidationRmse,
    /// As [`Self::TestLoss`], on the samples to choose settings by.
    ValidationLoss,
    /// Mean over devices of the accuracy of the model that each would use, on the device's test
    /// samples.
    DeviceAccuracy,
    /// Mean over devices of the root mean squared error of the same models.
    DeviceRmse,
    /// As [`Self::DeviceAccuracy`], on validation samples.
    DeviceValidationAccuracy,
    /// As [`Self::DeviceRmse`], on validation samples.
    DeviceValidationRmse,
    /// As [`Self::DeviceAccuracy`], of the shared model.
    DeviceSharedAccuracy,
    /// As [`Self::DeviceAccuracy`], of models trained on each device alone.
    DeviceAloneAccuracy,
    /// As [`Self::DeviceRmse`], of the shared model.
    DeviceSharedRmse,
    /// As [`Self::DeviceRmse`], of models trained on each device alone.
    DeviceAloneRmse,
    /// Share of the held-out samples whose class is the most frequent one among their nearest
    /// neighbours, by unsupervised representations. [`Self::TestAccuracy`] is then the accuracy of
    /// a linear probe.
    KnnAccuracy,
    /// As [`Self::KnnAccuracy`], on the samples to choose settings by.
    ValidationKnnAccuracy,
}

impl Metric {
    /// All metrics, in the order in which a table without a metric takes the first available one.
    pub const ALL: [Self; 16] = [
        Self::TestAccuracy,
        Self::TestRmse,
        Self::ValidationAccuracy,
        Self::ValidationRmse,
        Self::TestLoss,
        Self::ValidationLoss,
        Self::DeviceAccuracy,
        Self::DeviceRmse,
        Self::DeviceValidationAccuracy,
        Self::DeviceValidationRmse,
        Self::DeviceSharedAccuracy,
        Self::DeviceAloneAccuracy,
        Self::DeviceSharedRmse,
        Self::DeviceAloneRmse,
        Self::KnnAccuracy,
        Self::ValidationKnnAccuracy,
    ];

    /// Returns the name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TestAccuracy => "test_accuracy",
            Self::TestRmse => "test_rmse",
            Self::TestLoss => "test_loss",
            Self::ValidationAccuracy => "validation_accuracy",
            Self::ValidationRmse => "validation_rmse",
            Self::ValidationLoss => "validation_loss",
            Self::DeviceAccuracy => "device_accuracy",
            Self::DeviceRmse => "device_rmse",
            Self::DeviceValidationAccuracy => "device_validation_accuracy",
            Self::DeviceValidationRmse => "device_validation_rmse",
            Self::DeviceSharedAccuracy => "device_shared_accuracy",
            Self::DeviceAloneAccuracy => "device_alone_accuracy",
            Self::DeviceSharedRmse => "device_shared_rmse",
            Self::DeviceAloneRmse => "device_alone_rmse",
            Self::KnnAccuracy => "knn_accuracy",
            Self::ValidationKnnAccuracy => "validation_knn_accuracy",
        }
    }

    /// Returns the name in a table, with its unit.
    #[must_use]
    pub fn title(self) -> String {
        let words = self.name().replace('_', " ").replace("rmse", "RMSE");
        if self.is_share() {
            words + " (%)"
        } else {
            words
        }
    }

    /// Returns whether it is on the test samples of the whole federation. The others use samples of
    /// devices, or samples to choose settings by.
    #[must_use]
    pub const fn is_of_test_samples(self) -> bool {
        matches!(self, Self::TestAccuracy | Self::TestRmse | Self::TestLoss)
    }

    /// Returns the number of digits after the point in a table.
    #[must_use]
    pub const fn digits(self) -> usize {
        if self.is_share() { 2 } else { 4 }
    }

    /// Converts `value` to the unit of tables: shares in percent.
    #[must_use]
    pub const fn shown(self, value: f64) -> f64 {
        if self.is_share() {
            100.0 * value
        } else {
            value
        }
    }

    /// Returns whether less is better.
    #[must_use]
    pub const fn is_error(self) -> bool {
        !self.is_share()
    }

    const fn is_share(self) -> bool {
        matches!(
            self,
            Self::TestAccuracy
                | Self::ValidationAccuracy
                | Self::DeviceAccuracy
                | Self::DeviceValidationAccuracy
                | Self::DeviceSharedAccuracy
                | Self::DeviceAloneAccuracy
                | Self::KnnAccuracy
                | Self::ValidationKnnAccuracy
        )
    }

    /// Returns the origin of this figure of a round.
    fn origin(self, record: &RoundRecord) -> Provenance {
        let of_encoder = record.simulation_only.probe_accuracy.is_some();
        let is_public = self.is_of_test_samples() && !of_encoder;
        Provenance::of_samples(!is_public || record.test_is_simulation_only)
    }

    /// Returns every finite figure of a round's evaluation.
    #[must_use]
    pub fn of_round(record: &RoundRecord) -> BTreeMap<Self, Figure> {
        let part = |evaluation: Option<Evaluation>, [accuracy, rmse, loss]: [Self; 3]| {
            let found = evaluation.map(|evaluation| {
                [
                    (accuracy, evaluation.accuracy),
                    (rmse, evaluation.rmse),
                    (loss, Some(evaluation.loss)),
                ]
            });
            found.into_iter().flatten()
        };
        let test = [Self::TestAccuracy, Self::TestRmse, Self::TestLoss];
        let validation = [
            Self::ValidationAccuracy,
            Self::ValidationRmse,
            Self::ValidationLoss,
        ];
        let only = &record.simulation_only;
        let devices = |means: Option<DeviceMeans>, [accuracy, rmse]: [[Self; 3]; 2]| {
            let found = means.map(|means| {
                let [result, shared, alone] = if means.is_error { rmse } else { accuracy };
                [
                    (result, means.models.result()),
                    (shared, means.models.shared),
                    (alone, means.models.alone),
                ]
            });
            found.into_iter().flatten()
        };
        let on_test = [
            [
                Self::DeviceAccuracy,
                Self::DeviceSharedAccuracy,
                Self::DeviceAloneAccuracy,
            ],
            [
                Self::DeviceRmse,
                Self::DeviceSharedRmse,
                Self::DeviceAloneRmse,
            ],
        ];
        // Settings are chosen by the models that devices would use.
        let on_validation = only.devices_validation.map(|means| DeviceMeans {
            models: ModelFigures {
                own: means.models.result(),
                ..ModelFigures::default()
            },
            ..means
        });
        let validation_of_devices = [
            [Self::DeviceValidationAccuracy; 3],
            [Self::DeviceValidationRmse; 3],
        ];
        part(record.test, test)
            .chain(part(only.validation, validation))
            .chain(devices(only.devices, on_test))
            .chain(devices(on_validation, validation_of_devices))
            .chain([
                (Self::KnnAccuracy, only.knn_accuracy),
                (Self::ValidationKnnAccuracy, only.validation_knn_accuracy),
                (Self::TestAccuracy, only.probe_accuracy),
            ])
            .filter_map(|(metric, value)| {
                let (value, origin) = (value.filter(|v| v.is_finite())?, metric.origin(record));
                Some((metric, Figure { value, origin }))
            })
            .collect()
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_files_are_those_of_the_command_line() {
        for metric in Metric::ALL {
            let json = serde_json::to_string(&metric).unwrap();
            assert_eq!(json, format!("\"{metric}\""));
        }
    }

    #[test]
    fn accuracy_is_shown_in_percent_and_rmse_as_it_is() {
        assert_eq!(Metric::TestAccuracy.title(), "test accuracy (%)");
        assert_eq!(Metric::TestRmse.title(), "test RMSE");
        assert_eq!(Metric::TestAccuracy.shown(0.5).to_bits(), 50f64.to_bits());
        assert_eq!(Metric::TestRmse.shown(0.5).to_bits(), 0.5f64.to_bits());
    }

    #[test]
    fn figures_that_are_not_finite_are_none() {
        let evaluation = Evaluation {
            loss: f64::INFINITY,
            accuracy: Some(0.1),
            rmse: None,
        };
        let record = RoundRecord {
            round: 0,
            cohort: 1,
            epsilon: None,
            learning_rate: 0.1,
            clip_norm: None,
            ages: Vec::new(),
            wasted: None,
            unclipped_share: None,
            beyond_grid: None,
            answers: Vec::new(),
            score: None,
            experts: Vec::new(),
            kept: Vec::new(),
            test: Some(evaluation),
            test_is_simulation_only: false,
            burned: false,
            simulation_only: smolfed_engine::round::SimulationOnly::default(),
            seconds: 0.0,
            origin: BTreeMap::new(),
        };
        let figures = Metric::of_round(&record);
        assert_eq!(
            figures.into_iter().collect::<Vec<_>>(),
            [(
                Metric::TestAccuracy,
                Figure {
                    value: 0.1,
                    origin: Provenance::Released
                }
            )]
        );
    }
}
