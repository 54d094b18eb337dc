//! Which random variations make views of a device's samples.

use rand_core::Rng;
use smolfed_core::contrast::augment::{Augment, ChannelDrop, Jitter, Rotation, Scaling, TimeShift};

use super::images::{Erase, ImageShape, Shift, Turn};

/// The variations of an experiment, in the order in which they are applied: first those of the
/// place, then those of the values.
#[derive(Clone, Copy, Debug, Default)]
pub struct Variations {
    /// Of images.
    pub turn: Option<(ImageShape, Turn)>,
    /// Of images.
    pub shift: Option<(ImageShape, Shift)>,
    /// Of images.
    pub erase: Option<(ImageShape, Erase)>,
    /// Of windows of three axes.
    pub rotation: Option<Rotation>,
    /// Of windows.
    pub time_shift: Option<TimeShift>,
    /// Of channels.
    pub scaling: Option<Scaling>,
    /// Of channels.
    pub channel_drop: Option<ChannelDrop>,
    /// Of values.
    pub jitter: Option<Jitter>,
}

impl Variations {
    /// Whether all views of a sample would be the same.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.turn.is_none()
            && self.shift.is_none()
            && self.erase.is_none()
            && self.rotation.is_none()
            && self.time_shift.is_none()
            && self.scaling.is_none()
            && self.channel_drop.is_none()
            && self.jitter.is_none()
    }
}

impl Augment for Variations {
    fn apply(&self, sample: &mut [f32], rng: &mut impl Rng) {
        if let Some((shape, turn)) = &self.turn {
            turn.apply(*shape, sample, rng);
        }
        if let Some((shape, shift)) = &self.shift {
            shift.apply(*shape, sample, rng);
        }
        if let Some((shape, erase)) = &self.erase {
            erase.apply(*shape, sample, rng);
        }
        if let Some(rotation) = &self.rotation {
            rotation.apply(sample, rng);
        }
        if let Some(shift) = &self.time_shift {
            shift.apply(sample, rng);
        }
        if let Some(scaling) = &self.scaling {
            scaling.apply(sample, rng);
        }
        if let Some(drop) = &self.channel_drop {
            drop.apply(sample, rng);
        }
        if let Some(jitter) = &self.jitter {
            jitter.apply(sample, rng);
        }
    }
}
