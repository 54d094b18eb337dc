//! Exact discrete Gaussian noise on a sum, and the generator words that it uses.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput};
use rand_core::Rng;
use smolfed_core::noise::DiscreteGaussian;
use smolfed_core::stream::Purpose;

const VALUES: usize = 7_850;

fn main() {
    let mut criterion = smolfed_benches::criterion().configure_from_args();
    discrete_gaussian(&mut criterion);
    criterion.final_summary();
}

fn discrete_gaussian(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("discrete gaussian");
    group.throughput(Throughput::Elements(VALUES as u64));
    let mut stream = smolfed_benches::stream(Purpose::ServerNoise);
    let mut sum = vec![0i64; VALUES];
    // Sigma in steps of the grid. 2^20 is a noise multiplier of 1 on the usual grid.
    for sigma in [4, 1 << 10, 1 << 20, 1 << 30] {
        let Ok(noise) = DiscreteGaussian::new(sigma, 1) else {
            return;
        };
        group.bench_function(BenchmarkId::new("sigma", sigma), |bencher| {
            bencher.iter(|| noise.add_to(black_box(&mut sum), &mut stream));
        });
    }
    group.bench_function("words of ChaCha20", |bencher| {
        bencher.iter(|| (0..VALUES).fold(0, |all, _| all ^ stream.next_u32()));
    });
    group.finish();
}
