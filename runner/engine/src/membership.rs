//! Membership inference by a threshold on the loss: which examples was a model trained on?
//!
//! An example with a small loss is taken for a member. Non-members must have the distribution of
//! the members, so they are other training examples and not the test file: MNIST's raises the area
//! under the curve from .540 to .596 without any leak (docs/papers.md, Attacks).
//! Sources: Yeom et al. 2018 (arXiv:1709.01604), and DP-Fed-LS, Liang et al. 2020, Section 6.4.

use serde::{Deserialize, Serialize};
use smolfed_core::model::ModelError;

use crate::evaluation::samples::sample_losses;
use crate::task::Task;
use smolfed_data::dataset::DeviceBuffer;
use smolfed_data::federation::Federation;

/// Maximum number of members, and of non-members.
const MAX_EXAMPLES: usize = 10_000;
/// Number of stored points of the curve.
const POINTS: usize = 200;

/// The receiver operating characteristic of the attack.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Roc {
    /// False-positive rate and true-positive rate, from (0, 0) to (1, 1).
    pub points: Vec<[f64; 2]>,
    /// Area under the curve: ½ for guessing.
    pub area: f64,
    /// True-positive rate at a false-positive rate of 1 %.
    pub hit_rate_at_1_percent: f64,
    /// Number of members.
    pub members: usize,
    /// Number of non-members.
    pub others: usize,
}

/// The result of the attack on one model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attack {
    /// Name of the model.
    pub model: String,
    /// Its curve.
    pub roc: Roc,
}

impl Roc {
    /// Attacks `model`, with the devices' training samples as members and the unused validation
    /// samples as the others. Returns `None` if there are none.
    ///
    /// # Errors
    /// [`ModelError`] if the model does not fit the samples.
    pub fn of_model(
        task: &Task,
        model: &[f32],
        federation: &Federation,
    ) -> Result<Option<Self>, ModelError> {
        let validation = federation.validation();
        if validation.is_empty() {
            return Ok(None);
        }
        let mut members = Vec::new();
        let mut buffer = DeviceBuffer::default();
        for device in 0..federation.device_count() {
            let samples = federation.device(device, &mut buffer);
            members.extend(sample_losses(task, model, samples)?);
            if members.len() >= MAX_EXAMPLES {
                break;
            }
        }
        let mut others = sample_losses(task, model, validation.all(&mut buffer))?;
        members.truncate(MAX_EXAMPLES);
        others.truncate(MAX_EXAMPLES);
        Ok(Self::of_losses(&members, &others))
    }

    /// Computes the curve over all thresholds. Returns `None` if either side is empty.
    #[must_use]
    pub fn of_losses(members: &[f32], others: &[f32]) -> Option<Self> {
        if members.is_empty() || others.is_empty() {
            return None;
        }
        let tagged = |losses: &[f32], is_member| -> Vec<(f32, bool)> {
            losses.iter().map(|loss| (*loss, is_member)).collect()
        };
        let mut all = tagged(members, true);
        all.extend(tagged(others, false));
        all.sort_by(|a, b| a.0.total_cmp(&b.0));

        let (positives, negatives) = (members.len() as f64, others.len() as f64);
        let (mut true_positives, mut false_positives) = (0.0, 0.0);
        let mut curve = vec![[0.0, 0.0]];
        let mut area = 0.0;
        // Equal losses cannot be told apart, so they are one step.
        for equal in all.chunk_by(|a, b| a.0.total_cmp(&b.0).is_eq()) {
            let before = [false_positives / negatives, true_positives / positives];
            for (_, is_member) in equal {
                if *is_member {
                    true_positives += 1.0;
                } else {
                    false_positives += 1.0;
                }
            }
            let after = [false_positives / negatives, true_positives / positives];
            area += (after[0] - before[0]) * f64::midpoint(after[1], before[1]);
            curve.push(after);
        }
        let hit_rate_at_1_percent = true_positive_rate(&curve, 0.01);
        let step = curve.len().div_ceil(POINTS);
        let last = curve.last().copied();
        let mut points: Vec<[f64; 2]> = curve.into_iter().step_by(step).collect();
        if points.last().copied() != last {
            points.extend(last);
        }
        Some(Self {
            points,
            area,
            hit_rate_at_1_percent,
            members: members.len(),
            others: others.len(),
        })
    }
}

/// Returns the true-positive rate at a false-positive rate. Between two points, this is the rate of
/// a randomised test.
fn true_positive_rate(curve: &[[f64; 2]], false_positive_rate: f64) -> f64 {
    let below = curve.iter().rfind(|point| point[0] <= false_positive_rate);
    let above = curve.iter().find(|point| point[0] > false_positive_rate);
    match (below, above) {
        (Some(below), Some(above)) => {
            let share = (false_positive_rate - below[0]) / (above[0] - below[0]);
            below[1] + share * (above[1] - below[1])
        }
        (Some(last), None) => last[1],
        (None, _) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_area_is_that_of_the_rank_test() {
        let roc = Roc::of_losses(&[0.1, 0.4, 0.35], &[0.2, 0.8]).unwrap();
        // Pairs in the right order: 0.1 < 0.2, 0.1 < 0.8, 0.4 < 0.8, 0.35 < 0.8: 4 of 6.
        assert!((roc.area - 4.0 / 6.0).abs() < 1e-12);
        assert_eq!(roc.points.first(), Some(&[0.0, 0.0]));
        assert_eq!(roc.points.last(), Some(&[1.0, 1.0]));
        // One of three members comes before the first non-member.
        assert!((roc.hit_rate_at_1_percent - 1.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn equal_losses_are_guessing() {
        let roc = Roc::of_losses(&[1.0; 5], &[1.0; 7]).unwrap();
        assert!((roc.area - 0.5).abs() < 1e-12);
        assert!((roc.hit_rate_at_1_percent - 0.01).abs() < 1e-12);
        assert!(Roc::of_losses(&[], &[1.0]).is_none());
    }

    #[test]
    fn a_long_curve_is_thinned_and_keeps_its_ends() {
        let members: Vec<f32> = (0..3000u16).map(|i| f32::from(i) * 0.9).collect();
        let others: Vec<f32> = (0..3000u16).map(f32::from).collect();
        let roc = Roc::of_losses(&members, &others).unwrap();
        assert!(roc.points.len() <= POINTS + 1);
        assert_eq!(roc.points.last(), Some(&[1.0, 1.0]));
        assert!(roc.area > 0.5 && roc.area < 0.6);
    }
}
