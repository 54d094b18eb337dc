//! The conditions of a privacy statement, such as a known seed, values read from private rows,
//! earlier runs or a stopped run. Each one is a fact about the run that the numbers do not show,
//! with its effect on whether ε is an upper bound.
//!
//! A statement derives its flag from them ([`PrivacyStatement::is_upper_bound`]), and nothing else
//! can set it.
//!
//! [`PrivacyStatement::is_upper_bound`]: crate::statement::PrivacyStatement::is_upper_bound

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A fact about a run on which its ε depends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Condition {
    /// Noise follows from a seed that somebody may know.
    KnownSeed {
        /// The seed.
        seed: u64,
        /// Whose randomness it is.
        of: Randomness,
    },
    /// Runs of a sweep on the same devices have the same seed, and therefore the same noise.
    SharedSeed {
        /// The number of runs with each seed.
        runs: usize,
    },
    /// The user declared that a value is public.
    Confirmed {
        /// The key of the value.
        key: String,
    },
    /// The run was stopped before the rounds of its plan.
    Stopped,
    /// There were earlier runs on the same devices.
    AfterOtherRuns,
    /// The planned number of rounds is not recorded.
    NoPlan,
    /// A value was read from the devices' rows without noise.
    ReadFromRows {
        /// The key that determines the value.
        key: String,
        /// The value, as the beginning of a sentence.
        value: String,
    },
    /// A value of the configuration was read from the devices' rows by `smolfed init`, or by Python
    /// from a frame.
    UnconfirmedList {
        /// The key of the value.
        key: String,
        /// The key that confirms it.
        confirm: String,
    },
    /// The number of devices depends on their rows.
    DeviceCount {
        /// The key that determines the number.
        key: String,
    },
    /// The initial model is a file that no charge of the ledger covers.
    InitialModel,
    /// Devices were asked about the model of a run with a separate statement.
    ModelOfRun,
    /// The configuration was chosen on rows of the devices.
    ChosenOnRows {
        /// The figure behind the choice.
        figure: String,
    },
    /// The divisor shows the size of each cohort.
    RealisedCohort,
    /// Devices evaluated the model, and their figures are released without noise.
    EvaluatedOnDevices,
    /// The features of examples are scaled by moments that protect whole devices.
    MomentsOfDevices,
    /// Rounds were repeated, possibly with other releases under the same noise.
    Repeated,
    /// A run of the ledger released more than its charges.
    UnchargedRelease,
    /// A run of the ledger was selected from several trials.
    Selected,
    /// The statement is of a version that recorded no conditions.
    ProvenanceUnknown,
}

/// The randomness that follows from a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Randomness {
    /// All randomness of a simulation.
    Simulation,
    /// The coordinator's randomness.
    Coordinator,
    /// The noise of the devices.
    Devices,
    /// The masks of the devices, and the noise of the helpers.
    Masks,
}

/// The effect of a condition on the flag `is_upper_bound`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// ε is an upper bound under the condition.
    Stated,
    /// ε is an upper bound if the schedule of all rounds was fixed beforehand.
    NeedsSchedule,
    /// ε is not an upper bound.
    NoBound,
}

impl Condition {
    /// Returns the effect on the flag.
    #[must_use]
    pub const fn effect(&self) -> Effect {
        match self {
            Self::KnownSeed { .. }
            | Self::SharedSeed { .. }
            | Self::Confirmed { .. }
            | Self::ModelOfRun => Effect::Stated,
            Self::Stopped | Self::AfterOtherRuns | Self::NoPlan => Effect::NeedsSchedule,
            Self::ReadFromRows { .. }
            | Self::UnconfirmedList { .. }
            | Self::DeviceCount { .. }
            | Self::InitialModel
            | Self::ChosenOnRows { .. }
            | Self::RealisedCohort
            | Self::EvaluatedOnDevices
            | Self::MomentsOfDevices
            | Self::Repeated
            | Self::UnchargedRelease
            | Self::Selected
            | Self::ProvenanceUnknown => Effect::NoBound,
        }
    }

