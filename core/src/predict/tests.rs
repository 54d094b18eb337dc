//! Scores, predictions and probabilities against those of training.

use std::{format, vec, vec::Vec};

use proptest::{collection::vec as numbers, prelude::*};

use super::*;
use crate::{
    client::Client,
    fixed_point::{FeatureScale, MAX_WEIGHT},
    math::sigmoid,
    model::{Activation, Const, Encoder, FixedModel, Linear, Logistic, Softmax},
    session::FixedPoint,
};

/// The scores of a model, and its predictions.
fn said<M: Predictor>(
    model: &M,
    parameters: &[f32],
    features: &[M::Feature],
    outputs: usize,
) -> (Vec<M::Score>, M::Prediction, Vec<M::Score>) {
    let current = CurrentModel::new(4, model, parameters).unwrap();
    let mut scores = vec![M::Score::default(); outputs];
    let said = current
        .predict(features, &mut [0.0; 8], &mut scores)
        .unwrap();
    let mut probabilities = scores.clone();
    current.probabilities_in_place(&mut probabilities);
    (scores, said, probabilities)
}

/// Integer weights instead of the session's numbers.
fn words(weights: &[i32]) -> Vec<f32> {
    weights
        .iter()
        .map(|w| f32::from_bits(w.cast_unsigned()))
        .collect()
}

#[test]
fn every_model_says_what_its_scores_say() {
    let (scores, value, same) = said(&Linear::new(2_usize), &[2.0, 3.0, 0.5], &[1.0, 10.0], 1);
    assert_eq!((scores[0], value, same[0]), (32.5, 32.5, 32.5));
    let (scores, class, probability) = said(&Logistic::new(1_usize), &[2.0, -1.0], &[0.25], 1);
    assert_eq!((scores[0], class), (-0.5, 0));
    assert_eq!(probability[0].to_bits(), sigmoid(-0.5).to_bits());
    let softmax = Softmax::new(1_usize, 3_usize);
    let (scores, class, probabilities) = said(&softmax, &[1.0, 2.0, 2.0, 0.0, 0.0, 0.0], &[1e3], 3);
    assert_eq!(
        (scores, class),
        (vec![1e3, 2e3, 2e3], 1),
        "the first among equals"
    );
    assert_eq!(probabilities, [0.0, 0.5, 0.5]);
    let encoder = Encoder::new(1_usize, 2_usize, 2_usize, Activation::Relu);
    let parameters = [1.0, -1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0];
    let (scores, class, _) = said(&encoder, &parameters, &[-3.0], 2);
    assert_eq!((scores, class), (vec![0.0, 3.0], 1));
}

#[test]
fn what_does_not_fit_is_refused() {
    let softmax = Softmax::new(2_usize, 2_usize);
    let (expected, found) = (6, 5);
    let error = CurrentModel::new(0, &softmax, &[0.0; 5]).unwrap_err();
    assert_eq!(error, ModelError::Parameters { expected, found });
    let mut parameters = [0.5; 6];
    for x in [f32::NAN, f32::INFINITY] {
        parameters[3] = x;
        let error = CurrentModel::new(0, &softmax, &parameters).unwrap_err();
        assert_eq!(error, ModelError::NotFinite);
    }
    parameters[3] = 0.5;
    let current = CurrentModel::new(7, &softmax, &parameters).unwrap();
    assert_eq!(
        (current.round(), current.parameters()),
        (7, &parameters[..])
    );
    assert_eq!(
        format!("{current:?}"),
        "CurrentModel(6 parameters of round 7)"
    );
    let scores =
        |features: &[f32], count: usize| current.predict(features, &mut [], &mut [0.0; 3][..count]);
    assert_eq!(scores(&[1.0, f32::NAN], 2), Err(ModelError::NotFinite));
    let (expected, found) = (2, 1);
    assert_eq!(
        scores(&[1.0], 2),
        Err(ModelError::Features { expected, found })
    );
    assert_eq!(
        scores(&[1.0; 2], 1),
        Err(ModelError::Scratch { expected, found })
    );
    assert_eq!(scores(&[1.0; 2], 2), Ok(0));
    let scale = FeatureScale::new::<i8>(6).unwrap();
    let integer = FixedPoint::<_, i8>::new(softmax, scale);
    for weight in [MAX_WEIGHT + 1, -MAX_WEIGHT - 1, i32::MIN] {
        let weights = words(&[0, 0, weight, 0, 0, 0]);
        let error = CurrentModel::new(0, &integer, &weights).unwrap_err();
        assert_eq!(error, ModelError::NotFinite);
    }
    assert!(CurrentModel::new(0, &integer, &[0.0; 5]).is_err());
    let weights = words(&[MAX_WEIGHT; 6]);
    let current = CurrentModel::new(0, &integer, &weights).unwrap();
    let scores =
        |features: &[i8], count: usize| current.predict(features, &mut [], &mut [0; 3][..count]);
    assert_eq!(
        scores(&[1], 2),
        Err(ModelError::Features { expected, found })
    );
    assert_eq!(
        scores(&[1; 2], 1),
        Err(ModelError::Scratch { expected, found })
    );
    assert_eq!(scores(&[1; 2], 2), Ok(0));
}

