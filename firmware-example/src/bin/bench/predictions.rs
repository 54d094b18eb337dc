//! Instructions of a prediction by the softmax model, in `f32` and in integers.

use core::hint::black_box;

use smolfed_core::{
    model::Const,
    predict::{CurrentModel, Predictor},
    samples::Samples,
    session::FixedPoint,
};

use super::{
    counting::{Client, PARAMETERS, count, print},
    data::{FEATURES, integer_features, integer_weight, samples, weight},
    integer::scale,
};

/// Measures the predicted class of one sample. `parameters` is memory for the weights.
#[inline(never)]
pub fn measure(parameters: &mut [f32; PARAMETERS]) -> Option<()> {
    let fill = |parameters: &mut [f32; PARAMETERS], weight: fn(usize) -> f32| {
        for (index, parameter) in parameters.iter_mut().enumerate() {
            *parameter = weight(index);
        }
    };
    fill(parameters, weight);
    let features = samples(2, FEATURES)?;
    predict(
        "predict",
        &Client::new(Const, Const),
        parameters,
        features.features(1),
    )?;
    fill(parameters, |index| {
        f32::from_bits(integer_weight(index).cast_unsigned())
    });
    let model = FixedPoint::<Client, i8>::new(Client::new(Const, Const), scale()?);
    predict("integer-predict", &model, parameters, integer_features(1)?)
}

fn predict<M: Predictor>(
    name: &str,
    model: &M,
    parameters: &[f32; PARAMETERS],
    features: &[M::Feature],
) -> Option<()> {
    let current = CurrentModel::new(0, model, parameters).ok()?;
    let mut scores = [M::Score::default(); 10];
    let mut class = None;
    let instructions = count(|| {
        let features = black_box(features);
        class = current.predict(features, &mut [], &mut scores).ok();
    });
    class?;
    print(name, instructions);
    Some(())
}
