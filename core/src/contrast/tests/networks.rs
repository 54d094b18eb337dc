//! Networks of layers as encoders.

use std::{vec, vec::Vec};

use super::{super::*, Buffers, Given, check, close, stream, sum_of};
use crate::{
    model::{Activation, Encoder, Layer, Model, ModelError, Sequential, Shape},
    noise::DiscreteGaussian,
    params::ClipNorm,
    quantize::Grid,
    samples::SampleSlice,
    stream::{Purpose, Stream},
};

const IMAGE: Shape = Shape::Image {
    channels: 2,
    height: 5,
    width: 6,
};
const CONVOLUTION: Layer = Layer::Convolution {
    channels: 3,
    kernel: [3, 2],
    stride: [1, 2],
    padding: [1, 0],
};
const POOL: Layer = Layer::MaxPool {
    size: [2, 1],
    stride: [2, 1],
};
const OUTPUTS: Layer = Layer::Dense { outputs: 3 };

/// Networks with each kind of layer that keeps values of a sample.
fn networks() -> [Sequential; 3] {
    let sequence = Shape::Sequence {
        length: 4,
        width: 2,
    };
    let lstm = [Layer::Lstm { hidden: 3 }, Layer::Last, OUTPUTS];
    let pooled = [CONVOLUTION, Layer::Relu, POOL, OUTPUTS];
    let two = Layer::Convolution {
        channels: 3,
        kernel: [2, 2],
        stride: [1, 1],
        padding: [0, 0],
    };
    let averaged = [CONVOLUTION, Layer::Relu, two, Layer::GlobalAverage];
    [
        Sequential::new(IMAGE, &pooled).unwrap(),
        Sequential::new(IMAGE, &averaged).unwrap(),
        Sequential::new(sequence, &lstm).unwrap(),
    ]
}

fn draw(count: usize, rng: &mut Stream) -> Vec<f32> {
    (0..count).map(|_| stream::symmetric(rng)).collect()
}

fn views(features: usize, rng: &mut Stream) -> Given {
    let view = |rng: &mut Stream| (0..3).map(|_| draw(features, rng)).collect();
    Given {
        views: (0..4).map(|_| view(rng)).collect(),
    }
}

#[test]
fn gradients_of_networks_are_derivatives() {
    let mut rng = stream(Purpose::Synthesis);
    let others: Vec<f32> = (0..6).map(|i| 0.1 * i as f32 - 0.2).collect();
    for network in networks() {
        let views = views(network.input().count(), &mut rng);
        for norm_bound in [None, Some(0.1)] {
            let objective = Objective {
                alpha: 0.6,
                others: &others,
                norm_bound,
            };
            check(&network, &views, &objective, &mut rng);
        }
    }
}

/// Forward and backward match [`Model`], bit for bit: with the derivatives of the cross-entropy,
/// the gradient is the classification gradient.
#[test]
fn a_network_learns_without_labels_as_it_does_with_them() {
    let mut rng = stream(Purpose::Synthesis);
    for network in networks() {
        let features = network.input().count();
        let inputs = draw(2 * features, &mut rng);
        let parameters = draw(network.parameter_count(), &mut rng);
        let labels = [2u16, 0];
        let samples = SampleSlice::new(&inputs, &labels, features).unwrap();
        let mut scratch = vec![f32::NAN; network.sample_scratch_count()];
        let mut expected = vec![f32::NAN; parameters.len()];
        network
            .loss_and_gradient(&parameters, &samples, &[1, 0], &mut scratch, &mut expected)
            .unwrap();

        let mut hidden = vec![f32::NAN; network.hidden_count()];
        let mut gradient = vec![0.0; parameters.len()];
        Representation::begin(&network, &parameters, &mut hidden).unwrap();
        for sample in [1, 0] {
            let (features, mut z) = (samples.features(sample), [0.0; 3]);
            Representation::forward(&network, &parameters, features, &mut hidden, &mut z).unwrap();
            network.loss_in_place(&mut z, labels[sample]);
            let derivative = z.map(|z| 0.5 * z);
            Representation::backward(
                &network,
                &parameters,
                features,
                &mut hidden,
                &derivative,
                &mut gradient,
            )
            .unwrap();
        }
        Representation::end(&network, &mut hidden, &mut gradient).unwrap();
        let bits = |v: &[f32]| v.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&gradient), bits(&expected), "{:?}", network.layers());
    }
}

