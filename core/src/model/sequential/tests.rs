//! Networks against PyTorch's golden values, central differences and every misfit.

use crate::model::Parametric;
use std::{string::ToString, vec, vec::Vec};

use proptest::{collection::vec as vector, prelude::*};
use serde_json::Value;

use super::{
    super::{Model, ModelKind},
    *,
};
use crate::{
    samples::SampleSlice,
    stream::{Purpose, Root, StreamId},
};

const fn image(channels: u16, height: u16, width: u16) -> Shape {
    Shape::Image {
        channels,
        height,
        width,
    }
}

const fn sequence(length: u16, width: u16) -> Shape {
    Shape::Sequence { length, width }
}

const fn convolution(channels: u16, kernel: [u16; 2], padding: [u16; 2]) -> Layer {
    Layer::Convolution {
        channels,
        kernel,
        stride: [1, 1],
        padding,
    }
}

const fn pool(side: u16) -> Layer {
    Layer::MaxPool {
        size: [side, side],
        stride: [side, side],
    }
}

const fn dense(outputs: u16) -> Layer {
    Layer::Dense { outputs }
}

/// Deterministic values in (-1, 1) without a generator.
fn values(count: usize, salt: u32) -> Vec<f32> {
    let value = |i: u32| (i.wrapping_mul(2_654_435_761) ^ salt).wrapping_mul(2_246_822_519) as i32;
    (0..count as u32)
        .map(|i| value(i) as f32 / (1u32 << 31) as f32)
        .collect()
}

/// Deterministic values, some of them 0.
pub(super) fn sparse_values(count: usize, salt: u32) -> Vec<f32> {
    let some = |x: f32| if x.abs() < 0.2 { 0.0 } else { x };
    values(count, salt).into_iter().map(some).collect()
}

pub(super) fn bits(v: &[f32]) -> Vec<u32> {
    v.iter().map(|x| x.to_bits()).collect()
}

/// Loss and gradient of a batch.
fn gradient(
    network: &Sequential,
    parameters: &[f32],
    inputs: &[f32],
    labels: &[u16],
    batch: &[u32],
) -> Result<(f32, Vec<f32>), ModelError> {
    let samples = SampleSlice::new(inputs, labels, network.feature_count()).unwrap();
    // Previous contents of the memory must not matter.
    let mut scratch = vec![f32::NAN; network.scratch_count(1)];
    let mut gradient = vec![f32::NAN; parameters.len()];
    let loss =
        network.loss_and_gradient(parameters, &samples, batch, &mut scratch, &mut gradient)?;
    Ok((loss, gradient))
}

fn scores(network: &Sequential, parameters: &[f32], features: &[f32]) -> Vec<f32> {
    let mut scores = vec![0.0; network.output_count()];
    let mut scratch = vec![f32::NAN; network.score_scratch_count()];
    network
        .scores(parameters, features, &mut scratch, &mut scores)
        .unwrap();
    scores
}

/// Returns the mean loss of all samples, from the scores.
fn mean_loss(network: &Sequential, parameters: &[f32], inputs: &[f32], labels: &[u16]) -> f64 {
    let samples = inputs.chunks_exact(network.feature_count()).zip(labels);
    let losses = samples.map(|(features, label)| {
        let mut scores = scores(network, parameters, features);
        f64::from(network.loss_in_place(&mut scores, *label))
    });
    losses.sum::<f64>() / labels.len() as f64
}

mod golden {
    use super::*;

    fn numbers(value: &Value) -> Vec<f64> {
        match value {
            Value::Array(items) => items.iter().flat_map(numbers).collect(),
            other => vec![other.as_f64().unwrap()],
        }
    }

    fn integers(value: &Value) -> Vec<u16> {
        numbers(value).iter().map(|x| *x as u16).collect()
    }

    fn pair(value: &Value) -> [u16; 2] {
        integers(value).try_into().unwrap()
    }

    fn integer(value: &Value) -> u16 {
        value.as_u64().unwrap().try_into().unwrap()
    }

