//! Models in 16 bits for devices that ask for short chunks, and earlier models as the base of
//! differences.

use std::collections::VecDeque;
use std::sync::Arc;

use smolfed_core::wire::message::{MODEL_CHUNK, Message, ModelGrid, SHORT_CHUNK, Short, Values};

/// Number of remembered models. A device that returns after more rounds gets all 16 bits.
const MODELS: usize = 8;

/// A model in steps of its grid.
type Steps = Arc<Vec<i16>>;

/// A model on a grid, and earlier ones by the numbers of their offers.
#[derive(Clone, Debug)]
pub struct ShortModel {
    grid: ModelGrid,
    steps: Steps,
    earlier: Vec<(u32, Steps)>,
}

impl ShortModel {
    /// Returns the frame that begins with this chunk of [`MODEL_CHUNK`] parameters, for a device
    /// that has the model of the number `base`.
    pub(crate) fn frame(&self, chunk: u16, base: Option<u32>) -> Option<Message<'_>> {
        let frame_of = |steps: &'_ Steps| {
            let begin = usize::from(chunk) * MODEL_CHUNK;
            begin..steps.len().min(begin + SHORT_CHUNK)
        };
        let steps = self.steps.get(frame_of(&self.steps));
        let steps = steps.filter(|steps| !steps.is_empty())?;
        let earlier = self.earlier.iter();
        let base = base.and_then(|base| earlier.rev().find(|(number, _)| *number == base));
        let base = base.and_then(|(_, model)| model.get(frame_of(model)));
        let values = Values::Short(Short::to_send(self.grid, steps, base));
        Some(Message::ModelChunk {
            index: chunk,
            values,
        })
    }
}

/// The most recently offered models on a grid.
#[derive(Debug, Default)]
pub struct Recent {
    grid: Option<ModelGrid>,
    models: VecDeque<(u32, Steps)>,
}

impl Recent {
    /// Returns an empty list of models on this grid.
    #[must_use]
    pub const fn new(grid: Option<ModelGrid>) -> Self {
        Self {
            grid,
            models: VecDeque::new(),
        }
    }

    /// Returns the short form of a model offered under this number, and remembers it. `None` if a
    /// parameter is not on the grid.
    pub fn offer(&mut self, number: u32, model: &[f32]) -> Option<ShortModel> {
        let grid = self.grid?;
        let on_grid = |x: &f32| {
            let steps = grid.round(*x);
            (grid.value(steps).to_bits() == x.to_bits()).then_some(steps)
        };
        let steps: Steps = Arc::new(model.iter().map(on_grid).collect::<Option<_>>()?);
        let short = ShortModel {
            grid,
            steps: Arc::clone(&steps),
            earlier: self.models.iter().cloned().collect(),
        };
        self.models.push_back((number, steps));
        if self.models.len() > MODELS {
            self.models.pop_front();
        }
        Some(short)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> ModelGrid {
        ModelGrid::new(12).unwrap()
    }

    fn model(steps: i16) -> Vec<f32> {
        vec![grid().value(steps); 130]
    }

    fn is_difference(short: &ShortModel, chunk: u16, base: Option<u32>) -> Option<bool> {
        match short.frame(chunk, base)? {
            Message::ModelChunk {
                values: Values::Short(values),
                ..
            } => Some(values.is_difference()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_model_is_a_difference_to_each_of_the_last_eight() {
        let mut recent = Recent::new(Some(grid()));
        for number in 0..12 {
            let short = recent.offer(number, &model(number as i16)).unwrap();
            for base in 0..12 {
                let is_known = base < number && base + 8 >= number;
                assert_eq!(is_difference(&short, 0, Some(base)), Some(is_known));
            }
            assert_eq!(is_difference(&short, 2, None), Some(false));
            assert_eq!(is_difference(&short, 3, None), None, "130 parameters");
        }
    }

    #[test]
    fn what_is_not_on_the_grid_has_no_short_form() {
        let mut recent = Recent::new(Some(grid()));
        for beyond in [0.1, -0.0, f32::NAN, 8.0] {
            assert!(recent.offer(0, &[0.0, beyond]).is_none(), "{beyond}");
        }
        assert!(Recent::default().offer(0, &[0.0]).is_none());
    }
}
