//! Assessment of a model on samples, next to baselines without a model. For values: R², the mean
//! absolute error and the error of always predicting their mean. For classes: F1, the confusion
//! matrix, and the accuracy of the most frequent class.

use serde::{Deserialize, Serialize};
use smolfed_core::model::ModelError;

use super::samples::{Evaluation, Tally, scores};
use crate::task::Task;
use smolfed_data::constants::Affine;
use smolfed_data::dataset::{DatasetView, DeviceBuffer};
use smolfed_data::held_out::HeldOut;
use smolfed_release::number::{fixed, significant};

/// Assessment of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assessment {
    /// Number of samples.
    pub rows: u64,
    /// Figures as in the rounds of a run.
    #[serde(flatten)]
    pub evaluation: Evaluation,
    /// Figures for values only.
    #[serde(flatten)]
    pub values: Option<ValueFigures>,
    /// Figures for classes only.
    #[serde(flatten)]
    pub classes: Option<ClassFigures>,
}

/// A part of the held-out samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeldOutPart {
    /// Samples that no choice was based on.
    Test,
    /// Samples for choosing settings. Used only if there are no test samples.
    Validation,
}

impl HeldOutPart {
    /// Returns the word in names of figures.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Test => "test",
            Self::Validation => "validation",
        }
    }
}

/// Assessment of the final model of a run on held-out samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FinalAssessment {
    /// The held-out part.
    pub part: HeldOutPart,
    /// Whether the samples belong to the devices, so only a simulation has them.
    pub is_simulation_only: bool,
    /// The figures.
    #[serde(flatten)]
    pub figures: Assessment,
}

/// Errors of predicted values, in the target's own unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ValueFigures {
    /// Mean absolute error.
    pub mae: f64,
    /// R² = 1 − Σ (y − ŷ)² / Σ (y − ȳ)²: the explained share of the variance, below 0 if the model
    /// is worse than the mean of these targets. `None` if all targets are equal.
    pub r2: Option<f64>,
    /// The root mean squared error of the mean of these targets, for comparison.
    pub rmse_of_mean: f64,
}

/// Figures of predicted classes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassFigures {
    /// Mean of the F1 scores of all classes with samples, equally weighted. F1 is the harmonic mean
    /// of precision and recall, 2 TP / (2 TP + FP + FN).
    pub f1: f64,
    /// The accuracy of always predicting the most frequent class of these samples, for comparison.
    pub accuracy_of_majority: f64,
    /// Samples by class (rows) and predicted class (columns).
    pub confusion: Vec<Vec<u64>>,
}

impl Assessment {
    /// Returns all figures except the confusion matrix, with names, for readers.
    #[must_use]
    pub fn in_words(&self) -> Vec<(&'static str, String)> {
        let percent = |share: f64| format!("{} %", fixed(100.0 * share, 2));
        let number = |value: f64| significant(value, 6);
        let Evaluation {
            loss,
            accuracy,
            rmse,
        } = self.evaluation;
        let of_classes = self.classes.as_ref();
        let figures = [
            ("accuracy", accuracy.map(percent)),
            (
                "accuracy of the most frequent class",
                of_classes.map(|figures| percent(figures.accuracy_of_majority)),
            ),
            ("F1 (macro)", of_classes.map(|figures| fixed(figures.f1, 4))),
            ("RMSE", rmse.map(number)),
            (
                "RMSE of the mean",
                self.values.map(|figures| number(figures.rmse_of_mean)),
            ),
            ("R²", self.values.and_then(|figures| figures.r2).map(number)),
            ("MAE", self.values.map(|figures| number(figures.mae))),
            ("loss", Some(number(loss))),
        ];
        let there = figures.into_iter();
        there
            .filter_map(|(name, value)| Some((name, value?)))
            .collect()
    }

    /// Returns, in one line, the figures that rounds do not have.
    #[must_use]
    pub fn in_one_line(&self) -> String {
        let of_classes = self.classes.as_ref().map(|figures| {
            format!(
                "F1 {}; {} % for always the most frequent class",
                fixed(figures.f1, 4),
                fixed(100.0 * figures.accuracy_of_majority, 2)
            )
        });
        let of_values = self.values.map(|figures| {
            let r2 = figures.r2.map(|r2| format!("R² {}, ", significant(r2, 4)));
            format!(
                "{}mae {}; rmse {} for always the mean",
                r2.unwrap_or_default(),
                significant(figures.mae, 4),
                significant(figures.rmse_of_mean, 4)
            )
        });
        of_classes.or(of_values).unwrap_or_default()
    }

