//! Activities in smooth sensor windows, measured by sensors that differ between devices.
//!
//! Channel c of a window of activity a on device k is, at time t of T:
//! `gain_kc · wave + offset_kc + trend_kc · (t/T − ½) + noise · n`, where
//! `wave = Σ_h A_ach · sin(2π (f_h · tempo_k · t/T) + φ_ach + jitter)`.
//! Amplitudes and phases belong to the activity. Gain, offset, trend and tempo belong to the
//! device, and `drift` scales their variation (gain and tempo around 1, offset and trend around 0).
//! The jitter is one normal draw per window. It is usually small, so windows are roughly aligned,
//! as by a trigger. With a large jitter they begin anywhere in an activity, as if cut from a
//! recording. A few low frequencies make neighbouring values similar, an input for which smooth
//! weights are suitable.

use std::f64::consts::TAU;

use rand_core::Rng;
use smolfed_core::window::Recipe;

use crate::draw::{Normals, below, unit};

/// Settings of sensor windows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowsConfig {
    /// Number of channels of the sensor, at least 1.
    pub channels: u32,
    /// Number of values per channel, at least 2.
    pub window: u32,
    /// Number of activities, at least 2.
    pub classes: u16,
    /// Scale of the differences between devices and the common sensor. 0 for equal ones.
    pub drift: f64,
    /// Standard deviation of a window's phase, in radians. Usually [`JITTER`].
    pub jitter: f64,
    /// The features computed from a window. `None` for its values.
    pub features: Option<Recipe>,
}

/// Waves in each channel of each activity: 1, 2 and 3 periods per window.
const HARMONICS: usize = 3;
/// The usual standard deviation of a window's phase, in radians: about a twelfth of a period.
pub const JITTER: f64 = 0.5;
/// Share of the drift for the tempo: a tenth, so that periods stay recognisable.
const TEMPO_SHARE: f64 = 0.1;

/// The shared parameters of all devices.
#[derive(Clone, Debug)]
pub(super) struct Windows {
    config: WindowsConfig,
    noise: f64,
    /// Amplitude and phase by activity, channel, harmonic.
    waves: Vec<(f64, f64)>,
}

impl WindowsConfig {
    /// Returns the jitter if it is not the usual one.
    pub(crate) fn unusual_jitter(&self) -> Option<f64> {
        (self.jitter.to_bits() != JITTER.to_bits()).then_some(self.jitter)
    }
}

impl Windows {
    pub(super) fn new(config: WindowsConfig, noise: f64, rng: &mut impl Rng) -> Self {
        let size = usize::from(config.classes) * config.channels as usize * HARMONICS;
        let mut normals = Normals::default();
        let waves = (0..size)
            .map(|at| {
                // Higher harmonics are weaker: 1, 1/2, 1/3.
                let strength = 1.0 / (at % HARMONICS + 1) as f64;
                let amplitude = strength * normals.next(rng);
                (amplitude, TAU * unit(rng))
            })
            .collect();
        Self {
            config,
            noise,
            waves,
        }
    }

    pub(super) fn feature_count(&self) -> usize {
        self.axes().iter().product()
    }

    pub(super) fn axes(&self) -> Vec<usize> {
        let of_channel = match &self.config.features {
            None => self.config.window as usize,
            Some(recipe) => recipe.feature_count(),
        };
        vec![self.config.channels as usize, of_channel]
    }

    /// Writes the tempo, then gain, offset and trend of each channel.
    pub(super) fn make_device(&self, rng: &mut impl Rng, own: &mut Vec<f64>) {
        let mut normals = Normals::default();
        let drift = self.config.drift;
        own.push(1.0 + TEMPO_SHARE * drift * normals.next(rng));
        for _ in 0..self.config.channels {
            own.push(1.0 + drift * normals.next(rng));
            own.push(drift * normals.next(rng));
            own.push(drift * normals.next(rng));
        }
    }

