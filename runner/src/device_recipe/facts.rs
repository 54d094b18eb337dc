//! The facts of an experiment that firmware needs (features, scale), and the reasons why it
//! has no recipe.

use smolfed_core::recipe::Recipe;
use smolfed_core::window::Scale;
use smolfed_data::features::ImageFeatures;

/// Why an experiment has no recipe for firmware.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceRecipeError {
    /// The model reads samples as they are.
    #[error(
        "the experiment computes no features of windows or of images: add \
         `data.window.features`, or `[features]` with `kind = \"gradients\"`"
    )]
    NoFeatures,
    /// Brightness of colour images, which firmware computes of three planes.
    #[error("the brightness of colour images has no recipe: set `features.kind` to \"gradients\"")]
    Colours,
    /// Another model than the firmware's.
    #[error("firmware of the template trains softmax regression: leave `[model]` out")]
    Model,
    /// Constants that would tell of rows.
    #[error(
        "`data.scale` is computed from the devices' rows, and firmware needs public constants: \
         set `data.scale` to \"none\", or to {{ mean = .., std = .. }}"
    )]
    Scale,
    /// Samples that firmware does not shorten.
    #[error("firmware does not shorten samples to `data.norm_bound` = {0}: leave it out")]
    NormBound(f32),
    /// Features in integers of numbers that are no counts.
    #[error(
        "`simulation.arithmetic` is \"integer\": set `data.window.counts` to the counts of a unit, \
         so that features are computed in integers"
    )]
    NoCounts,
    /// Constants that integers do not have.
    #[error(
        "`data.scale` of feature {feature}: {reason}. In integers, the mean is a whole number, and \
         `std` is 2^(shift + {fraction}) / multiplier with a shift of at most {max_shift}"
    )]
    NotExact {
        /// The feature, from 0.
        feature: usize,
        /// What is wrong, and the nearest right one.
        reason: String,
        /// Binary places.
        fraction: u8,
        /// The largest shift.
        max_shift: u32,
    },
}

/// How firmware stores features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// As `f32`.
    Numbers,
    /// As integers.
    Integers {
        /// Of 16 bits, not of 8.
        is_wide: bool,
        /// Binary places.
        fraction: u8,
    },
}

/// What is computed of a sample.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Source {
    /// Of windows.
    Windows {
        recipe: smolfed_core::window::Recipe,
        /// Names of the channels.
        channels: Vec<String>,
        length: u32,
        step: u32,
        every: u32,
        /// The counts of a unit, if features are whole numbers.
        counts: Option<Vec<f64>>,
        maps: Vec<Map>,
    },
    /// Of images.
    Image {
        features: ImageFeatures,
        planes: usize,
    },
}

/// What firmware must know of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceRecipe {
    /// The experiment's name.
    pub(super) name: String,
    pub(super) source: Source,
    pub(super) recipe: Recipe,
    pub(super) format: Format,
    pub(super) feature_count: usize,
    pub(super) classes: Vec<String>,
}

/// From a feature of a window to the value that the model reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Map {
    /// In 64 bits, rounded to `f32` last, as in the simulation.
    Number {
        bounds: Option<[f64; 2]>,
        mean: f64,
        std: f64,
    },
    /// In integers.
    Integer(Scale),
}

impl DeviceRecipe {
    /// The classes on one line.
    pub(super) fn class_list(&self) -> String {
        let names = self.classes.join(", ");
        names
            .replace(|c: char| c.is_control(), " ")
            .replace("*/", "* /")
    }
}
