//! The privacy statement: ε with its δ, unit, adjacency, trust model, sampling and accountant, for
//! machines ([`PrivacyStatement`], the content of `privacy.json`) and in plain words
//! ([`PrivacyStatement::in_words`]). smolfed prints no ε without it.

mod views;
mod words;

pub use views::View;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use smolfed_accounting::accountant::{Accountant, Estimate, EstimateKind};
use smolfed_accounting::event::{
    Adjacency, Exposure, Mechanism, PrivacyEvent, PrivacyUnit, Sampling, TrustModel,
};
use smolfed_accounting::params::{ClipNorm, Delta};
use smolfed_accounting::pld::replace_one_epsilon;
use smolfed_accounting::selection::Trials;
use smolfed_accounting::trade_off::TradeOff;

use super::split::Split;
use crate::SamplingScheme;
use crate::condition::{Condition, Conditions, Effect};

/// Everything that a printed ε must name. The field names are those of `--json`.
///
/// `is_upper_bound` and `planned_is_upper_bound` of the JSON are computed when it is written, from
/// the kind of the estimate and from the conditions, and are not read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct PrivacyStatement {
    /// What it is about.
    #[serde(default, skip_serializing_if = "Subject::is_updates")]
    pub subject: Subject,
    /// ε; `null` in JSON means infinite: no guarantee at all.
    #[serde(with = "infinite_as_null")]
    pub epsilon: f64,
    /// δ.
    pub delta: Delta,
    /// The accountant.
    pub accountant: Accountant,
    /// Bound, approximation, or a paper's figure.
    pub kind: EstimateKind,
    /// [`Self::is_upper_bound`], as JSON has it.
    #[serde(rename = "is_upper_bound", skip_deserializing)]
    written_flag: bool,
    /// A proved lower bound on the true ε, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epsilon_low: Option<f64>,
    /// ε if the data of one device are replaced by other data, where the server sees who sends
    /// something, and ε therefore compares a device's updates with zeros; that of the whole plan,
    /// of a run that was stopped. Absent if infinite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epsilon_replace_one: Option<f64>,
    /// ε against whoever sees the released models alone, where the server and its helpers, against
    /// whom `epsilon` holds, see more; that of the whole plan, of a run that was stopped. Absent
    /// under other trust models, and if infinite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epsilon_outsiders: Option<f64>,
    /// ε of all planned rounds, of a run that was stopped before; absent if infinite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epsilon_planned: Option<f64>,
    /// `rounds` of the plan, of a run that was stopped before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds_planned: Option<u64>,
    /// [`Self::planned_is_upper_bound`], as JSON has it.
    #[serde(
        rename = "planned_is_upper_bound",
        skip_deserializing,
        skip_serializing_if = "Option::is_none"
    )]
    written_planned_flag: Option<bool>,
    /// z of the last event.
    pub noise_multiplier: f64,
    /// s: how far one device moves all releases of a run with correlated noise, in clip norms, or
    /// with block-cyclic sampling how far one of its rounds does; the noise multiplier is relative
    /// to it. Absent for other mechanisms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sensitivity: Option<f64>,
    /// b: a device's rounds are at least so many apart, for correlated noise; also the number of
    /// parts that take turns, for block-cyclic sampling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub separation: Option<u32>,
    /// ν = z · L, the noise std on the sum, or z · s · L on each release of correlated noise;
    /// absent without a clip norm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise_std: Option<f64>,
    /// L; absent if the statement is about noise multipliers only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clip_norm: Option<ClipNorm>,
    /// The two parts of the noise of an adaptive clip norm, which together are as good as the noise
    /// multiplier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise_split: Option<NoiseSplit>,
    /// The private selection that chose the run, whose cost `epsilon` is; absent for a run of its
    /// own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selection: Option<SelectionStatement>,
    /// What two neighbouring federations differ in.
    pub adjacency: Adjacency,
    /// The sampling scheme of the last event.
    pub sampling: SamplingScheme,
    /// τ, with which a device is drawn in a round, of its part if there are parts; absent for
    /// `unsampled`, which claims none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling_rate: Option<f64>,
    /// N.
    pub devices: u32,
    /// The largest number of participations, for `unsampled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_participations: Option<u32>,
    /// s, where rounds are windows of time: an update counts in the window in which it arrives, up
    /// to so many after that of its model. Absent for other rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub staleness: Option<u32>,
    /// Rounds of all events.
    pub rounds: u64,
    /// Releases of a device in a round of the last event, if not one; 0 if nothing leaves a device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub releases_per_round: Option<u32>,
    /// What is protected.
    pub unit: PrivacyUnit,
    /// Against whom.
    pub trust: TrustModel,
    /// k: what is protected are all devices of a user with up to so many; absent for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub devices_per_user: Option<u32>,
    /// The largest difference of true-positive and false-positive rate of any attack, as far as
    /// `epsilon` is proved.
    pub advantage: f64,
    /// The largest true-positive rate of any attack at a false-positive rate of 1 %, as far as
    /// `epsilon` is proved.
    pub hit_rate_at_1_percent: f64,
    /// Who sees what, and which ε holds against whom, where several parties see different things.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub views: Vec<View>,
    /// What ε depends on beside the numbers. A statement without the key is of an older version.
    #[serde(default = "Conditions::unknown")]
    conditions: Conditions,
    /// What else must be known; each a sentence.
    #[serde(default)]
    pub notes: Vec<String>,
}

