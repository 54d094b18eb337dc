//! The computation of a round, from measured parts of one with a model of 64 × 10.
//!
//! With P parameters, n samples, E epochs and batches of B, a device looks at nE samples in ⌈n/B⌉ E
//! steps. The measured round has 250 and 25. A step costs b, which is a step on one sample without
//! its gradient. A sample costs the rest of the measured round:
//!
//! ```text
//! training = P / 650 · (nE (round − 25 b) / 250 + ⌈n/B⌉ E b)
//! ```
//!
//! Smoothing of gradients, rounding, noise, masks and tags grow with P, and each frame counts as a
//! full one. The ledger, the sensor, waiting and features of samples are not in it.

use smolfed_core::model::ModelKind;
use smolfed_core::wire::message::{Invitation, ModelShape};

use super::processors::{Counts, Training};

/// Parameters of the model that was measured, 64 × 10.
const PARAMETERS: f64 = 650.0;

/// Samples that training looks at in the measured round, 50 in 5 epochs.
const SEEN: f64 = 250.0;

/// Steps of the measured round.
const STEPS: f64 = 25.0;

/// Numbers of the measured smoothing.
const SMOOTHED: f64 = 256.0;

/// Bits of an entry under the measured masks.
const MASK_BITS: f64 = 19.0;

/// The sizes on which the computation of a round depends.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// In units of the measured model.
    size: f64,
    seen: f64,
    steps: f64,
    frames: usize,
    is_integer: bool,
    smooths: bool,
    has_noise: bool,
    helpers: u8,
    width: u32,
}

impl Work {
    /// The work of a device with this many samples and frames. `None` for networks and for methods
    /// with personal models or without labels, for which no scalable part was measured.
    #[must_use]
    pub fn of(invitation: &Invitation, samples: u32, frames: usize) -> Option<Self> {
        let is_measured = is_linear(&invitation.shape) && invitation.request.is_none();
        let epochs = f64::from(invitation.epochs);
        is_measured.then(|| Self {
            size: invitation.shape.parameters() as f64 / PARAMETERS,
            seen: f64::from(samples) * epochs,
            steps: f64::from(samples.div_ceil(invitation.batch_size.get())) * epochs,
            frames,
            is_integer: invitation.shape.integer.is_some(),
            smooths: invitation.gradient_smoothing.is_some(),
            has_noise: invitation.noise.is_some(),
            helpers: invitation.helpers(),
            width: invitation.width(),
        })
    }

    /// Roughly so many instructions or cycles, whichever was counted.
    #[must_use]
    pub fn count(&self, counts: &Counts) -> f64 {
        let training = match self.is_integer {
            true => &counts.integer,
            false => &counts.f32,
        };
        let (sample, mut step) = of_sample_and_step(training);
        if self.smooths {
            step += f64::from(counts.smooth_256) * PARAMETERS / SMOOTHED;
        }
        let mut once = f64::from(counts.quantise_650);
        if self.has_noise {
            once += PARAMETERS * f64::from(counts.gaussian);
        }
        let masks = f64::from(counts.masks_650) * f64::from(self.width) / MASK_BITS;
        once += f64::from(self.helpers) * (masks + f64::from(counts.tag_650));
        let frames = self.frames as f64 * f64::from(counts.frame);
        self.size * (self.seen * sample + self.steps * step + once) + frames
    }
}

/// The cost of a sample and of a step in training the measured model.
fn of_sample_and_step(training: &Training) -> (f64, f64) {
    let step = f64::from(training.step) - f64::from(training.gradient);
    ((f64::from(training.round) - STEPS * step) / SEEN, step)
}

const fn is_linear(shape: &ModelShape) -> bool {
    matches!(
        shape.kind,
        ModelKind::Linear | ModelKind::Logistic | ModelKind::Softmax
    )
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use smolfed_core::noise::Sigma;
    use smolfed_core::wire::message::ModelShape;

    use super::super::processors::{CORTEX_M0, CORTEX_M4F, CORTEX_M33};
    use super::super::tests::invitation;
    use super::*;

    fn work(change: impl FnOnce(&mut Invitation), samples: u32) -> Work {
        let mut asked = invitation(64, 10);
        (asked.epochs, asked.batch_size) = (5, NonZeroU32::new(10).unwrap());
        change(&mut asked);
        Work::of(&asked, samples, 0).unwrap()
    }

    /// But for the rounding at its end, which is measured apart.
    #[test]
    fn the_measured_round_costs_what_was_measured() {
        for processor in [&CORTEX_M0, &CORTEX_M4F, &CORTEX_M33] {
            let counts = &processor.instructions;
            let expected = f64::from(counts.f32.round) + f64::from(counts.quantise_650);
            let found = work(|_| (), 50).count(counts);
            assert!((found / expected - 1.0).abs() < 1e-12, "{found} {expected}");
        }
    }

    /// A step on one sample was measured as well, and is not a part of the fit: it is within a
    /// tenth of it on a processor with a floating-point unit.
    #[test]
    fn batches_of_one_cost_about_what_was_measured() {
        let counts = &CORTEX_M4F.instructions;
        let (sample, step) = of_sample_and_step(&counts.f32);
        let ratio = (sample + step) / f64::from(counts.f32.step);
        assert!((0.9..1.1).contains(&ratio), "{ratio}");
        let (sample, step) = of_sample_and_step(&counts.integer);
        let ratio = (sample + step) / f64::from(counts.integer.step);
        assert!((0.9..1.1).contains(&ratio), "{ratio}");
    }

    #[test]
    fn more_work_is_never_cheaper() {
        let counts = &CORTEX_M0.instructions;
        let least = work(|_| (), 50).count(counts);
        let noise = Sigma::new(1u64 << 20, 1).ok();
        for more in [
            work(|_| (), 51),
            work(|asked| asked.epochs = 6, 50),
            work(|asked| asked.batch_size = NonZeroU32::MIN, 50),
            work(|asked| asked.shape.features = 65, 50),
            work(|asked| asked.noise = noise, 50),
        ] {
            assert!(more.count(counts) > least, "{more:?}");
        }
    }

    #[test]
    fn nothing_is_said_of_networks() {
        let mut asked = invitation(64, 10);
        asked.shape = ModelShape {
            kind: ModelKind::Sequential,
            ..asked.shape
        };
        assert!(Work::of(&asked, 50, 9).is_none());
    }
}
