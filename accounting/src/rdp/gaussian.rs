//! Rényi divergence of a release of the Gaussian mechanism without sampling.

/// Returns ρ(α) = α / (2ν²): the Rényi divergence of order `order` of one Gaussian release, ν the
/// noise std over the sensitivity. Source: Mironov 2017, Corollary 3.
#[must_use]
pub fn gaussian_rdp(noise_to_sensitivity: f64, order: f64) -> f64 {
    order / (2.0 * noise_to_sensitivity * noise_to_sensitivity)
}
