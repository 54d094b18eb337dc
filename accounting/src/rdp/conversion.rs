//! Conversion of Rényi divergence to (ε, δ), by the classic theorem or the improved one.

use crate::params::Delta;

/// The theorem that converts ρ(α) to ε.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conversion {
    /// ε = ρ + ln(1/δ) / (α - 1). Mironov 2017, Proposition 3.
    Classic,
    /// ε = ρ + ln(1 - 1/α) - ln(δα) / (α - 1). Canonne, Kamath, Steinke 2020, Proposition 12
    /// (also Balle et al. 2020, Theorem 21): never worse than the classic one.
    Improved,
}

impl Conversion {
    /// Returns ε at one order α > 1. A negative value means that 0 holds.
    #[must_use]
    pub fn epsilon(self, rdp: f64, order: f64, delta: Delta) -> f64 {
        let ln_delta = delta.get().ln();
        match self {
            Self::Classic => rdp - ln_delta / (order - 1.0),
            Self::Improved => {
                rdp + (-1.0 / order).ln_1p() - (ln_delta + order.ln()) / (order - 1.0)
            }
        }
    }
}
