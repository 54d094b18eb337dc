//! Laws that hold for every model: the gradient is the derivative, sizes do not matter, nothing
//! panics on wrong lengths.

use std::{vec, vec::Vec};

use proptest::prelude::*;

use super::*;
use crate::samples::SampleSlice;

/// Deterministic values in (-1, 1) without a generator.
fn values(count: usize, salt: u32) -> Vec<f32> {
    (0..count as u32)
        .map(|i| ((i.wrapping_mul(2_654_435_761) ^ salt) % 2_001) as f32 / 1_000.5 - 1.0)
        .collect()
}

fn mean_loss<M: Model>(
    model: &M,
    parameters: &[f32],
    samples: &impl Samples<Target = M::Target>,
) -> f64 {
    let mut scores = vec![0.0; model.output_count()];
    let mut scratch = vec![0.0; model.score_scratch_count()];
    let mut loss = 0.0;
    for index in 0..samples.len() {
        model
            .scores(
                parameters,
                samples.features(index),
                &mut scratch,
                &mut scores,
            )
            .unwrap();
        loss += f64::from(model.loss_in_place(&mut scores, samples.target(index)));
    }
    loss / samples.len() as f64
}

/// Central differences of the loss in f32: error about h² plus ulp(loss)/h = 1e-4 + 1e-5.
fn gradient_is_the_derivative<M: Model<Target = T>, T: Copy + Default>(model: &M, targets: &[T]) {
    let (features, count) = (model.feature_count(), model.parameter_count());
    let inputs = values(features * targets.len(), 7);
    let samples = SampleSlice::new(&inputs, targets, features).unwrap();
    let parameters = values(count, 3);
    let batch: Vec<u32> = (0..targets.len() as u32).collect();
    let (mut gradient, mut scratch) = (vec![9.0; count], vec![0.0; model.scratch_count(2)]);
    let loss = model
        .loss_and_gradient(&parameters, &samples, &batch, &mut scratch, &mut gradient)
        .unwrap();
    assert!((f64::from(loss) - mean_loss(model, &parameters, &samples)).abs() < 1e-5);
    for i in 0..count {
        let h = 1e-2;
        let (mut up, mut down) = (parameters.clone(), parameters.clone());
        up[i] += h;
        down[i] -= h;
        let slope = (mean_loss(model, &up, &samples) - mean_loss(model, &down, &samples))
            / f64::from(up[i] - down[i]);
        assert!(
            (slope - f64::from(gradient[i])).abs() < 3e-4,
            "{i}: {slope} {}",
            gradient[i]
        );
    }
}

#[test]
#[cfg_attr(feature = "micromath", ignore = "its exp is approximate")]
fn gradients_are_the_derivatives_of_the_losses() {
    gradient_is_the_derivative(&Linear::new(5usize), &[0.5f32, -1.0, 2.0]);
    gradient_is_the_derivative(&Logistic::new(Const::<4>), &[0u16, 1, 1, 0, 1]);
    gradient_is_the_derivative(&Softmax::new(3usize, 4usize), &[0u16, 3, 2, 1, 1, 0, 2]);
    gradient_is_the_derivative(&Softmax::new(Const::<6>, Const::<11>), &[10u16, 0, 7]);
}

proptest! {
    /// Batch grouping, tiles and the kind of size change the speed but never the bits.
    #[test]
    fn scratch_length_and_kind_of_size_do_not_change_the_bits(
        count in 1usize..45,
        room in 1usize..25,
    ) {
        let targets: Vec<u16> = (0..count as u16).map(|i| i % 7).collect();
        let inputs = values(19 * count, 1);
        let samples = SampleSlice::new(&inputs, &targets, 19).unwrap();
        let parameters = values(20 * 7, 2);
        let batch: Vec<u32> = (0..count as u32).rev().collect();
        let run = |scratch: usize, fixed: bool| {
            let (mut gradient, mut scratch) = (vec![0.0; 140], vec![0.0; scratch * 7]);
            let loss = if fixed {
                Softmax::new(Const::<19>, Const::<7>)
                    .loss_and_gradient(&parameters, &samples, &batch, &mut scratch, &mut gradient)
            } else {
                Softmax::new(19usize, 7usize)
                    .loss_and_gradient(&parameters, &samples, &batch, &mut scratch, &mut gradient)
            };
            (loss.unwrap().to_bits(), gradient.iter().map(|g| g.to_bits()).collect::<Vec<_>>())
        };
        prop_assert_eq!(run(1, true), run(room, false));
    }

    #[test]
    fn extreme_scores_give_finite_losses_and_probabilities(scale in 0f32..1e30, target in 0u16..4) {
        let softmax = Softmax::new(1usize, 4usize);
        let mut scores = [scale, -scale, 0.5 * scale, 0.0];
        let loss = softmax.loss_in_place(&mut scores, target);
        prop_assert!(loss.is_finite() && loss >= 0.0);
        prop_assert!(scores.iter().all(|p| (-1.0..=1.0).contains(p)));
        prop_assert!(scores.iter().sum::<f32>().abs() < 1e-5);
        let mut score = [scale];
        prop_assert!(Logistic::new(1usize).loss_in_place(&mut score, target).is_finite());
    }
}

#[test]
fn predictions_are_the_first_of_the_largest_scores() {
    assert_eq!(Softmax::new(1usize, 3usize).predict(&[0.0, 2.0, 2.0]), 1);
    assert_eq!(Logistic::new(1usize).predict(&[0.0]), 0);
    assert_eq!(Logistic::new(1usize).predict(&[0.1]), 1);
    assert_eq!(Linear::new(1usize).predict(&[0.1]), 0.1);
}

#[test]
fn wrong_lengths_are_refused() {
    let model = Softmax::new(2usize, 3usize);
    let samples = SampleSlice::new(&[1.0, 2.0], &[0u16], 2).unwrap();
    let run = |parameters: usize, batch: &[u32], scratch: usize, gradient: usize| {
        model
            .loss_and_gradient(
                &vec![0.0; parameters],
                &samples,
                batch,
                &mut vec![0.0; scratch],
                &mut vec![0.0; gradient],
            )
            .unwrap_err()
    };
    assert_eq!(
        run(8, &[0], 3, 9),
        ModelError::Parameters {
            expected: 9,
            found: 8
        }
    );
    assert_eq!(
        run(9, &[0], 3, 8),
        ModelError::Parameters {
            expected: 9,
            found: 8
        }
    );
    assert_eq!(
        run(9, &[0], 2, 9),
        ModelError::Scratch {
            expected: 3,
            found: 2
        }
    );
    assert_eq!(run(9, &[], 3, 9), ModelError::Batch);
    assert_eq!(run(9, &[1], 3, 9), ModelError::Batch);
    let scores = &mut [0.0; 3];
    assert_eq!(
        model.scores(&[0.0; 9], &[1.0], &mut [], scores),
        Err(ModelError::Features {
            expected: 2,
            found: 1
        })
    );
    assert_eq!(
        Softmax::new(0usize, 3usize).scores(&[0.0; 3], &[], &mut [], scores),
        Err(ModelError::Empty)
    );
    let huge = Softmax::new(usize::MAX, 2usize);
    assert!(huge.scores(&[0.0; 3], &[], &mut [], scores).is_err());
}
