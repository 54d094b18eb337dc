//! Summaries of runs as cells: mean and standard error over the seeds, and the privacy cost.

use std::collections::BTreeMap;

use super::SweepError;
use super::file::Sweep;
use super::metric::Metric;
use super::results::{Results, RunRecord};
use super::workers::Refusal;
use smolfed_release::condition::Condition;
use smolfed_release::provenance::{Figure, Provenance};
use smolfed_release::statement::{PrivacyStatement, Subject};

/// A mean and its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// The mean.
    pub mean: f64,
    /// The standard error of the mean. `None` for a single value.
    pub standard_error: Option<f64>,
    /// Origin of the values.
    pub origin: Provenance,
}

impl Mean {
    /// Returns the mean of `values`, or `None` without values.
    #[must_use]
    pub fn new(figures: &[Figure]) -> Option<Self> {
        let origin = figures.iter().map(|figure| figure.origin).max()?;
        let values: Vec<f64> = figures.iter().map(|figure| figure.value).collect();
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values
            .iter()
            .map(|value| (value - mean) * (value - mean))
            .sum();
        Some(Self {
            mean,
            standard_error: (count > 1.0).then(|| (squares / (count - 1.0) / count).sqrt()),
            origin,
        })
    }
}

/// All runs of one cell.
#[derive(Clone, Debug, PartialEq)]
pub struct CellSummary {
    /// The label of each dimension's level.
    pub labels: Vec<String>,
    /// The metric by seed.
    pub values: BTreeMap<u64, Figure>,
    /// Mean over the seeds. `None` if there is no value.
    pub mean: Option<Mean>,
    /// Mean of each additional figure.
    pub also: Vec<Option<Mean>>,
    /// Reasons why runs have no value, by seed.
    pub refusals: BTreeMap<u64, String>,
    /// The privacy statements of the first seed, the runs' own accountant first. Empty without
    /// runs.
    pub privacy: Vec<PrivacyStatement>,
    /// Qualifications of ε: the notes of the runs' own accountant common to all seeds.
    pub notes: Vec<String>,
    /// Wall time of all runs together.
    pub seconds: f64,
}

impl CellSummary {
    /// Returns the mean difference to `other` over their common seeds. Effects of a seed cancel.
    #[must_use]
    pub fn gain_over(&self, other: &Self) -> Option<Mean> {
        let difference =
            |(seed, figure): (&u64, &Figure)| Some(figure.less(*other.values.get(seed)?));
        let differences: Vec<Figure> = self.values.iter().filter_map(difference).collect();
        Mean::new(&differences)
    }

    /// Returns ε by the runs' own accountant.
    #[must_use]
    pub fn statement(&self) -> Option<&PrivacyStatement> {
        self.privacy.first()
    }

    /// Returns ε of correlation matrices, if devices sent some.
    #[must_use]
    pub fn matrix_statement(&self) -> Option<&PrivacyStatement> {
        let is_it = |s: &&PrivacyStatement| s.subject == Subject::CorrelationMatrices;
        self.privacy.iter().find(is_it)
    }

    /// Returns whether noise of the runs follows from a known seed. The noise of private selections
    /// does not, unless they are asked to be repeatable.
    #[must_use]
    pub fn has_known_seed(&self) -> bool {
        let is_it = |condition: &Condition| matches!(condition, Condition::KnownSeed { .. });
        let of = |statement: &PrivacyStatement| statement.conditions().iter().any(is_it);
        self.privacy.iter().any(of)
    }

    /// Returns the statement with a proved ε.
    #[must_use]
    pub fn sound_statement(&self) -> Option<&PrivacyStatement> {
        let is_it = |s: &&PrivacyStatement| s.subject == Subject::Updates && s.is_upper_bound();
        self.privacy.iter().find(is_it)
    }
}

/// All cells, in the order of [`Sweep::cells`].
#[derive(Clone, Debug, PartialEq)]
pub struct Summaries {
    /// Metric of the values.
    pub metric: Metric,
    /// The cells.
    pub cells: Vec<CellSummary>,
    /// Number of devices in the first run.
    pub devices: u32,
}

impl Summaries {
    /// Summarises the existing results.
    ///
    /// # Errors
    /// [`SweepError::NothingRuns`] if no run has a result, and [`SweepError::Metric`] if no run has
    /// the sweep's metric.
    pub fn new(sweep: &Sweep, results: &Results, refusals: &[Refusal]) -> Result<Self, SweepError> {
        let records = || {
            let of_cell = |cell| {
                sweep
                    .seeds
                    .iter()
                    .filter_map(move |seed| results.get(cell, *seed))
            };
            sweep.cells.iter().flat_map(of_cell)
        };
        let Some(first) = records().next() else {
            let reason = refusals.first().map(|refusal| refusal.reason.clone());
            let reason = reason.unwrap_or_else(|| "none were started".to_owned());
            return Err(SweepError::NothingRuns { reason });
        };
        let is_known = |metric: &Metric| records().any(|run| run.figure(*metric).is_some());
        let known: Vec<Metric> = Metric::ALL.into_iter().filter(is_known).collect();
        let metric = match (sweep.metric, known.first()) {
            (Some(metric), _) if known.contains(&metric) => metric,
            (None, Some(metric)) => *metric,
            (metric, _) => {
                let names: Vec<_> = known.iter().map(|metric| metric.name()).collect();
                return Err(SweepError::Metric {
                    metric: metric.unwrap_or(Metric::TestAccuracy),
                    known: if names.is_empty() {
                        "no finite figure; are there test or validation samples?".to_owned()
                    } else {
                        names.join(", ")
                    },
                });
            }
        };
        let cells = 0..sweep.cells.len();
        let cells = cells.map(|number| cell(sweep, results, refusals, metric, number));
        let mut summaries = Self {
            metric,
            cells: cells.collect(),
            devices: first.devices,
        };
        let seeded = summaries.cells.iter().filter(|cell| cell.has_known_seed());
        let runs = seeded.count();
        if runs > 1 {
            summaries.state(&Condition::SharedSeed { runs });
        }
        Ok(summaries)
    }

