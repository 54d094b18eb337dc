//! Conversion of bytes to numbers, mainly of pixels: a number for each byte, by a table or a line.

use pulp::{Arch, NullaryFnOnce};

/// Values of a byte.
const BYTES: usize = 256;

/// A number for each byte.
#[derive(Clone, Debug, PartialEq)]
pub struct Levels {
    numbers: [f32; BYTES],
    /// The line of the numbers, if there is one: vectors compute faster than they look up.
    line: Option<Line>,
}

/// A line through the numbers of all bytes, rounded once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// Difference between two neighbouring numbers.
    pub slope: f64,
    /// Number of byte 0.
    pub intercept: f64,
}

impl Levels {
    /// Creates levels from the number of each byte.
    #[must_use]
    pub fn new(numbers: [f32; BYTES]) -> Self {
        let line = line(&numbers);
        Self { numbers, line }
    }

    /// Returns the number of each byte.
    #[must_use]
    pub const fn numbers(&self) -> &[f32; BYTES] {
        &self.numbers
    }

    /// Returns the line that rounds to these numbers, if there is one.
    #[must_use]
    pub const fn line(&self) -> Option<Line> {
        self.line
    }

    /// Returns the number of a byte.
    #[inline]
    #[must_use]
    pub fn get(&self, byte: u8) -> f32 {
        self.numbers[usize::from(byte)]
    }

    /// Writes the number of each byte over the common length, with the bits of [`get`](Self::get).
    #[inline(never)]
    pub fn write(&self, bytes: &[u8], numbers: &mut [f32]) {
        match self.line {
            Some(line) => Arch::new().dispatch(Write {
                line,
                bytes,
                numbers,
            }),
            None => {
                for (number, byte) in numbers.iter_mut().zip(bytes) {
                    *number = self.get(*byte);
                }
            }
        }
    }
}

/// Writes each byte as a number over the common length.
#[inline(never)]
pub fn write_bytes(bytes: &[u8], numbers: &mut [f32]) {
    Arch::new().dispatch(WriteBytes { bytes, numbers });
}

struct WriteBytes<'a> {
    bytes: &'a [u8],
    numbers: &'a mut [f32],
}

impl NullaryFnOnce for WriteBytes<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        for (number, byte) in self.numbers.iter_mut().zip(self.bytes) {
            *number = f32::from(*byte);
        }
    }
}

/// Returns the value on the line, rounded once as a double and once as a float.
#[inline(always)]
fn on_line(line: Line, byte: u8) -> f32 {
    (f64::from(byte) * line.slope + line.intercept) as f32
}

struct Write<'a> {
    line: Line,
    bytes: &'a [u8],
    numbers: &'a mut [f32],
}

impl NullaryFnOnce for Write<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        for (number, byte) in self.numbers.iter_mut().zip(self.bytes) {
            *number = on_line(self.line, *byte);
        }
    }
}

/// Returns a line that rounds to these numbers.
///
/// Values between l(i) and h(i), the midpoints to its neighbours, round to number i. With the
/// intercept eliminated, a slope fits if it is at least (l(j) − h(i)) / (j − i) and at most
/// (h(j) − l(i)) / (j − i) for all i < j. The midpoint of the allowed range is tried.
fn line(numbers: &[f32; BYTES]) -> Option<Line> {
    let middle = |a: f32, b: f32| (f64::from(a) + f64::from(b)) / 2.0;
    let low = numbers.map(|number| middle(number.next_down(), number));
    let high = numbers.map(|number| middle(number, number.next_up()));
    let (mut least, mut most) = (f64::NEG_INFINITY, f64::INFINITY);
    for j in 1..BYTES {
        for i in 0..j {
            let run = (j - i) as f64;
            least = least.max((low[j] - high[i]) / run);
            most = most.min((high[j] - low[i]) / run);
        }
    }
    let slope = f64::midpoint(least, most);
    let rise = |ends: [f64; BYTES]| (0..BYTES).map(move |i| ends[i] - slope * i as f64);
    let (lowest, highest) = (
        rise(low).fold(f64::NEG_INFINITY, f64::max),
        rise(high).fold(f64::INFINITY, f64::min),
    );
    let line = Line {
        slope,
        intercept: f64::midpoint(lowest, highest),
    };
    let is_hit = |byte: u8| on_line(line, byte).to_bits() == numbers[usize::from(byte)].to_bits();
    (0..=u8::MAX).all(is_hit).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(levels: &Levels) -> Vec<u32> {
        let bytes: Vec<u8> = (0..=u8::MAX).collect();
        let mut numbers = vec![f32::NAN; BYTES];
        levels.write(&bytes, &mut numbers);
        numbers.into_iter().map(f32::to_bits).collect()
    }

    fn bits(numbers: &[f32]) -> Vec<u32> {
        numbers.iter().map(|number| number.to_bits()).collect()
    }

    proptest! {
        /// Values scaled in double precision lie on a line with the same bits.
        #[test]
        fn a_line_is_found_where_there_is_one(mean in -300f64..300.0, std in 1e-3f64..300.0) {
            let scaled = |byte: usize| ((byte as f64 - mean) / std) as f32;
            let levels = Levels::new(std::array::from_fn(scaled));
            prop_assert!(levels.line.is_some());
            prop_assert_eq!(written(&levels), bits(levels.numbers()));
        }

        /// Any numbers are written correctly.
        #[test]
        fn numbers_off_every_line_are_looked_up(bend in 0usize..250, bound in 0f32..100.0) {
            let clipped = |byte: usize| if byte < bend { 1.0 } else { bound - byte as f32 };
            let levels = Levels::new(std::array::from_fn(clipped));
            prop_assert_eq!(written(&levels), bits(levels.numbers()));
        }
    }

    #[test]
    fn special_numbers_are_kept() {
        for special in [
            f32::NAN,
            f32::INFINITY,
            -0.0,
            f32::MAX,
            f32::MIN_POSITIVE / 2.0,
        ] {
            let levels = Levels::new([special; BYTES]);
            assert_eq!(written(&levels), vec![special.to_bits(); BYTES]);
            let mut numbers = [1.0; BYTES];
            numbers[7] = special;
            assert_eq!(written(&Levels::new(numbers)), bits(&numbers));
        }
        let bytes = Levels::new(std::array::from_fn(|byte| byte as f32));
        assert_eq!(bytes.line.map(|line| on_line(line, 255)), Some(255.0));
    }
}
