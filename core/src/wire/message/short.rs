//! Models in 16 bits, on a public grid, and as exact differences to an earlier model.

use super::super::BODY_BYTES;
use super::MODEL_CHUNK;
use crate::bytes::{Reader, Writer};

/// Number of parameters in a full chunk of [`Values::Short`](super::Values::Short): as many as in
/// two chunks of `f32`.
pub const SHORT_CHUNK: usize = 2 * MODEL_CHUNK;

const _: () = assert!(
    2 * SHORT_CHUNK <= BODY_BYTES - 3,
    "a chunk fits in a frame behind its number and its places"
);

/// The flag of differences, next to the places of the grid.
const DIFFERENCE: u8 = 128;

/// Replaces a difference: the number itself follows, in 16 bits.
const ESCAPE: i8 = i8::MIN;

/// The grid of a model: its parameters are multiples of 2^−places, from −2^(15−places) up to one
/// step below 2^(15−places). The grid is public, so rounding to it reveals nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelGrid(u8);

impl ModelGrid {
    /// Maximum number of binary places, with which all parameters are below 1.
    pub const MAX_PLACES: u8 = 15;

    /// Creates the grid with this number of binary places. `None` above [`Self::MAX_PLACES`].
    pub const fn new(places: u8) -> Option<Self> {
        match places <= Self::MAX_PLACES {
            true => Some(Self(places)),
            false => None,
        }
    }

    /// Returns the number of binary places.
    pub const fn places(self) -> u8 {
        self.0
    }

    /// Returns the nearest number of steps, rounding halves to even. Saturates outside the grid,
    /// and returns 0 for NaN.
    pub fn round(self, x: f32) -> i16 {
        // Between 2^23 and 2^24 adjacent floats differ by 1.
        const WHOLE: f32 = (3 << 22) as f32;
        let steps = x * f32::from(1_u16 << self.0);
        let steps = steps.clamp(i16::MIN.into(), i16::MAX.into());
        ((steps + WHOLE) - WHOLE) as i16
    }

    /// Returns the number of steps of a value on the grid.
    pub fn steps(self, value: f32) -> i16 {
        (value * f32::from(1_u16 << self.0)) as i16
    }

    /// Converts steps to a value, exactly.
    pub fn value(self, steps: i16) -> f32 {
        f32::from(steps) / f32::from(1_u16 << self.0)
    }
}

/// Parameters on a grid, in a chunk.
#[derive(Clone, Copy, Debug)]
pub struct Short<'a> {
    /// Their grid.
    pub grid: ModelGrid,
    /// The parameters in steps of the grid.
    pub numbers: Numbers<'a>,
}

