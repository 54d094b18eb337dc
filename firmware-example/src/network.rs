//! Networks for windows of six channels, as from an accelerometer and a gyroscope. Each has one
//! definition, and its sizes are constants.

use smolfed_core::model::{Architecture, Fixed, FixedModel, Layer, Shape};

/// Channels of a window.
pub const CHANNELS: u16 = 6;

/// Classes.
pub const CLASSES: u16 = 7;

/// Two convolutions along time, with `FIRST` and `SECOND` kernels, on windows of `WIDTH` samples.
pub struct SixChannels<const WIDTH: u16, const FIRST: u16, const SECOND: u16>;

impl<const WIDTH: u16, const FIRST: u16, const SECOND: u16> Architecture
    for SixChannels<WIDTH, FIRST, SECOND>
{
    const INPUT: Shape = Shape::Image {
        channels: CHANNELS,
        height: 1,
        width: WIDTH,
    };
    const LAYERS: &'static [Layer] = &[
        along_time(FIRST),
        Layer::Relu,
        Layer::MaxPool {
            size: [1, 2],
            stride: [1, 2],
        },
        along_time(SECOND),
        Layer::Relu,
        Layer::GlobalAverage,
        Layer::Dense { outputs: CLASSES },
    ];
}

/// Returns a layer with kernels of five samples.
const fn along_time(channels: u16) -> Layer {
    Layer::Convolution {
        channels,
        kernel: [1, 5],
        stride: [1, 1],
        padding: [0, 0],
    }
}

/// A network of 1,023 parameters, for windows of a second at 50 Hz.
pub type Network = Fixed<SixChannels<50, 8, 16>>;

/// A network of 355 parameters, for windows of half a second. It trains in 16 KiB of RAM.
pub type SmallNetwork = Fixed<SixChannels<25, 4, 8>>;

// Training takes three vectors and less than the activations of a batch of ten: it keeps those of
// one sample, regardless of the batch size.
const _: () = assert!(takes_no_more::<SixChannels<50, 8, 16>>(10));
const _: () = assert!(takes_no_more::<SixChannels<25, 4, 8>>(10));

const fn takes_no_more<A: Architecture>(batch: usize) -> bool {
    let activations = batch * Fixed::<A>::NETWORK.activation_count();
    Fixed::<A>::TRAINING_BYTES <= (3 * Fixed::<A>::PARAMETERS + activations) * size_of::<f32>()
}
