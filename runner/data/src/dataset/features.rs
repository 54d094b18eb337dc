//! The features of all rows: numbers, or bytes and the number that each byte represents.
//!
//! Pixels are bytes. If one map scales all of them, a table of 256 numbers is sufficient. It needs
//! a quarter of the memory and gives the same bits, because each entry is computed as for a pixel.

use smolfed_simd::bytes::{Levels, Line};

use super::order::reorder;

/// The features of all rows, row after row.
#[derive(Clone, PartialEq)]
pub enum Features {
    /// Numbers.
    Numbers(Vec<f32>),
    /// Bytes, and the number that each represents.
    Bytes(Vec<u8>, Box<Levels>),
}

impl From<Vec<f32>> for Features {
    fn from(numbers: Vec<f32>) -> Self {
        Self::Numbers(numbers)
    }
}

impl Features {
    /// Creates bytes that represent themselves.
    #[must_use]
    pub fn of_bytes(bytes: Vec<u8>) -> Self {
        let itself = Levels::new(std::array::from_fn(|byte| byte as f32));
        Self::Bytes(bytes, Box::new(itself))
    }

    /// Returns the number of features.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Numbers(numbers) => numbers.len(),
            Self::Bytes(bytes, _) => bytes.len(),
        }
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the numbers, if they are stored as such.
    #[must_use]
    pub fn numbers(&self) -> Option<&[f32]> {
        match self {
            Self::Numbers(numbers) => Some(numbers),
            Self::Bytes(..) => None,
        }
    }

    /// Returns the linear map of the bytes to their numbers, if there is one.
    #[must_use]
    pub fn line(&self) -> Option<Line> {
        match self {
            Self::Numbers(_) => None,
            Self::Bytes(_, levels) => levels.line(),
        }
    }

    /// Returns a copy of all numbers.
    #[must_use]
    pub fn to_vec(&self) -> Vec<f32> {
        let mut numbers = vec![0.0; self.len()];
        self.write(0, &mut numbers);
        numbers
    }

    /// Changes single numbers. Bytes are replaced by the numbers that they represent.
    pub(crate) fn edit(&mut self, change: impl FnOnce(&mut Vec<f32>)) {
        let mut numbers = match std::mem::replace(self, Self::Numbers(Vec::new())) {
            Self::Numbers(numbers) => numbers,
            bytes @ Self::Bytes(..) => bytes.to_vec(),
        };
        change(&mut numbers);
        *self = Self::Numbers(numbers);
    }

    /// Returns the number at a place.
    ///
    /// # Panics
    /// If `place` is not below [`len`](Self::len).
    #[must_use]
    pub fn get(&self, place: usize) -> f32 {
        match self {
            Self::Numbers(numbers) => numbers[place],
            Self::Bytes(bytes, levels) => levels.get(bytes[place]),
        }
    }

    /// Writes the numbers from `start` on.
    ///
    /// # Panics
    /// If that ends beyond [`len`](Self::len).
    pub fn write(&self, start: usize, into: &mut [f32]) {
        let places = start..start + into.len();
        match self {
            Self::Numbers(numbers) => into.copy_from_slice(&numbers[places]),
            Self::Bytes(bytes, levels) => levels.write(&bytes[places], into),
        }
    }

    /// Replaces the numbers at some places.
    ///
    /// # Panics
    /// If a place is not below [`len`](Self::len).
    pub fn fill(&mut self, places: &[usize], number: impl Fn(usize) -> f32) {
        if !places.is_empty() {
            self.edit(|numbers| {
                for place in places {
                    numbers[*place] = number(*place);
                }
            });
        }
    }

    /// Appends features. They stay bytes if both are bytes with equal numbers.
    pub fn append(&mut self, other: Self) {
        match (self, other) {
            (Self::Bytes(bytes, levels), Self::Bytes(more, same)) if *levels == same => {
                bytes.extend(more);
            }
            (all, other) => all.edit(|numbers| numbers.extend(other.to_vec())),
        }
    }

    /// Returns the features of some rows of `width` features.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn of_rows(&self, rows: &[usize], width: usize) -> Self {
        let places = rows.iter().map(|row| row * width..(row + 1) * width);
        match self {
            Self::Numbers(numbers) => {
                Self::Numbers(places.flat_map(|row| &numbers[row]).copied().collect())
            }
            Self::Bytes(bytes, levels) => {
                let bytes = places.flat_map(|row| &bytes[row]).copied().collect();
                Self::Bytes(bytes, levels.clone())
            }
        }
    }

    /// Moves row `order[i]`, of `width` features, to place i, for all i.
    pub(super) fn reorder(&mut self, order: &[u32], width: usize) {
        match self {
            Self::Numbers(numbers) => reorder(numbers, width, order),
            Self::Bytes(bytes, _) => reorder(bytes, width, order),
        }
    }

    /// Maps the features of all rows, each column by its own map. Bytes stay bytes if all maps are
    /// equal. Equal maps must have equal results.
    pub fn map<M: PartialEq>(&mut self, maps: &[M], apply: impl Fn(&M, f32) -> f32) {
        match (self, only(maps)) {
            (Self::Bytes(_, levels), Some(map)) => {
                **levels = Levels::new(levels.numbers().map(|number| apply(map, number)));
            }
            (features, _) => features.edit(|numbers| {
                for row in numbers.chunks_exact_mut(maps.len()) {
                    for (number, map) in row.iter_mut().zip(maps) {
                        *number = apply(map, *number);
                    }
                }
            }),
        }
    }

    /// Returns the number of features of each column that its map marks.
    #[must_use]
    pub fn count<M: PartialEq>(&self, maps: &[M], is_marked: impl Fn(&M, f32) -> bool) -> Vec<u64> {
        let mut counts = vec![0; maps.len()];
        if let (Self::Bytes(_, levels), Some(map)) = (self, only(maps))
            && !levels
                .numbers()
                .iter()
                .any(|number| is_marked(map, *number))
        {
            return counts;
        }
        for place in 0..self.len() {
            let column = place % maps.len();
            counts[column] += u64::from(is_marked(&maps[column], self.get(place)));
        }
        counts
    }

    /// Returns the first place without a finite number.
    #[must_use]
    pub fn first_not_finite(&self) -> Option<usize> {
        match self {
            Self::Numbers(numbers) => numbers.iter().position(|number| !number.is_finite()),
            Self::Bytes(_, levels) if levels.numbers().iter().all(|n| n.is_finite()) => None,
            Self::Bytes(bytes, levels) => {
                bytes.iter().position(|byte| !levels.get(*byte).is_finite())
            }
        }
    }
}

