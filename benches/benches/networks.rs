//! Training steps of networks in batches of 10, as the simulator takes them: convolutions for
//! images of digits and for windows of six sensor channels, and an LSTM for characters.

use std::num::NonZeroU32;

use criterion::{BenchmarkId, Criterion, Throughput};
use smolfed_core::model::{Layer, Model, Sequential, SequentialError, Shape};
use smolfed_core::params::{ClipNorm, LearningRate, ParamError};
use smolfed_core::stream::Purpose;
use smolfed_core::train::{LocalTraining, Workspace};
use smolfed_simd::{Kernels, Rows};

const SAMPLES: usize = 50;
const BATCH: NonZeroU32 = NonZeroU32::MIN.saturating_add(9);
const VOCABULARY: u16 = 80;

fn main() {
    let mut criterion = smolfed_benches::criterion().configure_from_args();
    let networks = [
        ("images 28x28", images()),
        ("windows 6x100", windows()),
        ("characters 40", characters()),
    ];
    for (name, network) in networks {
        if let (Ok(network), Ok(settings)) = (network, settings()) {
            steps(&mut criterion, name, &network, &settings);
        }
    }
    criterion.final_summary();
}

/// One epoch, clipped after every step.
fn settings() -> Result<LocalTraining, ParamError> {
    let settings = LocalTraining::new(LearningRate::new(0.01)?, ClipNorm::new(0.3)?);
    Ok(settings.with_batch_size(BATCH))
}

/// Two convolutions of 8 and 16 channels, 2.2 million multiplications and additions a sample.
fn images() -> Result<Sequential, SequentialError> {
    let convolution = |channels| Layer::Convolution {
        channels,
        kernel: [5, 5],
        stride: [1, 1],
        padding: [2, 2],
    };
    let pool = Layer::MaxPool {
        size: [2, 2],
        stride: [2, 2],
    };
    let input = Shape::Image {
        channels: 1,
        height: 28,
        width: 28,
    };
    two_convolutions(input, [convolution(8), convolution(16)], pool, 10)
}

/// The same along one axis: 150,000 multiplications and additions a sample.
fn windows() -> Result<Sequential, SequentialError> {
    let convolution = |channels| Layer::Convolution {
        channels,
        kernel: [1, 5],
        stride: [1, 1],
        padding: [0, 2],
    };
    let pool = Layer::MaxPool {
        size: [1, 2],
        stride: [1, 2],
    };
    let input = Shape::Image {
        channels: 6,
        height: 1,
        width: 100,
    };
    two_convolutions(input, [convolution(8), convolution(16)], pool, 6)
}

fn two_convolutions(
    input: Shape,
    [first, second]: [Layer; 2],
    pool: Layer,
    outputs: u16,
) -> Result<Sequential, SequentialError> {
    let output = Layer::Dense { outputs };
    let layers = [first, Layer::Relu, pool, second, Layer::Relu, pool, output];
    Sequential::new(input, &layers)
}

/// An LSTM of 64 on 40 characters: 2.2 million multiplications and additions a sample.
fn characters() -> Result<Sequential, SequentialError> {
    let layers = [
        Layer::Embedding {
            vocabulary: VOCABULARY,
            width: 8,
        },
        Layer::Lstm { hidden: 64 },
        Layer::Last,
        Layer::Dense {
            outputs: VOCABULARY,
        },
    ];
    let input = Shape::Sequence {
        length: 40,
        width: 1,
    };
    Sequential::new(input, &layers)
}

fn steps(criterion: &mut Criterion, name: &str, network: &Sequential, settings: &LocalTraining) {
    let features = network.feature_count();
    let mut values = smolfed_benches::vector(SAMPLES * features);
    if let [Layer::Embedding { vocabulary, .. }, ..] = network.layers() {
        for (i, value) in values.iter_mut().enumerate() {
            *value = (i * i % usize::from(*vocabulary)) as f32;
        }
    }
    let labels = smolfed_benches::labels(SAMPLES, network.output_count() as u16);
    let rows: Vec<u32> = (0..SAMPLES as u32).collect();
    let samples = Rows::new(&values, features, &labels, &rows);
    let mut global = vec![0.0; network.parameter_count()];
    let mut stream = smolfed_benches::stream(Purpose::Initialisation);
    if network.initialise(&mut global, &mut stream).is_err() {
        return;
    }
    let mut local = global.clone();
    let mut update = global.clone();
    let mut order = rows.clone();
    let mut scratch = vec![0.0; network.scratch_count(BATCH.get() as usize)];
    let mut group = criterion.benchmark_group("networks");
    group.throughput(Throughput::Elements(SAMPLES as u64));
    group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
        bencher.iter(|| {
            let work = Workspace {
                local: &mut local,
                update: &mut update,
                order: &mut order,
                scratch: &mut scratch,
            };
            let mut stream = smolfed_benches::stream(Purpose::BatchShuffle);
            network.local_update(&samples, &global, settings, &mut stream, work)
        });
    });
    group.finish();
}