impl Serialize for PrivacyStatement {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let written = Self {
            written_flag: self.is_upper_bound(),
            written_planned_flag: self.planned_is_upper_bound(),
            ..self.clone()
        };
        Self::serialize(&written, serializer)
    }
}

impl<'de> Deserialize<'de> for PrivacyStatement {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = Self::deserialize(deserializer)?;
        let mut conditions = read.conditions.iter();
        match conditions.any(|condition| *condition == Condition::ProvenanceUnknown) {
            // An older file does not say this of itself.
            true => Ok(read.with_note(Condition::ProvenanceUnknown)),
            false => Ok(read),
        }
    }
}

/// The noise of a round whose clip norm is adaptive.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct NoiseSplit {
    /// z_Δ: noise std on the sum of the updates over the clip norm of the round.
    pub update: f64,
    /// σ_b: noise std on half of the number of updates inside the ball less those outside.
    pub bit_std: f64,
}

impl From<Split> for NoiseSplit {
    fn from(split: Split) -> Self {
        Self {
            update: split.update.get(),
            bit_std: split.bit.get() / 2.0,
        }
    }
}

/// The private selection that chose a run (Papernot, Steinke 2022, arXiv:2110.03620).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SelectionStatement {
    /// Their theorem that bounds the cost.
    pub theorem: u8,
    /// The expected number of trials; how many there were is not released.
    pub mean_trials: f64,
    /// Noise std on the sum of the devices' scores, of which each is between -1 and 1.
    pub score_noise_multiplier: f64,
}

impl SelectionStatement {
    fn new(trials: Trials, score_noise_multiplier: f64) -> Self {
        Self {
            theorem: match trials {
                Trials::NegativeBinomial { .. } => 2,
                Trials::Poisson { .. } => 6,
            },
            mean_trials: trials.mean(),
            score_noise_multiplier,
        }
    }
}

/// What a statement is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// The updates of the model that is learned.
    #[default]
    Updates,
    /// Correlation matrices, which devices send in addition to the updates of an encoder. The clip
    /// norm is the bound μ on one example's matrix, and the noise std is that on the sum over a
    /// device's examples.
    CorrelationMatrices,
    /// Answers to questions, and no model. The clip norm is the bound on one device's answer, 1.
    Answers,
}

impl Subject {
    /// A few words for a table.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Updates => "updates",
            Self::CorrelationMatrices => "correlation matrices",
            Self::Answers => "answers",
        }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
    fn is_updates(&self) -> bool {
        *self == Self::Updates
    }
}

impl PrivacyStatement {
    /// The statement for `estimate` of `events`; the last event names the mechanism. `None` for an
    /// empty list: without an event there is nothing to state.
    ///
    /// Warnings that follow from the numbers (a δ of 1/N or more, noise from rounds of several
    /// kinds) join the estimate's notes.
    #[must_use]
    pub fn new(
        estimate: &Estimate,
        events: &[PrivacyEvent],
        clip_norm: Option<ClipNorm>,
    ) -> Option<Self> {
        let event = events.last()?;
        let noise_multiplier = event.mechanism.noise_multiplier();
        let max_participations = match event.sampling {
            Sampling::Unsampled {
                max_participations, ..
            } => Some(max_participations),
            _ => None,
        };
        let (sensitivity, separation) = match event.mechanism {
            Mechanism::Correlated {
                sensitivity,
                participation,
                ..
            } => (Some(sensitivity.get()), Some(participation.separation())),
            _ => (None, None),
        };
        let release_multiplier = event.mechanism.release_multiplier();
        let trade_off = TradeOff::of_events(estimate, events);
        let epsilon_outsiders = views::outsiders(events, estimate.delta);
        Some(Self {
            subject: match event.mechanism {
                Mechanism::CorrelationMatrix { .. } => Subject::CorrelationMatrices,
                Mechanism::Answer { .. } => Subject::Answers,
                _ => Subject::Updates,
            },
            epsilon: estimate.epsilon,
            delta: estimate.delta,
            accountant: estimate.accountant,
            kind: estimate.kind,
            written_flag: false,
            epsilon_low: estimate.epsilon_low,
            epsilon_replace_one: match event.trust {
                TrustModel::Central => None,
                TrustModel::Local | TrustModel::Distributed { .. } => {
                    replace_one(events, estimate.delta)
                }
            },
            epsilon_outsiders,
            epsilon_planned: None,
            rounds_planned: None,
            written_planned_flag: None,
            noise_multiplier: noise_multiplier.get(),
            sensitivity,
            separation,
            noise_std: clip_norm.map(|clip_norm| release_multiplier * clip_norm.get()),
            clip_norm,
            noise_split: None,
            selection: None,
            adjacency: event.adjacency(),
            sampling: event.sampling.into(),
            sampling_rate: event.sampling.sampling_rate(),
            devices: event.sampling.device_count(),
            max_participations,
            staleness: None,
            rounds: rounds(events, event),
            releases_per_round: Some(event.releases).filter(|releases| *releases != 1),
            unit: event.unit,
            trust: event.trust,
            devices_per_user: PrivacyEvent::max_devices_per_user(events),
            advantage: trade_off.advantage(),
            hit_rate_at_1_percent: trade_off.true_positive_rate(0.01),
            views: views::views(event.trust, estimate.epsilon, epsilon_outsiders),
            conditions: Conditions::default(),
            notes: notes(estimate, events, event),
        })
    }

