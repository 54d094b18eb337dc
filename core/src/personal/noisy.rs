//! Gradients that are released step by step: clipped, on the grid, with the device's noise.

use rand_core::CryptoRng;

use crate::{clip::clip_l2, noise::DiscreteGaussian, quantize::Grid, train::TrainError};

/// Releases the shared part of each gradient; what is sent is the sum of what was released.
///
/// * Privacy: each step is one Gaussian release of sensitivity C (a device added or removed) or 2C
///   (its data replaced), C the clip norm of the grid, and the steps of a round compose like
///   rounds. The clipped gradient is rounded toward zero on the grid and the noise is an exact
///   discrete Gaussian, as for updates: `docs/accounting.md`. The model that the next step starts
///   from is post-processing of what was released, and so is the sum.
pub struct NoisySteps<'a, R> {
    /// The grid; its clip norm C bounds the shared gradient of each step.
    pub grid: Grid,
    /// Noise in steps of the grid; none for runs that promise nothing.
    pub noise: Option<&'a DiscreteGaussian>,
    /// The device's noise stream of the round (purpose
    /// [`DeviceNoise`](crate::stream::Purpose::DeviceNoise)); it goes on from step to step.
    pub stream: R,
    /// The sum of what was released, in steps of the grid, one entry a shared parameter; begins
    /// with zeros.
    pub sent: &'a mut [i64],
    /// Steps whose gradient was longer than C.
    pub clipped: u32,
}

impl<R: CryptoRng> NoisySteps<'_, R> {
    /// Replaces the shared part of a gradient, which comes first, by its release, and adds that to
    /// what is sent.
    ///
    /// # Errors
    /// [`TrainError::Diverged`] if it is not finite; [`TrainError::Workspace`] if more is shared
    /// than there is.
    pub fn release(&mut self, gradient: &mut [f32]) -> Result<(), TrainError> {
        let wrong = TrainError::Workspace {
            expected: self.sent.len(),
            found: gradient.len(),
        };
        let gradient = gradient.get_mut(..self.sent.len()).ok_or(wrong)?;
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