    fn layer(value: &Value) -> Layer {
        match value["layer"].as_str().unwrap() {
            "conv2d" => Layer::Convolution {
                channels: integer(&value["out_channels"]),
                kernel: pair(&value["kernel"]),
                stride: pair(&value["stride"]),
                padding: pair(&value["padding"]),
            },
            "relu" => Layer::Relu,
            "max_pool" => Layer::MaxPool {
                size: pair(&value["size"]),
                stride: pair(&value["size"]),
            },
            "global_average" => Layer::GlobalAverage,
            "dense" => dense(integer(&value["out"])),
            other => panic!("{other}"),
        }
    }

    fn network(case: &Value) -> Sequential {
        if case["kind"] == "convolution" {
            let [channels, height, width] = integers(&case["input_shape"]).try_into().unwrap();
            let layers: Vec<Layer> = case["layers"]
                .as_array()
                .unwrap()
                .iter()
                .map(layer)
                .collect();
            return Sequential::new(image(channels, height, width), &layers).unwrap();
        }
        let vocabulary = integer(&case["vocabulary"]);
        let mut layers = vec![Layer::Embedding {
            vocabulary,
            width: integer(&case["embedding"]),
        }];
        for _ in 0..integer(&case["depth"]) {
            layers.push(Layer::Lstm {
                hidden: integer(&case["hidden"]),
            });
        }
        layers.extend([Layer::Last, dense(vocabulary)]);
        Sequential::new(sequence(integer(&case["length"]), 1), &layers).unwrap()
    }

    /// To 1e-5 of the largest entry.
    fn close(found: &[f32], expected: &[f64], what: &str) {
        assert_eq!(found.len(), expected.len(), "{what}");
        let largest = expected.iter().fold(0.0_f64, |max, x| max.max(x.abs()));
        for (found, expected) in found.iter().zip(expected) {
            let error = (f64::from(*found) - expected).abs();
            assert!(error <= 1e-5 * largest, "{what}: {found} {expected}");
        }
    }

    #[test]
    #[cfg_attr(feature = "micromath", ignore = "its exp is approximate")]
    fn losses_and_gradients_are_those_of_pytorch() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../tests/vectors/networks.json"
        );
        let file = std::fs::read_to_string(path).unwrap();
        let file: Value = serde_json::from_str(&file).unwrap();
        let cases = file["cases"].as_array().unwrap();
        assert_eq!(cases.len(), 5);
        for case in cases {
            let name = case["name"].as_str().unwrap();
            let network = network(case);
            let tensors: Vec<usize> = case["parameters"]
                .as_array()
                .unwrap()
                .iter()
                .map(|tensor| numbers(tensor).len())
                .collect();
            assert_eq!(network.tensors().as_slice(), tensors, "{name}");
            let f32s =
                |key: &str| -> Vec<f32> { numbers(&case[key]).iter().map(|x| *x as f32).collect() };
            let (parameters, inputs) = (f32s("parameters"), f32s("inputs"));
            let labels = integers(&case["labels"]);
            let batch: Vec<u32> = (0..labels.len() as u32).collect();
            let (loss, gradient) =
                gradient(&network, &parameters, &inputs, &labels, &batch).unwrap();
            close(&[loss], &numbers(&case["loss"]), name);
            close(&gradient, &numbers(&case["gradient"]), name);
            let found: Vec<f32> = inputs
                .chunks_exact(network.feature_count())
                .flat_map(|features| scores(&network, &parameters, features))
                .collect();
            close(&found, &numbers(&case["scores"]), name);
        }
    }
}

/// Compatible layers on images, as far as they fit.
fn image_layers() -> impl Strategy<Value = (Shape, Vec<Layer>)> {
    let kernel = (1u16..4, 1u16..4);
    let layer = (
        0u8..4,
        1u16..4,
        kernel,
        (1u16..3, 1u16..3),
        (0u16..3, 0u16..3),
    );
    let layers = vector(layer, 1..5);
    (layers, 1u16..4, 1u16..8, 1u16..8).prop_map(|(choices, channels, height, width)| {
        let input = image(channels, height, width);
        let (mut shape, mut layers) = (input, vec![]);
        for (choice, channels, kernel, stride, padding) in choices {
            let (kernel, stride) = (kernel.into(), stride.into());
            let layer = match choice {
                0 => Layer::Relu,
                1 => Layer::MaxPool {
                    size: kernel,
                    stride,
                },
                _ => Layer::Convolution {
                    channels,
                    kernel,
                    stride,
                    padding: padding.into(),
                },
            };
            if let Ok(output) = layer.output(shape, layers.is_empty()) {
                layers.push(layer);
                shape = output;
            }
        }
        if width % 2 == 0 {
            layers.push(Layer::GlobalAverage);
        }
        layers.push(dense(3));
        (input, layers)
    })
}

