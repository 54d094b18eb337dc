//! Laplacian smoothing in place. For comparison, the same operator with a real Fourier transform,
//! and a copy of the same vector.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput};
use realfft::num_complex::Complex;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use smolfed_core::smooth::LaplacianSmoothing;
use std::sync::Arc;

const SIGMA: f32 = 1.0;
const LENGTHS: [usize; 6] = [256, 1_024, 7_850, 100_000, 1_000_000, 10_000_000];

fn main() {
    let mut criterion = smolfed_benches::criterion().configure_from_args();
    smoothing(&mut criterion);
    criterion.final_summary();
}

fn smoothing(criterion: &mut Criterion) {
    let Ok(smoothing) = LaplacianSmoothing::new(SIGMA) else {
        return;
    };
    for length in LENGTHS {
        let mut group = criterion.benchmark_group("smoothing");
        group.throughput(Throughput::Elements(length as u64));
        let original = smolfed_benches::vector(length);
        let mut v = original.clone();
        // Repeated smoothing moves v to its mean, and its entries stay ordinary numbers.
        group.bench_function(BenchmarkId::new("in place", length), |bencher| {
            bencher.iter(|| smoothing.apply(black_box(&mut v)));
        });
        v.copy_from_slice(&original);
        let mut transform = Transform::new(length);
        group.bench_function(BenchmarkId::new("realfft", length), |bencher| {
            bencher.iter(|| transform.apply(black_box(&mut v)));
        });
        group.bench_function(BenchmarkId::new("copy", length), |bencher| {
            bencher.iter(|| black_box(&mut v).copy_from_slice(black_box(&original)));
        });
        group.finish();
    }
}

/// The operator as computed in the paper: transform, divide by the eigenvalues, transform back.
/// Plans, eigenvalues and memory are prepared once.
struct Transform {
    forward: Arc<dyn RealToComplex<f32>>,
    inverse: Arc<dyn ComplexToReal<f32>>,
    /// 1 / (d · eigenvalue), since the plans do not normalise.
    factors: Vec<f32>,
    coefficients: Vec<Complex<f32>>,
    scratch: Vec<Complex<f32>>,
}

impl Transform {
    fn new(length: usize) -> Self {
        let mut planner = RealFftPlanner::new();
        let forward = planner.plan_fft_forward(length);
        let inverse = planner.plan_fft_inverse(length);
        let factor = |i: usize| {
            let angle = 2.0 * std::f64::consts::PI * i as f64 / length as f64;
            let eigenvalue = 1.0 + 2.0 * f64::from(SIGMA) * (1.0 - angle.cos());
            (1.0 / (eigenvalue * length as f64)) as f32
        };
        let scratch = forward.get_scratch_len().max(inverse.get_scratch_len());
        Self {
            factors: (0..=length / 2).map(factor).collect(),
            coefficients: forward.make_output_vec(),
            scratch: vec![Complex::default(); scratch],
            forward,
            inverse,
        }
    }

    fn apply(&mut self, v: &mut [f32]) {
        let Self {
            forward,
            inverse,
            factors,
            coefficients,
            scratch,
        } = self;
        // Lengths fit, since all were made for one plan.
        let _ = forward.process_with_scratch(v, coefficients, scratch);
        for (coefficient, factor) in coefficients.iter_mut().zip(factors.iter()) {
            *coefficient *= factor;
        }
        let _ = inverse.process_with_scratch(coefficients, v, scratch);
    }
}
