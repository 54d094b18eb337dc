//! Processing of one sample at a time, for losses other than those of a
//! [`Model`](super::super::Model).

use super::{
    super::error::ModelError,
    Sequential,
    pass::{copy, last},
    walk::Parts,
};

impl Sequential {
    /// Prepares scratch memory for samples with these parameters.
    ///
    /// # Errors
    /// [`ModelError`] if a length does not fit.
    #[inline(always)]
    pub(crate) fn begin(&self, parameters: &[f32], scratch: &mut [f32]) -> Result<(), ModelError> {
        self.check_parameters(parameters)?;
        let parts = self.training_parts(scratch)?;
        self.prepare(parameters, parts.prepared);
        parts.sums.fill(0.0);
        Ok(())
    }

    /// Writes the sums of [`Self::backward_one`] in scratch memory to the gradient, which holds the
    /// other sums.
    ///
    /// # Errors
    /// [`ModelError`] if a length does not fit.
    #[inline(always)]
    pub(crate) fn end(&self, scratch: &mut [f32], gradient: &mut [f32]) -> Result<(), ModelError> {
        self.check_parameters(gradient)?;
        let parts = self.training_parts(scratch)?;
        self.finish(parts.sums, gradient);
        Ok(())
    }

    /// Computes the scores of one sample. Scratch memory keeps the results of all layers.
    ///
    /// # Errors
    /// [`ModelError`] if a length does not fit, or a feature is not a symbol.
    #[inline(always)]
    pub(crate) fn forward_one(
        &self,
        parameters: &[f32],
        features: &[f32],
        scratch: &mut [f32],
        scores: &mut [f32],
    ) -> Result<(), ModelError> {
        self.check_parameters(parameters)?;
        let (expected, found) = (self.input.count(), features.len());
        if found != expected {
            return Err(ModelError::Features { expected, found });
        }
        self.check_scores(scores)?;
        let mut parts = self.training_parts(scratch)?;
        self.forward(parameters, features, &mut parts)?;
        copy(last(parts.tape, scores.len()), scores);
        Ok(())
    }

    /// Adds the gradient of one sample, from the derivatives with respect to its scores, to
    /// `gradient` and to sums in scratch memory. Call it directly after [`Self::forward_one`].
    ///
    /// # Errors
    /// [`ModelError`] if a length does not fit.
    #[inline(always)]
    pub(crate) fn backward_one(
        &self,
        parameters: &[f32],
        features: &[f32],
        scratch: &mut [f32],
        derivatives: &[f32],
        gradient: &mut [f32],
    ) -> Result<(), ModelError> {
        self.check_parameters(parameters)?;
        self.check_parameters(gradient)?;
        self.check_scores(derivatives)?;
        let mut parts = self.training_parts(scratch)?;
        let [above, _] = &mut parts.derivatives;
        copy(derivatives, above);
        self.backward(parameters, features, parts, gradient);
        Ok(())
    }

    /// Splits the scratch memory of training.
    #[inline(always)]
    pub(super) fn training_parts<'a>(
        &self,
        scratch: &'a mut [f32],
    ) -> Result<Parts<'a>, ModelError> {
        let (expected, found) = (self.sample_scratch_count(), scratch.len());
        let parts = self.parts(scratch, true);
        parts.ok_or(ModelError::Scratch { expected, found })
    }

    /// Checks the number of scores.
    #[inline(always)]
    fn check_scores(&self, scores: &[f32]) -> Result<(), ModelError> {
        match (self.score_count(), scores.len()) {
            (expected, found) if found == expected => Ok(()),
            (expected, found) => Err(ModelError::Scratch { expected, found }),
        }
    }
}
