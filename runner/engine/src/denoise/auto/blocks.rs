//! Vectors in blocks, which threads share out. A sum adds its blocks in order, so it is the same on
//! any number of threads.

use std::ops::Range;

use crate::layout::TensorLayout;

/// Entries of a block: its part of the vectors fits into the fastest caches.
const BLOCK: usize = 4096;
/// Layout of the tensors in a model's parameters.
#[derive(Clone, Debug)]
pub(super) struct Tensors {
    tensors: Vec<Tensor>,
    blocks: Vec<Block>,
}

/// A tensor in the parameters.
#[derive(Clone, Debug)]
pub(super) struct Tensor {
    /// Range in the parameters.
    pub span: Range<usize>,
    /// Outputs of its layer.
    pub outputs: usize,
    /// Whether it is a bias, with an entry per output and no weights.
    pub is_bias: bool,
}

/// A part of one tensor.
#[derive(Clone, Debug)]
pub(super) struct Block {
    /// Index of the tensor.
    tensor: usize,
    /// Whether the tensor is a bias.
    pub is_bias: bool,
    /// Range in the parameters.
    pub range: Range<usize>,
}

impl Tensors {
    /// Returns the tensors of a model with `parameters` parameters.
    pub(super) fn new(layouts: &[TensorLayout], parameters: usize) -> Self {
        let mut end = 0;
        let tensor = |layout: &TensorLayout| {
            let start = end;
            end = (start + layout.length()).min(parameters);
            Tensor {
                span: start..end,
                outputs: layout.outputs(),
                is_bias: layout.is_bias(),
            }
        };
        let tensors: Vec<Tensor> = layouts.iter().map(tensor).collect();
        let of_tensor = |(index, tensor): (usize, &Tensor)| {
            let end = tensor.span.end;
            let starts = tensor.span.clone().step_by(BLOCK);
            let is_bias = tensor.is_bias;
            starts.map(move |start| Block {
                tensor: index,
                is_bias,
                range: start..(start + BLOCK).min(end),
            })
        };
        let blocks = tensors.iter().enumerate().flat_map(of_tensor).collect();
        Self { tensors, blocks }
    }

    /// Returns the tensors, in order.
    pub(super) fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// Returns the blocks of all tensors, in order.
    pub(super) fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Splits a vector into its blocks.
    pub(super) fn pieces<'a>(&self, vector: &'a mut [f32]) -> Vec<&'a mut [f32]> {
        let mut rest = vector;
        let piece = |block: &Block| {
            let (piece, after) = std::mem::take(&mut rest).split_at_mut(block.range.len());
            rest = after;
            piece
        };
        self.blocks.iter().map(piece).collect()
    }

    /// Returns √(a / b) for each tensor of weights, with a and b sums over its blocks, or 1 where b
    /// is 0.
    pub(super) fn kept(&self, squares: &[[f64; 2]]) -> Vec<f64> {
        let mut sums = vec![[0.0; 2]; self.tensors.len()];
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
        let both = sums.iter().zip(&self.tensors);
        let weights = both.filter(|(_, tensor)| !tensor.is_bias);
        weights.map(|(sums, _)| share(sums)).collect()
    }
}
