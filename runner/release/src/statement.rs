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

/// All properties that must accompany a printed ε. The field names are those of `--json`.
///
/// `is_upper_bound` and `planned_is_upper_bound` of the JSON are derived when it is written, from
/// the kind of the estimate and from the conditions, and are ignored when it is read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct PrivacyStatement {
    /// The subject of the statement.
    #[serde(default, skip_serializing_if = "Subject::is_updates")]
    pub subject: Subject,
    /// ε. In JSON, `null` means infinite: no guarantee at all.
    #[serde(with = "infinite_as_null")]
    pub epsilon: f64,
    /// δ.
    pub delta: Delta,
    /// The accountant.
    pub accountant: Accountant,
    /// A bound, an approximation, or a figure from a paper.
    pub kind: EstimateKind,
    /// [`Self::is_upper_bound`], as written to JSON.
    #[serde(rename = "is_upper_bound", skip_deserializing)]
    written_flag: bool,
    /// A proved lower bound on the true ε, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epsilon_low: Option<f64>,
    /// ε if the data of one device are replaced by other data. Present if the server sees the
    /// senders, so that `epsilon` compares a device's updates with zeros. For a stopped run, of the
    /// whole plan. Absent if infinite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epsilon_replace_one: Option<f64>,
    /// ε against anyone who sees only the released models, if the server and its helpers, against
    /// whom `epsilon` holds, see more. For a stopped run, of the whole plan. Absent under other
    /// trust models, and if infinite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epsilon_outsiders: Option<f64>,
    /// ε of all planned rounds of a stopped run. Absent if infinite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epsilon_planned: Option<f64>,
    /// `rounds` of the plan of a stopped run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds_planned: Option<u64>,
    /// [`Self::planned_is_upper_bound`], as written to JSON.
    #[serde(
        rename = "planned_is_upper_bound",
        skip_deserializing,
        skip_serializing_if = "Option::is_none"
    )]
    written_planned_flag: Option<bool>,
    /// z of the last event.
    pub noise_multiplier: f64,
    /// s: the distance by which one device moves all releases of a run with correlated noise, in
    /// clip norms. With block-cyclic sampling, the distance for one of its rounds. The noise
    /// multiplier is relative to it. Absent for other mechanisms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sensitivity: Option<f64>,
    /// b: the minimum number of rounds between two rounds of a device, for correlated noise. For
    /// block-cyclic sampling, also the number of parts that take turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub separation: Option<u32>,
    /// ν = z · L, the noise std on the sum, or z · s · L on each release of correlated noise.
    /// Absent without a clip norm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise_std: Option<f64>,
    /// L. Absent if the statement is about noise multipliers only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clip_norm: Option<ClipNorm>,
    /// The two parts of the noise of an adaptive clip norm, which are together equivalent to the
    /// noise multiplier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise_split: Option<NoiseSplit>,
    /// The private selection that chose the run, if `epsilon` is its cost. Absent for a single run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selection: Option<SelectionStatement>,
    /// The difference between two neighbouring federations.
    pub adjacency: Adjacency,
    /// The sampling scheme of the last event.
    pub sampling: SamplingScheme,
    /// τ, the probability that a device is drawn in a round, or in a round of its part. Absent for
    /// `unsampled`, which claims none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling_rate: Option<f64>,
    /// N.
    pub devices: u32,
    /// The largest number of participations, for `unsampled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_participations: Option<u32>,
    /// s, if rounds are windows of time: an update counts in the window in which it arrives, at
    /// most s windows after that of its model. Absent for other rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub staleness: Option<u32>,
    /// Number of rounds of all events.
    pub rounds: u64,
    /// Releases of a device in a round of the last event, if not one. 0 if nothing leaves a device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub releases_per_round: Option<u32>,
    /// The unit of protection.
    pub unit: PrivacyUnit,
    /// The trust model.
    pub trust: TrustModel,
    /// k: all devices of a user with at most k devices are protected together. Absent for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub devices_per_user: Option<u32>,
    /// The largest difference of true-positive and false-positive rate of any attack, if `epsilon`
    /// is proved.
    pub advantage: f64,
    /// The largest true-positive rate of any attack at a false-positive rate of 1 %, if `epsilon`
    /// is proved.
    pub hit_rate_at_1_percent: f64,
    /// The views of the parties and the ε against each, if they see different things.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub views: Vec<View>,
    /// The conditions of ε besides the numbers. A statement without the key is of an older version.
    #[serde(default = "Conditions::unknown")]
    conditions: Conditions,
    /// Additional facts, one sentence each.
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
            // An older file has no such condition.
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
    /// σ_b: noise std on half of the difference between the numbers of updates inside and outside
    /// the ball.
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
    /// The expected number of trials. The actual number is not released.
    pub mean_trials: f64,
    /// Noise std on the sum of the devices' scores, each between -1 and 1.
    pub score_noise_multiplier: f64,
}

impl SelectionStatement {
    fn new(trials: Trials, score_noise_multiplier: f64) -> Self {
        Self {
            theorem: trials.theorem(),
            mean_trials: trials.mean(),
            score_noise_multiplier,
        }
    }
}