/// Recurrent layers on symbols or on numbers.
fn sequence_layers() -> impl Strategy<Value = (Shape, Vec<Layer>)> {
    let sizes = (1u16..6, 1u16..5, vector(1u16..5, 0..3));
    (sizes, any::<[bool; 3]>()).prop_map(|((length, width, hidden), choices)| {
        let [symbols, rectified, only_last] = choices;
        let mut layers = vec![];
        if symbols {
            let vocabulary = 5;
            layers.push(Layer::Embedding { vocabulary, width });
        }
        for hidden in hidden {
            layers.push(Layer::Lstm { hidden });
            if rectified {
                layers.push(Layer::Relu);
            }
        }
        if only_last {
            layers.push(Layer::Last);
        }
        layers.push(dense(3));
        (sequence(length, if symbols { 1 } else { width }), layers)
    })
}

/// Samples of a network: numbers, or symbols of a vocabulary of five.
fn inputs(network: &Sequential, count: usize, salt: u32) -> Vec<f32> {
    let mut inputs = values(count * network.feature_count(), salt);
    if let [Layer::Embedding { .. }, ..] = network.layers() {
        for x in &mut inputs {
            *x = (2.5 * *x + 2.5).floor();
        }
    }
    inputs
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(if cfg!(feature = "micromath") { 0 } else { 256 })
    })]

    /// The derivative of a loss with kinks: a step across a kink has a larger error, so each slope
    /// may be one-sided.
    #[test]
    fn gradients_are_the_derivatives_of_random_networks(
        (input, layers) in prop_oneof![image_layers(), sequence_layers()],
        salt in any::<u32>(),
    ) {
        let network = Sequential::new(input, &layers).unwrap();
        let labels = [0, 2, 1];
        let inputs = inputs(&network, labels.len(), salt);
        let parameters = values(network.parameter_count(), !salt);
        let (loss, gradient) =
            gradient(&network, &parameters, &inputs, &labels, &[0, 1, 2]).unwrap();
        let at = |index: usize, step: f32| {
            let mut moved = parameters.clone();
            moved[index] += step;
            let loss = mean_loss(&network, &moved, &inputs, &labels);
            (f64::from(moved[index] - parameters[index]), loss)
        };
        let (_, before) = at(0, 0.0);
        prop_assert!((f64::from(loss) - before).abs() < 1e-5 * before.max(1.0));
        for (index, derivative) in gradient.iter().enumerate() {
            let derivative = f64::from(*derivative);
            let close = |h: f32| {
                let [(up, after), (down, earlier)] = [at(index, h), at(index, -h)];
                let central = (after - earlier) / (up - down);
                let sides = [central, (after - before) / up, (earlier - before) / down];
                let room = 2e-3 * (1.0 + derivative.abs()) + 4e-7 * before.max(1.0) / f64::from(h);
                sides.iter().any(|slope| (slope - derivative).abs() < room)
            };
            prop_assert!(close(1e-2) || close(1e-3) || close(2e-4), "{index} of {layers:?}");
        }
    }

    /// A sample's part of a gradient does not depend on the rest of the batch, or on the contents
    /// or the length of the scratch memory.
    #[test]
    fn batch_and_scratch_do_not_change_the_bits(
        (input, layers) in prop_oneof![image_layers(), sequence_layers()],
        salt in any::<u32>(),
        spare in 0usize..100,
    ) {
        let network = Sequential::new(input, &layers).unwrap();
        let labels = [0u16, 2];
        let inputs = inputs(&network, 2, salt);
        let parameters = values(network.parameter_count(), !salt);
        let (loss, once) = gradient(&network, &parameters, &inputs, &labels, &[1]).unwrap();
        // The mean of two equal values: halving and doubling are exact.
        let (again, twice) = gradient(&network, &parameters, &inputs, &labels, &[1, 1]).unwrap();
        prop_assert_eq!(loss.to_bits(), again.to_bits());
        prop_assert_eq!(once.len(), twice.len());
        let samples = SampleSlice::new(&inputs, &labels, network.feature_count()).unwrap();
        let run = |fill: f32, spare: usize| {
            let mut scratch = vec![fill; network.scratch_count(2) + spare];
            let mut gradient = vec![fill; parameters.len()];
            let loss = network
                .loss_and_gradient(&parameters, &samples, &[1, 0, 1], &mut scratch, &mut gradient)
                .unwrap();
            let bits: Vec<u32> = gradient.iter().map(|x| x.to_bits()).collect();
            (loss.to_bits(), bits)
        };
        prop_assert_eq!(run(f32::NAN, 0), run(3.0, spare));
        let mut together = vec![0.0; 6];
        let mut scratch = vec![f32::NAN; network.score_scratch_count() + spare];
        network
            .batch_scores(&parameters, &samples, &[0, 1], &mut scratch, &mut together)
            .unwrap();
        let alone = inputs
            .chunks_exact(network.feature_count())
            .flat_map(|features| scores(&network, &parameters, features));
        prop_assert!(alone.zip(&together).all(|(a, b)| a.to_bits() == b.to_bits()));
    }
}

