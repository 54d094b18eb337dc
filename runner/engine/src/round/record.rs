//! The record of a round, one line of `metrics.jsonl`: cohort, ε, clip norm, figures on samples,
//! and the figures that only a simulation has.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use smolfed_core::params::LearningRate;
use smolfed_core::wire::message::ModelGrid;

use crate::denoise::auto::ExpertWeight;
use crate::evaluation::devices::DeviceMeans;
use crate::evaluation::quantiles::Quantiles;
use crate::evaluation::samples::Evaluation;
use crate::question::Answer;
use crate::run_files::records::Record;
use crate::source::Draw;
use smolfed_release::Outcome;
use smolfed_release::provenance::Provenance;

/// One round. All fields except `seconds` are the same on every machine and thread count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundRecord {
    /// The round, from 0.
    pub round: u32,
    /// Number of drawn devices. Under Poisson sampling, a deployment keeps it secret.
    pub cohort: usize,
    /// In a time window, the number of devices that trained from the model of this round, of the
    /// round before, and so on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ages: Vec<u32>,
    /// In a time window, devices that used a participation without an update that counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wasted: Option<u32>,
    /// ε spent after this round, proved if the schedule was fixed beforehand. `null` means
    /// infinite.
    pub epsilon: Option<f64>,
    /// Local learning rate.
    pub learning_rate: f32,
    /// L, if it changes from round to round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clip_norm: Option<f32>,
    /// Noisy share of the updates that were not clipped, which determines the next clip norm. It
    /// may be below 0 or above 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unclipped_share: Option<f64>,
    /// The score of a trial of a private selection, after the last round: the noisy mean accuracy
    /// over devices on their own validation samples, so possibly below 0 or above 1. A device
    /// without such samples counts as one half.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Number of parameters of the model after this round that are clamped to its grid. Absent
    /// without `server.model_places`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beyond_grid: Option<u32>,
    /// The answers to questions after this round.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<Answer>,
    /// The weights of the filters in the model after this round, with `denoiser = "auto"`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub experts: Vec<ExpertWeight>,
    /// Length of the mixture relative to the plain sum of the steps, for each tensor of weights.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<f64>,
    /// Evaluation of the model after this round on the test samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<Evaluation>,
    /// Whether the test samples belong to the devices, as with natural devices. Then `test` reads
    /// private data without noise, and only a simulation can know it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub test_is_simulation_only: bool,
    /// Whether the round was charged and then failed: a coordinator broke down in it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub burned: bool,
    /// Figures that only a simulation can know.
    pub simulation_only: SimulationOnly,
    /// Origin of each figure, by its key. Earlier versions of smolfed wrote none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub origin: BTreeMap<String, Provenance>,
    /// Wall time of the round. It depends on the size of the cohort.
    pub seconds: f64,
}

impl Record for RoundRecord {
    fn round(&self) -> u32 {
        self.round
    }
}

impl RoundRecord {
    /// Creates the record of a round with only its number and the local learning rate.
    #[must_use]
    pub fn new(round: u32, learning_rate: LearningRate) -> Self {
        Self {
            round,
            cohort: 0,
            ages: Vec::new(),
            wasted: None,
            epsilon: None,
            learning_rate: learning_rate.get(),
            clip_norm: None,
            unclipped_share: None,
            score: None,
            beyond_grid: None,
            answers: Vec::new(),
            experts: Vec::new(),
            kept: Vec::new(),
            test: None,
            test_is_simulation_only: false,
            burned: false,
            simulation_only: SimulationOnly::default(),
            seconds: 0.0,
            origin: BTreeMap::new(),
        }
    }

    /// Adds the figures of a time window: the ages of the models from which its updates were
    /// trained.
    pub(super) fn of_window(&mut self, draw: &Draw, staleness: u32) {
        let age = |version: &u32| self.round.checked_sub(*version);
        let ages: Vec<u32> = draw.versions.iter().filter_map(age).collect();
        let of_age = |age| ages.iter().filter(|found| **found == age).count() as u32;
        self.ages = (0..=staleness).map(of_age).collect();
        self.wasted = Some(draw.wasted.len() as u32);
    }

    /// Returns the warning about a model with parameters beyond its grid.
    #[must_use]
    pub fn grid_caution(&self, grid: Option<ModelGrid>) -> Option<String> {
        let (grid, beyond) = (grid?, self.beyond_grid.filter(|count| *count > 0)?);
        Some(format!(
            "round {}: {beyond} parameters of the model are not between {} and {}, and are \
             clipped: choose a `server.model_places` below {}",
            self.round + 1,
            grid.value(i16::MIN),
            grid.value(i16::MAX),
            grid.places(),
        ))
    }