    /// Returns whether always predicting the mean, or the most frequent class, is no worse.
    #[must_use]
    pub fn is_useless(&self) -> bool {
        let Evaluation { accuracy, rmse, .. } = self.evaluation;
        let of_values = self.values.zip(rmse);
        let of_classes = self.classes.as_ref().zip(accuracy);
        of_values.is_some_and(|(figures, rmse)| rmse >= figures.rmse_of_mean)
            || of_classes.is_some_and(|(figures, share)| share <= figures.accuracy_of_majority)
    }
}

impl ClassFigures {
    /// Returns class, predicted class and samples of all wrong predictions, the most frequent
    /// first.
    #[must_use]
    pub fn confusions(&self) -> Vec<(usize, usize, u64)> {
        let rows = self.confusion.iter().enumerate();
        let mut wrong: Vec<_> = rows
            .flat_map(|(class, row)| {
                let cells = row.iter().enumerate();
                cells.map(move |(predicted, count)| (class, predicted, *count))
            })
            .filter(|(class, predicted, count)| class != predicted && *count > 0)
            .collect();
        wrong.sort_by_key(|(.., count)| std::cmp::Reverse(*count));
        wrong
    }

    fn new(confusion: Vec<Vec<u64>>) -> Self {
        let classes = 0..confusion.len();
        let of_class: Vec<u64> = confusion.iter().map(|row| row.iter().sum()).collect();
        let predicted: Vec<u64> = classes
            .clone()
            .map(|class| confusion.iter().map(|row| row[class]).sum())
            .collect();
        let occurring = classes.filter(|class| of_class[*class] > 0);
        let f1 = occurring.clone().map(|class| {
            // 2 TP + FP + FN counts each sample of the class and each prediction of it once.
            let both = of_class[class] + predicted[class];
            2.0 * confusion[class][class] as f64 / both as f64
        });
        let all: u64 = of_class.iter().sum();
        let most = of_class.iter().max().copied().unwrap_or(0);
        Self {
            f1: f1.sum::<f64>() / occurring.count() as f64,
            accuracy_of_majority: most as f64 / all as f64,
            confusion,
        }
    }
}

/// Sums over predicted values.
#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    count: f64,
    absolute: f64,
    squared: f64,
    /// Mean of the targets so far, and their sum of squared deviations (Welford 1962).
    mean: f64,
    scatter: f64,
}

impl Moments {
    fn add(&mut self, target: f64, predicted: f64) {
        let error = predicted - target;
        self.count += 1.0;
        self.absolute += error.abs();
        self.squared += error * error;
        let before = target - self.mean;
        self.mean += before / self.count;
        self.scatter += before * (target - self.mean);
    }

    fn figures(&self) -> ValueFigures {
        ValueFigures {
            mae: self.absolute / self.count,
            r2: (self.scatter > 0.0).then(|| 1.0 - self.squared / self.scatter),
            rmse_of_mean: (self.scatter / self.count).sqrt(),
        }
    }
}

/// Assesses a model on samples in parts.
#[derive(Debug)]
pub struct Assessor<'a> {
    task: &'a Task,
    /// Scale of the targets, if these are values.
    scale: Affine,
    tally: Tally,
    moments: Moments,
    confusion: Vec<Vec<u64>>,
}

impl<'a> Assessor<'a> {
    /// Starts without samples. `scale` is the scale of the values.
    #[must_use]
    pub fn new(task: &'a Task, scale: Affine) -> Self {
        let classes = task.class_count();
        Self {
            task,
            scale,
            tally: Tally::default(),
            moments: Moments::default(),
            confusion: vec![vec![0; classes]; classes],
        }
    }

    /// Adds samples with their [`scores`]. Every part except the last has [`Tally::PART`] samples.
    pub fn add(&mut self, samples: DatasetView<'_>, scores: Vec<f32>) {
        let rows = scores.chunks_exact(self.task.output_count()).enumerate();
        if self.task.predicts_values() {
            for (index, row) in rows {
                let target = self.scale.undo(samples.value(index));
                self.moments.add(target, self.scale.undo(row[0]));
            }
        } else {
            for (index, row) in rows {
                let of_class = &mut self.confusion[usize::from(samples.label(index))];
                of_class[self.task.class(row)] += 1;
            }
        }
        self.tally.add(self.task, samples, scores);
    }

    /// Returns the figures, or `None` without samples.
    #[must_use]
    pub fn finish(self) -> Option<Assessment> {
        let is_value = self.task.predicts_values();
        let unit = if is_value { self.scale.std() } else { 1.0 };
        Some(Assessment {
            rows: self.tally.count(),
            evaluation: self.tally.evaluation(self.task, unit)?,
            values: is_value.then(|| self.moments.figures()),
            classes: (!is_value).then(|| ClassFigures::new(self.confusion)),
        })
    }
}

