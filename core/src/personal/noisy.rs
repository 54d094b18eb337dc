//! Gradients released step by step, as in DPFedMTL: clipped, on the grid, with the device's noise.

use rand_core::CryptoRng;

use crate::{clip::clip_l2, noise::DiscreteGaussian, quantize::Grid, train::TrainError};

/// Releases the shared part of each gradient. The update is the sum of the releases.
///
/// * Privacy: each step is one Gaussian release of sensitivity C (a device added or removed) or 2C
///   (its data replaced), C the clip norm of the grid, and the steps of a round compose like
///   rounds. The clipped gradient is rounded toward zero on the grid and the noise is an exact
///   discrete Gaussian, as for updates: `docs/accounting.md`. The model at the start of the next
///   step is post-processing of the releases, and so is the sum.
pub struct NoisySteps<'a, R> {
    /// The grid. Its clip norm C bounds the shared gradient of each step.
    pub grid: Grid,
    /// Noise in steps of the grid. `None` for runs without a privacy guarantee.
    pub noise: Option<&'a DiscreteGaussian>,
    /// The device's noise stream of the round (purpose
    /// [`DeviceNoise`](crate::stream::Purpose::DeviceNoise)). It continues from step to step.
    pub stream: R,
    /// Sum of the releases, in steps of the grid, with one entry for each shared parameter. Starts
    /// from zeros.
    pub sent: &'a mut [i64],
    /// Number of steps with a gradient longer than C.
    pub clipped: u32,
    /// Number of releases. The caller compares it with the accounted number.
    pub releases: u32,
}

impl<R: CryptoRng> NoisySteps<'_, R> {
    /// Replaces the shared part of a gradient, which comes first, by its release, and adds the
    /// release to the update.
    ///
    /// # Errors
    /// [`TrainError::Diverged`] if the gradient is not finite, and [`TrainError::Workspace`] if it
    /// is shorter than the shared part.
    pub fn release(&mut self, gradient: &mut [f32]) -> Result<(), TrainError> {
        let wrong = TrainError::Workspace {
            expected: self.sent.len(),
            found: gradient.len(),
        };
        let gradient = gradient.get_mut(..self.sent.len()).ok_or(wrong)?;
        self.releases += 1;
        let bound = self.grid.clip_norm().get();
        let norm = clip_l2(gradient, bound).map_err(|_| TrainError::Diverged)?;
        self.clipped += u32::from(norm > bound);
        let quantizer = self
            .grid
            .quantizer(gradient)
            .map_err(|_| TrainError::Diverged)?;
        let step = self.grid.step();
        for (g, sent) in gradient.iter_mut().zip(self.sent.iter_mut()) {
            let noise = self.noise.map_or(0, |noise| noise.sample(&mut self.stream));
            let released = i64::from(quantizer.get(*g)) + noise;
            *sent += released;
            *g = (released as f64 * step) as f32;
        }
        Ok(())
    }
}
