//! Quantisation of a clipped update to the integer grid, and both checks of the bound.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput};
use smolfed_core::clip::clip_l2;
use smolfed_core::params::ClipNorm;
use smolfed_core::quantize::{DEFAULT_BITS, Grid};
use smolfed_simd::quantize::quantize_into;

fn main() {
    let mut criterion = smolfed_benches::criterion().configure_from_args();
    quantise(&mut criterion);
    criterion.final_summary();
}

fn quantise(criterion: &mut Criterion) {
    const CLIP_NORM: f32 = 0.3;
    let Some(grid) = ClipNorm::new(CLIP_NORM)
        .ok()
        .and_then(|clip_norm| Grid::new(clip_norm, DEFAULT_BITS).ok())
    else {
        return;
    };
    let mut group = criterion.benchmark_group("quantise");
    for length in [650, 7_850, 100_000] {
        group.throughput(Throughput::Elements(length as u64));
        let mut update = smolfed_benches::vector(length);
        if clip_l2(&mut update, CLIP_NORM).is_err() {
            return;
        }
        let mut integers = vec![0; length];
        group.bench_function(BenchmarkId::new("device", length), |bencher| {
            bencher.iter(|| grid.quantize_into(black_box(&update), black_box(&mut integers)));
        });
        group.bench_function(BenchmarkId::new("in vectors", length), |bencher| {
            bencher.iter(|| quantize_into(&grid, black_box(&update), black_box(&mut integers)));
        });
        group.bench_function(BenchmarkId::new("check of the server", length), |bencher| {
            bencher.iter(|| grid.check(black_box(&integers)));
        });
    }
    group.finish();
}
