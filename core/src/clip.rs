//! Clipping of a vector to a bound on its L2 norm, the clip norm, and the errors for a bad bound or
//! values that are not finite. The formula is `clip(v, L) = v / max(1, ‖v‖₂ / L)` (DP-Fed-LS, Liang
//! et al. 2020, arXiv:2005.00218, Algorithm 1).
//!
//! Clipping bounds the influence of one device. Floating-point rounding may leave a clipped vector
//! a few units in the last place outside the ball. Privacy does not rest on it but on the exact
//! integer bound of [`crate::quantize`].

use crate::{lanes, params::ClipNorm};

/// Reason why a vector was not clipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ClipError {
    /// The clip norm is not a normal number above 0.
    BadBound,
    /// An entry, or the norm, is NaN or infinite.
    NotFinite,
}

impl core::fmt::Display for ClipError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::BadBound => "the clip norm must be a finite, normal number above 0",
            Self::NotFinite => "the vector to clip has an entry or a norm that is not finite",
        })
    }
}

impl core::error::Error for ClipError {}

/// Scales `v` in place so that its L2 norm is at most `clip_norm`, and returns the norm before.
///
/// * Shape: all parameters of one model, in model order, of any length, including 0.
/// * Units: those of the parameters. A vector inside the bound keeps its exact bits.
/// * Cost: at most two passes (four when squares overflow), no extra memory. Reduces in the order
///   of [`lanes`].
/// * Source: DP-Fed-LS, Liang et al. 2020, arXiv:2005.00218, Algorithm 1, `clip`.
///
/// # Errors
/// [`ClipError::BadBound`] unless `clip_norm` is a finite normal number above 0,
/// [`ClipError::NotFinite`] if the norm is not finite. `v` is then unchanged, and the device must
/// sit the round out.
#[inline]
pub fn clip_l2(v: &mut [f32], clip_norm: f32) -> Result<f32, ClipError> {
    let Ok(clip_norm) = ClipNorm::new(clip_norm) else {
        return Err(ClipError::BadBound);
    };
    let norm = lanes::norm(v);
    if !norm.is_finite() {
        return Err(ClipError::NotFinite);
    }
    // May stay a few ulps outside: the exact integer check after quantisation catches that.
    if let Some(factor) = shrink_factor(norm, clip_norm) {
        lanes::scale(v, factor);
    }
    Ok(norm)
}

/// Returns L / ‖v‖ if `norm` is outside the ball of radius `clip_norm`.
#[inline(always)]
pub(crate) fn shrink_factor(norm: f32, clip_norm: ClipNorm) -> Option<f32> {
    (norm > clip_norm.get()).then(|| clip_norm.get() / norm)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*};
    use std::vec::Vec;

    proptest! {
        /// Every finite vector ends inside the ball, up to rounding.
        #[test]
        fn clipping_keeps_the_bound(mut v in vec(-1e6f32..1e6, 0..64), clip_norm in 1e-3f32..1e3) {
            clip_l2(&mut v, clip_norm).unwrap();
            let after = lanes::norm(&v);
            prop_assert!(after <= clip_norm * (1.0 + 1e-6), "norm {after}");
        }

        #[test]
        fn clipping_keeps_the_direction(v in vec(-1e3f32..1e3, 1..64), clip_norm in 1e-3f32..10.0) {
            let mut clipped = v.clone();
            let before = clip_l2(&mut clipped, clip_norm).unwrap();
            let factor = (clip_norm / before).min(1.0);
            for (c, x) in clipped.iter().zip(&v) {
                prop_assert!((c - x * factor).abs() <= 1e-5 * x.abs() * factor + 1e-30);
            }
        }

        #[test]
        fn vector_inside_the_bound_keeps_its_bits(v in vec(-0.1f32..0.1, 0..50)) {
            let mut clipped = v.clone();
            clip_l2(&mut clipped, 1.0).unwrap();
            let bits = |v: &[f32]| v.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            prop_assert_eq!(bits(&clipped), bits(&v));
        }
    }

    /// A vector on the sphere is inside: a step that changed nothing does not count as clipped.
    #[test]
    fn a_norm_at_the_bound_is_not_clipped() {
        let bound = ClipNorm::new(0.25).unwrap();
        assert_eq!(shrink_factor(0.25, bound), None);
        assert_eq!(shrink_factor(0.5, bound), Some(0.5));
    }

    #[test]
    fn golden_values_agree() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/vectors/clip.json");
        let file: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let number = |v: &serde_json::Value| match v.as_str() {
            Some(text) => text.replace("Infinity", "inf").parse().unwrap(),
            None => v.as_f64().unwrap(),
        };
        let vector = |v: &serde_json::Value| -> Vec<f32> {
            v.as_array()
                .unwrap()
                .iter()
                .map(|x| number(x) as f32)
                .collect()
        };
        let mut compared = 0;
        for case in file["cases"].as_array().unwrap() {
            let norm = case["norm"].as_f64().unwrap();
            // The file is f64: magnitudes beyond f32 are covered by the test on huge entries.
            if norm != 0.0 && !(1e-37..1e37).contains(&norm) {
                continue;
            }
            let mut v = vector(&case["v"]);
            let before = clip_l2(&mut v, number(&case["L"]) as f32).unwrap();
            // Inputs, norm and factor are rounded to f32 once each: four half-ulps of 6e-8.
            assert!((f64::from(before) - norm).abs() <= 2.4e-7 * norm);
            for (found, expected) in v.iter().zip(vector(&case["output"])) {
                assert!(
                    (found - expected).abs() <= 2.4e-7 * expected.abs(),
                    "{}",
                    case["name"]
                );
            }
            compared += 1;
        }
        assert_eq!(compared, 10);
        for case in file["rejects"].as_array().unwrap() {
            let mut v = vector(&case["v"]);
            assert!(
                clip_l2(&mut v, number(&case["L"]) as f32).is_err(),
                "{case}"
            );
        }
    }

    #[test]
    fn a_bad_bound_is_refused_and_the_vector_kept() {
        for bound in [0.0, -1.0, f32::NAN, f32::INFINITY, 1e-40] {
            let mut v = [3.0, 4.0];
            assert_eq!(clip_l2(&mut v, bound), Err(ClipError::BadBound), "{bound}");
            assert_eq!(v, [3.0, 4.0]);
        }
    }

    #[test]
    fn entries_that_are_not_finite_are_refused_and_kept() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut v = [1.0, bad];
            assert_eq!(clip_l2(&mut v, 1.0), Err(ClipError::NotFinite));
            assert_eq!(v[1].to_bits(), bad.to_bits());
        }
    }

    #[test]
    fn huge_entries_are_clipped_not_lost() {
        let mut v = [3e30, -4e30];
        assert_eq!(clip_l2(&mut v, 1.0), Ok(5e30));
        assert!((v[0] - 0.6).abs() < 1e-6 && (v[1] + 0.8).abs() < 1e-6);
    }
}