    /// The same for the best of several runs, whose selection costs `estimate`, each of `events`.
    ///
    /// The events are those of one trial: what their privacy loss says of an attack does not hold
    /// for the selection, of which ε and δ alone are known.
    #[must_use]
    pub fn of_selection(
        self,
        trials: Trials,
        estimate: &Estimate,
        events: &[PrivacyEvent],
    ) -> Self {
        let trade_off = TradeOff::new(estimate.epsilon, estimate.delta);
        let score = events.iter().find(|event| event.is_score());
        let score = score.map_or(0.0, |event| event.mechanism.noise_multiplier().get());
        Self {
            selection: Some(SelectionStatement::new(trials, score)),
            advantage: trade_off.advantage(),
            hit_rate_at_1_percent: trade_off.true_positive_rate(0.01),
            ..self
        }
    }

    /// The same for a run that was stopped before the rounds of its plan, which cost `planned` and
    /// are `events`.
    ///
    /// What the rounds so far cost is proved only if their number was fixed beforehand: whoever
    /// stops a run may have looked at what it released, and composition theorems do not cover a
    /// number of rounds that depends on that. The plan is proved in any case: rounds that are not
    /// run release nothing.
    #[must_use]
    pub fn stopped_before(self, planned: &Estimate, events: &[PrivacyEvent]) -> Self {
        let rounds = events.last().map(|last| rounds(events, last));
        let outsiders = views::outsiders(events, planned.delta);
        let stopped = Self {
            views: views::views(self.trust, planned.epsilon, outsiders),
            epsilon_outsiders: outsiders,
            epsilon_replace_one: self
                .epsilon_replace_one
                .and_then(|_| replace_one(events, planned.delta)),
            epsilon_planned: Some(planned.epsilon).filter(|epsilon| epsilon.is_finite()),
            rounds_planned: rounds,
            ..self
        };
        stopped.with(Condition::Stopped)
    }

    /// The same for a run on devices of which other runs released something before.
    ///
    /// Whoever configured this one may have looked at what they released, and composition theorems
    /// do not cover that: the figure for all of them is proved if the whole schedule was fixed
    /// beforehand.
    #[must_use]
    pub fn after_other_runs(self) -> Self {
        Self {
            epsilon_planned: None,
            ..self.with(Condition::AfterOtherRuns)
        }
    }

    /// The same under one more condition.
    #[must_use]
    pub fn with(mut self, condition: Condition) -> Self {
        self.conditions.add(condition);
        self
    }

    /// The same under one more condition, with its sentence among the notes.
    #[must_use]
    pub fn with_note(self, condition: Condition) -> Self {
        let sentence = condition.sentence();
        let mut statement = self.with(condition);
        let is_new = |sentence: &String| !statement.notes.contains(sentence);
        let sentence = sentence.filter(is_new);
        statement.notes.extend(sentence);
        statement
    }

    /// What ε depends on beside the numbers.
    #[must_use]
    pub const fn conditions(&self) -> &Conditions {
        &self.conditions
    }

    /// Whether the number of devices depends on their rows.
    #[must_use]
    pub fn has_secret_device_count(&self) -> bool {
        let is_it = |found: &Condition| matches!(found, Condition::DeviceCount { .. });
        self.conditions.iter().any(is_it)
    }

    /// Whether `epsilon` is proved, under the conditions that the statement names: not, for
    /// example, if private rows were read without noise. The only place that decides it.
    #[must_use]
    pub fn is_upper_bound(&self) -> bool {
        self.is_bound_of_plan() && !self.conditions.any(Effect::NeedsSchedule)
    }