/// The subject of a statement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// The updates of the model.
    #[default]
    Updates,
    /// Correlation matrices that devices send in addition to the updates of an encoder. The clip
    /// norm is the bound μ on one example's matrix, and the noise std applies to the sum over a
    /// device's examples.
    CorrelationMatrices,
    /// Answers to questions, without a model. The clip norm is the bound on one device's answer, 1.
    Answers,
}

impl Subject {
    /// Returns a short phrase for a table.
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
    /// Creates the statement for `estimate` of `events`. The last event names the mechanism. `None`
    /// for an empty list: without an event there is nothing to state.
    ///
    /// Warnings that follow from the numbers (a δ of 1/N or more, noise from rounds of several
    /// kinds) are added to the estimate's notes.
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

    /// Returns the statement for the best of several runs, whose selection costs `estimate`, each
    /// with `events`.
    ///
    /// The events belong to one trial: their privacy loss does not bound attacks on the selection,
    /// for which only ε and δ are known.
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

    /// Returns the statement for a run that was stopped before its last planned round. The plan
    /// costs `planned` and consists of `events`.
    ///
    /// The cost of the rounds so far is proved only if their number was fixed beforehand: the
    /// decision to stop may depend on the releases, and composition theorems do not cover such a
    /// number of rounds. The cost of the plan is proved in any case: the remaining rounds release
    /// nothing.
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

    /// Returns the statement for a run on devices for which earlier runs released something.
    ///
    /// The configuration of this run may depend on those releases, and composition theorems do not
    /// cover that. The figure for all runs is proved if the whole schedule was fixed beforehand.
    #[must_use]
    pub fn after_other_runs(self) -> Self {
        Self {
            epsilon_planned: None,
            ..self.with(Condition::AfterOtherRuns)
        }
    }

    /// Adds a condition.
    #[must_use]
    pub fn with(mut self, condition: Condition) -> Self {
        self.conditions.add(condition);
        self
    }

    /// Adds a condition, with its sentence among the notes.
    #[must_use]
    pub fn with_note(self, condition: Condition) -> Self {
        let sentence = condition.sentence();
        let mut statement = self.with(condition);
        let is_new = |sentence: &String| !statement.notes.contains(sentence);
        let sentence = sentence.filter(is_new);
        statement.notes.extend(sentence);
        statement
    }

    /// Returns the conditions of ε besides the numbers.
    #[must_use]
    pub const fn conditions(&self) -> &Conditions {
        &self.conditions
    }

    /// Returns whether the number of devices depends on their rows.
    #[must_use]
    pub fn has_secret_device_count(&self) -> bool {
        let is_it = |found: &Condition| matches!(found, Condition::DeviceCount { .. });
        self.conditions.iter().any(is_it)
    }

    /// Returns whether `epsilon` is proved, under the conditions that the statement names. It is
    /// not, for example, if private rows were read without noise. Only this function decides it.
    #[must_use]
    pub fn is_upper_bound(&self) -> bool {
        self.is_bound_of_plan() && !self.conditions.any(Effect::NeedsSchedule)
    }

    /// Returns whether `epsilon_planned` is proved, for a run stopped before the end of its plan.
    /// For a run after other runs, returns whether the figure would be proved without them. If
    /// true, `epsilon` is proved if the schedule of all runs was fixed beforehand. `None` for other
    /// runs.
    #[must_use]
    pub fn planned_is_upper_bound(&self) -> Option<bool> {
        let needs_schedule = self.conditions.any(Effect::NeedsSchedule);
        needs_schedule.then(|| self.is_bound_of_plan())
    }

    /// Returns whether `epsilon` is proved if the schedule of the run was fixed beforehand, and the
    /// cost of the whole plan in any case.
    #[must_use]
    pub fn is_bound_of_schedule(&self) -> bool {
        self.planned_is_upper_bound() == Some(true)
    }

    fn is_bound_of_plan(&self) -> bool {
        self.kind == EstimateKind::UpperBound && !self.conditions.any(Effect::NoBound)
    }

    /// Returns the status of the figure in a short phrase.
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

    /// Returns whether `epsilon` compares a device's messages with zeros instead of comparing its
    /// presence with its absence: under add-remove, if the server sees who takes part.
    #[must_use]
    pub fn compares_with_zeros(&self) -> bool {
        self.adjacency == Adjacency::AddRemove && self.trust != TrustModel::Central
    }
}

/// Returns the cost of add-remove events under replace-one. `None` for other events, and if no
/// finite bound exists.
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

/// Returns the number of rounds of all events with the subject of the last one.
fn rounds(events: &[PrivacyEvent], last: &PrivacyEvent) -> u64 {
    of_kind(events, last).map(|event| event.count).sum()
}

/// Returns the events with the subject of the last one: updates, matrices, moments or answers.
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
            "The rounds differ in their noise; the noise multiplier is from the last one."
                .to_owned(),
        );
    }
    notes
}

/// JSON has no infinity: it is written as `null`.
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