/// Both have the same parameter layout.
#[test]
fn two_dense_layers_are_a_hidden_layer() {
    let mut rng = stream(Purpose::Synthesis);
    let encoder = Encoder::new(7usize, 5usize, 3usize, Activation::Relu);
    let layers = [Layer::Dense { outputs: 5 }, Layer::Relu, OUTPUTS];
    let network = Sequential::new(Shape::Vector { length: 7 }, &layers).unwrap();
    let (parameters, views) = (draw(58, &mut rng), views(7, &mut rng));
    let objective = Objective {
        alpha: 0.4,
        others: &[0.3, -0.1, 0.0, 0.4, 0.2, 0.1],
        norm_bound: Some(0.5),
    };
    fn ask(
        encoder: &impl Representation,
        parameters: &[f32],
        views: &Given,
        objective: &Objective<'_>,
    ) -> (f32, Vec<f32>) {
        let mut buffers = Buffers::of(encoder, 12);
        let memory = &mut buffers.batch();
        let loss = loss_and_gradient(encoder, parameters, views, &[2, 0, 1], objective, memory);
        (loss.unwrap(), buffers.gradient)
    }
    let (loss, gradient) = ask(&network, &parameters, &views, &objective);
    let (expected_loss, expected) = ask(&encoder, &parameters, &views, &objective);
    close(&[loss], &[expected_loss], 1e-6, "loss");
    close(&gradient, &expected, 1e-6, "gradient");
}

#[test]
fn wrong_lengths_are_refused() {
    let [network, ..] = networks();
    let (count, memory) = (network.parameter_count(), network.hidden_count());
    let (mut hidden, mut z) = (vec![0.0; memory], [0.0; 3]);
    let (parameters, features) = (vec![0.0; count], [0.0; 60]);
    let too_long = Err(ModelError::Parameters {
        expected: count,
        found: count + 1,
    });
    let longer = &mut vec![0.0; count + 1];
    assert_eq!(
        Representation::begin(&network, longer, &mut hidden),
        too_long
    );
    assert_eq!(Representation::end(&network, &mut hidden, longer), too_long);
    let short = Err(ModelError::Scratch {
        expected: memory,
        found: memory - 1,
    });
    let hidden_short = &mut vec![0.0; memory - 1];
    assert_eq!(
        Representation::begin(&network, &parameters, hidden_short),
        short
    );
    let forward = |features: &[f32], hidden: &mut [f32], z: &mut [f32]| {
        Representation::forward(&network, &parameters, features, hidden, z)
    };
    assert_eq!(forward(&features, hidden_short, &mut z), short);
    let (expected, found) = (60, 59);
    let wrong = Err(ModelError::Features { expected, found });
    assert_eq!(forward(&features[1..], &mut hidden, &mut z), wrong);
    let (expected, found) = (3, 2);
    let wrong = Err(ModelError::Scratch { expected, found });
    assert_eq!(forward(&features, &mut hidden, &mut z[1..]), wrong);
    let mut gradient = vec![0.0; count];
    let derivative = [0.0; 2];
    let backward = Representation::backward(
        &network,
        &parameters,
        &features,
        &mut hidden,
        &derivative,
        &mut gradient,
    );
    assert_eq!(backward, wrong);
}

/// An invalid symbol in a sample is private, too: the sample adds nothing, and with noise the
/// device sends its matrix as usual.
#[test]
fn a_sample_without_symbols_adds_nothing() {
    let text = Shape::Sequence {
        length: 2,
        width: 1,
    };
    let embedding = Layer::Embedding {
        vocabulary: 3,
        width: 2,
    };
    let network = Sequential::new(text, &[embedding, Layer::Last]).unwrap();
    let parameters = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6];
    let grid = Grid::new(ClipNorm::new(2.0).unwrap(), 20).unwrap();
    let of = |symbols: &[f32], noise: Option<(&DiscreteGaussian, &mut Stream)>| {
        let samples: Vec<_> = symbols.iter().map(|x| vec![0.0, *x]).collect();
        let views = Given {
            views: vec![samples; 2],
        };
        sum_of(&network, &parameters, &views, &grid, noise)
    };
    assert_eq!(of(&[1.0, 3.0], None), Err(TrainError::Diverged));
    let sampler = DiscreteGaussian::new(3, 1).unwrap();
    let with_noise = |symbols: &[f32]| {
        let noise = &mut stream(Purpose::CorrelationNoise);
        of(symbols, Some((&sampler, noise))).unwrap()
    };
    assert_eq!(with_noise(&[1.0, 3.0]), with_noise(&[1.0]));
}