/// Returns the error message of these layers.
fn wrong(input: Shape, layers: &[Layer]) -> std::string::String {
    Sequential::new(input, layers).unwrap_err().to_string()
}

#[test]
fn every_misfit_is_named() {
    let digit = image(1, 8, 8);
    assert_eq!(wrong(digit, &[]), "a network needs at least one layer");
    assert_eq!(
        wrong(digit, &[Layer::Relu; MAX_LAYERS + 1]),
        "13 layers: at most 12 are supported"
    );
    assert_eq!(
        wrong(sequence(0, 3), &[Layer::Last, dense(2)]),
        "the input is a sequence of 0 x 3, which is empty"
    );
    let last = convolution(16, [3, 3], [1, 1]);
    assert_eq!(
        wrong(digit, &[last, pool(2)]),
        "the last layer gives an image of 16 x 4 x 4, but must give a vector of scores"
    );
    assert_eq!(
        wrong(digit, &[last, pool(2), Layer::Last]),
        "layer 3 expects a sequence, gets an image of 16 x 4 x 4"
    );
    assert_eq!(
        wrong(digit, &[Layer::Lstm { hidden: 3 }]),
        "layer 1 expects a sequence, gets an image of 1 x 8 x 8"
    );
    let found = "expects an image, gets a vector of 4";
    for (layer, text) in [
        (last, found),
        (pool(1), found),
        (Layer::GlobalAverage, found),
    ] {
        let layers = [dense(4), Layer::Relu, layer];
        assert_eq!(wrong(digit, &layers), std::format!("layer 3 {text}"));
    }
    let embedding = Layer::Embedding {
        vocabulary: 9,
        width: 2,
    };
    let expects = "expects symbols (the features of a sample, a sequence of width 1), gets";
    assert_eq!(
        wrong(sequence(5, 2), &[embedding]),
        std::format!("layer 1 {expects} a sequence of 5 x 2")
    );
    assert_eq!(
        wrong(sequence(5, 1), &[Layer::Relu, embedding]),
        std::format!("layer 2 {expects} a sequence of 5 x 1")
    );
}

#[test]
fn sizes_that_cannot_be_are_named() {
    let digit = image(1, 8, 8);
    assert_eq!(
        wrong(digit, &[pool(2), pool(5)]),
        "layer 2 has windows of 5 x 5, larger than its input of 4 x 4 with padding"
    );
    assert_eq!(
        wrong(digit, &[convolution(2, [1, 11], [0, 1])]),
        "layer 1 has windows of 1 x 11, larger than its input of 8 x 10 with padding"
    );
    assert_eq!(
        wrong(digit, &[convolution(2, [3, 1], [1, 1])]),
        "layer 1 has padding of 1 x 1, which must be less than its kernel of 3 x 1"
    );
    let huge = [convolution(u16::MAX, [1, 1], [0, 0]); 2];
    let large = image(u16::MAX, u16::MAX, u16::MAX);
    assert_eq!(
        wrong(large, &[huge[0], huge[1], Layer::GlobalAverage]),
        "layer 1 is too large"
    );
    assert_eq!(
        wrong(
            image(1, 1, u16::MAX),
            &[convolution(1, [1, 2], [0, 1]), dense(1)]
        ),
        "layer 1 is too large"
    );
    let zeros = [
        convolution(0, [1, 1], [0, 0]),
        convolution(1, [0, 1], [0, 0]),
        Layer::MaxPool {
            size: [1, 1],
            stride: [1, 0],
        },
        dense(0),
    ];
    for layer in zeros {
        assert_eq!(
            wrong(digit, &[layer]),
            "layer 1 has a size or a stride of 0"
        );
    }
    for layer in [
        Layer::Lstm { hidden: 0 },
        Layer::Embedding {
            vocabulary: 0,
            width: 1,
        },
    ] {
        let text = wrong(sequence(3, 1), &[layer]);
        assert_eq!(text, "layer 1 has a size or a stride of 0");
    }
}