    /// Returns whether the record has a figure of this key.
    fn has(&self, key: &str) -> bool {
        match key {
            "ages" => !self.ages.is_empty(),
            "answers" => !self.answers.is_empty(),
            "beyond_grid" => self.beyond_grid.is_some(),
            "burned" => self.burned,
            "clip_norm" => self.clip_norm.is_some(),
            "experts" => !self.experts.is_empty(),
            "kept" => !self.kept.is_empty(),
            "score" => self.score.is_some(),
            "test" => self.test.is_some(),
            "unclipped_share" => self.unclipped_share.is_some(),
            "wasted" => self.wasted.is_some(),
            _ => true,
        }
    }

    /// Adds the origin of each figure. `has_secret_sizes` says whether cohort sizes are secret
    /// ([`Experiment::has_secret_sizes`](crate::experiment::Experiment::has_secret_sizes)).
    #[must_use]
    pub fn with_origins(self, has_secret_sizes: bool) -> Self {
        let of_cohort = Provenance::of_sizes(has_secret_sizes);
        let of_test = Provenance::of_samples(self.test_is_simulation_only);
        let of_run = [
            ("ages", of_cohort),
            ("cohort", of_cohort),
            ("seconds", Provenance::SimulationOnly),
            ("test", of_test),
            ("wasted", of_cohort),
        ];
        let of_all = OF_ALL_RUNS.into_iter().filter(|(key, _)| self.has(key));
        let all = of_run
            .into_iter()
            .filter(|(key, _)| self.has(key))
            .chain(of_all);
        Self {
            origin: all.map(|(key, origin)| (key.to_owned(), origin)).collect(),
            ..self
        }
    }
}

/// Key of the figures that read private data without noise.
const SIMULATION_ONLY: &str = "simulation_only";

/// Origins that are the same in all runs.
const OF_ALL_RUNS: [(&str, Provenance); 12] = [
    ("answers", Provenance::Released),
    ("beyond_grid", Provenance::Released),
    ("burned", Provenance::Public),
    ("clip_norm", Provenance::Released),
    ("epsilon", Provenance::Public),
    ("experts", Provenance::Released),
    ("kept", Provenance::Released),
    ("learning_rate", Provenance::Public),
    ("round", Provenance::Public),
    ("score", Provenance::Released),
    (SIMULATION_ONLY, Provenance::SimulationOnly),
    ("unclipped_share", Provenance::Released),
];

/// Returns the origin of a figure by its dotted name, such as `test.accuracy`, in a round with
/// these origins. Earlier versions of smolfed recorded none: then nothing tells who owns the test
/// samples, or whether cohorts are secret.
#[must_use]
pub fn origin_of(name: &str, origins: &BTreeMap<String, Provenance>) -> Provenance {
    let key = name.split('.').next().unwrap_or(name);
    let of_all = OF_ALL_RUNS.iter().find(|(known, _)| *known == key);
    match (origins.get(key), of_all) {
        (Some(origin), _) | (None, Some((_, origin))) => *origin,
        // The key that told the owner of `test`'s samples, before there were origins.
        (None, None) if key == "test_is_simulation_only" => Provenance::Public,
        (None, None) => Provenance::Unknown,
    }
}

/// Figures that read private data without noise. A federation of real devices has none of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SimulationOnly {
    /// Number of devices that trained.
    pub trained: usize,
    /// Number of devices left out, by reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<String, usize>,
    /// Mean loss over devices in their last local epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub train_loss: Option<f64>,
    /// L2 norms of the updates before (the last) clipping.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_norm: Option<Quantiles>,
    /// Share of the local steps (or of the final updates) that were clipped.
    pub clipped_share: f64,
    /// Number of scores, residuals and weights that `integer` arithmetic saturated.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub saturated: u64,
    /// Evaluation of the model after this round on the validation samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation: Option<Evaluation>,
    /// Means over devices of their models, on their own test samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub devices: Option<DeviceMeans>,
    /// Means on their own validation samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub devices_validation: Option<DeviceMeans>,
    /// Accuracy of the nearest neighbours among representations
    /// ([`knn_accuracy`](crate::representation::knn_accuracy)).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knn_accuracy: Option<f64>,
    /// Accuracy of the nearest neighbours on validation samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation_knn_accuracy: Option<f64>,
    /// Accuracy of a linear probe on representations
    /// ([`probe_accuracy`](crate::representation::probe_accuracy)).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe_accuracy: Option<f64>,
}