    /// Returns a short phrase: "if ..." follows a bound, and "not covered: ..." a figure.
    #[must_use]
    pub fn in_brief(&self) -> String {
        match self {
            Self::KnownSeed { seed, .. } => format!("the seed {seed} is secret"),
            Self::SharedSeed { .. } => "each run has its own seed".to_owned(),
            Self::Confirmed { key } => format!("`{key}` is public"),
            Self::Stopped => "the stop was planned".to_owned(),
            Self::AfterOtherRuns | Self::NoPlan => "the schedule was fixed beforehand".to_owned(),
            Self::ReadFromRows { key, .. } => format!("`{key}`, read from rows"),
            Self::UnconfirmedList { key, .. } => format!("`{key}`, read from rows by `init`"),
            Self::DeviceCount { key } => format!("the number of devices (`{key}`)"),
            Self::InitialModel => "the initial model (`model.init`)".to_owned(),
            Self::ModelOfRun => "the cost of the model itself is added".to_owned(),
            Self::ChosenOnRows { figure } => format!("the choice by {figure}"),
            Self::RealisedCohort => "the sizes of the cohorts".to_owned(),
            Self::EvaluatedOnDevices => "figures that devices sent".to_owned(),
            Self::MomentsOfDevices => "the scale of the features".to_owned(),
            Self::Repeated => "repeated rounds".to_owned(),
            Self::UnchargedRelease => "an uncharged release".to_owned(),
            Self::Selected => "the selection".to_owned(),
            Self::ProvenanceUnknown => "provenance unknown (an older version)".to_owned(),
        }
    }

    /// Returns the sentence of the statement, or `None` if the statement shows it with its figures.
    #[must_use]
    pub fn sentence(&self) -> Option<String> {
        Some(match self {
            Self::Stopped | Self::AfterOtherRuns => return None,
            Self::KnownSeed { seed, of } => of.sentence(*seed),
            Self::SharedSeed { runs } => format!(
                "{runs} configurations on the same devices share each seed, and so its noise: \
                 anyone who has the results of several can subtract it."
            ),
            Self::Confirmed { key } => format!(
                "The user declared that `{key}` is public and does not depend on the devices' \
                 rows."
            ),
            Self::NoPlan => "As far as is known, the number of rounds was not fixed beforehand: \
                 this figure is proved if it was, independently of the releases."
                .to_owned(),
            Self::ReadFromRows { key, value } => format!(
                "{value} from the devices' rows, without noise (`{key}`): this epsilon does not \
                 cover it."
            ),
            Self::UnconfirmedList { key, confirm } => format!(
                "`{key}` was read from the devices' rows, without noise: this epsilon does not \
                 cover it. If it was public before, set `{confirm} = true`."
            ),
            Self::DeviceCount { key } => format!(
                "`{key}` leaves out devices by their rows, so the number of devices depends on the \
                 data: this epsilon does not cover it."
            ),
            Self::InitialModel => "The model began as the file of `model.init`, and no charge of \
                 the ledger covers its training rows. If it was trained only on public rows, set \
                 `model.init_is_public = true`."
                .to_owned(),
            Self::ModelOfRun => "This epsilon covers only the answers. Their model has the \
                 statement of its own run, and the devices have spent both together."
                .to_owned(),
            Self::ChosenOnRows { figure } => format!(
                "The configuration was chosen by {figure} on rows of the devices, without noise: \
                 this epsilon does not cover the choice."
            ),
            Self::RealisedCohort => "The sum is divided by the number of devices drawn, as the \
                 paper prints it. That reveals the size of each cohort, which this epsilon does \
                 not cover."
                .to_owned(),
            Self::EvaluatedOnDevices => "Devices evaluated the model on their own rows, and sent \
                 figures without noise: this epsilon does not cover them."
                .to_owned(),
            Self::MomentsOfDevices => "The features are scaled by moments that protect whole \
                 devices, not examples: this epsilon does not cover them."
                .to_owned(),
            Self::Repeated => "Some rounds were repeated, and the ledger does not show that they \
                 released the same as before: each counts twice, which covers both releases only \
                 if their noise is independent."
                .to_owned(),
            Self::UnchargedRelease => "A run of this ledger released something that no charge \
                 covers: its statement names it."
                .to_owned(),
            Self::Selected => {
                "A run of this ledger is the best of several private trials, and its \
                 charges cover only one trial: its statement has the larger cost of the selection."
                    .to_owned()
            }
            Self::ProvenanceUnknown => "This statement is from an older version, which did not \
                 record what else the run read: its provenance is unknown, and nothing about it is \
                 proved."
                .to_owned(),
        })
    }
}

