//! Eigenvalues and eigenvectors of small symmetric matrices, by cyclic Jacobi rotations, and the
//! nearest positive semi-definite matrix.
//!
//! A rotation in the plane of two coordinates p < q makes the entry (p, q) zero. Repeated passes
//! over all pairs make the matrix diagonal, in about eight passes (Golub and Van Loan, Matrix
//! Computations, 4th edition, section 8.5). A linear algebra library would be faster for large
//! matrices, but chooses its kernels for the machine and sums in a different order with each. The
//! code here uses only +, −, ·, / and the square root, which IEEE 754 rounds correctly, in one
//! order: the same bits on every machine. Messages to devices depend on them ([`project_to_psd`]).

use std::f64::consts::{FRAC_1_SQRT_2, SQRT_2};

use smolfed_core::contrast::correlation::packed_length;

/// Maximum number of passes over all pairs. Convergence is quadratic from about the fifth on.
const MAX_PASSES: u32 = 60;
/// An off-diagonal entry this small relative to the largest entry counts as zero: 2⁻⁶⁰.
const NEGLIGIBLE: f64 = 1.0 / (1u64 << 60) as f64;

/// Eigenvalues and eigenvectors of a symmetric matrix of width n.
#[derive(Clone, Debug, PartialEq)]
pub struct Eigen {
    /// The n eigenvalues in descending order.
    pub values: Vec<f64>,
    /// The eigenvectors in the order of their values, one per row of n numbers: orthonormal, each
    /// with the sign that makes its largest entry positive.
    pub vectors: Vec<f64>,
}

/// Computes the eigenvalues and eigenvectors of a symmetric matrix.
///
/// * Shape: `matrix` is width × width, row by row. Missing entries count as zero. Of each pair of
///   mirrored entries, the one above the diagonal is read.
/// * Accuracy: about `width · 2⁻⁵²` times the largest entry. Non-finite entries make all values
///   NaN.
/// * Cost: about `50 · width³` flop.
#[must_use]
pub fn symmetric_eigen(matrix: &[f64], width: usize) -> Eigen {
    let entry = |row: usize, column: usize| {
        let index = row.min(column) * width + row.max(column);
        matrix.get(index).copied().unwrap_or(0.0)
    };
    let cells = (0..width * width).map(|index| entry(index / width, index % width));
    let mut rotating = Rotating {
        width,
        matrix: cells.collect(),
        vectors: vec![0.0; width * width],
    };
    if rotating.matrix.iter().any(|entry| !entry.is_finite()) {
        return Eigen {
            values: vec![f64::NAN; width],
            vectors: rotating.vectors,
        };
    }
    for index in 0..width {
        rotating.vectors[index * width + index] = 1.0;
    }
    let largest = rotating.matrix.iter().fold(0.0, |a: f64, b| a.max(b.abs()));
    for _ in 0..MAX_PASSES {
        if !rotating.pass(NEGLIGIBLE * largest) {
            break;
        }
    }
    rotating.sorted()
}

/// A partly diagonalized matrix, and the rotations so far.
struct Rotating {
    width: usize,
    matrix: Vec<f64>,
    /// Its rows become the eigenvectors.
    vectors: Vec<f64>,
}

impl Rotating {
    /// Rotates in every plane whose entry is not negligible. Returns whether there was one.
    fn pass(&mut self, negligible: f64) -> bool {
        let mut has_rotated = false;
        for p in 0..self.width {
            for q in p + 1..self.width {
                if self.matrix[p * self.width + q].abs() > negligible {
                    self.rotate(p, q);
                    has_rotated = true;
                }
            }
        }
        has_rotated
    }

