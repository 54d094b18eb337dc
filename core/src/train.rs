//! Local training: mini-batch SGD that projects every step onto the ball around the global model,
//! its settings (learning rate, epochs, batch size, clipping), and its errors. The algorithm is
//! `ClientUpdate` of DP-Fed-LS (Liang et al. 2020, arXiv:2005.00218, Algorithm 1).
//!
//! From w ← w^t, for each mini-batch: `w ← w^t + clip(w − η·g(w) − w^t, L)`. The update is Δ = w −
//! w^t. g is the mean gradient of the batch, plus `weight_decay · w`, plus `proximal · (w − w^t)`
//! (FedProx, Li et al. 2020, arXiv:1812.06127, equation 2), optionally Laplacian-smoothed (LSGD,
//! Osher et al. 2018, arXiv:1806.06317). Each epoch shuffles the local samples (Fisher–Yates on the
//! device's stream) and takes consecutive batches, the last of which may be short.
//!
//! The result is the clipped difference itself, not `(w^t + Δ) − w^t` rounded a second time.

use core::num::NonZeroU32;

use crate::{
    model::ModelError,
    params::{ClipNorm, LearningRate, Penalty},
    smooth::NarrowSmoothing,
};

mod cursor;
mod local;
mod report;

pub(crate) use cursor::Cursor;
#[cfg(any(test, feature = "hazmat"))]
pub use local::local_update;
#[cfg(not(any(test, feature = "hazmat")))]
pub(crate) use local::local_update;
pub(crate) use local::{Descent, Local};
pub(crate) use report::{Kept, Report, Reported};

/// When to clip the update.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
pub enum Clipping {
    /// After every local step (the paper).
    #[default]
    EveryStep,
    /// Once, after the last step: often more accurate (papers.md L1: 3 points on MNIST at ε = 6).
    Final,
}

/// Settings of local training in one round.
///
/// ```
/// # use core::num::NonZeroU32;
/// use smolfed_core::{ClipNorm, LearningRate, LocalTraining};
///
/// let (rate, clip_norm) = (LearningRate::new(0.1)?, ClipNorm::new(0.3)?);
/// let settings = LocalTraining::new(rate, clip_norm)
///     .with_epochs(5)
///     .with_batch_size(NonZeroU32::MIN);
/// # Ok::<(), smolfed_core::params::ParamError>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LocalTraining {
    /// Passes over the local samples (E).
    pub epochs: u32,
    /// Samples in a batch (B).
    pub batch_size: NonZeroU32,
    /// Step size η of this round.
    pub learning_rate: LearningRate,
    /// Weight decay: adds `weight_decay · w` to the gradient.
    pub weight_decay: Penalty,
    /// Proximal term: adds `proximal · (w − w^t)` to the gradient.
    pub proximal: Penalty,
    /// Bound on the update, if any.
    pub clip_norm: Option<ClipNorm>,
    /// When the bound is applied.
    pub clipping: Clipping,
    /// Laplacian smoothing of the local gradient, tensor by tensor.
    pub gradient_smoothing: Option<NarrowSmoothing>,
}

impl LocalTraining {
    /// Creates settings with one pass over the samples in batches of ten, clipped after every step,
    /// without penalties or smoothing.
    pub const fn new(learning_rate: LearningRate, clip_norm: ClipNorm) -> Self {
        Self {
            epochs: 1,
            batch_size: NonZeroU32::MIN.saturating_add(9),
            learning_rate,
            weight_decay: Penalty::NONE,
            proximal: Penalty::NONE,
            clip_norm: Some(clip_norm),
            clipping: Clipping::EveryStep,
            gradient_smoothing: None,
        }
    }

    /// Returns the bound of every step, if each step is clipped.
    #[inline(always)]
    pub(crate) fn step_clip(&self) -> Option<ClipNorm> {
        let is_each = self.clipping == Clipping::EveryStep;
        self.clip_norm.filter(|_| is_each)
    }