/// Returns the map of all columns, if they are equal.
fn only<M: PartialEq>(maps: &[M]) -> Option<&M> {
    let (first, rest) = maps.split_first()?;
    rest.iter().all(|map| map == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, num::f32::NORMAL, prelude::*};

    use super::*;

    const WIDTH: usize = 3;

    fn numbers(features: &Features) -> Vec<u32> {
        features.to_vec().into_iter().map(f32::to_bits).collect()
    }

    proptest! {
        /// For all operations, bytes give the same result as the numbers that they represent.
        #[test]
        fn bytes_and_numbers_have_the_same_bits(
            rows in vec(any::<[u8; WIDTH]>(), 1..20),
            factors in prop_oneof![
                NORMAL.prop_map(|one| [one; WIDTH]),
                [NORMAL, NORMAL, NORMAL],
            ],
            limit in 0f32..300.0,
        ) {
            let bytes = rows.concat();
            let mut packed = Features::of_bytes(bytes.clone());
            let floats: Vec<f32> = bytes.iter().map(|byte| f32::from(*byte)).collect();
            let mut plain = Features::from(floats);
            let is_beyond = |map: &f32, number: f32| number > limit && *map > 0.0;
            let count = |features: &Features| features.count(&factors, is_beyond);
            prop_assert_eq!(count(&packed), count(&plain));
            for features in [&mut packed, &mut plain] {
                features.map(&factors, |map, number| (number - 33.3) / map);
            }
            let is_one_map = factors[1..].iter().all(|factor| *factor == factors[0]);
            prop_assert_eq!(packed.numbers().is_none(), is_one_map);
            prop_assert_eq!(numbers(&packed), numbers(&plain));
            prop_assert_eq!(packed.first_not_finite(), plain.first_not_finite());
            let last = [rows.len() - 1];
            prop_assert_eq!(
                numbers(&packed.of_rows(&last, WIDTH)),
                numbers(&plain.of_rows(&last, WIDTH))
            );
            let place = packed.len() - 1;
            prop_assert_eq!(packed.get(place).to_bits(), plain.get(place).to_bits());
        }
    }

    #[test]
    fn bytes_stay_bytes_beside_bytes_of_the_same_scale() {
        let all = |mut first: Features, second: Features| {
            first.append(second);
            (first.numbers().is_none(), numbers(&first))
        };
        let bits = [1f32, 255.0].map(f32::to_bits).to_vec();
        let (one, other) = (Features::of_bytes(vec![1]), Features::of_bytes(vec![255]));
        assert_eq!(all(one.clone(), other.clone()), (true, bits.clone()));
        let number = Features::from(vec![255.0]);
        assert_eq!(all(one.clone(), number), (false, bits));
        let mut halved = other;
        halved.map(&[2.0], |divisor, number| number / divisor);
        assert_eq!(
            all(one, halved),
            (false, vec![1f32.to_bits(), 127.5f32.to_bits()])
        );
    }
}