#[test]
fn twelve_layers_have_their_tensors() {
    let mut layers = [Layer::Lstm { hidden: 2 }; MAX_LAYERS];
    layers[MAX_LAYERS - 2] = Layer::Last;
    layers[MAX_LAYERS - 1] = dense(3);
    let network = Sequential::new(sequence(2, 2), &layers).unwrap();
    assert_eq!(network.tensors().as_slice().len(), 32);
    assert_eq!(network.tensors().total(), network.parameter_count());
    assert_eq!(
        (network.layers(), network.input()),
        (&layers[..], sequence(2, 2))
    );
    assert_eq!(network.outputs()[10], Shape::Vector { length: 2 });
    assert_eq!(
        Parametric::parameter_count(&network),
        network.parameter_count()
    );
    assert_eq!(Sequential::KIND.code(), 5);
    assert_eq!(ModelKind::from_code(5), Some(ModelKind::Sequential));
    assert_eq!(
        ModelKind::from_code(4),
        None,
        "an encoder with a hidden layer cannot travel"
    );
}

#[test]
fn features_that_are_no_symbols_are_refused() {
    let layers = [
        Layer::Embedding {
            vocabulary: 9,
            width: 2,
        },
        dense(2),
    ];
    let network = Sequential::new(sequence(2, 1), &layers).unwrap();
    let parameters = values(network.parameter_count(), 1);
    let run = |symbol: f32| gradient(&network, &parameters, &[0.0, symbol], &[1], &[0]);
    for symbol in [0.0, -0.0, 1.0, 8.0] {
        assert!(run(symbol).is_ok(), "{symbol}");
    }
    for symbol in [
        9.0,
        -1.0,
        0.5,
        1e-40,
        65_536.0,
        1e30,
        f32::NAN,
        f32::INFINITY,
    ] {
        let error = ModelError::Symbol { vocabulary: 9 };
        assert_eq!(run(symbol), Err(error), "{symbol}");
        let text = "a feature is not a symbol, a whole number from 0 to 8";
        assert_eq!(error.to_string(), text);
    }
}

/// Ties and zeros: the first of the largest entries, and no derivative through a unit at 0.
#[test]
fn the_first_of_equals_takes_the_derivative() {
    let windows = pool::Windows::new(image(1, 2, 4), image(1, 1, 2), [2, 2], [2, 2]);
    let input = [1.0, 3.0, 0.0, -1.0, 3.0, 2.0, 0.0, f32::NAN];
    let (mut output, mut below) = ([0.0; 2], [9.0; 8]);
    windows.forward(&input, &mut output);
    assert!(output[0] == 3.0 && output[1].is_nan());
    windows.backward(&input, &[1.0, 2.0], &mut below);
    assert_eq!(below, [0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0]);

    let mut values = [-1.0, -0.0, 0.0, 2.0, f32::NAN];
    pool::rectify(&mut values);
    assert_eq!(values[..4], [0.0, 0.0, 0.0, 2.0]);
    assert!(values[4].is_nan() && values[1].is_sign_positive());
    let mut derivatives = [1.0; 4];
    pool::rectify_backward(&values[..4], &mut derivatives);
    assert_eq!(derivatives, [0.0, 0.0, 0.0, 1.0]);
}