/// Numbers of grid steps.
#[derive(Clone, Copy, Debug)]
pub enum Numbers<'a> {
    /// As received, two bytes each.
    Bytes(&'a [u8]),
    /// As received, differences of one byte each, or escaped.
    DifferenceBytes(&'a [u8]),
    /// Numbers to send.
    Sent(&'a [i16]),
    /// Numbers to send as differences to the second slice.
    Differences(&'a [i16], &'a [i16]),
}

impl<'a> Short<'a> {
    /// Returns the encoding of `numbers`: differences to `base` if it is known and they fit in a
    /// frame.
    pub fn to_send(grid: ModelGrid, numbers: &'a [i16], base: Option<&'a [i16]>) -> Self {
        let bytes = |base: &[i16]| {
            let each = numbers.iter().zip(base);
            each.map(|(x, base)| difference(*x, *base).map_or(3, |_| 1))
                .sum::<usize>()
        };
        let base = base.filter(|base| base.len() == numbers.len());
        let numbers = match base {
            Some(base) if bytes(base) < 2 * numbers.len() => Numbers::Differences(numbers, base),
            _ => Numbers::Sent(numbers),
        };
        Self { grid, numbers }
    }

    /// Whether decoding needs the device's current model.
    pub const fn is_difference(&self) -> bool {
        matches!(
            self.numbers,
            Numbers::DifferenceBytes(_) | Numbers::Differences(..)
        )
    }

    /// Reads the part after the chunk number.
    pub(super) fn read(reader: &mut Reader<'a>) -> Option<Self> {
        let first = reader.u8()?;
        let grid = ModelGrid::new(first & !DIFFERENCE)?;
        let bytes = reader.rest();
        let numbers = match first & DIFFERENCE {
            0 => Numbers::Bytes(bytes),
            _ => Numbers::DifferenceBytes(bytes),
        };
        Some(Self { grid, numbers })
    }

    /// Writes the part after the chunk number.
    pub(super) fn write(&self, writer: &mut Writer<'_>) {
        let flag = match self.is_difference() {
            true => DIFFERENCE,
            false => 0,
        };
        writer.u8(self.grid.places() | flag);
        match self.numbers {
            Numbers::Sent(numbers) => {
                for number in numbers {
                    writer.put(&number.to_le_bytes());
                }
            }
            Numbers::Differences(numbers, base) => {
                for (number, base) in numbers.iter().zip(base) {
                    match difference(*number, *base) {
                        Some(difference) => writer.put(&difference.to_le_bytes()),
                        None => writer.put(&ESCAPE.to_le_bytes()).put(&number.to_le_bytes()),
                    };
                }
            }
            Numbers::Bytes(bytes) | Numbers::DifferenceBytes(bytes) => {
                writer.put(bytes);
            }
        }
    }

    /// Writes the received values to `target`, which also holds the base of differences. `to_value`
    /// and `to_steps` convert to the format of `target` and back. `None` if the lengths differ.
    /// `target` is then spoilt.
    pub fn receive(
        &self,
        target: &mut [f32],
        to_value: impl Fn(i16) -> f32,
        to_steps: impl Fn(f32) -> i16,
    ) -> Option<()> {
        let (bytes, is_difference) = match self.numbers {
            Numbers::Bytes(bytes) => (bytes, false),
            Numbers::DifferenceBytes(bytes) => (bytes, true),
            Numbers::Sent(_) | Numbers::Differences(..) => return None,
        };
        let reader = &mut Reader(bytes);
        for value in target {
            let difference = match is_difference {
                true => i8::from_le_bytes(reader.array()?),
                false => ESCAPE,
            };
            *value = to_value(match difference {
                ESCAPE => i16::from_le_bytes(reader.array()?),
                difference => to_steps(*value).wrapping_add(difference.into()),
            });
        }
        reader.end()
    }
}

/// Returns the difference if it fits in one byte.
fn difference(number: i16, base: i16) -> Option<i8> {
    let difference = i32::from(number) - i32::from(base);
    let difference = i8::try_from(difference).ok();
    difference.filter(|difference| *difference != ESCAPE)
}

#[cfg(test)]
mod tests {
    use std::vec;
    use std::vec::Vec;

    use proptest::collection;
    use proptest::prelude::*;

    use super::*;

    /// Returns the bytes of a chunk after its number.
    fn written(short: &Short<'_>) -> Vec<u8> {
        let mut place = [0; BODY_BYTES];
        let mut writer = Writer::new(&mut place);
        short.write(&mut writer);
        let length = writer.finish().expect("it fits");
        place[..length].to_vec()
    }

    fn grid(places: u8) -> ModelGrid {
        ModelGrid::new(places).unwrap()
    }

    fn values(grid: ModelGrid, steps: &[i16]) -> Vec<f32> {
        steps.iter().map(|steps| grid.value(*steps)).collect()
    }

    proptest! {
        #[test]
        fn numbers_arrive_as_they_are_whatever_the_device_has(
            places in 0_u8..=15,
            pairs in collection::vec((any::<i16>(), any::<i16>(), -200_i16..200), 1..=SHORT_CHUNK),
            is_near in any::<bool>(),
        ) {
            let grid = grid(places);
            let numbers: Vec<i16> = pairs.iter().map(|(x, ..)| *x).collect();
            let base: Vec<i16> = pairs
                .iter()
                .map(|(x, far, near)| if is_near { x.wrapping_add(*near) } else { *far })
                .collect();
            for base in [None, Some(base.as_slice())] {
                let sent = Short::to_send(grid, &numbers, base);
                let bytes = written(&sent);
                prop_assert!(bytes.len() <= 1 + 2 * numbers.len());
                let received = Short::read(&mut Reader(&bytes)).unwrap();
                prop_assert_eq!(received.grid, grid);
                prop_assert_eq!(received.is_difference(), sent.is_difference());
                let mut target = values(grid, base.unwrap_or(&vec![0; numbers.len()]));
                let (to_value, to_steps) = (|q| grid.value(q), |x| grid.round(x));
                received.receive(&mut target, to_value, to_steps).unwrap();
                prop_assert_eq!(target, values(grid, &numbers));
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(
            bytes in collection::vec(any::<u8>(), 0..230),
            length in 0_usize..=SHORT_CHUNK,
        ) {
            if let Some(short) = Short::read(&mut Reader(&bytes)) {
                let grid = short.grid;
                let mut target = vec![0.0; length];
                let (to_value, to_steps) = (|q| grid.value(q), |x| grid.steps(x));
                let _ = short.receive(&mut target, to_value, to_steps);
                prop_assert!(target.iter().all(|x| grid.value(grid.round(*x)) == *x));
            }
        }

        #[test]
        fn rounding_takes_the_nearest_step(places in 0_u8..=15, x in -40_000_f32..40_000.0) {
            let grid = grid(places);
            let x = x / f32::from(1_u16 << places);
            let rounded = grid.value(grid.round(x));
            let nearest = x.clamp(grid.value(i16::MIN), grid.value(i16::MAX));
            prop_assert!((rounded - nearest).abs() <= 0.5 / f32::from(1_u16 << places));
            prop_assert_eq!(grid.steps(rounded), grid.round(x));
        }
    }

    #[test]
    fn halves_are_rounded_to_even_and_what_is_beyond_is_the_last_step() {
        let grid = grid(1);
        for (x, steps) in [
            (0.25, 0),
            (0.75, 2),
            (-0.25, 0),
            (-0.75, -2),
            (1e9, i16::MAX),
            (-1e9, i16::MIN),
            (f32::NAN, 0),
        ] {
            assert_eq!(grid.round(x), steps, "{x}");
        }
        assert_eq!(ModelGrid::new(16), None);
    }

    #[test]
    fn small_differences_take_a_byte_and_large_ones_three() {
        let grid = grid(12);
        let sent = Short::to_send(grid, &[5, 1000, 7, 8], Some(&[4, -1000, 7, 8]));
        assert!(sent.is_difference());
        assert_eq!(written(&sent), [12 | DIFFERENCE, 1, 0x80, 0xe8, 0x03, 0, 0]);
        // Without differences it takes fewer bytes.
        assert!(!Short::to_send(grid, &[1000, 7], Some(&[0, 7])).is_difference());
        assert!(!Short::to_send(grid, &[1, 7], Some(&[0])).is_difference());
    }
}
