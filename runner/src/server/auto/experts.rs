//! The experts: filters of what the server's steps add up to. A new filter is a variant, its name
//! and its line in [`Filter::apply`].

use smolfed_core::smooth::LaplacianSmoothing;

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
    /// 0: the initial model.
    Zero,
    /// The average of V over rounds.
    Average,
    /// Positive-part James-Stein shrinkage of the whole tensor.
    Shrink,
    /// The shrinkage of an empirical Bayes estimate for each feature.
    ShrinkFeatures,
    /// Laplacian smoothing along the axes of a sample.
    Smooth(LaplacianSmoothing, Vec<usize>),
}

/// All experts, V itself first; smoothing only where samples have axes.
pub(super) fn experts(axes: &[usize]) -> Vec<Expert> {
    let expert = |name: &str, filter| Expert {
        name: name.to_owned(),
        filter,
    };
    let mut all = vec![
        expert("none", Filter::None),
        expert("zero", Filter::Zero),
        expert("average", Filter::Average),
        expert("shrink", Filter::Shrink),
        expert("shrink features", Filter::ShrinkFeatures),
    ];
    if !axes.is_empty() {
        let smooth = |factor| {
            let smoothing = LaplacianSmoothing::new(factor).ok()?;
            let filter = Filter::Smooth(smoothing, axes.to_vec());
            Some(expert(&format!("smooth {factor}"), filter))
        };
        all.extend([1.0, 4.0, 16.0].into_iter().filter_map(smooth));
    }
    all
}

impl Filter {
    /// Filters a tensor; `out` has its length.
    pub(super) fn apply(&self, weights: &Weights<'_>, out: &mut [f64]) {
        out.copy_from_slice(weights.moved);
        match self {
            Self::None => {}
            Self::Zero => out.fill(0.0),
            Self::Average => out.copy_from_slice(weights.average),
            Self::Shrink => {
                let noise = (out.len() as f64 - 2.0).max(0.0) * weights.variance;
                let kept = kept(dot(out, out), noise);
                scale(out, kept);
            }
            Self::ShrinkFeatures => shrink_features(weights, out),
            Self::Smooth(smoothing, axes) => smooth(smoothing, axes, weights, out),
        }
    }
}

/// The part of a square that is not noise, as a share of it.
fn kept(square: f64, noise: f64) -> f64 {
    match square > noise {
        true => 1.0 - noise / square,
        false => 0.0,
    }
}

/// Each feature's weights over the outputs are normal with a variance of their own, which is what
/// their mean square has above the noise.
fn shrink_features(weights: &Weights<'_>, out: &mut [f64]) {
    let features = out.len() / weights.outputs.max(1);
    let noise = weights.outputs as f64 * weights.variance;
    let mut squares = vec![0.0; features];
    for row in out.chunks_exact(features.max(1)) {
        for (sum, x) in squares.iter_mut().zip(row) {
            *sum += x * x;
        }
    }
    for row in out.chunks_exact_mut(features.max(1)) {
        for (x, square) in row.iter_mut().zip(&squares) {
            *x *= kept(*square, noise);
        }
    }
}

fn smooth(smoothing: &LaplacianSmoothing, axes: &[usize], weights: &Weights<'_>, out: &mut [f64]) {
    if !weights.has_axes {
        return;
    }
    let mut single: Vec<f32> = out.iter().map(|x| *x as f32).collect();
    // Axes that do not divide the tensor leave it as it is.
    if smoothing.apply_grid(&mut single, axes).is_ok() {
        for (y, x) in out.iter_mut().zip(single) {
            *y = f64::from(x);
        }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn scale(v: &mut [f64], factor: f64) {
    v.iter_mut().for_each(|x| *x *= factor);
}
