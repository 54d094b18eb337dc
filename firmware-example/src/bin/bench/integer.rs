//! The softmax model in integer arithmetic, on weights and samples that vary.

use core::hint::black_box;
use core::num::NonZeroU32;

use smolfed_core::{
    fixed_point::{FeatureScale, FixedPointSlice, FixedPointWork, local_update, loss_and_gradient},
    model::Const,
    params::{ClipNorm, LearningRate},
    stream::Purpose,
    train::LocalTraining,
};

use super::counting::{Client, PARAMETERS, SAMPLES, count, print, stream};

const FEATURES: usize = 64;

type Data<'a> = FixedPointSlice<'a, i8, u16>;

/// Features in units of 2⁻⁶, from −1 to 1.
static DATA: [i8; SAMPLES * FEATURES] = {
    let mut data = [0; SAMPLES * FEATURES];
    let mut index = 0;
    while index < data.len() {
        data[index] = (index * 37 % 128) as i8 - 64;
        index += 1;
    }
    data
};

static TARGETS: [u16; SAMPLES] = {
    let mut targets = [0; SAMPLES];
    let mut index = 0;
    while index < targets.len() {
        targets[index] = (index % 10) as u16;
        index += 1;
    }
    targets
};

/// Gradient, step, projection, and the training of a round.
#[inline(never)]
pub fn measure() -> Option<()> {
    // Up to 1/4.
    let global: [i32; PARAMETERS] = core::array::from_fn(|i| (i as i32 * 7_919 % 131_071) - 65_535);
    let mut local = [0; PARAMETERS];
    let mut update = [0; PARAMETERS];
    gradient(&global, &mut update)?;
    let one = Data::new(DATA.get(..FEATURES)?, TARGETS.get(..1)?, FEATURES).ok()?;
    let mut step = |clip_norm| {
        let mut steps = |epochs| {
            // Steps so small that squares of displacements fit 32 bits, as those of a round do.
            let training = training(epochs, 0.01, clip_norm)?;
            let mut trained = None;
            let instructions = count(|| {
                trained = train(&one, &global, &training, &mut local, &mut update);
            });
            trained.map(|()| instructions)
        };
        let (two, three) = (steps(2)?, steps(3)?);
        Some(three - two)
    };
    // A norm that no step reaches, and one that every step exceeds.
    let (free, projected) = (step(1_000.0)?, step(0.001)?);
    print("integer-step", projected);
    print("integer-projection", projected - free);
    let all = Data::new(&DATA, &TARGETS, FEATURES).ok()?;
    let training = training(5, 0.1, 0.3)?;
    let mut trained = None;
    let instructions = count(|| trained = train(&all, &global, &training, &mut local, &mut update));
    trained?;
    print("integer-round-training", instructions);
    Some(())
}

/// Loss and gradient of one sample, and of each further sample of a batch.
fn gradient(local: &[i32; PARAMETERS], update: &mut [i32; PARAMETERS]) -> Option<()> {
    let samples = Data::new(&DATA, &TARGETS, FEATURES).ok()?;
    let model = Client::new(Const, Const);
    let (mut scores, mut row) = ([0; 10], [0; FEATURES]);
    let scale = scale()?;
    let mut of = |batch: &[u32]| {
        let mut loss = None;
        let instructions = count(|| {
            let memory = (&mut scores[..], &mut row[..]);
            let (model, batch) = ((&model, &samples), black_box(batch));
            loss = loss_and_gradient(model, scale, local, batch, memory, update).ok();
        });
        loss.map(|_| instructions)
    };
    let (one, two) = (of(&[1])?, of(&[1, 2])?);
    print("integer-gradient", one);
    print("integer-gradient-added", two - one);
    Some(())
}

fn scale() -> Option<FeatureScale> {
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