impl Randomness {
    fn sentence(self, seed: u64) -> String {
        match self {
            Self::Simulation => format!(
                "All randomness of a simulation came from the known seed {seed}: anyone who knows \
                 the seed can subtract the noise. The statement holds for a run with secret \
                 randomness."
            ),
            Self::Coordinator => format!(
                "The coordinator's randomness came from the known seed {seed}: anyone who knows \
                 the seed knows the cohorts and can subtract the noise drawn from it."
            ),
            Self::Devices => format!(
                "The noise of the real devices is derived from the known seed {seed}: anyone who \
                 knows the seed can subtract it."
            ),
            Self::Masks => format!(
                "The masks of the real devices and the noise of the helpers are derived from the \
                 known seed {seed}: anyone who knows the seed reads every masked update."
            ),
        }
    }
}

/// The conditions of a statement, in the order in which they were found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions(Vec<Condition>);

impl Conditions {
    /// Returns the conditions of a statement that recorded none.
    pub(crate) fn unknown() -> Self {
        Self(vec![Condition::ProvenanceUnknown])
    }

    /// Adds a condition unless it is already present.
    pub fn add(&mut self, condition: Condition) {
        if !self.0.contains(&condition) {
            self.0.push(condition);
        }
    }

    /// Iterates over all conditions.
    pub fn iter(&self) -> std::slice::Iter<'_, Condition> {
        self.0.iter()
    }

    /// Returns whether any condition has this effect.
    #[must_use]
    pub fn any(&self, effect: Effect) -> bool {
        self.0.iter().any(|condition| condition.effect() == effect)
    }

    /// Joins the short phrases of all conditions with this effect by `separator`. `None` if there
    /// are none.
    #[must_use]
    pub fn in_brief(&self, effect: Effect, separator: &str) -> Option<String> {
        let of_effect = self.0.iter().filter(|found| found.effect() == effect);
        let mut brief: Vec<String> = Vec::new();
        for phrase in of_effect.map(Condition::in_brief) {
            if !brief.contains(&phrase) {
                brief.push(phrase);
            }
        }
        (!brief.is_empty()).then(|| brief.join(separator))
    }
}

impl Extend<Condition> for Conditions {
    fn extend<I: IntoIterator<Item = Condition>>(&mut self, conditions: I) {
        for condition in conditions {
            self.add(condition);
        }
    }
}

impl FromIterator<Condition> for Conditions {
    fn from_iter<I: IntoIterator<Item = Condition>>(conditions: I) -> Self {
        let mut found = Self::default();
        found.extend(conditions);
        found
    }
}

/// The JSON form of a condition: with its effect and a phrase, for readers that do not know its
/// kind.
#[derive(Serialize)]
struct Written<'a> {
    #[serde(flatten)]
    condition: &'a Condition,
    effect: Effect,
    text: String,
}

impl Serialize for Conditions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|condition| Written {
            condition,
            effect: condition.effect(),
            text: condition.in_brief(),
        }))
    }
}

impl<'de> Deserialize<'de> for Conditions {
    /// The effect follows from the kind: a file cannot set another one.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_effect_is_written_and_not_read() {
        let seed = Condition::KnownSeed {
            seed: 7,
            of: Randomness::Simulation,
        };
        let found: Conditions = [seed.clone(), Condition::InitialModel, seed]
            .into_iter()
            .collect();
        let text = serde_json::to_string(&found).unwrap();
        assert_eq!(
            text,
            r#"[{"kind":"known-seed","seed":7,"of":"simulation","effect":"stated","#.to_owned()
                + r#""text":"the seed 7 is secret"},{"kind":"initial-model","#
                + r#""effect":"no-bound","text":"the initial model (`model.init`)"}]"#
        );
        let forged = text.replace("no-bound", "stated");
        let read: Conditions = serde_json::from_str(&forged).unwrap();
        assert_eq!(read, found);
        assert!(read.any(Effect::NoBound));
    }

    #[test]
    fn an_unknown_kind_is_refused() {
        let text = r#"[{"kind":"another","effect":"stated"}]"#;
        assert!(serde_json::from_str::<Conditions>(text).is_err());
    }

    #[test]
    fn a_known_seed_is_said_with_what_follows_from_it() {
        for of in [
            Randomness::Simulation,
            Randomness::Coordinator,
            Randomness::Devices,
            Randomness::Masks,
        ] {
            let sentence = Condition::KnownSeed { seed: 71, of }.sentence().unwrap();
            assert!(sentence.contains("known seed 71:"), "{sentence}");
        }
        assert_eq!(Condition::Stopped.sentence(), None);
    }
}
