//! The experts: filters of what the server's steps add up to. A new filter is a variant, its name
//! and its line in [`Filter::apply`].

use smolfed_core::smooth::LaplacianSmoothing;

/// Which experts there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpertSet {
    /// Filters that take noise away; smoothing is along these axes of a sample, or along one line
    /// if there are none.
    Filters(Vec<usize>),
    /// Nothing but longer and shorter steps, for comparison.
    Steps,
}

/// One tensor of weights after some rounds.
pub(super) struct Weights<'a> {
    /// V: what the steps add up to, class by class.
    pub moved: &'a [f64],
    /// V averaged over rounds.
    pub average: &'a [f64],
    /// Variance of the noise that was added to each entry of V.
    pub variance: f64,
    /// Outputs of the layer.
    pub outputs: usize,
    /// Whether it has the axes of a sample, once for each output.
    pub has_axes: bool,
}

/// A filter with its name.
#[derive(Clone, Debug)]
pub(super) struct Expert {
    pub name: String,
    pub filter: Filter,
}

/// What an expert does to a tensor of weights.
#[derive(Clone, Debug)]
pub(super) enum Filter {
    /// V.
    None,
    /// The average of V over rounds.
    Average,
    /// The shrinkage of an empirical Bayes estimate for each feature.
    ShrinkFeatures,
    /// Laplacian smoothing as by `server.smoothing_factor`, along the axes of a sample if given,
    /// where it would be worth it if V had all the noise that was added.
    Smooth(LaplacianSmoothing, Vec<usize>),
    /// This multiple of V.
    Step(f64),
}

impl ExpertSet {
    /// The experts. The first is the one that has all weight before there is evidence.
    pub(super) fn experts(&self) -> Vec<Expert> {
        let expert = |name: &str, filter| Expert {
            name: name.to_owned(),
            filter,
        };
        match self {
            Self::Filters(axes) => {
                let smooth = |factor| {
                    let smoothing = LaplacianSmoothing::new(factor).ok()?;
                    let filter = Filter::Smooth(smoothing, axes.clone());
                    Some(expert(&format!("smooth {factor}"), filter))
                };
                let mut all: Vec<Expert> =
                    [1.0, 3.0, 10.0].into_iter().filter_map(smooth).collect();
                all.extend([
                    expert("none", Filter::None),
                    expert("average", Filter::Average),
                    expert("shrink features", Filter::ShrinkFeatures),
                ]);
                all
            }
            Self::Steps => {
                let step = |length| expert(&format!("step {length}"), Filter::Step(length));
                let none = expert("none", Filter::None);
                std::iter::once(none)
                    .chain([0.5, 0.7, 1.4, 2.0].into_iter().map(step))
                    .collect()
            }
        }
    }
}

impl Filter {
    /// Filters a tensor; `out` has its length.
    pub(super) fn apply(&self, weights: &Weights<'_>, out: &mut [f32]) {
        match self {
            Self::None => copy(weights.moved, out),
            Self::Average => copy(weights.average, out),
            Self::ShrinkFeatures => shrink_features(weights, out),
            Self::Smooth(smoothing, axes) => smooth(smoothing, axes, weights, out),
            Self::Step(length) => {
                for (y, x) in out.iter_mut().zip(weights.moved) {
                    *y = (length * x) as f32;
                }
            }
        }
    }
}

fn copy(from: &[f64], to: &mut [f32]) {
    for (y, x) in to.iter_mut().zip(from) {
        *y = *x as f32;
    }
}

/// Stein's estimate of the squared error, ‖Sv − v‖² + 2 s² tr S for S and s² d for V, says where
/// smoothing removes more noise than it takes away. Devices undo noise, never add some: what is not
/// worth it with all of the noise is not worth it with what is left.
fn smooth(smoothing: &LaplacianSmoothing, axes: &[usize], weights: &Weights<'_>, out: &mut [f32]) {
    copy(weights.moved, out);
    let is_grid = weights.has_axes && !axes.is_empty() && smoothing.apply_grid(out, axes).is_ok();
    let left = |length: usize| smoothing.effective_dim(length) / length.max(1) as f64;
    let left = if is_grid {
        axes.iter().map(|axis| left(*axis)).product()
    } else {
        smoothing.apply(out);
        left(out.len())
    };
    let pairs = out.iter().zip(weights.moved);
    let taken: f64 = pairs.map(|(y, x)| (f64::from(*y) - x).powi(2)).sum();
    if taken > 2.0 * weights.variance * out.len() as f64 * (1.0 - left) {
        copy(weights.moved, out);
    }
}

/// Each feature's weights over the outputs are normal with a variance of their own, which is what
/// their mean square has above the noise.
fn shrink_features(weights: &Weights<'_>, out: &mut [f32]) {
    copy(weights.moved, out);
    let features = (out.len() / weights.outputs.max(1)).max(1);
    let noise = weights.outputs as f64 * weights.variance;
    let mut kept = vec![0.0; features];
    for row in weights.moved.chunks_exact(features) {
        for (sum, x) in kept.iter_mut().zip(row) {
            *sum += x * x;
        }
    }
    for square in &mut kept {
        *square = if *square > noise {
            1.0 - noise / *square
        } else {
            0.0
        };
    }
    for row in out.chunks_exact_mut(features) {
        for (y, kept) in row.iter_mut().zip(&kept) {
            *y = (f64::from(*y) * kept) as f32;
        }
    }
}