    /// Sets the number of passes over the local samples.
    #[must_use]
    pub const fn with_epochs(mut self, epochs: u32) -> Self {
        self.epochs = epochs;
        self
    }

    /// Sets the number of samples in a batch.
    #[must_use]
    pub const fn with_batch_size(mut self, batch_size: NonZeroU32) -> Self {
        self.batch_size = batch_size;
        self
    }

    /// Sets the weight decay.
    #[must_use]
    pub const fn with_weight_decay(mut self, weight_decay: Penalty) -> Self {
        self.weight_decay = weight_decay;
        self
    }

    /// Sets the proximal term.
    #[must_use]
    pub const fn with_proximal(mut self, proximal: Penalty) -> Self {
        self.proximal = proximal;
        self
    }

    /// Sets whether to clip after every step or once at the end.
    #[must_use]
    pub const fn with_clipping(mut self, clipping: Clipping) -> Self {
        self.clipping = clipping;
        self
    }

    /// Sets the Laplacian smoothing of the local gradient.
    #[must_use]
    pub const fn with_gradient_smoothing(mut self, smoothing: NarrowSmoothing) -> Self {
        self.gradient_smoothing = Some(smoothing);
        self
    }
}

/// Reason why a device has no update. It must then sit the round out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum TrainError {
    /// The device has no samples.
    NoSamples,
    /// The parameters became NaN or infinite: the learning rate is too high for the data.
    Diverged,
    /// The model or the settings are outside the ranges of integer arithmetic.
    Range,
    /// A slice does not fit the model or the samples.
    Model(ModelError),
    /// The working memory does not have the length of the model, or holds fewer indices than
    /// samples.
    Workspace {
        /// Number of entries needed.
        expected: usize,
        /// Number of entries found.
        found: usize,
    },
}

impl core::fmt::Display for TrainError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NoSamples => f.write_str("the device has no samples"),
            Self::Diverged => {
                f.write_str("local training diverged: the learning rate is too high for the data")
            }
            Self::Range => f.write_str(
                "weights, learning rate, penalties or clip norm are outside the ranges of integer \
                 arithmetic",
            ),
            Self::Model(error) => error.fmt(f),
            Self::Workspace { expected, found } => {
                write!(
                    f,
                    "working memory for {found} entries, but {expected} are needed"
                )
            }
        }
    }
}

impl core::error::Error for TrainError {}

impl From<ModelError> for TrainError {
    fn from(error: ModelError) -> Self {
        Self::Model(error)
    }
}

/// Working memory of local training, owned by the caller.
pub struct Workspace<'a> {
    /// Local parameters, as long as the model.
    pub local: &'a mut [f32],
    /// Gradient, and at the end the update Δ. As long as the model.
    pub update: &'a mut [f32],
    /// Order of the local samples, with at least one entry for each sample.
    pub order: &'a mut [u32],
    /// Scores. See [`Model::loss_and_gradient`](crate::model::Model::loss_and_gradient).
    pub scratch: &'a mut [f32],
}

impl Workspace<'_> {
    /// Reborrows the memory.
    pub fn reborrow(&mut self) -> Workspace<'_> {
        Workspace {
            local: self.local,
            update: self.update,
            order: self.order,
            scratch: self.scratch,
        }
    }
}

/// Statistics of local training. They describe private data and must not leave the device.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TrainReport {
    /// Number of local steps.
    pub steps: u32,
    /// Number of clipped steps, or 1 if the final update was clipped.
    pub clipped_steps: u32,
    /// Number of steps that could have been clipped, or 1 if only the final update is clipped.
    pub clipping_chances: u32,
    /// Mean loss over the first epoch's batches, each before its step.
    pub first_loss: f32,
    /// Mean loss over the last epoch's batches.
    pub last_loss: f32,
    /// L2 norm of the difference before the last clipping.
    pub norm: f32,
    /// Scores, residuals and weights that saturated in their format, in integer arithmetic only.
    pub saturated: u32,
}
