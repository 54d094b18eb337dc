//! Weights in panels: each row is a vector of outputs.

use super::vectors::next_width;

/// Positions of the entries of panels in the weights.
pub(super) struct Places {
    /// Places of the kernel.
    pub(super) area: usize,
    /// The channels along a panel.
    pub(super) inner: usize,
    pub(super) inner_step: usize,
    /// The channels of a vector.
    pub(super) outer: usize,
    pub(super) outer_step: usize,
}

impl Places {
    /// Copies weights to panels, with or without a rotated kernel, and appends its biases to each.
    #[inline(always)]
    pub(super) fn gather(
        &self,
        weights: &[f32],
        biases: &[f32],
        panels: &mut [f32],
        is_turned: bool,
    ) {
        let mut panels = panels;
        let mut first = 0;
        while first < self.outer {
            let width = next_width(self.outer - first);
            let size = width * (self.area * self.inner + 1);
            let Some((panel, after)) = panels.split_at_mut_checked(size) else {
                return;
            };
            let count = width.min(self.outer - first);
            let mut rows = panel.chunks_exact_mut(width);
            for place in 0..self.area {
                let place = if is_turned {
                    self.area - 1 - place
                } else {
                    place
                };
                for (inner, row) in (0..self.inner).zip(&mut rows) {
                    let start = place + inner * self.inner_step + first * self.outer_step;
                    let weights = weights.get(start..).unwrap_or_default();
                    row.fill(0.0);
                    let weights = weights.iter().step_by(self.outer_step.max(1));
                    for (entry, weight) in row.iter_mut().take(count).zip(weights) {
                        *entry = *weight;
                    }
                }
            }
            if let Some(row) = rows.next() {
                row.fill(0.0);
                for (entry, bias) in row.iter_mut().zip(biases.iter().skip(first)) {
                    *entry = *bias;
                }
            }
            panels = after;
            first += width;
        }
    }
}
