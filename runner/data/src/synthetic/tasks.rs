//! Linear classification tasks with a common and an individual part.
//!
//! Device k has weights `W_k = W_0 + heterogeneity · D_k` and features around its own centre,
//! `x ~ N(shift · u_k, I)`. The label is `argmax(W_k x + noise · n)`. All entries of `W_0`, `D_k`,
//! `u_k` and `n` are standard normal, with weights divided by √features, so that logits have about
//! unit variance. In Synthetic(α, β) of Li et al. 2020 (FedProx, arXiv:1812.06127), the device's
//! draw shifts all weights equally and cancels in the argmax. Here, by contrast, the tasks have
//! `W_0` in common (decision P12): a shared model is useful, and a personal one is better.

use rand_core::Rng;
use serde::Serialize;

use crate::draw::Normals;

/// Settings of linear tasks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TasksConfig {
    /// Number of features per sample, at least 1.
    pub features: u32,
    /// Number of classes C, at least 2.
    #[serde(skip)]
    pub classes: u16,
    /// Scale of the difference between a device's weights and the common ones. 0 for one task.
    pub heterogeneity: f64,
    /// Scale of the distance of a device's features from 0.
    pub shift: f64,
}

/// The shared parameters of all devices.
#[derive(Clone, Debug)]
pub(super) struct Tasks {
    config: TasksConfig,
    noise: f64,
    /// W_0, class by class.
    common: Vec<f64>,
}

impl Tasks {
    pub(super) fn new(config: TasksConfig, noise: f64, rng: &mut impl Rng) -> Self {
        let scale = 1.0 / libm::sqrt(f64::from(config.features));
        let mut normals = Normals::default();
        let size = usize::from(config.classes) * config.features as usize;
        let common = (0..size).map(|_| normals.next(rng) * scale).collect();
        Self {
            config,
            noise,
            common,
        }
    }

    pub(super) fn feature_count(&self) -> usize {
        self.config.features as usize
    }

    /// Writes W_k, then the centre of the features.
    pub(super) fn make_device(&self, rng: &mut impl Rng, own: &mut Vec<f64>) {
        let mut normals = Normals::default();
        let scale = self.config.heterogeneity / libm::sqrt(f64::from(self.config.features));
        own.extend(
            self.common
                .iter()
                .map(|common| common + scale * normals.next(rng)),
        );
        own.extend((0..self.feature_count()).map(|_| self.config.shift * normals.next(rng)));
    }

    pub(super) fn append(
        &self,
        own: &[f64],
        rng: &mut impl Rng,
        count: u32,
        features: &mut Vec<f32>,
        labels: &mut Vec<u16>,
    ) {
        let width = self.feature_count();
        let (weights, centre) = own.split_at(self.common.len());
        let mut normals = Normals::default();
        for _ in 0..count {
            let start = features.len();
            features.extend(
                centre
                    .iter()
                    .map(|centre| (centre + normals.next(rng)) as f32),
            );
            let sample = &features[start..];
            let mut best = (f64::NEG_INFINITY, 0);
            for (class, row) in (0u16..).zip(weights.chunks_exact(width)) {
                let mut logit = self.noise * normals.next(rng);
                for (weight, &feature) in row.iter().zip(sample) {
                    logit += weight * f64::from(feature);
                }
                if logit > best.0 {
                    best = (logit, class);
                }
            }
            labels.push(best.1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::synthesis_stream;

    const CLASSES: u16 = 4;

    fn tasks(heterogeneity: f64, shift: f64) -> Tasks {
        let config = TasksConfig {
            features: 20,
            classes: CLASSES,
            heterogeneity,
            shift,
        };
        Tasks::new(config, 0.0, &mut synthesis_stream(1, 0, 0))
    }

    /// Returns the share of a device's labels that the common weights predict.
    fn common_accuracy(tasks: &Tasks, device: u32) -> f64 {
        let (mut own, mut features, mut labels) = (Vec::new(), Vec::new(), Vec::new());
        tasks.make_device(&mut synthesis_stream(1, 1, device), &mut own);
        let mut rng = synthesis_stream(1, 2, device);
        tasks.append(&own, &mut rng, 500, &mut features, &mut labels);
        let right = features
            .chunks_exact(20)
            .zip(&labels)
            .filter(|(sample, label)| {
                let logit = |class: u16| -> f64 {
                    let row = &tasks.common[usize::from(class) * 20..][..20];
                    row.iter()
                        .zip(*sample)
                        .map(|(weight, &x)| weight * f64::from(x))
                        .sum()
                };
                (0..CLASSES).max_by(|&a, &b| logit(a).total_cmp(&logit(b))) == Some(**label)
            });
        right.count() as f64 / 500.0
    }

    #[test]
    fn equal_tasks_are_learned_by_the_common_weights() {
        let tasks = tasks(0.0, 1.0);
        for device in 0..3 {
            assert!((common_accuracy(&tasks, device) - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn common_weights_help_less_the_more_tasks_differ() {
        let mean = |heterogeneity| {
            let tasks = tasks(heterogeneity, 0.0);
            (0..20)
                .map(|device| common_accuracy(&tasks, device))
                .sum::<f64>()
                / 20.0
        };
        let (near, far) = (mean(0.5), mean(2.0));
        assert!(
            near < 0.9 && near > 0.65 && far < near - 0.1 && far > 0.3,
            "{near} {far}"
        );
    }

    #[test]
    fn shift_moves_the_features_of_a_device() {
        let mut own = Vec::new();
        let tasks = tasks(0.0, 3.0);
        tasks.make_device(&mut synthesis_stream(1, 1, 0), &mut own);
        let centre = own[usize::from(CLASSES) * 20..].to_vec();
        let (mut features, mut labels) = (Vec::new(), Vec::new());
        tasks.append(
            &own,
            &mut synthesis_stream(1, 2, 0),
            400,
            &mut features,
            &mut labels,
        );
        for (at, centre) in centre.iter().enumerate() {
            let column = features.iter().skip(at).step_by(20);
            let mean = column.map(|&x| f64::from(x)).sum::<f64>() / 400.0;
            // Six standard errors of 0.05.
            assert!((mean - centre).abs() < 0.3, "{at}: {mean} {centre}");
        }
    }
}
