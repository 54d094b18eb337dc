//! Devices with random shapes: models, data and settings from a build seed, in both arithmetics.
//! The test on the host uses this file as well.

use core::num::NonZeroU32;

use smolfed_core::{
    fixed_point::{
        self, FeatureScale, FixedPointModel, FixedPointSlice, FixedPointWork, round_target,
    },
    model::{Linear, Logistic, Model, Softmax},
    params::{ClipNorm, LearningRate, ParamError, Penalty},
    samples::SampleSlice,
    stream::{Purpose, Root, Stream, StreamId},
    train::{self, Clipping, LocalTraining, Workspace},
    wire::crc32::crc32,
};

/// Devices per seed.
pub const CASES: u32 = 24;

/// Limits of the sizes, for boards with 16 KiB.
const MAX_FEATURES: u32 = 40;
const MAX_PARAMETERS: usize = 210;
const MAX_SAMPLES: usize = 12;
const MAX_VALUES: usize = MAX_FEATURES as usize * MAX_SAMPLES;

/// Linear congruential generator (Numerical Recipes) with only the upper half used.
struct Draws(u32);

impl Draws {
    fn word(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.0 >> 16
    }

    /// Returns a number from `low` to `high`.
    fn from(&mut self, low: u32, high: u32) -> u32 {
        low + self.word() % (high - low + 1)
    }
}

/// Data of a device, in both arithmetics.
struct Data {
    numbers: [f32; MAX_VALUES],
    integers: [i8; MAX_VALUES],
    global: [i32; MAX_PARAMETERS],
    classes: [u16; MAX_SAMPLES],
    values: [f32; MAX_SAMPLES],
}

/// Number of binary places of features.
const FRACTION: u8 = 5;

/// Returns checksums of a device's updates: in `f32`, and in integers.
///
/// # Errors
/// Returns a message if a constant here is wrong.
#[inline(never)]
pub fn checksums(seed: u32, case: u32) -> Result<[u32; 2], &'static str> {
    let mut draws = Draws(seed.wrapping_mul(0x9e37_79b9) ^ case.wrapping_mul(0x85eb_ca6b));
    let features = draws.from(1, MAX_FEATURES) as usize;
    let classes = draws.from(2, 5) as usize;
    let samples = draws.from(1, MAX_SAMPLES as u32) as usize;
    let settings = settings(&mut draws).map_err(|_| "a setting")?;
    let mut data = Data {
        numbers: [0.0; MAX_VALUES],
        integers: [0; MAX_VALUES],
        global: [0; MAX_PARAMETERS],
        classes: [0; MAX_SAMPLES],
        values: [0.0; MAX_SAMPLES],
    };
    for (number, integer) in data.numbers.iter_mut().zip(&mut data.integers) {
        *integer = draws.word() as i8;
        *number = f32::from(*integer) / 32.0;
    }
    // Up to 1/8.
    for w in &mut data.global {
        *w = draws.word() as i32 - 0x8000;
    }
    for (class, value) in data.classes.iter_mut().zip(&mut data.values) {
        *class = draws.from(0, classes as u32 - 1) as u16;
        *value = draws.word() as f32 / 4_096.0 - 8.0;
    }
    match case % 3 {
        0 => {
            let model = Softmax::new(features, classes);
            of_model(
                &model,
                &data,
                features,
                samples,
                &settings,
                &data.classes,
                &data.classes,
            )
        }
        1 => {
            data.classes.iter_mut().for_each(|class| *class %= 2);
            let model = Logistic::new(features);
            of_model(
                &model,
                &data,
                features,
                samples,
                &settings,
                &data.classes,
                &data.classes,
            )
        }
        _ => {
            let model = Linear::new(features);
            let values = data.values.map(|value| round_target(value).0);
            of_model(
                &model,
                &data,
                features,
                samples,
                &settings,
                &data.values,
                &values,
            )
        }
    }
}

