//! Image variations, for simulations. Boards have sensors, whose variations are in
//! [`smolfed_core::contrast::augment`].
//!
//! Pixels from beyond the border take the value of the nearest border pixel, so a background stays
//! the same, whatever number represents it.

use std::num::NonZeroU32;

use rand_core::Rng;
use smolfed_core::math;
use smolfed_core::stream::{below, symmetric};

/// Shape of a sample with one or more images in sequence (the channels of one).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageShape {
    /// Rows of an image.
    pub height: usize,
    /// Pixels per row.
    pub width: usize,
}

impl ImageShape {
    /// Returns the image shape for a sample's axes. Three axes start with the channels.
    #[must_use]
    pub fn of_axes(axes: &[usize]) -> Option<Self> {
        let (&[height, width] | &[_, height, width]) = axes else {
            return None;
        };
        (height > 1 && width > 1).then_some(Self { height, width })
    }

    const fn pixels(self) -> usize {
        self.height * self.width
    }

    /// Redraws each channel: a pixel takes the value at the position that `from` returns for its
    /// row and column. Positions beyond the border are moved back to it.
    fn redraw(self, sample: &mut [f32], from: impl Fn(f32, f32) -> (f32, f32)) {
        if self.pixels() > sample.len() {
            // Wrong shape for this sample: a coordinator may request anything.
            return;
        }
        let mut before = vec![0.0; self.pixels()];
        for image in sample.chunks_exact_mut(self.pixels()) {
            before.copy_from_slice(image);
            for (place, pixel) in image.iter_mut().enumerate() {
                let (row, column) = (place / self.width, place % self.width);
                let (row, column) = from(row as f32, column as f32);
                *pixel = self.between(&before, row, column);
            }
        }
    }

    /// Interpolates between the four pixels around a position.
    fn between(self, image: &[f32], row: f32, column: f32) -> f32 {
        let row = row.clamp(0.0, (self.height - 1) as f32);
        let column = column.clamp(0.0, (self.width - 1) as f32);
        // Both are at least 0, so truncation rounds down.
        let (top, left) = (row as usize, column as usize);
        let (down, right) = (row - top as f32, column - left as f32);
        let at = |row: usize, column: usize| {
            let place = row.min(self.height - 1) * self.width + column.min(self.width - 1);
            image.get(place).copied().unwrap_or(0.0)
        };
        let line = |row| (1.0 - right) * at(row, left) + right * at(row, left + 1);
        (1.0 - down) * line(top) + down * line(top + 1)
    }
}

/// Shifts an image by up to this many pixels along each axis.
#[derive(Clone, Copy, Debug)]
pub struct Shift(pub u32);

impl Shift {
    pub(super) fn apply(self, shape: ImageShape, sample: &mut [f32], rng: &mut impl Rng) {
        let Some(choices) = NonZeroU32::new(self.0.saturating_mul(2).saturating_add(1)) else {
            return;
        };
        let mut draw = || below(choices, rng) as f32 - self.0 as f32;
        let (down, right) = (draw(), draw());
        shape.redraw(sample, |row, column| (row - down, column - right));
    }
}

/// Turns an image about its centre by up to this many radians.
#[derive(Clone, Copy, Debug)]
pub struct Turn(pub f32);

impl Turn {
    pub(super) fn apply(self, shape: ImageShape, sample: &mut [f32], rng: &mut impl Rng) {
        let angle = self.0 * symmetric(rng);
        let (sine, cosine) = (math::sin(angle), math::cos(angle));
        let middle = |length: usize| (length - 1) as f32 / 2.0;
        let (y, x) = (middle(shape.height), middle(shape.width));
        shape.redraw(sample, |row, column| {
            let (down, right) = (row - y, column - x);
            (
                y + cosine * down - sine * right,
                x + sine * down + cosine * right,
            )
        });
    }
}

/// Sets a square at a random position, with a side of up to this many pixels, to the mean of the
/// image.
#[derive(Clone, Copy, Debug)]
pub struct Erase(pub u32);

