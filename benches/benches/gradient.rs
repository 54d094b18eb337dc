//! Loss and gradient of a batch of 10, with a microcontroller's code on this machine (`baseline`),
//! and with this machine's widest vectors (`wide`), as in the simulator.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput};
use pulp::{Arch, NullaryFnOnce};
use smolfed_core::model::{BATCH_GROUP, Model, ModelError, Parametric, Softmax};
use smolfed_core::samples::SampleSlice;

const BATCH: usize = 10;
const CLASSES: usize = 10;

fn main() {
    let mut criterion = smolfed_benches::criterion().configure_from_args();
    gradient(&mut criterion);
    criterion.final_summary();
}

fn gradient(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("gradient");
    for features in [64, 784, 4_096] {
        let values = smolfed_benches::vector(BATCH * features);
        let labels = smolfed_benches::labels(BATCH, CLASSES as u16);
        let Ok(samples) = SampleSlice::new(&values, &labels, features) else {
            return;
        };
        let model = Softmax::new(features, CLASSES);
        let parameters = smolfed_benches::vector(model.parameter_count());
        let mut scratch = vec![0.0; BATCH_GROUP * CLASSES];
        let mut gradient = vec![0.0; parameters.len()];
        let mut one = || {
            Gradient {
                model,
                parameters: &parameters,
                samples: &samples,
                scratch: &mut scratch,
                gradient: &mut gradient,
            }
            .call()
        };
        // Four flop per sample and weight: multiply and add for the score, and for the gradient.
        group.throughput(Throughput::Elements(
            (4 * BATCH * features * CLASSES) as u64,
        ));
        group.bench_function(BenchmarkId::new("baseline", features), |bencher| {
            bencher.iter(&mut one);
        });
        group.bench_function(BenchmarkId::new("wide", features), |bencher| {
            bencher.iter(|| {
                Arch::new().dispatch(Gradient {
                    model,
                    parameters: &parameters,
                    samples: &samples,
                    scratch: &mut scratch,
                    gradient: &mut gradient,
                })
            });
        });
    }
    group.finish();
}

/// The arguments of [`Model::loss_and_gradient`], to be inlined into code for wider vectors.
struct Gradient<'a> {
    model: Softmax<usize, usize>,
    parameters: &'a [f32],
    samples: &'a SampleSlice<'a, u16>,
    scratch: &'a mut [f32],
    gradient: &'a mut [f32],
}

impl NullaryFnOnce for Gradient<'_> {
    type Output = Result<f32, ModelError>;

    #[inline(always)]
    fn call(self) -> Self::Output {
        let batch: [u32; BATCH] = black_box(core::array::from_fn(|i| i as u32));
        self.model.loss_and_gradient(
            self.parameters,
            self.samples,
            &batch,
            self.scratch,
            self.gradient,
        )
    }
}