fn settings(draws: &mut Draws) -> Result<LocalTraining, ParamError> {
    let rate = LearningRate::new(draws.from(1, 20) as f32 / 100.0)?;
    let clip_norm = ClipNorm::new(draws.from(1, 100) as f32 / 64.0)?;
    let clipping = match draws.from(0, 1) {
        0 => Clipping::EveryStep,
        _ => Clipping::Final,
    };
    Ok(LocalTraining::new(rate, clip_norm)
        .with_epochs(draws.from(1, 3))
        .with_batch_size(NonZeroU32::MIN.saturating_add(draws.from(0, 12)))
        .with_weight_decay(Penalty::new(draws.from(0, 2) as f32 / 100.0)?)
        .with_proximal(Penalty::new(draws.from(0, 2) as f32 / 10.0)?)
        .with_clipping(clipping))
}

// Not inlined, because the memory of three models would be on the stack at the same time.
#[inline(never)]
fn of_model<M: FixedPointModel<Target: Default>>(
    model: &M,
    data: &Data,
    features: usize,
    samples: usize,
    settings: &LocalTraining,
    targets: &[M::Target],
    integer_targets: &[M::FixedPointTarget],
) -> Result<[u32; 2], &'static str> {
    let count = model.parameter_count();
    let global = data.global.get(..count).ok_or("the model")?;
    let values = features * samples;
    let (numbers, integers) = (data.numbers.get(..values), data.integers.get(..values));
    let (numbers, integers) = (numbers.ok_or("features")?, integers.ok_or("features")?);
    let targets = targets.get(..samples).ok_or("targets")?;
    let integer_targets = integer_targets.get(..samples).ok_or("targets")?;
    Ok([
        in_f32(model, numbers, targets, global, settings)?,
        in_integers(model, integers, integer_targets, global, settings)?,
    ])
}

#[inline(never)]
fn in_f32<M: Model<Target: Default>>(
    model: &M,
    features: &[f32],
    targets: &[M::Target],
    weights: &[i32],
    settings: &LocalTraining,
) -> Result<u32, &'static str> {
    let count = weights.len();
    let samples = SampleSlice::new(features, targets, model.feature_count());
    let mut global = [0.0; MAX_PARAMETERS];
    for (x, w) in global.iter_mut().zip(weights) {
        *x = fixed_point::value_of_weight(*w);
    }
    let (mut local, mut update) = ([0.0; MAX_PARAMETERS], [0.0; MAX_PARAMETERS]);
    let work = Workspace {
        local: local.get_mut(..count).ok_or("the model")?,
        update: update.get_mut(..count).ok_or("the model")?,
        order: &mut [0; MAX_SAMPLES],
        scratch: &mut [0.0; 8],
    };
    let samples = &samples.map_err(|_| "the samples")?;
    let global = global.get(..count).ok_or("the model")?;
    train::local_update(model, samples, global, settings, &mut order(), work)
        .map_err(|_| "training")?;
    let update = update.map(f32::to_le_bytes);
    Ok(crc32(update.as_flattened()))
}

#[inline(never)]
fn in_integers<M: FixedPointModel>(
    model: &M,
    features: &[i8],
    targets: &[M::FixedPointTarget],
    global: &[i32],
    settings: &LocalTraining,
) -> Result<u32, &'static str> {
    let count = global.len();
    let samples = FixedPointSlice::new(features, targets, model.feature_count());
    let samples = &samples.map_err(|_| "the samples")?;
    let scale = FeatureScale::new::<i8>(FRACTION).map_err(|_| "the scale")?;
    let (mut local, mut update) = ([0; MAX_PARAMETERS], [0; MAX_PARAMETERS]);
    let work = FixedPointWork {
        local: local.get_mut(..count).ok_or("the model")?,
        update: update.get_mut(..count).ok_or("the model")?,
        order: &mut [0; MAX_SAMPLES],
        scores: &mut [0; 8],
        row: &mut [0; MAX_FEATURES as usize],
    };
    fixed_point::local_update(model, samples, scale, global, settings, &mut order(), work)
        .map_err(|_| "training in integers")?;
    let update = update.map(i32::to_le_bytes);
    Ok(crc32(update.as_flattened()))
}

/// Returns a stream from a known seed: for tests only.
fn order() -> Stream {
    Root::from_seed(2026).stream(StreamId {
        purpose: Purpose::BatchShuffle,
        round: 3,
        device: 5,
    })
}