    pub(super) fn append(
        &self,
        own: &[f64],
        rng: &mut impl Rng,
        count: u32,
        features: &mut Vec<f32>,
        labels: &mut Vec<u16>,
    ) {
        let Some((&tempo, sensor)) = own.split_first() else {
            return;
        };
        let mut normals = Normals::default();
        let per_class = self.config.channels as usize * HARMONICS;
        for _ in 0..count {
            // Below `classes`, which is a u16.
            let class = below(rng, u32::from(self.config.classes)) as u16;
            let jitter = self.config.jitter * normals.next(rng);
            let waves = &self.waves[usize::from(class) * per_class..][..per_class];
            let start = features.len();
            for (waves, sensor) in waves.chunks_exact(HARMONICS).zip(sensor.chunks_exact(3)) {
                for step in 0..self.config.window {
                    let time = f64::from(step) / f64::from(self.config.window);
                    let signal = wave_sum(waves, tempo * time, jitter);
                    let value = sensor[0] * signal + sensor[1] + sensor[2] * (time - 0.5);
                    features.push((value + self.noise * normals.next(rng)) as f32);
                }
            }
            if let Some(recipe) = &self.config.features {
                let window = features.split_off(start);
                features.extend(self.compute(recipe, &window));
            }
            labels.push(class);
        }
    }

    /// Returns the features of a window with consecutive channels.
    fn compute(&self, recipe: &Recipe, window: &[f32]) -> Vec<f32> {
        let mut work = vec![0.0; recipe.work_count()];
        let mut features = vec![0.0; self.feature_count()];
        let sample = |channel, step| window[channel * recipe.length() + step];
        match recipe.features_into(sample, &mut work, &mut features) {
            Ok(()) => features,
            // Values are within a few thousand. Otherwise the data set would be refused.
            Err(_) => vec![f32::NAN; features.len()],
        }
    }
}

fn wave_sum(waves: &[(f64, f64)], time: f64, jitter: f64) -> f64 {
    let mut sum = 0.0;
    for (harmonic, (amplitude, phase)) in (1u8..).zip(waves) {
        sum += amplitude * libm::sin(TAU * f64::from(harmonic) * time + phase + jitter);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::synthesis_stream;

    fn windows(drift: f64, noise: f64) -> Windows {
        let config = WindowsConfig {
            channels: 3,
            window: 64,
            classes: 5,
            drift,
            jitter: JITTER,
            features: None,
        };
        Windows::new(config, noise, &mut synthesis_stream(1, 0, 0))
    }

    fn device(windows: &Windows, device: u32) -> (Vec<f32>, Vec<f64>) {
        let (mut own, mut features, mut labels) = (Vec::new(), Vec::new(), Vec::new());
        windows.make_device(&mut synthesis_stream(1, 1, device), &mut own);
        let mut rng = synthesis_stream(1, 2, 0);
        windows.append(&own, &mut rng, 50, &mut features, &mut labels);
        (features, own)
    }

    #[test]
    fn neighbouring_values_are_alike() {
        let (features, _) = device(&windows(0.0, 0.0), 0);
        let (mut steps, mut squares) = (0.0, 0.0);
        for channel in features.chunks_exact(64) {
            squares += channel.iter().map(|x| x * x).sum::<f32>() / 64.0;
            steps += channel
                .windows(2)
                .map(|pair| (pair[1] - pair[0]).powi(2))
                .sum::<f32>()
                / 63.0;
        }
        assert!(steps < 0.05 * squares, "{steps} {squares}");
    }

    #[test]
    fn sensors_are_equal_without_drift_and_differ_with_it() {
        let equal = windows(0.0, 0.1);
        assert_eq!(device(&equal, 0), device(&equal, 1));
        let drifting = windows(0.3, 0.1);
        assert_ne!(device(&drifting, 0).1, device(&drifting, 1).1);
    }
}
