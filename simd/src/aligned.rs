//! Numbers aligned to a cache line.
//!
//! A vector of 512 bits fills a cache line. A vector that starts in the middle of a line is read
//! from two lines and written to two, which takes twice as long. An allocation of `f32` can start
//! anywhere.

use std::ops::{Deref, DerefMut};

/// Bytes of a cache line.
const LINE: usize = 64;
/// Maximum count of numbers before the first cache line in an allocation.
const BEFORE: usize = LINE / size_of::<f32>() - 1;

/// A growable memory of numbers that starts at a cache line and reads as a slice. A clone starts
/// anywhere until it is resized.
#[derive(Clone, Default)]
pub struct Aligned {
    memory: Vec<f32>,
    start: usize,
}

impl Aligned {
    /// Resizes the memory to `len` numbers, whose values are unspecified until written.
    pub fn resize(&mut self, len: usize) {
        let missing = (len + BEFORE).saturating_sub(self.memory.len());
        self.memory.reserve(missing);
        // It has room for all numbers, so it stays in place. A failed alignment costs only time.
        self.start = self.memory.as_ptr().align_offset(LINE).min(BEFORE);
        self.memory.resize(self.start + len, 0.0);
    }

    /// Empties the memory, to be filled with any count of numbers, which may start anywhere.
    pub fn refill(&mut self) -> &mut Vec<f32> {
        self.start = 0;
        self.memory.clear();
        &mut self.memory
    }
}

impl Deref for Aligned {
    type Target = [f32];

    #[inline]
    fn deref(&self) -> &[f32] {
        &self.memory[self.start..]
    }
}

impl DerefMut for Aligned {
    #[inline]
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.memory[self.start..]
    }
}

/// Shape only: device data never reach a log.
impl std::fmt::Debug for Aligned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Aligned({} numbers)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_begin_a_line_whenever_memory_moves() {
        let mut numbers = Aligned::default();
        assert!(numbers.is_empty());
        for len in [3, 1000, 7, 100_000, 0] {
            numbers.resize(len);
            numbers.fill(1.0);
            assert_eq!(numbers.len(), len);
            assert_eq!(numbers.as_ptr().align_offset(LINE), 0);
        }
        numbers.refill().extend([1.0, 2.0]);
        assert_eq!(*numbers, [1.0, 2.0]);
    }
}
