//! A round of automatic denoising: the next average judges six filters, which are then recomputed
//! and mixed again. For comparison, a copy of the same vector.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput};
use smolfed::denoise::flattening::Flattenings;
use smolfed::denoise::{Auto, ExpertSet};
use smolfed::task::Task;
use smolfed_core::model::Softmax;

const LENGTHS: [usize; 3] = [7_850, 100_000, 1_000_000];
/// Outputs of the layer.
const OUTPUTS: usize = 10;
const NOISE_STD: f64 = 1.0;

fn main() {
    let mut criterion = smolfed_benches::criterion().configure_from_args();
    denoising(&mut criterion);
    criterion.final_summary();
}

fn denoising(criterion: &mut Criterion) {
    for length in LENGTHS {
        let mut group = criterion.benchmark_group("denoising");
        group.throughput(Throughput::Elements(length as u64));
        let average = smolfed_benches::vector(length);
        let mut global = vec![0.0; length];
        let task = Task::Softmax(Softmax::new(length / OUTPUTS - 1, OUTPUTS));
        let mut auto = Auto::new(
            &global,
            &task.layout(),
            &ExpertSet::Filters(Flattenings::default()),
        );
        group.bench_function(BenchmarkId::new("auto", length), |bencher| {
            bencher.iter(|| auto.step(black_box(&mut global), &average, NOISE_STD, 1.0));
        });
        group.bench_function(BenchmarkId::new("copy", length), |bencher| {
            bencher.iter(|| black_box(&mut global).copy_from_slice(black_box(&average)));
        });
        group.finish();
    }
}
