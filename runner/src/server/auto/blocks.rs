//! Vectors in blocks, which threads share out: a sum is that of its blocks, in order, and so the
//! same on any number of threads.

use std::ops::Range;

/// Entries of a block: what its vectors have of them fits into the fastest caches.
const BLOCK: usize = 4096;
/// How the tensors of a model lie in its parameters.
#[derive(Clone, Debug)]
pub(super) struct Tensors {
    spans: Vec<Range<usize>>,
    blocks: Vec<Block>,
}

/// A part of one tensor.
#[derive(Clone, Debug)]
pub(super) struct Block {
    /// Which tensor.
    tensor: usize,
    /// Where in the parameters.
    pub range: Range<usize>,
}

impl Tensors {
    /// Tensors of these lengths in a model of `parameters` parameters.
    pub(super) fn new(lengths: &[usize], parameters: usize) -> Self {
        let mut end = 0;
        let span = |length: &usize| {
            let start = end;
            end = (start + length).min(parameters);
            start..end
        };
        let spans: Vec<Range<usize>> = lengths.iter().map(span).collect();
        let of_tensor = |(tensor, span): (usize, &Range<usize>)| {
            let end = span.end;
            let starts = span.clone().step_by(BLOCK);
            starts.map(move |start| Block {
                tensor,
                range: start..(start + BLOCK).min(end),
            })
        };
        let blocks = spans.iter().enumerate().flat_map(of_tensor).collect();
        Self { spans, blocks }
    }

    /// Where each tensor lies.
    pub(super) fn spans(&self) -> &[Range<usize>] {
        &self.spans
    }

    /// Entries of a tensor, if there is one.
    pub(super) fn length(&self, tensor: usize) -> Option<usize> {
        self.spans.get(tensor).map(ExactSizeIterator::len)
    }

    /// Whether a tensor is a bias: weights and biases of a layer follow each other.
    pub(super) const fn is_bias(tensor: usize) -> bool {
        !tensor.is_multiple_of(2)
    }

    /// The blocks of all tensors, in order.
    pub(super) fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// What each block has of a vector.
    pub(super) fn pieces<'a>(&self, vector: &'a mut [f32]) -> Vec<&'a mut [f32]> {
        let mut rest = vector;
        let piece = |block: &Block| {
            let (piece, after) = std::mem::take(&mut rest).split_at_mut(block.range.len());
            rest = after;
            piece
        };
        self.blocks.iter().map(piece).collect()
    }

    /// √(a / b) for each tensor of weights, a and b being sums over its blocks; 1 where b is 0.
    pub(super) fn kept(&self, squares: &[[f64; 2]]) -> Vec<f64> {
        let mut sums = vec![[0.0; 2]; self.spans.len()];
        for (block, [mixed, whole]) in self.blocks.iter().zip(squares) {
            if let Some([sum, of_whole]) = sums.get_mut(block.tensor) {
                *sum += mixed;
                *of_whole += whole;
            }
        }
        let share = |[mixed, whole]: &[f64; 2]| match *whole > 0.0 {
            true => (mixed / whole).sqrt(),
            false => 1.0,
        };
        sums.iter().step_by(2).map(share).collect()
    }
}

impl Block {
    /// Whether it is of a bias.
    pub(super) const fn is_bias(&self) -> bool {
        Tensors::is_bias(self.tensor)
    }
}
