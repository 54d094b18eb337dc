//! The embedding layer: the row of its table for each symbol, the error for a symbol outside the
//! vocabulary, and its gradient.

use super::{super::error::ModelError, pass::Backward};

/// Copies the row of the table for each symbol.
///
/// # Errors
/// [`ModelError::Symbol`].
#[inline(always)]
pub(super) fn forward(
    table: &[f32],
    vocabulary: u16,
    width: u16,
    symbols: &[f32],
    output: &mut [f32],
) -> Result<(), ModelError> {
    let width = usize::from(width);
    for (symbol, output) in symbols.iter().zip(output.chunks_exact_mut(width.max(1))) {
        let row = index(*symbol)
            .filter(|row| *row < usize::from(vocabulary))
            .and_then(|row| table.get(row * width..(row + 1) * width))
            .ok_or(ModelError::Symbol {
                vocabulary: vocabulary.into(),
            })?;
        for (y, x) in output.iter_mut().zip(row) {
            *y = *x;
        }
    }
    Ok(())
}

/// Returns the row of a symbol, if it is a whole number of at most 65,535.
#[inline(always)]
fn index(symbol: f32) -> Option<usize> {
    // Saturates. NaN becomes 0, which differs from it.
    let row = symbol as u16;
    (f32::from(row).to_bits() == symbol.to_bits() || (row == 0 && symbol == 0.0))
        .then_some(row.into())
}

/// Adds the derivatives of each step to the row of its symbol.
#[inline(always)]
pub(super) fn backward(width: u16, pass: &mut Backward<'_>) {
    let width = usize::from(width);
    let steps = pass.derivatives.chunks_exact(width.max(1));
    for (symbol, derivatives) in pass.input.iter().zip(steps) {
        let row = index(*symbol).and_then(|row| pass.gradient.get_mut(row * width..));
        for (sum, derivative) in row.unwrap_or_default().iter_mut().zip(derivatives) {
            *sum += derivative;
        }
    }
}
