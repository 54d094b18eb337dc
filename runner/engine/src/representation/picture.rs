//! Picture of representations for `representation.json`: their principal components (PCA) by class,
//! and their spectrum.

use serde::{Deserialize, Serialize};

use super::Labelled;
use super::eigen::symmetric_eigen;
use super::moments::{Axes, second_moment};

/// Maximum number of dots. More would hide each other.
const MAX_DOTS: usize = 600;

/// Contents of `representation.json` in a run directory, for the plots. Simulation only.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Picture {
    /// Eigenvalues, in descending order and never below 0, of the mean of `z zᵀ` over all samples,
    /// without centring. This is the matrix that devices share.
    pub eigenvalues: Vec<f64>,
    /// Share of the variance along each of the two principal axes of the centred samples, or 0 if
    /// nothing varies.
    pub explained: [f64; 2],
    /// At most 600 samples, each class with its share of them.
    pub points: Vec<Dot>,
    /// Names of the classes, from class 0 on. Classes after the last name have none.
    pub class_names: Vec<String>,
}

/// One sample in the plane of the two principal axes, in the units of the representation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Dot {
    /// Along the first axis.
    pub x: f32,
    /// Along the second axis, or 0 if there is none.
    pub y: f32,
    /// Its class.
    pub class: u16,
}

impl Picture {
    /// Creates the picture of some samples. Returns `None` if there are none. Non-finite numbers
    /// count as zero.
    ///
    /// Cost: `2 · samples · width²` flop and two eigenvalue problems.
    #[must_use]
    pub fn new(samples: &Labelled, class_names: Vec<String>) -> Option<Self> {
        if samples.is_empty() {
            return None;
        }
        let origin = vec![0.0; samples.width];
        let eigenvalues = symmetric_eigen(&second_moment(samples, &origin), samples.width).values;
        let axes = Axes::new(samples);
        let share = |index: usize| axes.variances.get(index).map_or(0.0, |v| v / axes.total);
        Some(Self {
            eigenvalues: eigenvalues.iter().map(|value| value.max(0.0)).collect(),
            explained: [share(0), share(1)],
            points: dots(samples, &axes),
            class_names,
        })
    }
}

/// Takes samples of each class at regular intervals.
fn dots(samples: &Labelled, axes: &Axes) -> Vec<Dot> {
    let mut by_class: Vec<(u16, &[f32])> = samples
        .classes
        .iter()
        .copied()
        .zip(samples.rows())
        .collect();
    // A stable sort: samples of a class keep their order.
    by_class.sort_by_key(|(class, _)| *class);
    let count = by_class.len().min(MAX_DOTS);
    (0..count)
        .map(|index| {
            let (class, row) = by_class[index * by_class.len() / count];
            let mut coordinates = axes.coordinates(row).map(finite);
            Dot {
                x: coordinates.next().unwrap_or(0.0),
                y: coordinates.next().unwrap_or(0.0),
                class,
            }
        })
        .collect()
}

fn finite(x: f64) -> f32 {
    x.clamp(f64::from(-f32::MAX), f64::from(f32::MAX)) as f32
}
