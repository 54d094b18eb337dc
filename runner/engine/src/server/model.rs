//! The global model: the server's copy, and the published one.
//!
//! With `server.model_places`, devices, evaluation and files have the model rounded to a public
//! grid, so that it travels in 16 bits. The server keeps all bits, so that changes smaller than a
//! step add up. Rounding is post-processing of the releases.

use smolfed_core::wire::message::ModelGrid;

/// The global model.
#[derive(Clone, Debug)]
pub(crate) struct GlobalModel {
    grid: Option<ModelGrid>,
    kept: Vec<f32>,
    /// The model on the grid. Empty without one.
    rounded: Vec<f32>,
}

impl GlobalModel {
    /// Creates a model on this grid, if there is one.
    pub fn new(grid: Option<ModelGrid>, kept: Vec<f32>) -> Self {
        let mut model = Self {
            grid,
            kept,
            rounded: Vec::new(),
        };
        model.round();
        model
    }

    /// Returns the published model, for training, evaluation and files.
    pub fn published(&self) -> &[f32] {
        match self.grid {
            Some(_) => &self.rounded,
            None => &self.kept,
        }
    }

    /// Returns the server's copy.
    pub fn kept(&self) -> &[f32] {
        &self.kept
    }

    /// Changes the server's copy.
    pub fn update(&mut self, change: impl FnOnce(&mut [f32])) {
        change(&mut self.kept);
        self.round();
    }

    /// Returns the number of parameters beyond the grid, which are clamped, or `None` without one.
    pub fn beyond(&self) -> Option<u32> {
        let grid = self.grid?;
        let (first, last) = (grid.value(i16::MIN), grid.value(i16::MAX));
        let is_beyond = |x: &&f32| !(first..=last).contains(*x);
        let count = self.kept.iter().filter(is_beyond).count();
        Some(u32::try_from(count).unwrap_or(u32::MAX))
    }

    fn round(&mut self) {
        if let Some(grid) = self.grid {
            let rounded = self.kept.iter().map(|x| grid.value(grid.round(*x)));
            self.rounded = rounded.collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_changes_add_up_and_large_values_are_cut_off() {
        let mut model = GlobalModel::new(ModelGrid::new(12), vec![0.0, 7.9]);
        let step = 1.0 / 4096.0;
        for count in 1..=8_u8 {
            model.update(|kept| kept.iter_mut().for_each(|x| *x += step / 4.0));
            let steps = model.published()[0] / step;
            assert!((steps - f32::from(count) / 4.0).abs() <= 0.5);
        }
        assert_eq!(
            (model.published()[0], model.beyond()),
            (2.0 * step, Some(0))
        );
        model.update(|kept| kept[1] = 9.0);
        assert_eq!(
            (model.published()[1], model.beyond()),
            (8.0 - step, Some(1))
        );
        assert_eq!(model.kept()[1], 9.0);
    }

    #[test]
    fn without_a_grid_all_bits_are_published() {
        let model = GlobalModel::new(None, vec![0.1, 1e9]);
        assert_eq!(model.published(), [0.1, 1e9]);
        assert_eq!(model.beyond(), None);
    }
}
