//! The settings that exclude each other, with the reason and the advice of each error. If an
//! experiment breaks several rules, the error names the first one in the table.

use super::settings::Setting::{self, *};

/// Settings that exclude each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The setting that an error names first.
    pub first: Setting,
    /// The other setting.
    pub second: Setting,
    /// The rule holds with this setting only.
    pub third: Option<Setting>,
    /// Reason and advice.
    pub advice: &'static str,
}

const fn rule(first: Setting, second: Setting, advice: &'static str) -> Rule {
    let third = None;
    Rule {
        first,
        second,
        third,
        advice,
    }
}

impl Rule {
    const fn with(self, third: Setting) -> Self {
        Self {
            third: Some(third),
            ..self
        }
    }
}

const ONE_NOISE: &str = "set the noise with one of them only";
const TURNS: &str = "devices that take turns, or connect when they are available, need \
                     \"correlated\", whose `privacy.family` \"identity\" has independent noise";
const WHOLE_PARTS: &str = "every device takes part in every b-th round, b = `privacy.separation`";
const ONLY_CORRELATED: &str = "it is for `privacy.mechanism` = \"correlated\"";
const ONLY_BUFFERED: &str = "it is for `cohort.sampling` = \"buffered\"";
const CONSTANT_DENOMINATOR: &str =
    "the sum of a window is always divided by `cohort.cohort_size`: leave it out";
const NOISE_OF_STEPS: &str =
    "noise in each local step is the device's own: set `privacy.trust` to \"local\"";
const PRINTED_SCALE: &str =
    "the paper's scale is for device noise: set `privacy.trust` to \"local\"";
const ALL_DEVICES: &str = "\"mean-over-all\" divides by all devices, not by the drawn ones";
const ONE_LAYER: &str = "\"integer\" trains models of one layer: use \"f32\"";
const ONE_LAYER_FAST: &str = "\"fast\" trains models of one layer: use \"f32\"";
const ONLY_F32: &str = "the devices of this method train in \"f32\" only";
const AXES: &str = "axes are for models whose weights are as long as a sample; for networks, use \
                    `server.smooth_along = \"image\"`";
const SEES_TRIALS: &str = "devices see every trial that they take part in: select in a simulation";
const TRUSTED: &str = "an untrusted server sees every trial, and their number: use \"central\"";
const OTHER_UNIT: &str = "correlation matrices protect another unit, which the selection does not \
                          cover: choose a method that sends only updates";
const EARLY: &str = "with correlated noise a device that answers early would displace another one \
                     in every round it takes part in, which its sensitivity does not count: leave \
                     `--quorum` out, or use independent noise";
const NO_SCORE: &str = "the score needs a shared model: choose a method that has one";
const NO_COHORTS: &str = "one device holds all samples, so there are no cohorts";
const EVERY_DEVICE: &str = "with \"full\" every device takes part in every round";

// Rules with names, for other modules.

/// A layer that the protocol cannot describe.
pub const UNKNOWN_LAYER: Rule = rule(
    RealDevices,
    HiddenLayer,
    "the protocol does not support it: write it as `model.layers`, { type = \"dense\", outputs = \
     .. } followed by { type = \"relu\" }",
);
/// Noise of too many bands, where the participations of a device are hidden individually.
pub const UNBANDED: Rule = rule(
    Unbanded,
    Correlated,
    "with \"block-cyclic\" sampling each participation of a device is hidden separately, which \
     needs noise of at most `privacy.separation` bands: set it to \"identity\", \
     \"square-root-banded\", \"banded-optimal-mean\" or \"banded-optimal-max\"",
)
.with(BlockCyclic);
/// A tree under masks.
pub const MASKED_TREE: Rule = rule(
    Tree,
    DistributedTrust,
    "helpers combine the sums of the last rounds, which the nodes of a tree are not: choose \
     another family",
);
/// A tree whose server may restart.
pub const RESTARTED_TREE: Rule = rule(
    RealDevices,
    Tree,
    "a restarted server cannot continue the open nodes of a tree: choose another `privacy.family`",
);
/// A cohort size and a rate.
pub const TWO_SIZES: Rule = rule(CohortSize, SamplingRate, "give one of them");
/// A cohort size although all devices take part.
pub const SIZE_OF_ALL: Rule = rule(AllDevices, CohortSize, EVERY_DEVICE);
/// A sampling rate although all devices take part.
pub const RATE_OF_ALL: Rule = rule(AllDevices, SamplingRate, EVERY_DEVICE);

