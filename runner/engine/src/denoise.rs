//! Denoisers (noise removal) of the averaged noisy update: `auto`, Laplacian smoothing, James-Stein
//! shrinkage and soft thresholding. They are post-processing, so none of them costs privacy. A new
//! denoiser needs one file and one line of the table below.
//!
//! Laplacian smoothing is the method of DP-Fed-LS. The paper compares it with James-Stein and soft
//! thresholding in Table 4. Each works tensor by tensor.

pub mod auto;
pub mod flattening;
mod james_stein;
mod laplacian;
mod soft_threshold;
mod tensor;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smolfed_core::smooth::LaplacianSmoothing;

pub use auto::{Auto, ExpertSet};
use flattening::Flattenings;
use james_stein::JamesStein;
use laplacian::Laplacian;
use soft_threshold::SoftThreshold;
pub use tensor::{Denoise, Tensor};

/// The table of denoisers without settings: name in files, words for reports, and the denoiser.
macro_rules! denoisers {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $words:literal, $denoiser:expr;)*) => {
        /// What the server does to the noisy average, in addition to smoothing or instead of it.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub enum DenoiserKind {
            /// Nothing, or Laplacian smoothing with `method = "dp-fed-ls"`.
            #[default]
            #[serde(rename = "none")]
            None,
            /// Filters of all steps so far, judged by the next release ([`auto`]).
            #[serde(rename = "auto")]
            Auto,
            /// Longer and shorter steps alone, judged in the same way, for comparison.
            #[serde(rename = "auto-step")]
            AutoStep,
            $($(#[$doc])* #[serde(rename = $name)] $variant,)*
        }

        impl DenoiserKind {
            /// Returns its name for a report, to follow "with", or `None` if nothing is done.
            #[must_use]
            pub const fn words(self) -> Option<&'static str> {
                match self {
                    Self::None => None,
                    Self::Auto => Some("automatic denoising"),
                    Self::AutoStep => Some("automatic step lengths"),
                    $(Self::$variant => Some($words),)*
                }
            }

            /// Returns the experts to mix, and the axes for smoothing each tensor.
            #[must_use]
            pub fn experts(self, flattenings: Flattenings) -> Option<ExpertSet> {
                match self {
                    Self::Auto => Some(ExpertSet::Filters(flattenings)),
                    Self::AutoStep => Some(ExpertSet::Steps),
                    _ => None,
                }
            }

            /// Returns the denoiser of each round's average.
            #[must_use]
            pub fn denoiser(self) -> Denoiser {
                match self {
                    Self::None | Self::Auto | Self::AutoStep => Denoiser::default(),
                    $(Self::$variant => Denoiser(Some(Arc::new($denoiser))),)*
                }
            }
        }
    };
}

denoisers! {
    /// James-Stein shrinkage (Balle, Wang 2018).
    JamesStein = "james-stein", "James–Stein shrinkage", JamesStein;
    /// Soft thresholding at ν√(2 ln d) (Balle, Wang 2018).
    SoftThreshold = "soft-threshold", "soft thresholding", SoftThreshold;
}

/// The treatment of the noisy average before the server applies it. By default, there is none.
#[derive(Clone, Debug, Default)]
pub struct Denoiser(Option<Arc<dyn Denoise>>);

impl Denoiser {
    /// Applies A_σ⁻¹ to each tensor.
    #[must_use]
    pub fn laplacian(smoothing: LaplacianSmoothing, flattenings: Flattenings) -> Self {
        Self(Some(Arc::new(Laplacian {
            smoothing,
            flattenings,
        })))
    }

    /// Denoises `average` in place. `noise_std` is the std of the noise on each coordinate.
    pub fn apply(&self, average: &mut [f32], tensors: &[usize], noise_std: f64) {
        let Some(denoise) = &self.0 else {
            return;
        };
        let mut rest = average;
        for (index, length) in tensors.iter().enumerate() {
            let Some((values, after)) = rest.split_at_mut_checked(*length) else {
                return;
            };
            denoise.apply(Tensor {
                values,
                noise_std,
                index,
            });
            rest = after;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_values_agree() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../tests/vectors/denoisers.json"
        );
        let file: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let vector = |v: &serde_json::Value| -> Vec<f32> {
            v.as_array()
                .unwrap()
                .iter()
                .map(|x| x.as_f64().unwrap() as f32)
                .collect()
        };
        let cases = file["cases"].as_array().unwrap();
        assert_eq!(cases.len(), 6);
        for case in cases {
            let noise_std = case["nu"].as_f64().unwrap();
            let check = |kind: DenoiserKind, key: &str| {
                let mut y = vector(&case["y"]);
                let tensors = [y.len()];
                kind.denoiser().apply(&mut y, &tensors, noise_std);
                for (found, expected) in y.iter().zip(vector(&case[key])) {
                    // Rounded to f32 once on the way in and once on the way out.
                    assert!(
                        (found - expected).abs() <= 3e-7 * expected.abs().max(0.1),
                        "{case}"
                    );
                }
            };
            check(DenoiserKind::JamesStein, "js_positive_part");
            check(DenoiserKind::SoftThreshold, "soft");
        }
    }

    #[test]
    fn tensors_are_denoised_by_themselves() {
        let smoothing = LaplacianSmoothing::new(1.0).unwrap();
        let tensors = [8, 2];
        let original: Vec<f32> = (0..10).map(|i| (i * i % 7) as f32).collect();
        let mut flat = original.clone();
        Denoiser::laplacian(smoothing, Flattenings::default()).apply(&mut flat, &tensors, 1.0);
        let mut expected = original.clone();
        smoothing.apply(&mut expected[..8]);
        smoothing.apply(&mut expected[8..]);
        assert_eq!(flat, expected);

        let mut grid = original.clone();
        let flattenings = Flattenings::of_samples(&[2, 2]);
        Denoiser::laplacian(smoothing, flattenings).apply(&mut grid, &tensors, 1.0);
        let mut expected = original.clone();
        smoothing.apply_grid(&mut expected[..8], &[2, 2]).unwrap();
        smoothing.apply(&mut expected[8..]);
        assert_eq!(grid, expected);

        let mut same = original.clone();
        Denoiser::default().apply(&mut same, &tensors, 1.0);
        assert_eq!(same, original);
    }
}
