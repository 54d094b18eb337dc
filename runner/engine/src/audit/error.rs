//! Reasons why an experiment cannot be audited, for example without clipping or without
//! noise.

use crate::check::ExperimentError;
use crate::method::state::StateError;
use crate::round::RoundError;
use crate::source::SourceError;

/// Why an experiment cannot be audited.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// Without clipping or without noise there is no claim.
    #[error(
        "there is nothing to audit: without `privacy.clip_norm` and noise no epsilon is claimed"
    )]
    NothingClaimed,
    /// A round broke down.
    #[error(transparent)]
    Round(#[from] RoundError),
    /// The experiment has no randomness of its own.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    /// A source could not start.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The canaries could not be set up.
    #[error(transparent)]
    States(#[from] StateError),
}
