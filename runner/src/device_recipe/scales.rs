//! The constants of `data.scale`, as firmware computes with them.

use smolfed_core::window::Scale;
use smolfed_data::Federation;
use smolfed_data::constants::FeatureMap;
use smolfed_data::preparation::ColumnMap;

use super::facts::{DeviceRecipeError, Format, Map};

/// The map of each feature.
pub(super) fn maps(federation: &Federation, format: Format) -> Result<Vec<Map>, DeviceRecipeError> {
    let columns = federation.preparation().columns.into_iter().enumerate();
    let map = |(feature, column)| {
        // A column of zeros comes from rows.
        let ColumnMap::Number(number) = column else {
            return Err(DeviceRecipeError::Scale);
        };
        match format {
            Format::Numbers => Ok(Map::Number {
                bounds: number.map.bounds,
                mean: number.map.affine.mean(),
                std: number.map.affine.std(),
            }),
            Format::Integers { is_wide, fraction } => {
                let max_shift = if is_wide { 8 } else { 16 };
                let scale = integer(number.map, fraction, max_shift);
                let not_exact = |reason| DeviceRecipeError::NotExact {
                    feature,
                    reason,
                    fraction,
                    max_shift,
                };
                scale.map(Map::Integer).map_err(not_exact)
            }
        }
    };
    columns.map(map).collect()
}

/// Means and the features around them that the simulation holds exactly, as 32-bit numbers: below
/// 2²⁴ together.
const MAX_MEAN: f64 = 8_388_608.0;

/// The scale with the bits of the simulation: `std` is 2^(shift + fraction) / multiplier
/// ([`Scale`]). The smallest shift, or the reason why there is none.
fn integer(map: FeatureMap, fraction: u8, max_shift: u32) -> Result<Scale, String> {
    let (mean, std) = (map.affine.mean(), map.affine.std());
    if map.bounds.is_some() {
        return Err("`min` and `max` have no form in integers".into());
    }
    let offset = mean as i32;
    if mean.fract() != 0.0 || mean.abs() > MAX_MEAN {
        return Err(format!(
            "the mean {mean:?} is not a whole number from -{MAX_MEAN} to {MAX_MEAN}"
        ));
    }
    // A power of two over a number: exact unless it has no exact form either.
    let multiplier = |shift: u32| libm::ldexp(1.0, (shift + u32::from(fraction)) as i32) / std;
    let is_whole = |x: &f64| *x >= 1.0 && *x <= f64::from(u16::MAX) && x.fract() == 0.0;
    for shift in 0..=max_shift {
        let found = multiplier(shift);
        // The quotient may have been rounded to a whole number.
        let back = libm::ldexp(1.0, (shift + u32::from(fraction)) as i32) / found;
        if is_whole(&found) && back.total_cmp(&std).is_eq() {
            let scale = Scale::new(offset, found as u16, shift as u8);
            return scale.map_err(|error| error.to_string());
        }
    }
    let nearest = (0..=max_shift)
        .rev()
        .map(|shift| (shift, multiplier(shift).round()))
        .find(|(_, found)| is_whole(found));
    let sentence = format!("`std` = {std:?} has no exact form");
    Err(match nearest {
        Some((shift, found)) => {
            let right = libm::ldexp(1.0, (shift + u32::from(fraction)) as i32) / found;
            format!("{sentence}; the nearest is {right:?}")
        }
        None => sentence,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use smolfed_core::fixed_point::{FeatureScale, round_feature};
    use smolfed_data::constants::Affine;

    fn of(mean: f64, std: f64) -> Result<Scale, String> {
        let affine = Affine::new(mean, std).unwrap();
        integer(
            FeatureMap {
                bounds: None,
                affine,
            },
            6,
            16,
        )
    }

    #[test]
    fn scales_in_integers_are_exact_or_refused() {
        assert_eq!(of(0.0, 2_048.0).unwrap().parts(), (0, 1, 5));
        assert_eq!(of(-7.0, 3.2).unwrap().parts(), (-7, 20, 0));
        assert_eq!(of(0.0, 1.0).unwrap().parts(), (0, 64, 0));
        assert!(of(0.5, 1.0).unwrap_err().contains("whole number"));
        let refused = of(0.0, 3_000.0).unwrap_err();
        assert_eq!(
            refused,
            "`std` = 3000.0 has no exact form; the nearest is 3000.217453505007"
        );
        assert_eq!(
            of(0.0, 3_000.217_453_505_007).unwrap().parts(),
            (0, 699, 15)
        );
    }

    #[test]
    fn scales_in_integers_have_the_bits_of_the_simulation() {
        let six = FeatureScale::new::<i8>(6).unwrap();
        for (mean, std) in [(0.0, 2_048.0), (-7.0, 3.2), (100.0, 4_194_304.0 / 701.0)] {
            let affine = Affine::new(mean, std).unwrap();
            let scale = of(mean, std).unwrap();
            for count in (-40_000..40_000).step_by(7) {
                let simulated = round_feature::<i8>(affine.apply(count as f32), six);
                assert_eq!(scale.to_i8(count).0, simulated.0, "{count}");
            }
        }
    }
}