impl Erase {
    pub(super) fn apply(self, shape: ImageShape, sample: &mut [f32], rng: &mut impl Rng) {
        let mut draw = |choices: usize| {
            let choices = u32::try_from(choices).ok().and_then(NonZeroU32::new);
            choices.map_or(0, |choices| below(choices, rng) as usize)
        };
        let side = 1 + draw(self.0 as usize);
        let (top, left) = (draw(shape.height), draw(shape.width));
        for image in sample.chunks_exact_mut(shape.pixels()) {
            let mean = image.iter().sum::<f32>() / shape.pixels() as f32;
            for row in image.chunks_exact_mut(shape.width).skip(top).take(side) {
                for pixel in row.iter_mut().skip(left).take(side) {
                    *pixel = mean;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smolfed_core::stream::{Purpose, Root, Stream, StreamId};

    fn stream() -> Stream {
        Root::from_seed(1).stream(StreamId {
            purpose: Purpose::Augmentation,
            round: 0,
            device: 0,
        })
    }

    const SHAPE: ImageShape = ImageShape {
        height: 4,
        width: 3,
    };

    fn image() -> Vec<f32> {
        (0..24).map(|i| i as f32).collect()
    }

    #[test]
    fn shifts_move_whole_pixels_and_repeat_the_border() {
        let mut rng = stream();
        let mut seen = Vec::new();
        for _ in 0..60 {
            let mut sample = image();
            Shift(1).apply(SHAPE, &mut sample, &mut rng);
            // The same for both channels.
            assert!(
                sample[..12]
                    .iter()
                    .zip(&sample[12..])
                    .all(|(a, b)| b - a == 12.0)
            );
            if !seen.contains(&sample[4]) {
                seen.push(sample[4]);
            }
        }
        seen.sort_by(f32::total_cmp);
        assert_eq!(seen, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        let mut sample = image();
        SHAPE.redraw(&mut sample, |row, column| (row + 1.0, column));
        assert_eq!(sample[..3], [3.0, 4.0, 5.0]);
        assert_eq!(sample[9..12], [9.0, 10.0, 11.0]);
    }

    #[test]
    fn a_turn_keeps_the_centre_and_a_quarter_is_exact() {
        let square = ImageShape {
            height: 3,
            width: 3,
        };
        let before: Vec<f32> = (0..9).map(|i| i as f32).collect();
        let mut rng = stream();
        for _ in 0..20 {
            let mut sample = before.clone();
            Turn(0.5).apply(square, &mut sample, &mut rng);
            assert!((sample[4] - 4.0).abs() < 1e-5, "{sample:?}");
            assert!(sample.iter().all(|x| (0.0..=8.0).contains(x)), "{sample:?}");
        }
        let mut sample = before;
        square.redraw(&mut sample, |row, column| (2.0 - column, row));
        assert_eq!(sample, [6.0, 3.0, 0.0, 7.0, 4.0, 1.0, 8.0, 5.0, 2.0]);
    }

    #[test]
    fn a_square_is_erased_to_the_mean() {
        let mut rng = stream();
        for _ in 0..20 {
            let mut sample = image();
            Erase(2).apply(SHAPE, &mut sample, &mut rng);
            let changed: Vec<usize> = (0..12).filter(|i| sample[*i] != *i as f32).collect();
            assert!((1..=4).contains(&changed.len()), "{changed:?}");
            assert!(changed.iter().all(|i| sample[*i] == 5.5), "{sample:?}");
        }
    }

    #[test]
    fn images_are_grids_with_or_without_channels() {
        assert_eq!(ImageShape::of_axes(&[4, 3]), Some(SHAPE));
        assert_eq!(ImageShape::of_axes(&[2, 4, 3]), Some(SHAPE));
        assert_eq!(ImageShape::of_axes(&[12]), None);
        assert_eq!(ImageShape::of_axes(&[1, 12]), None);
    }
}
