//! Axes along which a tensor is smoothed: one line, a grid, or a line through the kernels of a
//! convolution in a given order. The paper flattens tensors, and its Table 5 compares orders.

mod order;

use smolfed_core::smooth::LaplacianSmoothing;

use crate::layout::TensorLayout;
pub use order::{KernelOrder, SmoothAlong};

/// Axes for smoothing one tensor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Flattening {
    /// One line in memory order.
    #[default]
    Line,
    /// Each axis of a grid of these lengths, the last one contiguous. The grid may repeat.
    Grid(Vec<usize>),
    /// One line through the kernels of a convolution, with permuted axes.
    Ordered {
        /// Lengths of outputs, inputs, rows and columns, the last one contiguous.
        shape: [usize; 4],
        /// Order of these axes, from the outermost.
        order: KernelOrder,
    },
}

impl Flattening {
    /// Applies A⁻¹ to a tensor in place.
    pub fn smooth(&self, smoothing: &LaplacianSmoothing, values: &mut [f32]) {
        match self {
            // The configuration refuses axes that do not divide the tensor before a run.
            Self::Grid(axes) if smoothing.apply_grid(values, axes).is_ok() => {}
            Self::Ordered { shape, order } => {
                let places = places(*shape, *order);
                let mut line: Vec<f32> = places.iter().map(|place| values[*place]).collect();
                smoothing.apply(&mut line);
                for (place, value) in places.into_iter().zip(line) {
                    values[place] = value;
                }
            }
            Self::Line | Self::Grid(_) => smoothing.apply(values),
        }
    }

    /// Returns tr A⁻¹ / d for a tensor of `length` entries: the remaining share of white noise.
    #[must_use]
    pub fn left(&self, smoothing: &LaplacianSmoothing, length: usize) -> f64 {
        let left = |length: usize| smoothing.effective_dim(length) / length.max(1) as f64;
        match self {
            Self::Grid(axes) if length.is_multiple_of(axes.iter().product()) => {
                axes.iter().map(|axis| left(*axis)).product()
            }
            _ => left(length),
        }
    }
}

/// Returns the memory positions of the entries of a line.
fn places(shape: [usize; 4], order: KernelOrder) -> Vec<usize> {
    let strides = [
        shape[1] * shape[2] * shape[3],
        shape[2] * shape[3],
        shape[3],
        1,
    ];
    let [a, b, c, d] = order.axes();
    let along = |axis: usize| (0..shape[axis]).map(move |index| index * strides[axis]);
    let outer = along(a).flat_map(|i| along(b).map(move |j| i + j));
    let outer = outer.flat_map(|ij| along(c).map(move |k| ij + k));
    outer
        .flat_map(|ijk| along(d).map(move |l| ijk + l))
        .collect()
}

/// Axes for smoothing the tensors of a model. Tensors without an entry are lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flattenings(Vec<Flattening>);

impl Flattenings {
    /// Smooths the first tensor along the axes of a sample, once for each output. Without axes, it
    /// is smoothed as a line.
    #[must_use]
    pub fn of_samples(axes: &[usize]) -> Self {
        Self(match axes {
            [] => Vec::new(),
            axes => vec![Flattening::Grid(axes.to_vec())],
        })
    }

    /// Smooths the kernels of convolutions in another order, and other tensors as lines.
    #[must_use]
    pub fn ordered(layout: &[TensorLayout], order: KernelOrder) -> Self {
        let of_tensor = |tensor: &TensorLayout| match *tensor.shape {
            [outputs, inputs, rows, columns] if order != KernelOrder::default() => {
                Flattening::Ordered {
                    shape: [outputs, inputs, rows, columns],
                    order,
                }
            }
            _ => Flattening::Line,
        };
        Self(layout.iter().map(of_tensor).collect())
    }

    /// Smooths the weights of images along rows and columns, and other tensors as lines.
    #[must_use]
    pub fn of_images(layout: &[TensorLayout]) -> Self {
        let of_tensor = |tensor: &TensorLayout| match tensor.image {
            Some(image) => Flattening::Grid(image.to_vec()),
            None => Flattening::Line,
        };
        Self(layout.iter().map(of_tensor).collect())
    }

    /// Returns whether all tensors are lines in memory order.
    #[must_use]
    pub fn are_lines(&self) -> bool {
        self.0.iter().all(|one| *one == Flattening::Line)
    }

    /// Returns the axes of a tensor.
    #[must_use]
    pub fn of_tensor(&self, tensor: usize) -> &Flattening {
        self.0.get(tensor).unwrap_or(&Flattening::Line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: [usize; 4] = [2, 3, 4, 5];

    /// Numbers the entries of outputs, inputs, rows and columns in memory order.
    fn named() -> Vec<f32> {
        (0..120).map(|place| place as f32).collect()
    }

    #[test]
    fn lines_go_through_the_axes_in_their_order() {
        let places = |order: &str| places(SHAPE, order.parse().unwrap());
        assert_eq!(places("BCHW"), (0..120).collect::<Vec<_>>());
        // The next column, and after the last one the next row.
        assert_eq!(places("CBHW")[..6], [0, 1, 2, 3, 4, 5]);
        assert_eq!(places("BCWH")[..5], [0, 5, 10, 15, 1]);
        assert_eq!(places("BWHC")[..5], [0, 20, 40, 5, 25]);
        assert_eq!(places("BHWC")[..5], [0, 20, 40, 1, 21]);
        let mut all = places("WHCB");
        all.sort_unstable();
        assert_eq!(all, (0..120).collect::<Vec<_>>());
    }

    #[test]
    fn an_order_smooths_the_line_that_it_names() {
        let smoothing = LaplacianSmoothing::new(1.5).unwrap();
        let order: KernelOrder = "BHWC".parse().unwrap();
        let mut values = named();
        let (shape, order) = (SHAPE, order);
        Flattening::Ordered { shape, order }.smooth(&smoothing, &mut values);
        let places = places(shape, order);
        let mut line: Vec<f32> = places.iter().map(|place| *place as f32).collect();
        smoothing.apply(&mut line);
        let found: Vec<f32> = places.iter().map(|place| values[*place]).collect();
        assert_eq!(found, line);
    }

    #[test]
    fn what_is_left_of_noise_is_the_trace() {
        let smoothing = LaplacianSmoothing::new(2.0).unwrap();
        let order = "WHCB".parse().unwrap();
        let ordered = Flattening::Ordered {
            shape: SHAPE,
            order,
        };
        for flattening in [
            Flattening::Line,
            Flattening::Grid(vec![4, 5]),
            Flattening::Grid(vec![1, 5]),
            ordered,
        ] {
            let trace: f64 = (0..120)
                .map(|place| {
                    let mut unit = vec![0.0; 120];
                    unit[place] = 1.0;
                    flattening.smooth(&smoothing, &mut unit);
                    f64::from(unit[place])
                })
                .sum();
            let left = 120.0 * flattening.left(&smoothing, 120);
            assert!(
                (trace - left).abs() < 1e-4,
                "{flattening:?}: {trace} {left}"
            );
        }
    }
}