/// All rules.
pub const RULES: &[Rule] = &[
    // Who takes part, and with how much noise.
    rule(
        DrawnFromAll,
        Correlated,
        "correlated noise is for devices that are not drawn at random from all: set \
         `cohort.sampling` to \"block-cyclic\", \"rotation\", \"arrival\", \"buffered\" or \
         \"full\"",
    ),
    rule(
        LocalTrust,
        Correlated,
        "the sums of several rounds are combined before noise is added, by a trusted server or \
         under masks: set `privacy.trust` to \"central\" or \"distributed\"",
    ),
    rule(
        AdaptiveClipNorm,
        Correlated,
        "sums of rounds with different clip norms are on different grids and cannot be combined: \
         give a number",
    ),
    UNBANDED,
    rule(Separation, Independent, ONLY_CORRELATED).with(Synchronous),
    rule(Participations, Independent, ONLY_CORRELATED).with(Synchronous),
    rule(Family, Independent, ONLY_CORRELATED),
    rule(ByTurns, Independent, TURNS),
    TWO_SIZES,
    rule(WholeParts, CohortSize, WHOLE_PARTS).with(Correlated),
    rule(WholeParts, SamplingRate, WHOLE_PARTS).with(Correlated),
    SIZE_OF_ALL,
    RATE_OF_ALL,
    rule(
        FixedClipNorm,
        AdaptiveKeys,
        "set `privacy.clip_norm` to \"adaptive\", or leave the table out",
    ),
    rule(Target, Multiplier, ONE_NOISE),
    rule(Target, NoiseStd, ONE_NOISE),
    rule(Multiplier, NoiseStd, ONE_NOISE),
    rule(MatrixTarget, MatrixMultiplier, ONE_NOISE).with(Matrices),
    rule(Target, MaxEpsilon, "a target is also the limit"),
    rule(
        NoiseStd,
        AdaptiveClipNorm,
        "the noise follows an adaptive clip norm: give `privacy.noise_multiplier` or \
         `privacy.epsilon`",
    ),
    rule(
        SelectionShape,
        PoissonTrials,
        "a Poisson distribution has no shape: leave it out",
    ),
    // Windows of time.
    rule(Window, Synchronous, ONLY_BUFFERED),
    rule(Staleness, Synchronous, ONLY_BUFFERED),
    rule(Availability, Synchronous, ONLY_BUFFERED),
    rule(
        Buffered,
        SamplingRate,
        "the sum of a window is divided by a constant: give `cohort.cohort_size`",
    ),
    rule(Buffered, Realised, CONSTANT_DENOMINATOR),
    rule(Buffered, GivenDenominator, CONSTANT_DENOMINATOR),
    rule(
        Buffered,
        AdaptiveClipNorm,
        "updates of one window may be trained from several models, whose clip norms would differ: \
         give a number",
    ),
    rule(
        Buffered,
        DistributedTrust,
        "masks cancel among devices that train from one model, and a window has updates of \
         several: set `privacy.trust` to \"central\" or \"local\"",
    ),
    rule(
        Buffered,
        Matrices,
        "devices that wake at different times cannot send correlation matrices to each other: use \
         method \"fedavg-sc\"",
    ),
    rule(
        Buffered,
        PersonalModels,
        "a device keeps its personal model with the round in which it trained, not with the window \
         in which its update counts: choose a method with only a shared model",
    ),
    rule(Buffered, OneParticipant, NO_COHORTS),
    rule(
        Buffered,
        NothingSent,
        "its devices send no updates that could arrive later",
    ),
    rule(
        Buffered,
        EachStep,
        "real devices release one update per model: set `personalise.noise` to \"each-round\"",
    ),
    rule(
        Buffered,
        Selection,
        "trials are compared after rounds of the same devices: choose another `cohort.sampling`",
    ),
    rule(
        Buffered,
        Quorum,
        "a window ends at its time, however many updates have arrived: leave `--quorum` out",
    ),
    // Keys of one method.
    rule(
        Unsmoothed,
        Smoothing,
        "use method \"dp-fed-ls\" to smooth, or a factor of 0",
    ),
    rule(
        Proximal,
        OwnProximal,
        "with method \"fedprox\" the proximal term is `personalise.lambda`",
    ),
    rule(MeanOverAll, Realised, ALL_DEVICES),
    rule(MeanOverAll, GivenDenominator, ALL_DEVICES),
    rule(EachStep, CentralTrust, NOISE_OF_STEPS),
    rule(EachStep, DistributedTrust, NOISE_OF_STEPS),
    rule(CentralTrust, PrintedScale, PRINTED_SCALE),
    rule(DistributedTrust, PrintedScale, PRINTED_SCALE),
    rule(
        InitialModel,
        WithoutLabels,
        "encoders that are learned without labels start from the seed",
    ),
    rule(
        OneParticipant,
        Noise,
        "\"central-sc\" has all samples in one place, which noise on an update does not protect; \
         leave the noise out",
    ),
    rule(
        ClassTuning,
        OtherThanSoftmax,
        "\"symmetrised-kl\" and \"ewc\" are for softmax models without a hidden layer; use \
         \"mean-regularised\"",
    ),
    // How devices calculate.
    rule(
        FloatingPoint,
        FeatureFormat,
        "only \"integer\" has such features: remove the table, or use it",
    ),
    rule(Fast, OnlyF32, ONLY_F32),
    rule(Integer, OnlyF32, ONLY_F32),
    rule(Integer, HiddenLayer, ONE_LAYER),
    rule(Integer, Layers, ONE_LAYER),
    rule(
        Integer,
        GradientSmoothing,
        "\"integer\" does not smooth gradients: use \"f32\"",
    ),
    rule(
        Integer,
        PersonalModels,
        "\"integer\" trains a shared model, not personal ones: use \"f32\"",
    ),
    rule(Fast, HiddenLayer, ONE_LAYER_FAST),
    rule(Fast, Layers, ONE_LAYER_FAST),
    rule(
        Fast,
        GradientSmoothing,
        "smoothed gradients are not combinations of samples, which \"fast\" needs: use \"f32\"",
    ),
    rule(
        Fast,
        EachStep,
        "gradients with noise are not combinations of samples, which \"fast\" needs: use \"f32\"",
    ),
    // A clip norm that changes.
    rule(
        AdaptiveClipNorm,
        EachStep,
        "the gradients of local steps all have the same clip norm: give a number instead of \
         \"adaptive\"",
    ),
    rule(
        AdaptiveClipNorm,
        NothingSent,
        "its devices send no updates whose norms an adaptive clip norm could follow: give a \
         number, or none",
    ),
    rule(
        AdaptiveClipNorm,
        OneParticipant,
        "it has one participant, but an adaptive clip norm follows the norms of many: give a \
         number, or none",
    ),
    // Correlated noise.
    rule(
        EachStep,
        Correlated,
        "correlated noise covers one release in a round: set `personalise.noise` to \
         \"each-round\"",
    ),
    rule(
        NothingSent,
        Correlated,
        "the devices of this method send nothing that noise could cover",
    ),
    rule(
        OneParticipant,
        Correlated,
        "this method has one participant, in every round",
    ),
    rule(
        Matrices,
        Correlated,
        "devices send their correlation matrices to each other, with their own noise in every \
         round: use method \"fedavg-sc\"",
    ),
    rule(Quorum, Correlated, EARLY).with(CentralTrust),
    rule(Quorum, Correlated, EARLY).with(DistributedTrust),
    // Masks.
    rule(
        AdaptiveClipNorm,
        DistributedTrust,
        "the clipping indicator of an update has no mask: give a clip norm",
    ),
    rule(
        PrivateScale,
        DistributedTrust,
        "the moments of features have no masks: give `data.scale` constants",
    ),
    rule(
        OneParticipant,
        DistributedTrust,
        "this method has one participant, whose update would be the whole sum",
    ),
    rule(
        Matrices,
        DistributedTrust,
        "devices send their correlation matrices to each other, and no helper masks them: use \
         method \"fedavg-sc\"",
    ),
    MASKED_TREE,
    rule(
        PrivateScale,
        NothingSent,
        "its devices send no moments of features: give `data.scale` constants",
    ),
    // A private selection.
    rule(Selection, RealDevices, SEES_TRIALS),
    rule(Selection, Recorded, SEES_TRIALS),
    rule(Selection, LocalTrust, TRUSTED),
    rule(Selection, DistributedTrust, TRUSTED),
    rule(
        Selection,
        Ledger,
        "a shared ledger adds up releases, and a selection costs more than its releases: leave \
         the ledger out",
    ),
    rule(
        Selection,
        OtherAccountant,
        "the theorems are about Rényi divergence: use \"rdp\", or leave the accountant out",
    ),
    rule(
        Selection,
        Correlated,
        "the cost of a selection is known for trials with independent noise: leave \
         \"correlated\" out",
    ),
    rule(
        Selection,
        MaxEpsilon,
        "a trial that stops early has no score: give a target, `privacy.epsilon`",
    ),
    rule(Selection, Matrices, OTHER_UNIT),
    rule(Selection, WithoutLabels, OTHER_UNIT),
    rule(Selection, OneParticipant, OTHER_UNIT),
    rule(Selection, NoSharedModel, NO_SCORE),
    rule(Selection, NothingSent, NO_SCORE),
    rule(
        Selection,
        Values,
        "the score is an accuracy, which is bounded: choose a model of classes",
    ),
    // Questions.
    rule(
        Questions,
        OneParticipant,
        "one device holds all samples, so each answer would be about it alone",
    ),
    rule(
        Questions,
        Selection,
        "every trial would ask them: ask the chosen model with `smolfed ask`",
    ),
    rule(
        Questions,
        EachStep,
        "the noise of each local step covers gradients: set `personalise.noise` to \"each-round\"",
    ),
    rule(
        NothingSent,
        DistributedTrust,
        "helpers cover answers with the noise of the rounds, and this method has none: set \
         `privacy.trust` to \"central\" or \"local\"",
    )
    .with(Questions),
    rule(
        QuestionsOfModel,
        NoSharedModel,
        "there is no model that all devices could evaluate: ask for a histogram, moments, presence \
         or count",
    ),
    rule(
        QuestionsOfModel,
        WithoutLabels,
        "an encoder predicts no classes: ask for a histogram, moments, presence or count",
    ),
    rule(
        QuestionCohort,
        Correlated,
        "devices that are not drawn at random are all asked: leave it out",
    ),
    rule(
        QuestionCohort,
        Buffered,
        "devices that are not drawn at random are all asked: leave it out",
    ),
    rule(
        QuestionCohort,
        AllDevices,
        "with \"full\" every device is asked: leave it out",
    ),
    rule(
        QuestionCohort,
        DistributedTrust,
        "helpers add the noise of the rounds, for cohorts of the rounds: leave it out",
    ),
    rule(
        QuestionNoise,
        DistributedTrust,
        "helpers add the noise of the rounds to answers as well: leave it out",
    ),
    rule(
        QuestionShare,
        DistributedTrust,
        "helpers add the noise of the rounds to answers as well: leave it out",
    ),
    rule(
        Questions,
        Correlated,
        "helpers combine the sums of rounds, not answers: use independent noise",
    )
    .with(DistributedTrust),
    rule(
        Questions,
        Recorded,
        "the record has only rounds: leave the questions out",
    ),
    // Weights.
    rule(
        BySamples,
        Realised,
        "weights by \"samples\" are divided by their expected sum, not by the number drawn",
    ),
    rule(
        BySamples,
        EachStep,
        "the releases of the local steps cannot be weighted afterwards",
    ),
    rule(
        UniformWeights,
        WeightCap,
        "a cap is for weights by \"samples\"",
    ),
    // The server's step.
    rule(Axes, HiddenLayer, AXES),
    rule(Axes, Layers, AXES),
    rule(
        AutoDenoiser,
        Correlated,
        "\"auto\" assumes independent noise in each round: use another denoiser",
    ),
    rule(Denoiser, Smoothing, "compare them in separate runs"),
    // A recorded participation.
    rule(Recorded, OneParticipant, NO_COHORTS),
    // Real devices.
    rule(
        RealDevices,
        HeldOutAnswers,
        "real devices answer about the samples that they have: use \"local\"",
    ),
    rule(
        RealDevices,
        Questions,
        "an encoder has no targets to answer about: ask in a simulation",
    )
    .with(WithoutLabels),
    rule(
        RealDevices,
        Questions,
        "real devices answer about a model that all of them share: ask in a simulation",
    )
    .with(PersonalModels),
    rule(
        RealDevices,
        Questions,
        "the ledger of a device keeps its rounds apart, and would count an answer as one: use \
         independent noise",
    )
    .with(Correlated),
    rule(
        RealDevices,
        Questions,
        "sleeping devices answer no question in time, and the ledger of a device would count an \
         answer as a round: use another `cohort.sampling`",
    )
    .with(Buffered),
    rule(
        RealDevices,
        Arrival,
        "it is the timetable of a simulation, but real devices connect when they can: set it to \
         \"buffered\", whose windows take all that connect",
    ),
    rule(RealDevices, OneParticipant, NO_COHORTS),
    rule(
        RealDevices,
        NothingSent,
        "its devices send nothing, so they need no coordinator",
    )
    .with(NoSharedModel),
    rule(
        RealDevices,
        EachStep,
        "real devices release one update in a round: use \"each-round\"",
    ),
    rule(
        RealDevices,
        FineTuning,
        "real devices keep only one model, the personal one",
    )
    .with(PersonalModels),
    rule(
        RealDevices,
        FineTuning,
        "fine-tuning is one participation more than the accounting assumes",
    )
    .with(Correlated),
    rule(
        RealDevices,
        FineTuning,
        "fine-tuning is one participation more than the accounting assumes",
    )
    .with(Buffered),
    rule(
        RealDevices,
        ClassTuning,
        "real devices support \"plain\" and \"mean-regularised\"",
    ),
    rule(
        RealDevices,
        Fast,
        "boards calculate in \"f32\" or \"integer\", and simulated devices match them bit for bit",
    ),
    rule(
        RealDevices,
        PrivateScale,
        "ask real devices for the `moments` of their features with `smolfed ask`, and give \
         `data.scale` the constants that it prints",
    ),
    RESTARTED_TREE,
    rule(
        RealDevices,
        BySamples,
        "real devices do not disclose their number of samples",
    ),
    UNKNOWN_LAYER,
    rule(
        RealDevices,
        LocalTrust,
        "real devices that add noise to their updates send no correlation matrix, whose noise \
         hides one example and not the device: use \"central\", or method \"fedavg-sc\"",
    )
    .with(Matrices),
    rule(
        RealDevices,
        OnlySimulated,
        "no firmware computes its updates: use `smolfed run`",
    ),
];
