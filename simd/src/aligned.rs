//! Numbers that begin where a cache line begins.
//!
//! A vector of 512 bits fills a line of the cache. Where vectors begin in the middle of lines, each
//! of them is read from two, and written to two, which takes twice as long. An allocation of `f32`
//! begins anywhere.

use std::ops::{Deref, DerefMut};

/// Bytes of a cache line.
const LINE: usize = 64;
/// Numbers that may lie before the first line that begins in an allocation.
const BEFORE: usize = LINE / size_of::<f32>() - 1;

/// A growing memory of numbers, of which the first begins a cache line. It reads as a slice.
/// Those of a clone begin anywhere, until it is given another length.
#[derive(Clone, Default)]
pub struct Aligned {
    memory: Vec<f32>,
    start: usize,
}

impl Aligned {
    /// Gives the memory `len` numbers, whose values mean nothing until they are written.
    pub fn resize(&mut self, len: usize) {
        let missing = (len + BEFORE).saturating_sub(self.memory.len());
        self.memory.reserve(missing);
        // It has room for all numbers, so that it stays where it is. An alignment that cannot be
        // had costs time only.
        self.start = self.memory.as_ptr().align_offset(LINE).min(BEFORE);
        self.memory.resize(self.start + len, 0.0);
    }

    /// Empties the memory, to be filled with as many numbers as come; these begin anywhere.
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