/// A client without a session, whose caller holds the parameters.
#[test]
fn a_client_predicts() {
    type Model = Softmax<Const<2>, Const<2>>;
    let client: Client<Model, { Model::PARAMETERS }, 4, { Model::SCRATCH }> =
        Client::new(Softmax::new(Const, Const));
    let global = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0];
    let current = client.current(3, &global).unwrap();
    let said = current.predict(&[1.0, 2.0], &mut [], &mut [0.0; 2]);
    assert_eq!((current.round(), said), (3, Ok(1)));
    assert!(client.current(3, &[f32::NAN; 6]).is_err());
}

proptest! {
    /// Integer scores and probabilities are close to those in `f32`.
    #[test]
    #[cfg_attr(feature = "micromath", ignore = "its exp is approximate")]
    fn integers_say_what_numbers_say(
        weights in numbers(-500_000..500_000_i32, 33), features in numbers(any::<i8>(), 10),
    ) {
        let scale = FeatureScale::new::<i8>(6).unwrap();
        let exact: Vec<f32> = weights.iter().map(|w| *w as f32 / 262_144.0).collect();
        let rounded: Vec<f32> = features.iter().map(|x| f32::from(*x) / 64.0).collect();
        let softmax = Softmax::new(10_usize, 3_usize);
        let integer = FixedPoint::<_, i8>::new(softmax, scale);
        let (scores, class, probabilities) = said(&integer, &words(&weights), &features, 3);
        let (expected, _, likely) = said(&softmax, &exact, &rounded, 3);
        for (score, expected) in scores.iter().zip(&expected) {
            prop_assert!((*score as f32 / 65_536.0 - expected).abs() < 1e-4);
        }
        for (probability, expected) in probabilities.iter().zip(&likely) {
            prop_assert!((*probability as f32 / 65_536.0 - expected).abs() < 2e-4);
        }
        let best = scores.iter().max().unwrap();
        let first = scores.iter().position(|score| score == best).unwrap();
        prop_assert_eq!(usize::from(class), first);

        let logistic = FixedPoint::<_, i8>::new(Logistic::new(10_usize), scale);
        let (score, class, probability) = said(&logistic, &words(&weights[..11]), &features, 1);
        prop_assert_eq!(class, u16::from(score[0] > 0));
        let expected = 1.0 / (1.0 + (-f64::from(score[0]) / 65_536.0).exp());
        prop_assert!((f64::from(probability[0]) / 65_536.0 - expected).abs() < 1e-4);

        let linear = FixedPoint::<_, i8>::new(Linear::new(10_usize), scale);
        let (score, value, same) = said(&linear, &words(&weights[..11]), &features, 1);
        prop_assert!((f64::from(value) - f64::from(score[0]) / 65_536.0).abs() < 1e-4);
        prop_assert_eq!(score, same);
    }
}
