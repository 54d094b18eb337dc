//! Quantiles of a quantity over devices (minimum, 10 %, median, 90 %, maximum), by the nearest
//! rank.

use serde::{Deserialize, Serialize};

/// Spread of a quantity across devices.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// Smallest.
    pub min: f64,
    /// One tenth of the devices are below.
    pub p10: f64,
    /// Half of the devices are below.
    pub median: f64,
    /// Nine tenths of the devices are below.
    pub p90: f64,
    /// Largest.
    pub max: f64,
}

impl Quantiles {
    /// Computes the quantiles of `values` by the nearest rank. Returns `None` without values.
    #[must_use]
    pub fn new(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let rank = |part: f64| {
            let index = (part * values.len() as f64).ceil() as usize;
            values.get(index.saturating_sub(1)).copied()
        };
        Some(Self {
            min: rank(0.0)?,
            p10: rank(0.1)?,
            median: rank(0.5)?,
            p90: rank(0.9)?,
            max: rank(1.0)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_nearest_ranks() {
        let quantiles = Quantiles::new((1..=10).rev().map(f64::from).collect()).unwrap();
        assert_eq!(
            (quantiles.min, quantiles.p10, quantiles.median),
            (1.0, 1.0, 5.0)
        );
        assert_eq!((quantiles.p90, quantiles.max), (9.0, 10.0));
        assert_eq!(Quantiles::new(vec![]), None);
    }
}