    /// Of a run that was stopped before the end of its plan: whether `epsilon_planned` is proved.
    /// Of a run that others came before: whether the figure would be proved without them. Where it
    /// is true, `epsilon` is proved if the schedule, of all runs, was fixed beforehand. `None` for
    /// other runs.
    #[must_use]
    pub fn planned_is_upper_bound(&self) -> Option<bool> {
        let needs_schedule = self.conditions.any(Effect::NeedsSchedule);
        needs_schedule.then(|| self.is_bound_of_plan())
    }

    /// Whether `epsilon` is proved if the schedule of the run was fixed beforehand, and the cost of
    /// the whole plan in any case.
    #[must_use]
    pub fn is_bound_of_schedule(&self) -> bool {
        self.planned_is_upper_bound() == Some(true)
    }

    fn is_bound_of_plan(&self) -> bool {
        self.kind == EstimateKind::UpperBound && !self.conditions.any(Effect::NoBound)
    }

    /// What the figure is worth, in a few words.
    #[must_use]
    pub fn worth(&self) -> &'static str {
        match self.kind {
            EstimateKind::UpperBound if self.is_upper_bound() => "a proved upper bound",
            EstimateKind::UpperBound if self.is_bound_of_schedule() => {
                "an upper bound if the schedule was fixed beforehand"
            }
            EstimateKind::UpperBound => {
                "a figure that does not cover everything and NOT a guarantee"
            }
            EstimateKind::Approximation => "an approximation and NOT a guarantee",
            EstimateKind::AsPublished => "a figure as published and NOT a guarantee",
        }
    }

    /// Whether `epsilon` compares what a device sends with zeros, and not its presence with its
    /// absence: under add-remove, where the server sees who takes part.
    #[must_use]
    pub fn compares_with_zeros(&self) -> bool {
        self.adjacency == Adjacency::AddRemove && self.trust != TrustModel::Central
    }
}

/// What add-remove events cost under replace-one; `None` for others, and where nothing finite
/// holds.
#[must_use]
pub fn replace_one(events: &[PrivacyEvent], delta: Delta) -> Option<f64> {
    let is_add_remove = |event: &PrivacyEvent| event.adjacency() == Adjacency::AddRemove;
    if !events.iter().all(is_add_remove) {
        return None;
    }
    let events = PrivacyEvent::about_same_users(events);
    let exposures: Vec<Exposure> = events.iter().map(PrivacyEvent::exposure).collect();
    let found = replace_one_epsilon(&exposures, delta).ok()?;
    Some(found.epsilon).filter(|epsilon| epsilon.is_finite())
}

/// The rounds of all events that are about the same as the last one.
fn rounds(events: &[PrivacyEvent], last: &PrivacyEvent) -> u64 {
    of_kind(events, last).map(|event| event.count).sum()
}

/// The events that are about the same as the last one: updates, matrices, moments or answers.
fn of_kind<'a>(
    events: &'a [PrivacyEvent],
    last: &PrivacyEvent,
) -> impl Iterator<Item = &'a PrivacyEvent> {
    let kind = |event: &PrivacyEvent| {
        let is_once = (event.is_moments(), event.is_score());
        (event.is_matrix(), is_once, event.is_answer())
    };
    let kind_of_last = kind(last);
    events
        .iter()
        .filter(move |event| kind(event) == kind_of_last)
}

fn notes(estimate: &Estimate, events: &[PrivacyEvent], last: &PrivacyEvent) -> Vec<String> {
    let mut notes = estimate.notes.clone();
    let device_count = last.sampling.device_count();
    if last.unit == PrivacyUnit::Device && estimate.delta.is_dangerous(device_count) {
        notes.push(format!(
            "Delta is {:e}, not below 1/N = {:e}: a mechanism that publishes the data of one \
             random device would satisfy it. Choose 1/N^1.1 or less.",
            estimate.delta.get(),
            1.0 / f64::from(device_count)
        ));
    }
    notes.extend(views::term(last));
    let differs = |event: &PrivacyEvent| match event.is_answer() {
        true => event.mechanism.noise_multiplier() != last.mechanism.noise_multiplier(),
        false => event.mechanism != last.mechanism,
    };
    if of_kind(events, last).any(differs) {
        notes.push(
            "The rounds differ in their noise; the noise multiplier is that of the last one."
                .to_owned(),
        );
    }
    notes
}

/// JSON has no infinity: `null` stands for it.
mod infinite_as_null {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        value.is_finite().then_some(*value).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        Ok(Option::deserialize(deserializer)?.unwrap_or(f64::INFINITY))
    }
}

#[cfg(test)]
mod tests;
