//! Networks for training measurements (two convolutions for images and for sensor windows, and an
//! LSTM for characters), and devices that train them.

use std::num::NonZeroU32;

use smolfed_core::model::{Layer, Model, Parametric, Sequential, SequentialError, Shape};
use smolfed_core::params::{ClipNorm, LearningRate, ParamError};
use smolfed_core::stream::Purpose;
use smolfed_core::train::{LocalTraining, Workspace};
use smolfed_simd::{Kernels, Rows};

/// Samples per device.
pub const SAMPLES: usize = 50;
const BATCH: NonZeroU32 = NonZeroU32::MIN.saturating_add(9);
const VOCABULARY: u16 = 80;

/// Returns the networks, with their names in the scripts of `benches/peers`.
///
/// # Errors
/// Layers do not fit each other.
pub fn all() -> Result<[(&'static str, Sequential); 3], SequentialError> {
    Ok([
        ("images", images()?),
        ("windows", windows()?),
        ("characters", characters()?),
    ])
}

/// Returns two convolutions of 8 and 16 channels, with 2.2 million multiply-adds per sample.
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

/// Returns similar layers along one axis, with 150,000 multiply-adds per sample.
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

/// Returns an LSTM of 64 on 40 characters, with 2.2 million multiply-adds per sample.
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

/// A device with random samples, and its working memory.
#[derive(Debug)]
pub struct Device<'n> {
    network: &'n Sequential,
    settings: LocalTraining,
    values: Vec<f32>,
    labels: Vec<u16>,
    rows: Vec<u32>,
    global: Vec<f32>,
    local: Vec<f32>,
    update: Vec<f32>,
    order: Vec<u32>,
    scratch: Vec<f32>,
}

impl<'n> Device<'n> {
    /// Creates a device that trains a network in batches of 10, clipped after every step.
    ///
    /// # Errors
    /// None with these settings.
    pub fn new(network: &'n Sequential) -> Result<Self, ParamError> {
        let mut values = crate::vector(SAMPLES * network.feature_count());
        if let [Layer::Embedding { vocabulary, .. }, ..] = network.layers() {
            for (i, value) in values.iter_mut().enumerate() {
                *value = (i * i % usize::from(*vocabulary)) as f32;
            }
        }
        let mut global = vec![0.0; network.parameter_count()];
        let mut stream = crate::stream(Purpose::Initialisation);
        // The length fits, since it comes from the network.
        let _ = network.initialise(&mut global, &mut stream);
        let rows: Vec<u32> = (0..SAMPLES as u32).collect();
        let settings = LocalTraining::new(LearningRate::new(0.01)?, ClipNorm::new(0.3)?);
        Ok(Self {
            network,
            settings: settings.with_batch_size(BATCH),
            values,
            labels: crate::labels(SAMPLES, network.output_count() as u16),
            order: rows.clone(),
            rows,
            local: global.clone(),
            update: global.clone(),
            global,
            scratch: vec![0.0; network.scratch_count(BATCH.get() as usize)],
        })
    }

    /// Trains one epoch from the initial parameters.
    pub fn epoch(&mut self) {
        let features = self.network.feature_count();
        let samples = Rows::new(&self.values, features, &self.labels, &self.rows);
        let work = Workspace {
            local: &mut self.local,
            update: &mut self.update,
            order: &mut self.order,
            scratch: &mut self.scratch,
        };
        let mut stream = crate::stream(Purpose::BatchShuffle);
        let (network, settings) = (self.network, &self.settings);
        let _ = network.local_update(&samples, &self.global, settings, &mut stream, work);
    }
}
