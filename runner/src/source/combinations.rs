//! Which methods run over which sources: every method over every source, except for those of one
//! table; and which ways to scale features.

use crate::method::MethodName;

/// The sources that do not take every method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceName {
    /// Real devices.
    Fleet,
    /// A recorded participation.
    Replay,
}

/// What the protocol can carry.
pub const ONE_MODEL: &str = "the protocol has only one model, without a hidden layer, that is the \
                             same on all devices";
const NO_MOMENTS: &str = "the protocol has no message for moments of features; give real devices \
                          the constants of a simulation on public data";
const NO_COHORTS: &str = "one device holds all samples, so that there are no cohorts";

/// Why a method cannot run over a source; `None` if it can.
///
/// Real devices run the client of `smolfed-core`, which trains the shared model and sends the
/// difference: other methods cannot run over them until they are named here.
#[must_use]
pub const fn refusal(source: SourceName, method: MethodName) -> Option<&'static str> {
    match (source, method) {
        (_, MethodName::CentralSc) => Some(NO_COHORTS),
        (SourceName::Replay, _) => None,
        (SourceName::Fleet, MethodName::DpFed | MethodName::DpFedLs | MethodName::Fedprox) => None,
        (SourceName::Fleet, _) => Some(ONE_MODEL),
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
