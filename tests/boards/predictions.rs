//! Compares predictions of boards with predictions of this machine: in `f32` with the evaluation of
//! simulations, with run-time sizes and all samples in one batch, and in integers with the same
//! code.

use smolfed_core::fixed_point::{FeatureScale, FixedPointModel, round_feature};
use smolfed_core::model::{Linear, Logistic, Model, Softmax};
use smolfed_core::predict::CurrentModel;
use smolfed_core::samples::SampleSlice;
use smolfed_core::session::FixedPoint;

use super::data::{self, CLASSES, DATA, FEATURES, SAMPLES, Word};

/// Returns the lines of all models, on integer features of this scale.
pub(super) fn lines(scale: FeatureScale) -> String {
    let count = (FEATURES + 1) * CLASSES;
    let numbers: Vec<f32> = (0..count).map(data::parameter).collect();
    let word = |index| f32::from_bits(data::weight(index).cast_unsigned());
    let words: Vec<f32> = (0..count).map(word).collect();
    let one = ..=FEATURES;
    let softmax = Softmax::new(FEATURES, CLASSES);
    [
        in_numbers("linear", &Linear::new(FEATURES), &numbers[one]),
        in_numbers("logistic", &Logistic::new(FEATURES), &numbers[one]),
        in_numbers("softmax", &softmax, &numbers),
        in_integers("linear", Linear::new(FEATURES), scale, &words[one]),
        in_integers("logistic", Logistic::new(FEATURES), scale, &words[one]),
        in_integers("softmax", softmax, scale, &words),
    ]
    .concat()
}

/// Returns a line of checksums of score rows and their predictions.
fn line<S: Word, P: Word>(name: &str, rows: impl Iterator<Item = (Vec<S>, P, Vec<S>)>) -> String {
    let (mut scored, mut said) = (0, 0);
    for (scores, predicted, probabilities) in rows {
        let words = |row: Vec<S>| row.into_iter().map(Word::word);
        scored = data::checksum([scored].into_iter().chain(words(scores)));
        let before = [said, predicted.word()].into_iter();
        said = data::checksum(before.chain(words(probabilities)));
    }
    format!("predicted {name} {scored:08x} {said:08x}\n")
}

fn in_numbers<M: Model<Target: Word + Default>>(
    name: &str,
    model: &M,
    parameters: &[f32],
) -> String {
    let outputs = model.output_count();
    let targets = [M::Target::default(); SAMPLES];
    let samples = SampleSlice::new(&DATA, &targets, FEATURES).unwrap();
    let all: Vec<u32> = (0..SAMPLES as u32).collect();
    let mut scores = vec![0.0; SAMPLES * outputs];
    let scored = model.batch_scores(parameters, &samples, &all, &mut [], &mut scores);
    scored.unwrap();
    let rows = scores.chunks(outputs).map(|row| {
        let mut probabilities = row.to_vec();
        model.probabilities_in_place(&mut probabilities);
        (row.to_vec(), model.predict(row), probabilities)
    });
    line(name, rows)
}

fn in_integers<M>(name: &str, model: M, scale: FeatureScale, words: &[f32]) -> String
where
    M: FixedPointModel<Target: Word>,
{
    let outputs = model.output_count();
    let model = FixedPoint::<M, i8>::new(model, scale);
    let current = CurrentModel::new(0, &model, words).unwrap();
    let features = DATA.map(|x| round_feature::<i8>(x, scale).0);
    let rows = features.chunks(FEATURES).map(|features| {
        let mut scores = vec![0; outputs];
        let predicted = current.predict(features, &mut [], &mut scores).unwrap();
        let mut probabilities = scores.clone();
        current.probabilities_in_place(&mut probabilities);
        (scores, predicted, probabilities)
    });
    line(&format!("{name}-integer"), rows)
}
