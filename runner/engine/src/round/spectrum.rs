//! The spectrum of an averaged update, which Laplacian smoothing exploits (the paper's Figure 1).
//!
//! The signal is in low frequencies, the noise in all. Smoothing damps the high ones.

use serde::{Deserialize, Serialize};
use smolfed_accounting::fourier::Transform;

/// Mean power of the weight tensor's Fourier coefficients in bands of equal width.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spectrum {
    /// Without noise. It reads private data: simulation only. `None` if devices add the noise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clean: Option<Vec<f64>>,
    /// The noisy average.
    pub noisy: Vec<f64>,
    /// After denoising.
    pub denoised: Vec<f64>,
}

impl Spectrum {
    /// Maximum number of bands.
    const BANDS: usize = 128;

    /// Computes the spectra of the first `weights` entries of each average.
    #[must_use]
    pub fn new(clean: Option<&[f32]>, noisy: &[f32], denoised: &[f32], weights: usize) -> Self {
        let part = |v: &[f32]| power(v.get(..weights).unwrap_or(v));
        Self {
            clean: clean.map(part),
            noisy: part(noisy),
            denoised: part(denoised),
        }
    }
}

/// Computes the mean power in up to [`Spectrum::BANDS`] bands, lowest frequency first.
fn power(v: &[f32]) -> Vec<f64> {
    if v.is_empty() {
        return Vec::new();
    }
    let mut input: Vec<f64> = v.iter().map(|x| f64::from(*x)).collect();
    let output = Transform::new(v.len()).forward(&mut input);
    let bands = output.len().min(Spectrum::BANDS);
    let edge = |band: usize| band * output.len() / bands;
    (0..bands)
        .map(|band| {
            let members = &output[edge(band)..edge(band + 1)];
            let sum: f64 = members.iter().map(|c| c.norm_sqr()).sum();
            sum / (members.len() * v.len()) as f64
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wave_has_its_power_in_its_band() {
        let v: Vec<f32> = (0..16)
            .map(|i| if i % 2 == 0 { 1.0 } else { -1.0 })
            .collect();
        let power = power(&v);
        assert_eq!(power.len(), 9);
        // Parseval: the highest frequency has power n² / n.
        assert!((power[8] - 16.0).abs() < 1e-9 && power[..8].iter().all(|p| *p < 1e-9));
    }

    #[test]
    fn long_and_empty_vectors_have_spectra_too() {
        assert_eq!(power(&vec![1.0; 10_000]).len(), Spectrum::BANDS);
        assert!(power(&[]).is_empty());
        let spectrum = Spectrum::new(None, &[1.0, 2.0, 9.0], &[1.0, 1.0, 9.0], 2);
        assert_eq!((spectrum.clean.is_none(), spectrum.noisy.len()), (true, 2));
    }
}
