//! The settings that the parts of an experiment declare, with their names in error messages.

use std::collections::BTreeSet;

/// The table of settings: the key in error messages, and the words in a sentence.
macro_rules! settings {
    ($($(#[$doc:meta])* $variant:ident = $key:literal, $label:literal;)*) => {
        /// A property of an experiment that a rule names.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Setting {
            $($(#[$doc])* $variant,)*
        }

        impl Setting {
            /// Returns the key or flag of the setting.
            #[must_use]
            pub const fn key(self) -> &'static str {
                match self {
                    $(Self::$variant => $key,)*
                }
            }

            /// Returns the words for it in a sentence. [`Self::of_method`] names the method as
            /// well.
            #[must_use]
            pub const fn label(self) -> &'static str {
                match self {
                    $(Self::$variant => $label,)*
                }
            }
        }
    };
}

settings! {
    /// Some devices, or all, are real.
    RealDevices = "smolfed serve", "real devices";
    /// A round ends when a share of its cohort has answered.
    Quorum = "--quorum", "`--quorum`";
    /// The cohorts come from a record.
    Recorded = "--participation", "a recorded participation";

    /// Gradients of local steps are released.
    EachStep = "personalise.noise", "`personalise.noise` = \"each-step\"";
    /// Devices send nothing.
    NothingSent = "method", "devices that send nothing";
    /// One participant has all samples.
    OneParticipant = "method", "all samples in one place";
    /// Devices send correlation matrices alongside their updates.
    Matrices = "method", "correlation matrices";
    /// Training uses no labels.
    WithoutLabels = "method", "training without labels";
    /// There is no separate shared model.
    NoSharedModel = "method", "no model that all devices share";
    /// Each device has a personal model.
    PersonalModels = "method", "personal models";
    /// Real devices do not compute the updates of the method.
    OnlySimulated = "method", "a method without support on real devices";
    /// Devices train in `f32`. The configuration must not ask for another arithmetic.
    OnlyF32 = "method", "training in \"f32\" only";
    /// Averaging that also exists with smoothing.
    Unsmoothed = "method", "method \"dp-fed\"";
    /// The method defines the proximal term.
    OwnProximal = "personalise.lambda", "method \"fedprox\"";
    /// The sum is divided by all devices.
    MeanOverAll = "personalise.update", "`personalise.update` = \"mean-over-all\"";
    /// The noise of DPFedMTL as printed.
    PrintedScale = "personalise.noise_scale", "`personalise.noise_scale` = \"as-printed\"";
    /// Devices continue training after the last round.
    FineTuning = "personalise.fine_tune", "`personalise.fine_tune`";
    /// Fine-tuning by an objective that compares class probabilities.
    ClassTuning = "personalise.fine_tune",
        "`personalise.fine_tune` = \"symmetrised-kl\" or \"ewc\"";

    /// A hidden layer.
    HiddenLayer = "model.hidden", "`model.hidden`";
    /// Layers.
    Layers = "model.layers", "`model.layers`";
    /// Any model but a softmax without a hidden layer.
    OtherThanSoftmax = "model.kind", "a model other than a softmax of one layer";
    /// Predicted values instead of classes.
    Values = "model.kind", "a model of values";
    /// Initial parameters from a file.
    InitialModel = "model.init", "`model.init`";

    /// Local training in the span of a device's samples.
    Fast = "simulation.arithmetic", "`simulation.arithmetic` = \"fast\"";
    /// Local training in integers.
    Integer = "simulation.arithmetic", "`simulation.arithmetic` = \"integer\"";
    /// Local training in floating point.
    FloatingPoint = "simulation.arithmetic", "`simulation.arithmetic` = \"f32\" or \"fast\"";
    /// Storage of features.
    FeatureFormat = "simulation.integer", "`[simulation.integer]`";
    /// A proximal term.
    Proximal = "train.proximal", "`train.proximal`";
    /// Smoothing of gradients on devices.
    GradientSmoothing = "train.gradient_smoothing", "`train.gradient_smoothing`";

    /// Moments of features that devices release.
    PrivateScale = "data.scale", "`data.scale` = \"private\"";

    /// Cohorts are drawn from all devices.
    DrawnFromAll = "cohort.sampling", "`cohort.sampling` = \"uniform\" or \"poisson\"";
    /// Parts of the devices take turns, or devices come by a timetable.
    ByTurns = "cohort.sampling",
        "`cohort.sampling` = \"rotation\", \"arrival\" or \"block-cyclic\"";
    /// Cohorts are drawn from parts that take turns.
    BlockCyclic = "cohort.sampling", "`cohort.sampling` = \"block-cyclic\"";
    /// Devices come by the timetable of a simulation.
    Arrival = "cohort.sampling", "`cohort.sampling` = \"arrival\"";
    /// Updates count in their arrival window.
    Buffered = "cohort.sampling", "`cohort.sampling` = \"buffered\"";
    /// All devices of a round train from the model of that round.
    Synchronous = "cohort.sampling", "a `cohort.sampling` other than \"buffered\"";
    /// The length of a window.
    Window = "cohort.window", "`cohort.window`";
    /// s.
    Staleness = "cohort.staleness", "`cohort.staleness`";
    /// Availability of simulated devices.
    Availability = "cohort.availability", "`[cohort.availability]`";
    /// All devices take part in every round.
    AllDevices = "cohort.sampling", "`cohort.sampling` = \"full\"";
    /// All devices of a part, or all, take part.
    WholeParts = "cohort.sampling", "`cohort.sampling` = \"rotation\" or \"full\"";
    /// S.
    CohortSize = "cohort.cohort_size", "`cohort.cohort_size`";
    /// τ.
    SamplingRate = "cohort.sampling_rate", "`cohort.sampling_rate`";
    /// The sum is divided by the number drawn.
    Realised = "cohort.denominator", "`cohort.denominator` = \"realised\"";
    /// The sum is divided by a given number.
    GivenDenominator = "cohort.denominator", "a number as `cohort.denominator`";
    /// Updates are weighted by samples.
    BySamples = "cohort.weighting", "`cohort.weighting` by \"samples\"";
    /// All updates have the same weight.
    UniformWeights = "cohort.weighting", "`cohort.weighting` = \"uniform\"";
    /// The largest weight.
    WeightCap = "cohort.weight_cap", "`cohort.weight_cap`";

    /// The sum is smoothed.
    Smoothing = "server.smoothing_factor", "`server.smoothing_factor`";
    /// A denoiser.
    Denoiser = "server.denoiser", "`server.denoiser`";
    /// A denoiser that chooses by the noise of earlier releases.
    AutoDenoiser = "server.denoiser", "`server.denoiser` = \"auto\" or \"auto-step\"";
    /// Lengths of a sample's axes.
    Axes = "server.axes", "`server.axes`";

    /// Noise of any amount.
    Noise = "privacy", "noise";
    /// A target ε.
    Target = "privacy.epsilon", "`privacy.epsilon`";
    /// z.
    Multiplier = "privacy.noise_multiplier", "`privacy.noise_multiplier`";
    /// The noise's standard deviation.
    NoiseStd = "privacy.noise_std", "`privacy.noise_std`";
    /// A limit of ε.
    MaxEpsilon = "privacy.max_epsilon", "`privacy.max_epsilon`";
    /// A clip norm that follows the updates.
    AdaptiveClipNorm = "privacy.clip_norm", "`privacy.clip_norm` = \"adaptive\"";
    /// A fixed clip norm, or none.
    FixedClipNorm = "privacy.clip_norm", "a number as `privacy.clip_norm`, or none";
    /// Settings of an adaptive clip norm.
    AdaptiveKeys = "privacy.adaptive", "`[privacy.adaptive]`";
    /// A trusted server adds the noise.
    CentralTrust = "privacy.trust", "`privacy.trust` = \"central\"";
    /// Devices add their own noise.
    LocalTrust = "privacy.trust", "`privacy.trust` = \"local\"";
    /// Helpers add noise under masks.
    DistributedTrust = "privacy.trust", "`privacy.trust` = \"distributed\"";
    /// New noise in every round.
    Independent = "privacy.mechanism", "independent noise";
    /// Noise that cancels over rounds.
    Correlated = "privacy.mechanism", "correlated noise";
    /// b.
    Separation = "privacy.separation", "`privacy.separation`";
    /// k.
    Participations = "privacy.participations", "`privacy.participations`";
    /// Family of correlated noise.
    Family = "privacy.family", "`privacy.family`";
    /// Noise from the nodes of a tree.
    Tree = "privacy.family", "`privacy.family` = \"tree\"";
    /// More bands than parts of the devices that take turns: a calculation finds it
    /// ([`UNBANDED`](super::rules::UNBANDED)).
    Unbanded = "privacy.family", "`privacy.family` = \"tree\" or \"square-root\"";
    /// A ledger that runs share.
    Ledger = "privacy.ledger", "`privacy.ledger`";
    /// An accountant other than Rényi's.
    OtherAccountant = "privacy.accountant", "`privacy.accountant` other than \"rdp\"";
    /// The best of several trials, chosen under noise.
    Selection = "privacy.selection", "`[privacy.selection]`";
    /// The shape of the distribution of trials.
    SelectionShape = "privacy.selection.shape", "`privacy.selection.shape`";
    /// A Poisson number of trials.
    PoissonTrials = "privacy.selection.trials", "`privacy.selection.trials` = \"poisson\"";
    /// Questions to devices between rounds.
    Questions = "questions", "`[[questions]]`";
    /// Questions about a model.
    QuestionsOfModel = "questions.kind", "a question about the model";
    /// A cohort size of a question.
    QuestionCohort = "questions.cohort_size", "`questions.cohort_size`";
    /// z of a question.
    QuestionNoise = "questions.noise_multiplier", "`questions.noise_multiplier`";
    /// Answers about held-out samples.
    HeldOutAnswers = "questions.samples", "`questions.samples` other than \"local\"";
    /// The questions' share of a target.
    QuestionShare = "privacy.questions", "`privacy.questions`";
    /// A target ε of correlation matrices.
    MatrixTarget = "contrast.privacy.epsilon", "`contrast.privacy.epsilon`";
    /// z of correlation matrices.
    MatrixMultiplier = "contrast.privacy.noise_multiplier", "`contrast.privacy.noise_multiplier`";
}

impl Setting {
    /// Returns the words for the setting in an experiment with this method.
    #[must_use]
    pub fn of_method(self, method: &str) -> String {
        match self.key() {
            "method" => format!("method \"{method}\""),
            _ => self.label().to_owned(),
        }
    }
}

/// The settings of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings(BTreeSet<Setting>);

impl Settings {
    /// Keeps the settings that are present.
    pub fn of(settings: impl IntoIterator<Item = (Setting, bool)>) -> Self {
        let there = settings.into_iter().filter(|(_, is_there)| *is_there);
        Self(there.map(|(setting, _)| setting).collect())
    }

    /// Adds other settings.
    #[must_use]
    pub fn and(mut self, others: impl Into<Self>) -> Self {
        self.0.extend(others.into().0);
        self
    }

    /// Returns whether a setting is present.
    #[must_use]
    pub fn has(&self, setting: Setting) -> bool {
        self.0.contains(&setting)
    }
}

impl<const N: usize> From<[(Setting, bool); N]> for Settings {
    fn from(settings: [(Setting, bool); N]) -> Self {
        Self::of(settings)
    }
}

impl From<Setting> for Settings {
    fn from(setting: Setting) -> Self {
        Self([setting].into())
    }
}