#[test]
fn what_overflows_gives_losses_that_are_not_finite() {
    let conv = convolution(2, [3, 3], [1, 1]);
    let images = [
        conv,
        Layer::Relu,
        pool(2),
        conv,
        Layer::GlobalAverage,
        dense(2),
    ];
    let embedding = Layer::Embedding {
        vocabulary: 3,
        width: 2,
    };
    let text = [embedding, Layer::Lstm { hidden: 3 }, Layer::Last, dense(2)];
    for (input, layers) in [(image(1, 4, 4), &images[..]), (sequence(4, 1), &text[..])] {
        let network = Sequential::new(input, layers).unwrap();
        let inputs = vec![1.0; network.feature_count()];
        for value in [f32::NAN, f32::INFINITY, f32::MAX] {
            let parameters = vec![value; network.parameter_count()];
            let (loss, _) = gradient(&network, &parameters, &inputs, &[1], &[0]).unwrap();
            assert!(!loss.is_finite(), "{value}: {loss}");
        }
    }
}

#[test]
fn wrong_lengths_are_refused() {
    let network = Sequential::new(image(1, 2, 2), &[dense(3)]).unwrap();
    let samples = SampleSlice::new(&[1.0, 2.0, 3.0, 4.0], &[0u16], 4).unwrap();
    let run = |parameters: usize, gradient: usize, scratch: usize, batch: &[u32]| {
        let (parameters, mut gradient) = (vec![0.0; parameters], vec![0.0; gradient]);
        let mut scratch = vec![0.0; scratch];
        network.loss_and_gradient(&parameters, &samples, batch, &mut scratch, &mut gradient)
    };
    let need = network.scratch_count(1);
    assert!(run(15, 15, need, &[0]).is_ok());
    let (expected, found) = (15, 14);
    let short = Err(ModelError::Parameters { expected, found });
    assert_eq!(run(14, 15, need, &[0]), short);
    assert_eq!(run(15, 14, need, &[0]), short);
    let (expected, found) = (need, need - 1);
    assert_eq!(
        run(15, 15, found, &[0]),
        Err(ModelError::Scratch { expected, found })
    );
    assert_eq!(run(15, 15, need, &[]), Err(ModelError::Batch));
    assert_eq!(run(15, 15, need, &[1]), Err(ModelError::Batch));
    let score = |features: &[f32], scratch: usize, scores: usize| {
        let (mut scratch, mut scores) = (vec![0.0; scratch], vec![0.0; scores]);
        network.scores(&[0.0; 15], features, &mut scratch, &mut scores)
    };
    let need = network.score_scratch_count();
    assert_eq!(score(&[0.0; 4], need, 3), Ok(()));
    assert!(matches!(
        score(&[0.0; 3], need, 3),
        Err(ModelError::Features { .. })
    ));
    for (scratch, scores) in [(need - 1, 3), (need, 2)] {
        let error = score(&[0.0; 4], scratch, scores);
        assert!(matches!(error, Err(ModelError::Scratch { .. })));
    }
}

#[test]
fn initial_parameters_have_the_laws_that_are_documented() {
    let layers = [
        Layer::Embedding {
            vocabulary: 50,
            width: 4,
        },
        Layer::Lstm { hidden: 25 },
        Layer::Last,
        dense(100),
    ];
    let network = Sequential::new(sequence(3, 1), &layers).unwrap();
    let draw = |seed| {
        let mut rng = Root::from_seed(seed).stream(StreamId {
            purpose: Purpose::Initialisation,
            round: 0,
            device: 0,
        });
        let mut parameters = vec![0.0; network.parameter_count()];
        network.initialise(&mut parameters, &mut rng).unwrap();
        parameters
    };
    let parameters = draw(1);
    assert_eq!(parameters, draw(1));
    assert_ne!(parameters, draw(2));
    let mut rest = &parameters[..];
    // The table, three tensors of the LSTM, and weights and biases of 25 entries each.
    let reaches = [3f32.sqrt(), 0.2, 0.2, 0.2, 0.2, 0.2];
    for (length, reach) in network.tensors().as_slice().iter().zip(reaches) {
        let (tensor, after) = rest.split_at(*length);
        let largest = tensor.iter().fold(0.0_f32, |max, x| max.max(x.abs()));
        assert!(
            largest <= reach && largest > 0.9 * reach,
            "{largest} {reach}"
        );
        rest = after;
    }
    assert!(rest.is_empty());
    let mut short = [0.0; 3];
    let mut rng = Root::from_seed(1).stream(StreamId {
        purpose: Purpose::Initialisation,
        round: 0,
        device: 0,
    });
    assert!(network.initialise(&mut short, &mut rng).is_err());
}
