//! `integer`: the code and the bits of boards that train in integers
//! ([`smolfed_core::fixed_point`]).
//!
//! The global model, features and targets are rounded to their formats here, as on a board. The
//! update is a difference of weights and exact as `f32`.

use smolfed_core::fixed_point::{
    FeatureFormat, FeatureScale, FixedPointSamples, FixedPointSlice, FixedPointWork, round_target,
    round_weight, value_of_weight,
};
use smolfed_core::model::{Linear, Logistic, Softmax};
use smolfed_core::stream::Stream;
use smolfed_core::train::{LocalTraining, TrainError, TrainReport};
use smolfed_simd::Steps;
use smolfed_simd::fixed_point::{FixedPointKernels, RoundedFeature};

use super::contract::{Arithmetic, Buffers, Device};
use super::direct::Direct;
use super::integer_buffers::IntegerBuffers;
use crate::task::Task;
use smolfed_data::dataset::{DatasetView, DeviceBuffer};
use smolfed_data::federation::Federation;

/// Maximum number of devices whose features [`saturated`] inspects.
const MAX_DEVICES: u32 = 1_000;

/// Counts the features outside the range of their format, and all features inspected, of up to
/// [`MAX_DEVICES`] devices.
pub(super) fn saturated(format: FeatureFormat, federation: &Federation) -> (u64, u64) {
    match format.is_wide() {
        false => saturated_of::<i8>(format.scale(), federation),
        true => saturated_of::<i16>(format.scale(), federation),
    }
}

fn saturated_of<X: RoundedFeature>(scale: FeatureScale, federation: &Federation) -> (u64, u64) {
    let (mut row, mut buffer) = (Vec::<X>::new(), DeviceBuffer::default());
    let (mut saturated, mut all) = (0, 0);
    for device in federation.some_devices(MAX_DEVICES) {
        let samples = federation.device(device, &mut buffer);
        for sample in 0..samples.len() {
            let features = samples.features(sample);
            row.resize(features.len(), X::default());
            saturated += X::round_each(features, scale, &mut row);
            all += features.len() as u64;
        }
    }
    (saturated, all)
}

/// Replaces the numbers of a model by the bits of its integers, as on the wire.
pub fn words(model: &mut [f32]) {
    for w in model {
        *w = f32::from_bits(round_weight(*w).0.cast_unsigned());
    }
}

/// Training in integers.
pub(super) struct Integer {
    format: FeatureFormat,
}

impl Integer {
    pub(super) const fn new(format: FeatureFormat) -> Self {
        Self { format }
    }
}

impl Arithmetic for Integer {
    fn local_update(
        &self,
        device: &Device<'_>,
        global: &[f32],
        update: &mut [f32],
        settings: &LocalTraining,
        order: &mut Stream,
        buffers: &mut Buffers,
    ) -> Result<TrainReport, TrainError> {
        let memory = &mut buffers.integer;
        let how = How {
            scale: self.format.scale(),
            settings,
            order,
        };
        match self.format.is_wide() {
            false => {
                let mut features = std::mem::take(&mut memory.narrow);
                let report = how.train(device, global, update, &mut features, memory);
                memory.narrow = features;
                report
            }
            true => {
                let mut features = std::mem::take(&mut memory.wide);
                let report = how.train(device, global, update, &mut features, memory);
                memory.wide = features;
                report
            }
        }
    }

    /// Personal models train in `f32`, so the configuration refuses them before a run.
    fn descend(
        &self,
        device: &Device<'_>,
        local: &mut [f32],
        steps: Steps<'_>,
        order: &mut Stream,
        buffers: &mut Buffers,
    ) -> Result<TrainReport, TrainError> {
        Direct.descend(device, local, steps, order, buffers)
    }
}

/// Settings of the training.
struct How<'a> {
    scale: FeatureScale,
    settings: &'a LocalTraining,
    order: &'a mut Stream,
}

impl How<'_> {
    fn train<X: RoundedFeature>(
        self,
        device: &Device<'_>,
        global: &[f32],
        update: &mut [f32],
        features: &mut Vec<X>,
        memory: &mut IntegerBuffers,
    ) -> Result<TrainReport, TrainError>
    where
        Linear<usize>: FixedPointKernels<X, FixedPointTarget = i32>,
        Logistic<usize>: FixedPointKernels<X, FixedPointTarget = u16>,
        Softmax<usize, usize>: FixedPointKernels<X, FixedPointTarget = u16>,
    {
        let Device { task, samples, .. } = *device;
        let scale = self.scale;
        let width = samples.feature_count();
        features.resize(samples.len() * width, X::default());
        let rows = features.chunks_exact_mut(width.max(1));
        for (index, row) in rows.enumerate() {
            X::round_each(samples.features(index), scale, row);
        }
        match task {
            Task::Linear(model) => {
                let mut values = std::mem::take(&mut memory.values);
                values.clear();
                values.extend((0..samples.len()).map(|i| round_target(samples.value(i)).0));
                let rounded = slice(features, &values, width)?;
                let report = self.run(model, &rounded, scale, global, update, memory);
                memory.values = values;
                report
            }
            Task::Logistic(model) => {
                let mut classes = labels(samples, memory);
                let rounded = slice(features, &classes, width)?;
                let report = self.run(model, &rounded, scale, global, update, memory);
                memory.classes = std::mem::take(&mut classes);
                report
            }
            Task::Softmax(model) => {
                let mut classes = labels(samples, memory);
                let rounded = slice(features, &classes, width)?;
                let report = self.run(model, &rounded, scale, global, update, memory);
                memory.classes = std::mem::take(&mut classes);
                report
            }
            // The configuration refuses these before a run.
            Task::Encoder(_) | Task::Sequential(_) => Err(TrainError::Range),
        }
    }

    fn run<X: RoundedFeature, M: FixedPointKernels<X>>(
        self,
        model: &M,
        samples: &FixedPointSlice<'_, X, M::FixedPointTarget>,
        scale: FeatureScale,
        global: &[f32],
        update: &mut [f32],
        memory: &mut IntegerBuffers,
    ) -> Result<TrainReport, TrainError> {
        let count = model.parameter_count();
        let IntegerBuffers {
            global: weights,
            local,
            update: difference,
            order,
            scores,
            row,
            ..
        } = memory;
        weights.clear();
        weights.extend(global.iter().map(|w| round_weight(*w).0));
        local.resize(count, 0);
        difference.resize(count, 0);
        order.resize(samples.len(), 0);
        scores.resize(model.output_count(), 0);
        row.resize(model.feature_count(), 0);
        let work = FixedPointWork {
            local,
            update: difference,
            order,
            scores,
            row,
        };
        let report =
            model.fixed_point_update(samples, scale, weights, self.settings, self.order, work)?;
        for (x, d) in update.iter_mut().zip(difference) {
            *x = value_of_weight(*d);
        }
        Ok(report.into())
    }
}

/// Borrows rounded samples with `feature_count` features.
fn slice<'a, X, T>(
    features: &'a [X],
    targets: &'a [T],
    width: usize,
) -> Result<FixedPointSlice<'a, X, T>, TrainError> {
    FixedPointSlice::new(features, targets, width).map_err(|_| TrainError::Range)
}

/// Collects the classes of the samples.
fn labels(samples: &DatasetView<'_>, memory: &mut IntegerBuffers) -> Vec<u16> {
    let mut classes = std::mem::take(&mut memory.classes);
    classes.clear();
    classes.extend((0..samples.len()).map(|index| samples.label(index)));
    classes
}