/// Assesses a model on held-out samples. Returns `None` if there are none. `scale` is the scale of
/// the values.
///
/// # Errors
/// [`ModelError`] if the model does not fit the samples.
pub fn assess(
    task: &Task,
    parameters: &[f32],
    samples: HeldOut<'_>,
    scale: Affine,
) -> Result<Option<Assessment>, ModelError> {
    let mut assessor = Assessor::new(task, scale);
    let mut buffer = DeviceBuffer::default();
    for start in (0..samples.len()).step_by(Tally::PART) {
        let end = samples.len().min(start + Tally::PART);
        let part = samples.piece(start..end, &mut buffer);
        assessor.add(part, scores(task, parameters, part)?);
    }
    Ok(assessor.finish())
}

#[cfg(test)]
mod tests {
    use smolfed_core::model::{Linear, Softmax};

    use super::*;
    use crate::evaluation::samples::evaluate;
    use crate::tables::simulation::ArithmeticName;
    use smolfed_data::dataset::{Dataset, Targets};

    #[test]
    fn errors_of_values_are_those_of_their_definitions() {
        let mut moments = Moments::default();
        for (target, predicted) in [(1.0, 2.0), (3.0, 3.0), (8.0, 5.0)] {
            moments.add(target, predicted);
        }
        let figures = moments.figures();
        // Targets have mean 4 and a sum of squared deviations of 9 + 1 + 16 = 26. Errors are 1, 0
        // and −3.
        assert!((figures.mae - 4.0 / 3.0).abs() < 1e-12);
        assert!((figures.r2.unwrap() - (1.0 - 10.0 / 26.0)).abs() < 1e-12);
        assert!((figures.rmse_of_mean - (26f64 / 3.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn targets_that_are_all_the_same_have_no_variance_to_explain() {
        let mut moments = Moments::default();
        moments.add(2.0, 1.0);
        moments.add(2.0, 3.0);
        assert_eq!(moments.figures().r2, None);
    }

    #[test]
    fn f1_is_the_mean_over_classes_that_occur() {
        let figures = ClassFigures::new(vec![vec![3, 1, 0], vec![2, 2, 2], vec![0, 0, 0]]);
        // 2·3 / (4 + 5) and 2·2 / (6 + 3). The third class has no sample.
        let expected = f64::midpoint(6.0 / 9.0, 4.0 / 9.0);
        assert!((figures.f1 - expected).abs() < 1e-12);
        assert!((figures.accuracy_of_majority - 0.6).abs() < 1e-12);
        assert_eq!(figures.confusions(), [(1, 0, 2), (1, 2, 2), (0, 1, 1)]);
    }

    /// The shared figures equal those of the round, over parts and bit for bit.
    #[test]
    fn an_assessment_has_the_figures_of_an_evaluation() {
        let rows = Tally::PART + 100;
        let features: Vec<f32> = (0..rows).map(|at| (at * 37 % 101) as f32 / 50.0).collect();
        let values: Vec<f32> = features.iter().map(|x| 2.0 * x + 1.0).collect();
        let labels: Vec<u32> = (0..rows as u32).map(|row| row * 7 % 3).collect();
        let all: Vec<u32> = (0..rows as u32).collect();
        let scale = Affine::new(3.0, 2.5).unwrap();
        for (task, targets, scale) in [
            (Task::Linear(Linear::new(1)), Targets::Values(values), scale),
            (
                Task::Softmax(Softmax::new(1, 3)),
                Targets::classes(&labels, 3).unwrap(),
                Affine::IDENTITY,
            ),
        ] {
            let parameters: Vec<f32> = (0..task.parameter_count())
                .map(|at| 0.9 - at as f32 / 3.0)
                .collect();
            let data = Dataset::new(features.clone(), 1, targets).unwrap();
            let samples = || HeldOut::new(&data, &all);
            let found = assess(&task, &parameters, samples(), scale).unwrap();
            let of_round = evaluate(
                &task,
                ArithmeticName::F32,
                &parameters,
                samples(),
                scale.std(),
            );
            let found = found.unwrap();
            assert_eq!(Some(found.evaluation), of_round.unwrap());
            assert_eq!(found.rows, rows as u64);
            let text = serde_json::to_string(&found).unwrap();
            assert_eq!(serde_json::from_str::<Assessment>(&text).unwrap(), found);
            if let Some(classes) = found.classes {
                let right: u64 = (0..3).map(|class| classes.confusion[class][class]).sum();
                assert_eq!(found.evaluation.accuracy, Some(right as f64 / rows as f64));
            }
        }
    }
}
