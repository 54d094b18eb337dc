//! Ranges of clip norm, learning rate, penalties and noise multiplier: a value is checked once, on
//! conversion to one of these types.
//!
//! All constructors are `const`, so a wrong constant in firmware fails the build.

/// Reason why a number is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ParamError {
    /// NaN or infinite.
    NotFinite,
    /// Below zero where a non-negative number is required.
    Negative,
    /// Zero or below where a positive number is required.
    NotPositive,
    /// So close to zero that its precision is reduced (a subnormal number).
    Subnormal,
    /// Above the largest sensible value.
    TooLarge,
}

impl core::fmt::Display for ParamError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::NotFinite => "must be a finite number",
            Self::Negative => "must not be negative",
            Self::NotPositive => "must be above 0",
            Self::Subnormal => "is too close to 0",
            Self::TooLarge => "is too large",
        })
    }
}

impl core::error::Error for ParamError {}

const INFINITY: u32 = f32::INFINITY.to_bits();
const MINUS_ZERO: u32 = (-0.0_f32).to_bits();
const MINUS_INFINITY: u32 = f32::NEG_INFINITY.to_bits();

/// Compares bit patterns, which have the order of non-negative numbers and need less code than
/// numbers, any of which may be NaN.
const fn check_non_negative(value: f32) -> Result<f32, ParamError> {
    match value.to_bits() {
        ..INFINITY | MINUS_ZERO => Ok(value),
        MINUS_ZERO..MINUS_INFINITY => Err(ParamError::Negative),
        _ => Err(ParamError::NotFinite),
    }
}

/// Does not distinguish zeros from other numbers, because the compiler would compare them as
/// numbers.
const fn check_positive(value: f32) -> Result<f32, ParamError> {
    match value.to_bits() {
        1..INFINITY => Ok(value),
        0 | MINUS_ZERO..MINUS_INFINITY => Err(ParamError::NotPositive),
        _ => Err(ParamError::NotFinite),
    }
}

/// Bound L on the L2 norm of an update, in units of the parameters: finite, normal, above 0.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "f32", into = "f32"))]
pub struct ClipNorm(f32);

impl ClipNorm {
    /// Checks the bound.
    ///
    /// # Errors
    /// [`ParamError`] unless `value` is finite, normal and above 0.
    pub const fn new(value: f32) -> Result<Self, ParamError> {
        match check_positive(value) {
            Ok(value) if value.to_bits() < f32::MIN_POSITIVE.to_bits() => {
                Err(ParamError::Subnormal)
            }
            Ok(value) => Ok(Self(value)),
            Err(error) => Err(error),
        }
    }

    /// Returns the bound.
    pub const fn get(self) -> f32 {
        self.0
    }
}

/// Step size of local training (η) or of the server (η_g): finite, above 0.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "f32", into = "f32"))]
pub struct LearningRate(f32);

impl LearningRate {
    /// Checks the step size.
    ///
    /// # Errors
    /// [`ParamError`] unless `value` is finite and above 0.
    pub const fn new(value: f32) -> Result<Self, ParamError> {
        match check_positive(value) {
            Ok(value) => Ok(Self(value)),
            Err(error) => Err(error),
        }
    }

    /// Returns the step size.
    pub const fn get(self) -> f32 {
        self.0
    }
}

/// Strength of a quadratic penalty (weight decay, proximal term): finite, 0 or more.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "f32", into = "f32"))]
pub struct Penalty(f32);

impl Penalty {
    /// No penalty.
    pub const NONE: Self = Self(0.0);

    /// Checks the strength.
    ///
    /// # Errors
    /// [`ParamError`] unless `value` is finite and not negative.
    pub const fn new(value: f32) -> Result<Self, ParamError> {
        match check_non_negative(value) {
            Ok(value) => Ok(Self(value)),
            Err(error) => Err(error),
        }
    }

    /// Returns the strength.
    pub const fn get(self) -> f32 {
        self.0
    }
}

