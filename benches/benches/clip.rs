//! Clipping of two vectors, outside and inside the bound on the L2 norm.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput};
use smolfed_core::clip::clip_l2;

fn main() {
    let mut criterion = smolfed_benches::criterion().configure_from_args();
    clip(&mut criterion);
    criterion.final_summary();
}

fn clip(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("clip");
    for length in [650, 7_850, 100_000] {
        group.throughput(Throughput::Elements(length as u64));
        let original = smolfed_benches::vector(length);
        for (name, clip_norm) in [("outside", 0.3), ("inside", 1e6)] {
            let mut v = original.clone();
            group.bench_function(BenchmarkId::new(name, length), |bencher| {
                bencher.iter(|| {
                    // Only one element changes, so that a clipped vector is outside again.
                    v[0] = 1.0;
                    clip_l2(black_box(&mut v), clip_norm)
                });
            });
        }
    }
    group.finish();
}
