//! Cache of Gram matrices across rounds for the arithmetic `fast`, within a memory limit.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use smolfed_simd::span::Gram;

/// Gram matrices by device. The first ones stay: with randomly drawn cohorts no policy does better.
/// The others are recomputed, with the same bits.
pub(super) struct Kept {
    /// Memory limit in bytes.
    memory: u64,
    shelf: RwLock<Shelf>,
}

#[derive(Default)]
struct Shelf {
    grams: HashMap<u32, Arc<Gram>>,
    /// Bytes in use.
    used: u64,
}

impl Kept {
    /// Creates an empty cache of `memory` bytes.
    pub(super) fn new(memory: u64) -> Self {
        Self {
            memory,
            shelf: RwLock::default(),
        }
    }

    /// Returns the matrix of a device. Calls `make` if it is not cached.
    pub(super) fn get(
        &self,
        device: u32,
        samples: usize,
        make: impl FnOnce() -> Gram,
    ) -> Arc<Gram> {
        // A panicking thread leaves a consistent shelf: at worst a matrix is not counted.
        let shelf = self.shelf.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(gram) = shelf.grams.get(&device) {
            return Arc::clone(gram);
        }
        let bytes = Gram::bytes(samples) as u64;
        let has_room = |shelf: &Shelf| shelf.used.saturating_add(bytes) <= self.memory;
        let may_stay = has_room(&shelf);
        drop(shelf);
        let gram = Arc::new(make());
        if may_stay {
            let mut shelf = self.shelf.write().unwrap_or_else(PoisonError::into_inner);
            if has_room(&shelf) && shelf.grams.insert(device, Arc::clone(&gram)).is_none() {
                shelf.used += bytes;
            }
        }
        gram
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smolfed_simd::Rows;

    #[test]
    fn matrices_are_kept_until_their_memory_is_full() {
        let make = || Gram::new(&Rows::new(&[1.0, 2.0], 1, &[0u16, 1], &[0, 1]));
        let one = Gram::bytes(2) as u64;
        let kept = Kept::new(2 * one + 1);
        for device in 0..3 {
            kept.get(device, 2, make);
        }
        for device in 0..2 {
            kept.get(device, 2, || panic!("device {device} is kept"));
        }
        let mut made = 0;
        for _ in 0..2 {
            kept.get(2, 2, || {
                made += 1;
                make()
            });
        }
        assert_eq!(made, 2);
        assert_eq!(kept.shelf.read().unwrap().used, 2 * one);
    }
}