    /// Adds a condition to every statement with a finite ε.
    pub(super) fn state(&mut self, condition: &Condition) {
        for cell in &mut self.cells {
            for statement in &mut cell.privacy {
                if statement.epsilon.is_finite() {
                    *statement = statement.clone().with_note(condition.clone());
                }
            }
            if cell
                .privacy
                .iter()
                .any(|statement| statement.epsilon.is_finite())
            {
                cell.notes.extend(condition.sentence());
            }
        }
    }

    /// Returns the most restrictive origin of the figures.
    #[must_use]
    pub fn origin(&self) -> Provenance {
        let of_cell = |cell: &CellSummary| {
            let also = cell.also.iter().flatten();
            cell.mean.iter().chain(also).map(|mean| mean.origin).max()
        };
        let origins = self.cells.iter().filter_map(of_cell);
        origins.max().unwrap_or(Provenance::Public)
    }
}

fn cell(
    sweep: &Sweep,
    results: &Results,
    refusals: &[Refusal],
    metric: Metric,
    number: usize,
) -> CellSummary {
    let cell = &sweep.cells[number];
    let labels = sweep.dimensions.iter().zip(&cell.levels);
    let mut summary = CellSummary {
        labels: labels
            .map(|(dimension, level)| dimension.levels[*level].label.clone())
            .collect(),
        values: BTreeMap::new(),
        mean: None,
        also: Vec::new(),
        refusals: refusals
            .iter()
            .filter(|refusal| refusal.run.cell == number)
            .map(|refusal| (refusal.run.seed, refusal.reason.clone()))
            .collect(),
        privacy: Vec::new(),
        notes: Vec::new(),
        seconds: 0.0,
    };
    let records = sweep
        .seeds
        .iter()
        .filter_map(|seed| results.get(cell, *seed));
    for RunRecord {
        privacy, seconds, ..
    } in records.clone()
    {
        summary.seconds += seconds;
        let notes = privacy.first().map_or(&[][..], |own| &own.notes);
        if summary.privacy.is_empty() {
            summary.privacy.clone_from(privacy);
            summary.notes = notes.to_vec();
        }
        keep_costliest_matrices(&mut summary.privacy, privacy);
        summary.notes.retain(|note| notes.contains(note));
    }
    summary.also = (sweep.also.iter())
        .map(|metric| {
            let values = records.clone().filter_map(|record| record.figure(*metric));
            Mean::new(&values.collect::<Vec<Figure>>())
        })
        .collect();
    for record in records {
        match record.figure(metric) {
            Some(figure) => {
                summary.values.insert(record.seed, figure);
            }
            None => {
                let reason = format!("it ended without a finite {metric}");
                summary.refusals.insert(record.seed, reason);
            }
        }
    }
    let values: Vec<Figure> = summary.values.values().copied().collect();
    summary.mean = Mean::new(&values);
    summary
}

/// Keeps the largest ε of a cell: the number of matrices from a device depends on the cohorts, and
/// so on the seed.
fn keep_costliest_matrices(kept: &mut [PrivacyStatement], found: &[PrivacyStatement]) {
    for (kept, found) in kept.iter_mut().zip(found) {
        let is_matrix = found.subject == Subject::CorrelationMatrices;
        if is_matrix && found.epsilon > kept.epsilon {
            kept.clone_from(found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn public(value: f64) -> Figure {
        let origin = Provenance::Public;
        Figure { value, origin }
    }

    #[test]
    fn standard_errors_are_those_of_the_mean() {
        let mean = Mean::new(&[1.0, 2.0, 3.0, 4.0].map(public)).unwrap();
        // Sample variance 5/3, over 4 values.
        assert!((mean.mean - 2.5).abs() < 1e-12);
        assert!((mean.standard_error.unwrap() - (5.0f64 / 12.0).sqrt()).abs() < 1e-12);
        assert_eq!(Mean::new(&[public(1.0)]).unwrap().standard_error, None);
        assert_eq!(Mean::new(&[]), None);
    }

    #[test]
    fn gains_are_paired_by_seed() {
        let summary = |values: &[(u64, f64)]| CellSummary {
            labels: Vec::new(),
            values: values
                .iter()
                .map(|(seed, value)| (*seed, public(*value)))
                .collect(),
            mean: None,
            also: Vec::new(),
            refusals: BTreeMap::new(),
            privacy: Vec::new(),
            notes: Vec::new(),
            seconds: 0.0,
        };
        let before = summary(&[(1, 0.5), (2, 0.9), (3, 0.1)]);
        let after = summary(&[(1, 0.75), (2, 1.15), (4, 0.0)]);
        let gain = after.gain_over(&before).unwrap();
        assert!((gain.mean - 0.25).abs() < 1e-12);
        assert!(gain.standard_error.unwrap() < 1e-12);
        assert_eq!(after.gain_over(&summary(&[(9, 1.0)])), None);
    }
}
