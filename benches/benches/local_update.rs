//! One device's local training: 50 samples, 5 epochs in batches of 10, projected after every step.

use std::num::NonZeroU32;

use criterion::{BenchmarkId, Criterion, Throughput};
use smolfed_core::model::{BATCH_GROUP, Parametric, Softmax};
use smolfed_core::params::{ClipNorm, LearningRate, Penalty};
use smolfed_core::stream::Purpose;
use smolfed_core::train::{Clipping, LocalTraining, Workspace};
use smolfed_simd::{Kernels, Rows};

const SAMPLES: usize = 50;
const CLASSES: usize = 10;
const EPOCHS: u32 = 5;

fn main() {
    let mut criterion = smolfed_benches::criterion().configure_from_args();
    local_update(&mut criterion);
    criterion.final_summary();
}

fn settings() -> Option<LocalTraining> {
    Some(LocalTraining {
        epochs: EPOCHS,
        batch_size: NonZeroU32::new(10)?,
        learning_rate: LearningRate::new(0.1).ok()?,
        weight_decay: Penalty::new(4e-5).ok()?,
        proximal: Penalty::NONE,
        clip_norm: ClipNorm::new(0.3).ok(),
        clipping: Clipping::EveryStep,
        gradient_smoothing: None,
    })
}

fn local_update(criterion: &mut Criterion) {
    let Some(settings) = settings() else { return };
    let mut group = criterion.benchmark_group("local update");
    for features in [64, 784, 4_096] {
        let values = smolfed_benches::vector(SAMPLES * features);
        let labels = smolfed_benches::labels(SAMPLES, CLASSES as u16);
        let rows: Vec<u32> = (0..SAMPLES as u32).collect();
        let samples = Rows::new(&values, features, &labels, &rows);
        let model = Softmax::new(features, CLASSES);
        let global = smolfed_benches::vector(model.parameter_count());
        let mut local = global.clone();
        let mut update = global.clone();
        let mut order = rows.clone();
        let mut scratch = vec![0.0; BATCH_GROUP * CLASSES];
        let flop = 4 * EPOCHS as usize * SAMPLES * features * CLASSES;
        group.throughput(Throughput::Elements(flop as u64));
        group.bench_function(BenchmarkId::from_parameter(features), |bencher| {
            bencher.iter(|| {
                let work = Workspace {
                    local: &mut local,
                    update: &mut update,
                    order: &mut order,
                    scratch: &mut scratch,
                };
                let mut stream = smolfed_benches::stream(Purpose::BatchShuffle);
                model.local_update(&samples, &global, &settings, &mut stream, work)
            });
        });
    }
    group.finish();
}
