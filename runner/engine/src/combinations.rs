//! Which methods run over which sources: every method over every source, except for those of one
//! table; which ways to scale features and to calculate; and what goes with correlated noise.

use smolfed_accounting::correlated::StrategyKind;

use crate::method::MethodName;
use crate::tables::simulation::ArithmeticName;

/// The sources that do not take every method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceName {
    /// Real devices.
    Fleet,
    /// A recorded participation.
    Replay,
}

/// What real devices have nothing to do with.
const NOTHING_SENT: &str = "its devices send nothing, so that they need no coordinator";
/// What the protocol cannot describe.
pub const HIDDEN_LAYER: &str = "the protocol does not know it: write it as `model.layers`, { type \
                                = \"dense\", outputs = .. } followed by { type = \"relu\" }";
const NO_MOMENTS: &str = "the protocol has no message for moments of features; give real devices \
                          the constants of a simulation on public data";
const NO_COHORTS: &str = "one device holds all samples, so that there are no cohorts";

/// Why a method cannot run over a source; `None` if it can.
///
/// Real devices run the client of `smolfed-core`, which knows all methods whose devices send
/// something.
#[must_use]
pub const fn refusal(source: SourceName, method: MethodName) -> Option<&'static str> {
    match (source, method) {
        (_, MethodName::CentralSc) => Some(NO_COHORTS),
        (SourceName::Replay, _) => None,
        (
            SourceName::Fleet,
            MethodName::DpFed
            | MethodName::DpFedLs
            | MethodName::Fedprox
            | MethodName::Pmtl
            | MethodName::PpSgd
            | MethodName::Dpfedmtl
            | MethodName::Fedsc
            | MethodName::FedavgSc,
        ) => None,
        (SourceName::Fleet, MethodName::Local) => Some(NOTHING_SENT),
    }
}

/// Why features cannot be scaled by moments that the devices of a source release; `None` if they
/// can.
#[must_use]
pub const fn refusal_of_private_scale(source: SourceName) -> Option<&'static str> {
    match source {
        SourceName::Fleet => Some(NO_MOMENTS),
        SourceName::Replay => None,
    }
}

/// Why devices of a source cannot calculate like this; `None` if they can.
#[must_use]
pub const fn refusal_of_arithmetic(
    source: SourceName,
    arithmetic: ArithmeticName,
) -> Option<&'static str> {
    match (source, arithmetic) {
        (SourceName::Fleet, ArithmeticName::Fast) => Some(
            "boards calculate in \"f32\" or \"integer\", and simulated devices have their bits",
        ),
        (SourceName::Fleet, ArithmeticName::F32 | ArithmeticName::Integer)
        | (SourceName::Replay, _) => None,
    }
}

/// A setting that does not go with correlated noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// Cohorts that are drawn from all devices.
    Sampled,
    /// More bands than parts of the population that take turns.
    Unbanded,
    /// Devices that add their own noise.
    LocalTrust,
    /// A clip norm that changes.
    AdaptiveClipNorm,
    /// A release in each local step.
    EachStep,
    /// Nothing is released.
    NothingSent,
    /// One participant in every round.
    OneParticipant,
    /// Correlation matrices beside the updates.
    Matrices,
}

/// Why a setting does not go with correlated noise, and what does.
#[must_use]
pub const fn refusal_of_correlated(setting: Setting) -> &'static str {
    match setting {
        Setting::Sampled => {
            "correlated noise is for devices that are not drawn at random from all: set \
             `cohort.sampling` to \"block-cyclic\", \"rotation\", \"arrival\" or \"full\""
        }
        Setting::Unbanded => {
            "with \"block-cyclic\" sampling each participation of a device is hidden by itself, \
             which needs noise of at most `privacy.separation` bands: set it to \"identity\", \
             \"square-root-banded\", \"banded-optimal-mean\" or \"banded-optimal-max\""
        }
        Setting::LocalTrust => {
            "the sums of several rounds are combined before noise is added, by a trusted server or \
             under masks: set `privacy.trust` to \"central\" or \"distributed\""
        }
        Setting::AdaptiveClipNorm => {
            "sums of rounds with different clip norms are on different grids and cannot be \
             combined: give a number"
        }
        Setting::EachStep => {
            "correlated noise covers one release in a round: set `personalise.noise` to \
             \"each-round\""
        }
        Setting::NothingSent => "the devices of this method send nothing that noise could cover",
        Setting::OneParticipant => "this method has one participant, in every round",
        Setting::Matrices => {
            "devices send their correlation matrices to each other, with noise of their own in \
             every round: use method \"fedavg-sc\""
        }
    }
}

/// A setting that does not go with masked updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaskedSetting {
    /// A release in each local step.
    EachStep,
    /// One participant in every round.
    OneParticipant,
    /// Correlation matrices beside the updates.
    Matrices,
    /// A clip norm that changes.
    AdaptiveClipNorm,
    /// Moments of features before the first round.
    PrivateScale,
    /// Nodes of a tree in the place of combinations.
    Tree,
}

/// Why a setting does not go with masked updates, and what does.
#[must_use]
pub const fn refusal_of_masks(setting: MaskedSetting) -> &'static str {
    match setting {
        MaskedSetting::EachStep => {
            "a mask covers one update in a round: set `personalise.noise` to \"each-round\""
        }
        MaskedSetting::OneParticipant => {
            "this method has one participant, whose update would be the whole sum"
        }
        MaskedSetting::Matrices => {
            "devices send their correlation matrices to each other, and no helper masks them: use \
             method \"fedavg-sc\""
        }
        MaskedSetting::AdaptiveClipNorm => {
            "the number that says whether an update was clipped has no mask: give a clip norm"
        }
        MaskedSetting::PrivateScale => {
            "the moments of features have no masks: give `data.scale` constants"
        }
        MaskedSetting::Tree => {
            "helpers combine the sums of the last rounds, and the nodes of a tree are none: choose \
             another family"
        }
    }
}

/// Why a server that forgets earlier sums when it restarts cannot have noise of this kind; `None`
/// if it can.
#[must_use]
pub const fn refusal_of_restart(kind: &StrategyKind) -> Option<&'static str> {
    match kind {
        StrategyKind::Toeplitz(_) => None,
        StrategyKind::Tree(_) => Some(
            "a server that restarts cannot go on with the open nodes of a tree: choose another \
             `privacy.family`",
        ),
    }
}
