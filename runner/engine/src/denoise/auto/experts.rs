//! The experts: filters of the sum of the server's steps. A new filter needs a variant, its name
//! and its line in [`Filter::apply`].

use smolfed_core::smooth::LaplacianSmoothing;
use smolfed_simd::mixture;

use crate::denoise::flattening::{Flattening, Flattenings};

/// The set of experts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpertSet {
    /// Filters that remove noise, and the axes for smoothing each tensor.
    Filters(Flattenings),
    /// Only longer and shorter steps, for comparison.
    Steps,
}

/// One tensor of weights after some rounds.
pub(super) struct Weights<'a> {
    /// V: the sum of the steps, class by class.
    pub moved: &'a [f32],
    /// Variance of the noise added to each entry of V.
    pub variance: f64,
    /// Outputs of the layer.
    pub outputs: usize,
    /// Axes for smoothing.
    pub flattening: &'a Flattening,
}

/// A filter with its name.
#[derive(Clone, Debug)]
pub(super) struct Expert {
    pub name: String,
    pub filter: Filter,
}

/// Effect of an expert on a tensor of weights.
#[derive(Clone, Debug)]
pub(super) enum Filter {
    /// V.
    None,
    /// The average of V over rounds.
    Average,
    /// The shrinkage of an empirical Bayes estimate for each feature.
    ShrinkFeatures,
    /// Laplacian smoothing as by `server.smoothing_factor`, where it would pay off if V had all the
    /// added noise.
    Smooth(LaplacianSmoothing),
    /// This multiple of V.
    Step(f32),
}

impl ExpertSet {
    /// Returns the axes for smoothing each tensor.
    pub(super) fn flattenings(&self) -> Flattenings {
        match self {
            Self::Filters(flattenings) => flattenings.clone(),
            Self::Steps => Flattenings::default(),
        }
    }

    /// Returns the experts. The first one has all weight before there is evidence.
    pub(super) fn experts(&self) -> Vec<Expert> {
        let expert = |name: &str, filter| Expert {
            name: name.to_owned(),
            filter,
        };
        match self {
            Self::Filters(_) => {
                let smooth = |factor| {
                    let smoothing = LaplacianSmoothing::new(factor).ok()?;
                    let filter = Filter::Smooth(smoothing);
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
    /// Returns whether its output is stored, as it is neither V nor the average of V.
    pub(super) const fn is_stored(&self) -> bool {
        !matches!(self, Self::None | Self::Average)
    }

    /// Filters a tensor into `out`, which has its length. Filters without stored output leave it
    /// unchanged.
    pub(super) fn apply(&self, weights: &Weights<'_>, out: &mut [f32]) {
        match self {
            Self::None | Self::Average => {}
            Self::ShrinkFeatures => shrink_features(weights, out),
            Self::Smooth(smoothing) => smooth(smoothing, weights, out),
            Self::Step(length) => {
                for (y, x) in out.iter_mut().zip(weights.moved) {
                    *y = length * x;
                }
            }
        }
    }
}

/// Smooths where Stein's estimate of the squared error, ‖Sv − v‖² + 2 s² tr S − s² d with smoothing
/// and s² d without, says that smoothing removes more noise than signal. Devices undo noise and
/// never add any. If smoothing does not pay off with all of the noise, it does not with the rest.
fn smooth(smoothing: &LaplacianSmoothing, weights: &Weights<'_>, out: &mut [f32]) {
    out.copy_from_slice(weights.moved);
    weights.flattening.smooth(smoothing, out);
    let left = weights.flattening.left(smoothing, out.len());
    let removed = 2.0 * weights.variance * out.len() as f64 * (1.0 - left);
    if mixture::square_distance(out, weights.moved) > removed {
        out.copy_from_slice(weights.moved);
    }
}

/// Shrinks each feature's weights. Over the outputs they are normal, and the excess of their mean
/// square over the noise is their variance.
fn shrink_features(weights: &Weights<'_>, out: &mut [f32]) {
    let features = (out.len() / weights.outputs.max(1)).max(1);
    let noise = weights.outputs as f64 * weights.variance;
    let rows = || weights.moved.chunks(features);
    let mut squares = vec![0.0; features];
    for row in rows() {
        mixture::add_squares(&mut squares, row);
    }
    let kept = |square: f64| match square > noise {
        true => (1.0 - noise / square) as f32,
        false => 0.0,
    };
    let kept: Vec<f32> = squares.into_iter().map(kept).collect();
    for (out, row) in out.chunks_mut(features).zip(rows()) {
        mixture::products(out, row, &kept);
    }
}
