//! The list of features of a window, with limits on its length and its bands of frequencies: a
//! checked value, the same on device and desktop.

use super::error::RecipeError;

/// Maximum number of samples of a channel in a window: 20 seconds at 50 Hz.
pub const MAX_LENGTH: usize = 1_024;

/// Maximum number of bands.
pub const MAX_BANDS: usize = 16;

/// A feature of one channel. [`window`](super) has the formulas. Features have this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
pub enum Feature {
    /// The mean.
    Mean,
    /// The standard deviation around the mean of the window, without correction of the degrees of
    /// freedom.
    Deviation,
    /// The smallest sample.
    Minimum,
    /// The largest sample.
    Maximum,
    /// The mean of the squares.
    Energy,
    /// Sign changes around the mean.
    ZeroCrossings,
}

impl Feature {
    /// All features in order.
    pub const ALL: [Self; 6] = [
        Self::Mean,
        Self::Deviation,
        Self::Minimum,
        Self::Maximum,
        Self::Energy,
        Self::ZeroCrossings,
    ];

    /// Returns the name in experiment files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Deviation => "deviation",
            Self::Minimum => "minimum",
            Self::Maximum => "maximum",
            Self::Energy => "energy",
            Self::ZeroCrossings => "zero-crossings",
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// Measure of a band of frequencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
pub enum Measure {
    /// The energy, in the square of the samples' unit.
    Energy,
    /// The root of the energy, in the samples' unit. It is of the order of mean and deviation,
    /// which suits linear models and 16 bits.
    Amplitude,
}

/// The length of windows and the features of each channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(
        try_from = "crate::serial::RawRecipe",
        into = "crate::serial::RawRecipe"
    )
)]
pub struct Recipe {
    length: u16,
    /// A bit for each feature.
    features: u8,
    /// The first frequency of each band, and the one after the last band.
    bounds: [u16; MAX_BANDS + 1],
    bound_count: u8,
    measure: Measure,
}

impl Recipe {
    /// Creates a recipe for windows of `length` samples of a channel, with these features, and a
    /// band between each two successive boundaries: `&[1, 4, 17]` are the frequencies 1 to 3 and 4
    /// to 16.
    ///
    /// # Errors
    /// [`RecipeError`].
    pub const fn new(
        length: usize,
        features: &[Feature],
        bounds: &[u16],
        measure: Measure,
    ) -> Result<Self, RecipeError> {
        if length < 2 || length > MAX_LENGTH {
            let max = MAX_LENGTH;
            return Err(RecipeError::Length { found: length, max });
        }
        let features = match bits_of(features) {
            Ok(features) => features,
            Err(error) => return Err(error),
        };
        if features == 0 && bounds.is_empty() {
            return Err(RecipeError::Nothing);
        }
        // Frequencies 0 to n/2, below 2¹⁰.
        let behind = (length.next_power_of_two() / 2 + 1) as u16;
        let checked = match checked_bounds(bounds, behind) {
            Ok(checked) => checked,
            Err(error) => return Err(error),
        };
        Ok(Self {
            length: length as u16,
            features,
            bounds: checked,
            bound_count: bounds.len() as u8,
            measure,
        })
    }

    /// Returns the number of samples of a channel in a window.
    #[must_use]
    pub const fn length(&self) -> usize {
        self.length as usize
    }

    /// Returns the features in order.
    pub fn features(&self) -> impl Iterator<Item = Feature> + '_ {
        let all = Feature::ALL.into_iter();
        all.filter(|feature| self.has(*feature))
    }

    /// Returns the boundaries of the bands: one more than the number of bands, or none.
    #[must_use]
    pub fn bounds(&self) -> &[u16] {
        let count = usize::from(self.bound_count);
        self.bounds.get(..count).unwrap_or_default()
    }

    /// Returns the measure of the bands.
    #[must_use]
    pub const fn measure(&self) -> Measure {
        self.measure
    }

    /// Returns the number of features of one channel, at least 1.
    #[must_use]
    pub const fn feature_count(&self) -> usize {
        let bands = self.bound_count.saturating_sub(1);
        self.features.count_ones() as usize + bands as usize
    }

    /// Returns the number of values of working memory: the samples of a channel or, with bands, the
    /// length of the transform, a power of two.
    #[must_use]
    pub const fn work_count(&self) -> usize {
        if self.bound_count == 0 {
            self.length()
        } else {
            self.length().next_power_of_two()
        }
    }

    /// Returns whether this feature is computed.
    pub(super) const fn has(&self, feature: Feature) -> bool {
        self.features & feature.bit() != 0
    }

    /// Returns the first frequency of each band, and the one after it.
    pub(super) fn bands(&self) -> impl Iterator<Item = (u16, u16)> + '_ {
        let ends = self.bounds().iter().skip(1);
        self.bounds().iter().copied().zip(ends.copied())
    }
}

const fn bits_of(features: &[Feature]) -> Result<u8, RecipeError> {
    let (mut bits, mut rest) = (0, features);
    while let [feature, others @ ..] = rest {
        if bits & feature.bit() != 0 {
            let feature = feature.name();
            return Err(RecipeError::Twice { feature });
        }
        bits |= feature.bit();
        rest = others;
    }
    Ok(bits)
}

const fn checked_bounds(bounds: &[u16], behind: u16) -> Result<[u16; MAX_BANDS + 1], RecipeError> {
    let mut checked = [0; MAX_BANDS + 1];
    if bounds.len() == 1 || bounds.len() > MAX_BANDS + 1 {
        let (found, max) = (bounds.len(), MAX_BANDS + 1);
        return Err(RecipeError::Bounds { found, max });
    }
    let mut at = 0;
    while at < bounds.len() {
        let bound = bounds[at];
        if bound > behind {
            return Err(RecipeError::Beyond { bound, max: behind });
        }
        if at > 0 && bound <= bounds[at - 1] {
            return Err(RecipeError::Order { bound });
        }
        checked[at] = bound;
        at += 1;
    }
    Ok(checked)
}
