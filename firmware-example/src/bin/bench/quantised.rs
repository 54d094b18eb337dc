//! Instructions of a prediction by a network on images of 8 × 8 pixels, in 8 bits and in `f32`.

use core::hint::black_box;

use smolfed_core::{
    model::{Architecture, Fixed, FixedModel, Layer, Shape},
    predict::CurrentModel,
    samples::Samples,
};
use smolfed_firmware::{
    data,
    quantised::{INPUT, NETWORK, SCRATCH},
};

use super::{
    counting::{count, print},
    data::{samples, weight},
};

/// The layers of [`NETWORK`].
struct Digits;

impl Architecture for Digits {
    const INPUT: Shape = Shape::Image {
        channels: 1,
        height: 8,
        width: 8,
    };
    const LAYERS: &'static [Layer] = &[
        Layer::Convolution {
            channels: 8,
            kernel: [3, 3],
            stride: [1, 1],
            padding: [1, 1],
        },
        Layer::Relu,
        Layer::MaxPool {
            size: [2, 2],
            stride: [2, 2],
        },
        Layer::Dense { outputs: 10 },
    ];
}

type Model = Fixed<Digits>;

/// Measures the class of an image, in both.
#[inline(never)]
pub fn measure() -> Option<()> {
    const PIXELS: usize = INPUT.count();
    let image: [i8; PIXELS] = data::image(0);
    let (mut scratch, mut scores, mut class) = ([0; SCRATCH], [0; 10], None);
    let instructions = count(|| {
        let image = black_box(&image);
        class = NETWORK.predict(image, &mut scratch, &mut scores).ok();
    });
    class?;
    print("int8-network-predict", instructions);

    let parameters: [f32; Model::PARAMETERS] = core::array::from_fn(weight);
    let (model, samples) = (Model::new(), samples(2, PIXELS)?);
    let current = CurrentModel::new(0, &model, &parameters).ok()?;
    let (mut scratch, mut scores) = ([0.0; Model::SCRATCH], [0.0; 10]);
    let instructions = count(|| {
        let features = black_box(samples.features(1));
        class = current.predict(features, &mut scratch, &mut scores).ok();
    });
    class?;
    print("network-predict", instructions);
    Some(())
}