/// Noise multiplier z: the std of the noise over the clip norm. Below 2³², in units of 2⁻³², so
/// that firmware can compare it and draw the noise without floating point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "u64", into = "u64"))]
pub struct NoiseMultiplier(u64);

impl NoiseMultiplier {
    /// No noise and no privacy.
    pub const NONE: Self = Self(0);

    /// Checks the multiplier and rounds it up to units of 2⁻³²: never less noise than requested.
    ///
    /// ```
    /// use smolfed_core::NoiseMultiplier;
    ///
    /// // A wrong constant fails the build, not the device.
    /// const NOISE: NoiseMultiplier = match NoiseMultiplier::new(1.1) {
    ///     Ok(multiplier) => multiplier,
    ///     Err(_) => panic!("NOISE must be finite and not negative"),
    /// };
    /// ```
    ///
    /// # Errors
    /// [`ParamError`] unless `value` is finite, not negative and below 2³².
    pub const fn new(value: f64) -> Result<Self, ParamError> {
        if !value.is_finite() {
            return Err(ParamError::NotFinite);
        }
        if value < 0.0 {
            return Err(ParamError::Negative);
        }
        const UNITS: f64 = (1_u64 << 32) as f64;
        if value >= UNITS {
            return Err(ParamError::TooLarge);
        }
        // Multiplication by a power of two is exact, unless the product is far below a unit.
        let units = value * UNITS;
        let whole = units as u64;
        // More than one below 2⁶⁴, as `f64` has no number in between.
        Ok(Self(whole + (units > whole as f64) as u64))
    }

    /// Creates a multiplier from units of 2⁻³².
    pub const fn from_units(units: u64) -> Self {
        Self(units)
    }

    /// Returns the multiplier in units of 2⁻³².
    pub const fn units(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_names_its_reason() {
        assert_eq!(ClipNorm::new(f32::NAN), Err(ParamError::NotFinite));
        assert_eq!(ClipNorm::new(-0.5), Err(ParamError::NotPositive));
        assert_eq!(ClipNorm::new(0.0), Err(ParamError::NotPositive));
        assert_eq!(ClipNorm::new(-0.0), Err(ParamError::NotPositive));
        assert_eq!(ClipNorm::new(1e-39), Err(ParamError::Subnormal));
        assert_eq!(LearningRate::new(f32::INFINITY), Err(ParamError::NotFinite));
        assert_eq!(LearningRate::new(0.0), Err(ParamError::NotPositive));
        assert_eq!(Penalty::new(-1e-9), Err(ParamError::Negative));
        for not_finite in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert_eq!(Penalty::new(not_finite), Err(ParamError::NotFinite));
        }
    }

    #[test]
    fn good_values_pass_unchanged() {
        assert_eq!(ClipNorm::new(0.3).map(ClipNorm::get), Ok(0.3));
        assert_eq!(Penalty::new(0.0), Ok(Penalty::NONE));
        assert_eq!(Penalty::new(-0.0), Ok(Penalty::NONE));
        assert_eq!(Penalty::new(f32::MAX).map(Penalty::get), Ok(f32::MAX));
        assert_eq!(LearningRate::new(0.1).map(LearningRate::get), Ok(0.1));
    }

    #[test]
    fn a_noise_multiplier_is_rounded_up() {
        let units = |value| NoiseMultiplier::new(value).map(NoiseMultiplier::units);
        assert_eq!(units(0.0), Ok(0));
        assert_eq!(units(-0.0), Ok(0));
        assert_eq!(units(1.5), Ok(3 << 31));
        assert_eq!(units(f64::from_bits(1)), Ok(1), "the smallest number");
        assert_eq!(units(1.0 + f64::EPSILON), Ok((1 << 32) + 1));
        assert_eq!(units(4_294_967_296_f64.next_down()), Ok(u64::MAX - 2047));
        assert_eq!(units(4_294_967_296.0), Err(ParamError::TooLarge));
        assert_eq!(units(-1e-300), Err(ParamError::Negative));
        assert_eq!(units(f64::NAN), Err(ParamError::NotFinite));
        assert_eq!(units(f64::INFINITY), Err(ParamError::NotFinite));
    }
}
