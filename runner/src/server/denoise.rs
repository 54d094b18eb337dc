//! Denoisers of the averaged noisy update: post-processing, so none of them costs privacy.
//!
//! Laplacian smoothing is the paper's (Liang et al. 2020, arXiv:2005.00218, Algorithm 1);
//! James-Stein and soft thresholding are those it compares with in Table 4 (Balle, Wang 2018,
//! arXiv:1805.06530, Section 4). Each works tensor by tensor.

use smolfed_core::smooth::LaplacianSmoothing;

/// What happens to the noisy average before it is applied.
#[derive(Clone, Debug)]
pub enum Denoiser {
    /// Nothing.
    None,
    /// A_σ⁻¹ on each tensor.
    Laplacian {
        /// A_σ.
        smoothing: LaplacianSmoothing,
        /// Axes of the input along which weights are smoothed; empty for the flat tensor.
        axes: Vec<usize>,
    },
    /// `max(0, 1 − (d − 2) ν² / ‖y‖²) · y`.
    JamesStein,
    /// `sign(y) · max(0, |y| − ν √(2 ln d))`.
    SoftThreshold,
}

impl Denoiser {
    /// Denoises `average` in place. `noise_std` is that of the noise in the average, a coordinate.
    pub fn apply(&self, average: &mut [f32], tensors: &[usize], noise_std: f64) {
        let mut rest = average;
        for (index, length) in tensors.iter().enumerate() {
            let Some((tensor, after)) = rest.split_at_mut_checked(*length) else {
                return;
            };
            // The first tensor has the input's axes, once for each output.
            self.apply_to_tensor(tensor, index == 0, noise_std);
            rest = after;
        }
    }

    fn apply_to_tensor(&self, tensor: &mut [f32], has_axes: bool, noise_std: f64) {
        match self {
            Self::None => {}
            Self::Laplacian { smoothing, axes } => {
                let is_grid = has_axes && !axes.is_empty();
                // Axes that do not divide the tensor are refused before a run starts.
                if !(is_grid && smoothing.apply_grid(tensor, axes).is_ok()) {
                    smoothing.apply(tensor);
                }
            }
            Self::JamesStein => james_stein(tensor, noise_std),
            Self::SoftThreshold => soft_threshold(tensor, noise_std),
        }
    }
}

/// Positive-part James-Stein shrinkage towards zero.
fn james_stein(tensor: &mut [f32], noise_std: f64) {
    let squares: f64 = tensor.iter().map(|y| f64::from(*y) * f64::from(*y)).sum();
    let surplus = (tensor.len() as f64 - 2.0) * noise_std * noise_std;
    // A tensor of zeros stays zero; the plain factor would be 0/0.
    let factor = if squares > 0.0 {
        (1.0 - surplus / squares).max(0.0)
    } else {
        0.0
    };
    for y in tensor {
        *y = (f64::from(*y) * factor) as f32;
    }
}

/// Soft thresholding at the universal threshold.
fn soft_threshold(tensor: &mut [f32], noise_std: f64) {
    let threshold = noise_std * libm::sqrt(2.0 * libm::log(tensor.len() as f64));
    for y in tensor {
        let magnitude = (f64::from(y.abs()) - threshold).max(0.0) as f32;
        *y = magnitude.copysign(*y);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_values_agree() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../tests/vectors/denoisers.json"
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
            let check = |denoise: fn(&mut [f32], f64), key: &str| {
                let mut y = vector(&case["y"]);
                denoise(&mut y, noise_std);
                for (found, expected) in y.iter().zip(vector(&case[key])) {
                    // Rounded to f32 once on the way in and once on the way out.
                    assert!(
                        (found - expected).abs() <= 3e-7 * expected.abs().max(0.1),
                        "{case}"
                    );
                }
            };
            check(james_stein, "js_positive_part");
            check(soft_threshold, "soft");
        }
    }

    #[test]
    fn tensors_are_denoised_by_themselves() {
        let smoothing = LaplacianSmoothing::new(1.0).unwrap();
        let tensors = [8, 2];
        let original: Vec<f32> = (0..10).map(|i| (i * i % 7) as f32).collect();
        let mut flat = original.clone();
        Denoiser::Laplacian {
            smoothing,
            axes: vec![],
        }
        .apply(&mut flat, &tensors, 1.0);
        let mut expected = original.clone();
        smoothing.apply(&mut expected[..8]);
        smoothing.apply(&mut expected[8..]);
        assert_eq!(flat, expected);

        let mut grid = original.clone();
        Denoiser::Laplacian {
            smoothing,
            axes: vec![2, 2],
        }
        .apply(&mut grid, &tensors, 1.0);
        let mut expected = original.clone();
        smoothing.apply_grid(&mut expected[..8], &[2, 2]).unwrap();
        smoothing.apply(&mut expected[8..]);
        assert_eq!(grid, expected);

        let mut same = original.clone();
        Denoiser::None.apply(&mut same, &tensors, 1.0);
        assert_eq!(same, original);
    }
}
