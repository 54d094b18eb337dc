//! The weight of an update, uniform or by samples (`cohort.weighting`), its default, and the cap.

use crate::check::ExperimentError;
use crate::combinations::{Setting, Settings};
use crate::method::contract::MethodProperties;
use crate::tables::cohort::{CohortConfig, Weighting};
use smolfed_data::federation::Federation;
use smolfed_release::Encoding;

/// The weighting of updates.
pub(super) struct Weights {
    /// `None` if one device has all samples.
    weighting: Option<Weighting>,
    cap: Option<u32>,
    is_clipped: bool,
}

impl Weights {
    /// Parses the weighting. Encoders trained without labels are weighted by samples, as their loss
    /// is (docs/papers.md, F5), unless there is a clip norm. Then weights are uniform by default,
    /// and no cap is needed.
    pub fn parse(cohort: &CohortConfig, encoding: Encoding, properties: &MethodProperties) -> Self {
        let is_clipped = encoding.grid().is_some();
        let default = match properties.uses_labels || is_clipped {
            true => Weighting::Uniform,
            false => Weighting::Samples,
        };
        let weighting = cohort.weighting.unwrap_or(default);
        Self {
            weighting: (!properties.has_one_participant).then_some(weighting),
            cap: cohort.weight_cap,
            is_clipped,
        }
    }

    /// Returns the settings that they declare ([`crate::combinations`]).
    pub fn settings(&self) -> Settings {
        let is = |weighting| self.weighting == Some(weighting);
        Settings::of([
            (Setting::BySamples, is(Weighting::Samples)),
            (Setting::UniformWeights, is(Weighting::Uniform)),
        ])
    }

    /// Returns the number of samples at which the weight of an update stops growing, or `None` for
    /// uniform weights.
    ///
    /// # Errors
    /// [`ExperimentError::Missing`] if clipped updates have no cap.
    pub fn cap(&self, federation: &Federation) -> Result<Option<u32>, ExperimentError> {
        match (self.weighting, self.cap) {
            (None | Some(Weighting::Uniform), _) => Ok(None),
            (Some(Weighting::Samples), Some(cap)) => Ok(Some(cap)),
            (Some(Weighting::Samples), None) if self.is_clipped => Err(ExperimentError::Missing {
                key: "cohort.weight_cap",
                purpose: "the largest weight multiplies the influence of one device on the sum, \
                          and must not depend on the data: give the number of samples at which the \
                          weight stops growing",
            }),
            (Some(Weighting::Samples), None) => Ok(federation.sample_counts().max()),
        }
    }
}