impl SimulationOnly {
    /// Sums up the outcomes of a cohort, in its order, and the reasons for omitted messages.
    #[must_use]
    pub fn new(outcomes: &[Outcome], left_out_messages: &[String]) -> Self {
        let mut left_out = BTreeMap::new();
        for reason in left_out_messages {
            *left_out.entry(reason.clone()).or_insert(0) += 1;
        }
        let (mut norms, mut loss) = (Vec::with_capacity(outcomes.len()), 0.0);
        let mut saturated = 0;
        // With final clipping there is one chance to clip, with projection one per step.
        let (mut clipped, mut chances) = (0.0, 0.0);
        for outcome in outcomes {
            match outcome {
                Outcome::LeftOut { reason } => *left_out.entry(reason.clone()).or_insert(0) += 1,
                // `participation.jsonl` has the outcomes of real devices.
                Outcome::Answered | Outcome::Missing => {}
                Outcome::Trained(report) => {
                    norms.push(f64::from(report.norm));
                    loss += f64::from(report.last_loss);
                    clipped += f64::from(report.clipped_steps);
                    chances += f64::from(report.clipping_chances);
                    saturated += u64::from(report.saturated);
                }
            }
        }
        let trained = norms.len();
        Self {
            trained,
            left_out,
            train_loss: (trained > 0).then(|| loss / trained as f64),
            update_norm: Quantiles::new(norms),
            clipped_share: if chances > 0.0 {
                clipped / chances
            } else {
                0.0
            },
            saturated,
            validation: None,
            devices: None,
            devices_validation: None,
            knn_accuracy: None,
            validation_knn_accuracy: None,
            probe_accuracy: None,
        }
    }
}

/// Returns whether nothing was saturated, as in all arithmetics but one.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde calls")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question::Estimate;
    use crate::tables::question::QuestionKind;
    use smolfed_core::train::TrainReport;

    /// Returns a record with a value in every field. A new field does not compile without one.
    fn full() -> RoundRecord {
        let estimate = Estimate {
            name: "devices".to_owned(),
            value: Some(8.0),
            interval: [Some(7.0), None],
        };
        RoundRecord {
            round: 1,
            cohort: 8,
            ages: vec![7, 1],
            wasted: Some(1),
            epsilon: Some(1.0),
            learning_rate: 0.1,
            clip_norm: Some(0.5),
            unclipped_share: Some(0.5),
            score: Some(0.5),
            beyond_grid: Some(0),
            answers: vec![Answer {
                question: 0,
                kind: QuestionKind::Count,
                name: "count".to_owned(),
                confidence: 0.99,
                answered: estimate.clone(),
                estimates: vec![estimate],
            }],
            experts: vec![ExpertWeight {
                expert: "the sum".to_owned(),
                weight: 1.0,
                evidence: 0.0,
            }],
            kept: vec![1.0],
            test: Some(Evaluation {
                loss: 1.0,
                accuracy: Some(0.5),
                rmse: None,
            }),
            test_is_simulation_only: true,
            burned: true,
            simulation_only: SimulationOnly::default(),
            origin: BTreeMap::new(),
            seconds: 0.5,
        }
    }

    /// The names in the functions and in the table of this file are those of the fields.
    #[test]
    fn every_figure_in_a_line_has_an_origin() {
        let empty = RoundRecord::new(1, LearningRate::new(0.1).unwrap());
        for record in [full(), empty] {
            let record = record.with_origins(true);
            let line = serde_json::to_value(&record).unwrap();
            let written = line.as_object().unwrap().keys();
            let is_figure = |key: &&String| {
                // These two are about other keys.
                !["origin", "test_is_simulation_only"].contains(&key.as_str())
            };
            let mut figures: Vec<&String> = written.filter(is_figure).collect();
            figures.sort();
            assert_eq!(record.origin.keys().collect::<Vec<_>>(), figures);
        }
    }

    #[test]
    fn the_origin_of_test_samples_follows_their_owner() {
        for (test_is_simulation_only, expected) in [
            (true, Provenance::SimulationOnly),
            (false, Provenance::Released),
        ] {
            let record = RoundRecord {
                test_is_simulation_only,
                ..full()
            };
            let record = record.with_origins(false);
            assert_eq!(origin_of("test.accuracy", &record.origin), expected);
        }
    }

    #[test]
    fn outcomes_are_counted_by_reason() {
        let report = TrainReport {
            steps: 4,
            clipped_steps: 1,
            clipping_chances: 4,
            first_loss: 2.0,
            last_loss: 1.0,
            norm: 0.5,
            saturated: 3,
        };
        let left_out = |reason: &str| Outcome::LeftOut {
            reason: reason.to_owned(),
        };
        let outcomes = [left_out("a"), Outcome::Trained(report), left_out("a")];
        let only = SimulationOnly::new(&outcomes, &["b".to_owned()]);
        assert_eq!(only.left_out["b"], 1);
        assert_eq!((only.trained, only.left_out["a"]), (1, 2));
        assert_eq!((only.train_loss, only.clipped_share), (Some(1.0), 0.25));
        assert_eq!(only.saturated, 3);
        let nobody = SimulationOnly::new(&[], &[]);
        assert_eq!(
            (nobody.trained, nobody.train_loss, nobody.update_norm),
            (0, None, None)
        );
    }
}
