//! Sensors that measure the same relation, each with its own drift: a regression.
//!
//! Device k has slopes `w_k = w_0 + heterogeneity · d_k` and an intercept `b_k = drift · o_k`. A
//! sample is `x ~ N(0, I)` with the value `w_k x + b_k + noise · n`. All entries of `w_0`, `d_k`,
//! `o_k` and `n` are standard normal, with slopes divided by √features, so that `w_0 x` has about
//! unit variance.

use rand_core::Rng;
use serde::Serialize;

use crate::draw::Normals;

/// Settings of sensor readings.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ReadingsConfig {
    /// Number of features per sample, at least 1.
    pub features: u32,
    /// Scale of the difference between a device's slopes and the common ones. 0 for equal ones.
    pub heterogeneity: f64,
    /// Standard deviation of the devices' intercepts.
    pub drift: f64,
}

/// The shared parameters of all devices.
#[derive(Clone, Debug)]
pub(super) struct Readings {
    config: ReadingsConfig,
    noise: f64,
    /// w_0.
    common: Vec<f64>,
}

impl Readings {
    pub(super) fn new(config: ReadingsConfig, noise: f64, rng: &mut impl Rng) -> Self {
        let scale = 1.0 / libm::sqrt(f64::from(config.features));
        let mut normals = Normals::default();
        Self {
            config,
            noise,
            common: (0..config.features)
                .map(|_| scale * normals.next(rng))
                .collect(),
        }
    }

    pub(super) fn feature_count(&self) -> usize {
        self.common.len()
    }

    /// Writes b_k, then w_k.
    pub(super) fn make_device(&self, rng: &mut impl Rng, own: &mut Vec<f64>) {
        let mut normals = Normals::default();
        let scale = self.config.heterogeneity / libm::sqrt(f64::from(self.config.features));
        own.push(self.config.drift * normals.next(rng));
        own.extend(
            self.common
                .iter()
                .map(|common| common + scale * normals.next(rng)),
        );
    }

    pub(super) fn append(
        &self,
        own: &[f64],
        rng: &mut impl Rng,
        count: u32,
        features: &mut Vec<f32>,
        values: &mut Vec<f32>,
    ) {
        let Some((intercept, slopes)) = own.split_first() else {
            return;
        };
        let mut normals = Normals::default();
        for _ in 0..count {
            let mut value = intercept + self.noise * normals.next(rng);
            for slope in slopes {
                let feature = normals.next(rng) as f32;
                value += slope * f64::from(feature);
                features.push(feature);
            }
            values.push(value as f32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::synthesis_stream;

    const CONFIG: ReadingsConfig = ReadingsConfig {
        features: 8,
        heterogeneity: 0.3,
        drift: 2.0,
    };

    fn device(readings: &Readings, device: u32) -> Vec<f64> {
        let mut own = Vec::new();
        readings.make_device(&mut synthesis_stream(1, 1, device), &mut own);
        own
    }

    #[test]
    fn values_are_the_devices_relation_with_noise() {
        let readings = Readings::new(CONFIG, 0.5, &mut synthesis_stream(1, 0, 0));
        let own = device(&readings, 3);
        let (mut features, mut values) = (Vec::new(), Vec::new());
        let mut rng = synthesis_stream(1, 2, 3);
        readings.append(&own, &mut rng, 2000, &mut features, &mut values);
        let mut squares = 0.0;
        for (sample, value) in features.chunks_exact(8).zip(&values) {
            let products = own[1..].iter().zip(sample).map(|(w, &x)| w * f64::from(x));
            let error = f64::from(*value) - own[0] - products.sum::<f64>();
            squares += error * error;
        }
        let deviation = libm::sqrt(squares / 2000.0);
        // Standard error 0.008.
        assert!((deviation - 0.5).abs() < 0.05, "{deviation}");
    }

    #[test]
    fn devices_stray_from_the_common_relation_by_heterogeneity_and_drift() {
        let readings = Readings::new(CONFIG, 0.0, &mut synthesis_stream(1, 0, 0));
        let (mut intercepts, mut slopes) = (0.0, 0.0);
        for number in 0..500 {
            let own = device(&readings, number);
            intercepts += own[0] * own[0];
            let strayed = own[1..].iter().zip(&readings.common).map(|(w, w0)| w - w0);
            slopes += strayed.map(|stray| stray * stray).sum::<f64>();
        }
        // Standard errors 0.06 and 0.003.
        let [intercepts, slopes] = [intercepts, slopes].map(|squares| libm::sqrt(squares / 500.0));
        assert!((intercepts - 2.0).abs() < 0.3, "{intercepts}");
        assert!((slopes - 0.3).abs() < 0.02, "{slopes}");
    }
}
