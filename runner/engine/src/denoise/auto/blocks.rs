//! Vectors in blocks, which threads share out: a sum is that of its blocks, in order, and so the
//! same on any number of threads.

use std::ops::Range;

use crate::layout::TensorLayout;

/// Entries of a block: what its vectors have of them fits into the fastest caches.
const BLOCK: usize = 4096;
/// How the tensors of a model lie in its parameters.
#[derive(Clone, Debug)]
pub(super) struct Tensors {
    tensors: Vec<Tensor>,
    blocks: Vec<Block>,
}

/// A tensor in the parameters.
#[derive(Clone, Debug)]
pub(super) struct Tensor {
    /// Where it lies.
    pub span: Range<usize>,
    /// Outputs of its layer.
    pub outputs: usize,
    /// Whether it has no weights: an entry for each output.
    pub is_bias: bool,
}

/// A part of one tensor.
#[derive(Clone, Debug)]
pub(super) struct Block {
    /// Which tensor.
    tensor: usize,
    /// Whether that is a bias.
    pub is_bias: bool,
    /// Where in the parameters.
    pub range: Range<usize>,
}

impl Tensors {
    /// The tensors of a model of `parameters` parameters.
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

    /// The tensors, in order.
    pub(super) fn tensors(&self) -> &[Tensor] {
        &self.tensors
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
