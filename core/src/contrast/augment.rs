//! Views of a sample for learning without labels (augmentations): noise, scaling, shifts in time,
//! dropped channels and rotations, which keep its relevant content.

use core::num::NonZeroU32;

use rand_core::Rng;

use crate::{
    math,
    samples::Samples,
    stream::{Stream, below, symmetric},
};

/// The views of a device's samples. A view is the same on every call.
pub trait Views {
    /// Returns the number of samples.
    fn sample_count(&self) -> usize;

    /// Returns V: a sample has 2V views, and view v is paired with view v + V.
    fn pair_count(&self) -> usize;

    /// Starts a pass over the samples, with new views.
    fn begin_pass(&mut self, pass: u32);

    /// Writes view `number` of a sample.
    fn write(&self, sample: u32, number: usize, view: &mut [f32]);
}

/// A random variation of a sample, in place.
pub trait Augment {
    /// Varies `sample`.
    fn apply(&self, sample: &mut [f32], rng: &mut impl Rng);
}

/// Random words available to a view: samples have fewer than 2¹⁶ values. A stream has enough for
/// 2²⁰ views. After that many (passes · samples · 2V) they repeat.
const WORDS_OF_A_VIEW: u64 = 1 << 16;

/// Samples with views computed on request.
#[derive(Debug)]
pub struct Augmented<'a, S, A> {
    samples: &'a S,
    augment: A,
    pairs: usize,
    stream: Stream,
    pass: u64,
}

impl<'a, S: Samples, A: Augment> Augmented<'a, S, A> {
    /// Creates 2 · `pairs` views for each sample, drawn from the device's stream of the round
    /// (purpose [`Augmentation`](crate::stream::Purpose::Augmentation)).
    pub const fn new(samples: &'a S, augment: A, pairs: usize, stream: Stream) -> Self {
        Self {
            samples,
            augment,
            pairs,
            stream,
            pass: 0,
        }
    }
}

impl<S: Samples, A: Augment> Views for Augmented<'_, S, A> {
    fn sample_count(&self) -> usize {
        self.samples.len()
    }

    fn pair_count(&self) -> usize {
        self.pairs
    }

    fn begin_pass(&mut self, pass: u32) {
        self.pass = u64::from(pass);
    }

    fn write(&self, sample: u32, number: usize, view: &mut [f32]) {
        let features = self.samples.features(sample as usize);
        for (to, from) in view.iter_mut().zip(features) {
            *to = *from;
        }
        let views = 2 * self.pairs as u64;
        let index = (self.pass * self.samples.len() as u64 + u64::from(sample)) * views;
        let mut rng = self.stream.at((index + number as u64) * WORDS_OF_A_VIEW);
        self.augment.apply(view, &mut rng);
    }
}

/// Applies one variation after the other.
impl<A: Augment, B: Augment> Augment for (A, B) {
    fn apply(&self, sample: &mut [f32], rng: &mut impl Rng) {
        self.0.apply(sample, rng);
        self.1.apply(sample, rng);
    }
}

/// Adds noise of this std to each value. The noise is uniform, as nothing depends on its tails.
#[derive(Clone, Copy, Debug)]
pub struct Jitter(pub f32);

impl Augment for Jitter {
    fn apply(&self, sample: &mut [f32], rng: &mut impl Rng) {
        let reach = self.0 * math::sqrt(3.0);
        for x in sample {
            *x += reach * symmetric(rng);
        }
    }
}

/// Multiplies each channel of a window (channels × time) by a separate factor between 1 − s and 1 +
/// s.
#[derive(Clone, Copy, Debug)]
pub struct Scaling {
    /// s.
    pub reach: f32,
    /// Values of a channel.
    pub time: usize,
}

impl Augment for Scaling {
    fn apply(&self, sample: &mut [f32], rng: &mut impl Rng) {
        for channel in sample.chunks_mut(self.time.max(1)) {
            let factor = 1.0 + self.reach * symmetric(rng);
            crate::lanes::scale(channel, factor);
        }
    }
}

/// Shifts all channels of a window in time by up to this many values either way, with wrap-around.
#[derive(Clone, Copy, Debug)]
pub struct TimeShift {
    /// Maximum shift in values.
    pub reach: u32,
    /// Values of a channel.
    pub time: usize,
}

impl Augment for TimeShift {
    fn apply(&self, sample: &mut [f32], rng: &mut impl Rng) {
        let Some(choices) = NonZeroU32::new(self.reach.saturating_mul(2).saturating_add(1)) else {
            return;
        };
        let time = self.time.max(1);
        let shift = below(choices, rng) as usize % time;
        let back = self.reach as usize % time;
        for channel in sample.chunks_exact_mut(time) {
            channel.rotate_right((shift + time - back) % time);
        }
    }
}

/// Sets each channel to zero with this probability.
#[derive(Clone, Copy, Debug)]
pub struct ChannelDrop {
    /// The probability.
    pub probability: f32,
    /// Values of a channel.
    pub time: usize,
}

impl Augment for ChannelDrop {
    fn apply(&self, sample: &mut [f32], rng: &mut impl Rng) {
        for channel in sample.chunks_mut(self.time.max(1)) {
            let draw = 0.5 + 0.5 * symmetric(rng);
            if draw < self.probability {
                channel.fill(0.0);
            }
        }
    }
}

/// Rotates a signal of three axes (3 × time) by a random angle of up to `reach` about each axis in
/// turn, like a sensor worn differently.
#[derive(Clone, Copy, Debug)]
pub struct Rotation {
    /// Largest angle, in radians.
    pub reach: f32,
}

impl Augment for Rotation {
    fn apply(&self, sample: &mut [f32], rng: &mut impl Rng) {
        let time = sample.len() / 3;
        let (x, rest) = sample.split_at_mut(time);
        let (y, rest) = rest.split_at_mut(time);
        let (z, _) = rest.split_at_mut(time);
        turn(x, y, self.reach * symmetric(rng));
        turn(y, z, self.reach * symmetric(rng));
        turn(z, x, self.reach * symmetric(rng));
    }
}

/// Rotates the plane of two axes.
fn turn(a: &mut [f32], b: &mut [f32], angle: f32) {
    let (sine, cosine) = (math::sin(angle), math::cos(angle));
    for (a, b) in a.iter_mut().zip(b) {
        (*a, *b) = (cosine * *a - sine * *b, sine * *a + cosine * *b);
    }
}
