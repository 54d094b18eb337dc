//! Sums of the masks of many updates. Equals [`RoundKey::masks`](smolfed_core::mask::RoundKey),
//! with key streams generated sixteen blocks at a time.

use rand_core::Rng;
use smolfed_core::mask::{MAX_WIDTH, RoundKey};
use zeroize::Zeroizing;

use crate::words::Words;

/// Adds up masks. Drop overwrites the key stream, which belongs to one device at a time.
pub struct MaskSum {
    width: u32,
    /// The key stream of a device, followed by words that no mask uses.
    words: Zeroizing<Vec<u32>>,
}

impl core::fmt::Debug for MaskSum {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "MaskSum({} bits)", self.width)
    }
}

impl MaskSum {
    /// Creates a sum for masks of `width` bits on `length` entries. A width outside 1 to
    /// [`MAX_WIDTH`] is replaced by the nearest one.
    #[must_use]
    pub fn new(width: u32, length: usize) -> Self {
        let width = width.clamp(1, MAX_WIDTH);
        let words = (length * width as usize).div_ceil(32) + 2;
        Self {
            width,
            words: Zeroizing::new(vec![0; words]),
        }
    }

    /// Adds the masks of a device in a round to `sum`, modulo 2⁶⁴, for at most the announced number
    /// of entries.
    pub fn add(&mut self, key: &RoundKey, sum: &mut [i64]) {
        let mut stream = Words::of_state(key.state());
        let used = (sum.len() * self.width as usize).div_ceil(32);
        for word in self.words.iter_mut().take(used) {
            *word = stream.next_u32();
        }
        let mask = (1 << self.width) - 1;
        for (index, entry) in sum.iter_mut().enumerate() {
            let bit = index * self.width as usize;
            let (first, shift) = (bit / 32, bit % 32);
            let Some([a, b, c]) = self.words.get(first..).and_then(<[u32]>::first_chunk) else {
                return;
            };
            // At most 31 bits are skipped, and 57 follow.
            let low = (u64::from(*a) | u64::from(*b) << 32) >> shift;
            let piece = low | (u64::from(*c) << 1) << (63 - shift);
            *entry = entry.wrapping_add((piece & mask).cast_signed());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use smolfed_core::mask::MaskRoot;
    use smolfed_core::stream::Root;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn masks_are_those_of_devices(width in 1u32..=MAX_WIDTH, length in 0usize..700) {
            let key = |device| {
                let root = MaskRoot::new(&Root::from_secret([9; 32]), device);
                root.helper(0).round(3, b"ledger 1")
            };
            let mut found = vec![i64::MAX; length];
            let mut expected = found.clone();
            let mut sum = MaskSum::new(width, length);
            for device in 0..3 {
                sum.add(&key(device), &mut found);
                let mut masks = key(device).masks(width);
                for entry in &mut expected {
                    *entry = entry.wrapping_add(masks.next_mask().cast_signed());
                }
            }
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn nothing_is_printed() {
        assert_eq!(format!("{:?}", MaskSum::new(19, 650)), "MaskSum(19 bits)");
    }
}