    /// Makes the entry (p, q) zero, p < q.
    fn rotate(&mut self, p: usize, q: usize) {
        let n = self.width;
        let between = self.matrix[p * n + q];
        // The smaller root t = tan θ of t² + 2τt − 1 = 0: the smaller angle.
        let tau = (self.matrix[q * n + q] - self.matrix[p * n + p]) / (2.0 * between);
        let sign = if tau < 0.0 { -1.0 } else { 1.0 };
        let t = sign / (tau.abs() + (1.0 + tau * tau).sqrt());
        let c = 1.0 / (1.0 + t * t).sqrt();
        let s = t * c;
        for i in (0..n).filter(|i| *i != p && *i != q) {
            let (at_p, at_q) = (self.matrix[i * n + p], self.matrix[i * n + q]);
            let (to_p, to_q) = (c * at_p - s * at_q, s * at_p + c * at_q);
            for (index, value) in [(i * n + p, to_p), (p * n + i, to_p)] {
                self.matrix[index] = value;
            }
            for (index, value) in [(i * n + q, to_q), (q * n + i, to_q)] {
                self.matrix[index] = value;
            }
        }
        self.matrix[p * n + p] -= t * between;
        self.matrix[q * n + q] += t * between;
        self.matrix[p * n + q] = 0.0;
        self.matrix[q * n + p] = 0.0;
        let (before, from_q) = self.vectors.split_at_mut(q * n);
        let row_p = before[p * n..].iter_mut().take(n);
        for (x, y) in row_p.zip(from_q.iter_mut().take(n)) {
            (*x, *y) = (c * *x - s * *y, s * *x + c * *y);
        }
    }

    fn sorted(self) -> Eigen {
        let n = self.width;
        let value = |index: usize| self.matrix[index * n + index];
        let mut order: Vec<usize> = (0..n).collect();
        // A stable sort: equal values keep their order.
        order.sort_by(|&a, &b| value(b).total_cmp(&value(a)));
        let vector = |index: usize| {
            let row = &self.vectors[index * n..(index + 1) * n];
            let largest = row
                .iter()
                .fold(0.0, |a: f64, b| if b.abs() > a.abs() { *b } else { a });
            let sign = if largest < 0.0 { -1.0 } else { 1.0 };
            row.iter().map(move |x| sign * x)
        };
        Eigen {
            values: order.iter().map(|&index| value(index)).collect(),
            vectors: order.iter().flat_map(|&index| vector(index)).collect(),
        }
    }
}

/// Replaces a symmetric matrix by the nearest positive semi-definite one in the Frobenius norm,
/// without its negative eigenvalues (Higham 1988, Theorem 2.1, doi:10.1016/0024-3795(88)90223-6).
/// Noise can make a correlation matrix indefinite, and the loss of a device unbounded below.
///
/// * Shape: packed as in [`packed_length`], of width `width`. A matrix of another length, or with
///   non-finite entries, is left unchanged.
/// * Accuracy: that of `f32`. A matrix without negative eigenvalues keeps its bits.
/// * Privacy: post-processing of a noisy matrix.
pub fn project_to_psd(packed: &mut [f32], width: usize) {
    if packed.len() != packed_length(width) || packed.iter().any(|entry| !entry.is_finite()) {
        return;
    }
    let mut matrix = vec![0.0; width * width];
    for ((row, column), entry) in upper_triangle(width).zip(packed.iter()) {
        let scale = if row == column { 1.0 } else { FRAC_1_SQRT_2 };
        matrix[row * width + column] = scale * f64::from(*entry);
    }
    let Eigen { values, vectors } = symmetric_eigen(&matrix, width);
    if !values.iter().any(|value| *value < 0.0) {
        return;
    }
    // Minus λ v vᵀ for each λ < 0.
    for (value, vector) in values.iter().zip(vectors.chunks_exact(width)) {
        if *value < 0.0 {
            for (row, column) in upper_triangle(width) {
                matrix[row * width + column] -= value * vector[row] * vector[column];
            }
        }
    }
    for ((row, column), entry) in upper_triangle(width).zip(packed.iter_mut()) {
        let scale = if row == column { 1.0 } else { SQRT_2 };
        *entry = (scale * matrix[row * width + column]) as f32;
    }
}

/// Returns the rows and columns of the entries of a packed matrix, in order.
fn upper_triangle(width: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..width).flat_map(move |row| (row..width).map(move |column| (row, column)))
}

#[cfg(test)]
mod tests;
