//! Instructions of the softmax model in integer arithmetic, on varying weights and samples.

use core::hint::black_box;
use core::num::NonZeroU32;

use smolfed_core::{
    fixed_point::{
        FeatureScale, FixedPointSlice, FixedPointWork, Scratch, local_update, loss_and_gradient,
    },
    model::Const,
    params::{ClipNorm, LearningRate},
    stream::Purpose,
    train::LocalTraining,
};

use super::{
    counting::{Client, PARAMETERS, count, print, stream},
    data::{FEATURES, SAMPLES, integer_samples, integer_weight},
};

type Data<'a> = FixedPointSlice<'a, i8, u16>;

/// Measures gradient, step, projection, and the training of a round.
#[inline(never)]
pub fn measure() -> Option<()> {
    let global: [i32; PARAMETERS] = core::array::from_fn(integer_weight);
    let mut local = [0; PARAMETERS];
    let mut update = [0; PARAMETERS];
    gradient(&global, &mut update)?;
    let one = integer_samples(1)?;
    // A norm that no step reaches, and a norm that every step exceeds.
    for (clip_norm, names) in [
        (1_000.0, ["integer-free-2", "integer-free-3"]),
        (0.001, ["integer-step-2", "integer-step-3"]),
    ] {
        for (name, epochs) in names.into_iter().zip(2..) {
            // Steps are small enough that squared displacements fit 32 bits, as in a round.
            let training = training(epochs, 0.01, clip_norm)?;
            let mut trained = None;
            let instructions = count(|| {
                trained = train(&one, &global, &training, &mut local, &mut update);
            });
            trained?;
            print(name, instructions);
        }
    }
    let all = integer_samples(SAMPLES)?;
    let training = training(5, 0.1, 0.3)?;
    let mut trained = None;
    let instructions = count(|| trained = train(&all, &global, &training, &mut local, &mut update));
    trained?;
    print("integer-round-training", instructions);
    Some(())
}

/// Measures loss and gradient of one sample, and of two.
fn gradient(local: &[i32; PARAMETERS], update: &mut [i32; PARAMETERS]) -> Option<()> {
    let samples = integer_samples(SAMPLES)?;
    let model = Client::new(Const, Const);
    let (mut scores, mut row) = ([0; 10], [0; FEATURES]);
    let scale = scale()?;
    for (name, batch) in [
        ("integer-gradient", &[1][..]),
        ("integer-gradient-of-two", &[1, 2]),
    ] {
        let mut loss = None;
        let instructions = count(|| {
            let scratch = Scratch {
                scores: &mut scores,
                row: &mut row,
            };
            let batch = black_box(batch);
            let summed = loss_and_gradient(&model, &samples, scale, local, batch, scratch, update);
            loss = summed.ok();
        });
        loss?;
        print(name, instructions);
    }
    Some(())
}

/// Returns the scale of the features.
pub fn scale() -> Option<FeatureScale> {
    FeatureScale::new::<i8>(6).ok()
}

fn training(epochs: u32, rate: f32, clip_norm: f32) -> Option<LocalTraining> {
    let (rate, clip_norm) = (
        LearningRate::new(rate).ok()?,
        ClipNorm::new(clip_norm).ok()?,
    );
    let training = LocalTraining::new(rate, clip_norm);
    Some(
        training
            .with_epochs(epochs)
            .with_batch_size(NonZeroU32::new(10)?),
    )
}

#[inline(never)]
fn train(
    samples: &Data<'_>,
    global: &[i32; PARAMETERS],
    training: &LocalTraining,
    local: &mut [i32; PARAMETERS],
    update: &mut [i32; PARAMETERS],
) -> Option<()> {
    let work = FixedPointWork {
        local,
        update,
        order: &mut [0; SAMPLES],
        scores: &mut [0; 10],
        row: &mut [0; FEATURES],
    };
    let order = &mut stream(Purpose::BatchShuffle);
    let model = Client::new(Const, Const);
    local_update(&model, samples, scale()?, global, training, order, work).ok()?;
    Some(())
}
