//! Data and settings of the self-test (sizes of models, samples, windows, images), shared with the
//! test on the host.

use core::num::NonZeroU32;

use smolfed_core::{
    contrast::{
        ContrastTraining,
        augment::{ChannelDrop, Jitter, Rotation, Scaling, TimeShift},
    },
    features::{Cells, Range, Steps},
    model::{Layer, Sequential, SequentialError, Shape},
    noise::{DiscreteGaussian, NoiseError},
    params::{ClipNorm, LearningRate, ParamError, Penalty},
    personal::{Effort, PersonalTraining},
    quantize::{Grid, QuantizeError},
    smooth::{NarrowSmoothing, SmoothingError},
    stream::{Purpose, Root, Stream, StreamId},
    train::{Clipping, LocalTraining},
    window::{Feature, Measure, Recipe},
    wire::crc32::crc32,
};

/// Features of a sample.
pub const FEATURES: usize = 16;
/// Classes of the softmax model.
pub const CLASSES: usize = 4;
/// Samples of the device.
pub const SAMPLES: usize = 12;
/// Units of the shared encoder.
pub const HIDDEN: usize = 6;
/// Rounds with a personal model.
pub const ROUNDS: usize = 3;

/// All features of windows of 50 samples, and the energies of bands.
pub const EVERY: Recipe =
    match Recipe::new(50, &Feature::ALL, &[0, 1, 2, 4, 9, 33], Measure::Energy) {
        Ok(recipe) => recipe,
        Err(_) => panic!("the recipe"),
    };

/// Sizes and cells of images for gradients and brightness.
pub const CELLS: [Cells; 10] = cells();
/// Longest side of an image.
const LARGEST_SIDE: usize = 12;
/// Pixels of the largest image.
pub const LARGEST_IMAGE: usize = LARGEST_SIDE * LARGEST_SIDE;

/// Draws sizes and cells at random at compile time. The first image has one row.
const fn cells() -> [Cells; 10] {
    let mut word = 0x9e37_79b9_u32;
    let mut all = [drawn(1, 5, 1); 10];
    let mut at = 1;
    while at < all.len() {
        let mut sides = [0; 3];
        let mut side = 0;
        while side < sides.len() {
            word = word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let limit = match side {
                0 | 1 => LARGEST_SIDE,
                _ if sides[0] < sides[1] => sides[0],
                _ => sides[1],
            };
            sides[side] = 1 + (word >> 16) as usize % limit;
            side += 1;
        }
        all[at] = drawn(sides[0], sides[1], sides[2]);
        at += 1;
    }
    all
}

const fn drawn(rows: usize, columns: usize, cell: usize) -> Cells {
    match Cells::new(rows, columns, cell) {
        Ok(cells) => cells,
        Err(_) => panic!("a cell that does not fit"),
    }
}

/// Returns a pixel of the image `number`: all 8-bit values on a ramp. The last image is one grey.
pub fn pixel(number: usize, at: usize) -> u8 {
    let noise = raw_sample(0, number * LARGEST_IMAGE + at).to_le_bytes()[1];
    match number + 1 < CELLS.len() {
        true => (noise >> (number % 5)).saturating_add((at * (number + 1)) as u8 / 2),
        false => 77,
    }
}

/// Numbers for the computation of steps: counts, and thousandths as `f32`.
pub const NUMBERS: [i32; 9] = [-4_000, -301, -300, -299, 0, 17, 1_023, 1_024, 9_000];
/// Steps of each number.
pub const STEPS: Steps = match Steps::new(7) {
    Ok(steps) => steps,
    Err(_) => panic!("the steps"),
};
/// Bounds of the steps as counts.
pub const COUNTS: Range<i32> = match Range::of_counts(-300, 1_024) {
    Ok(range) => range,
    Err(_) => panic!("the bounds"),
};
/// Bounds of the steps as `f32`.
pub const BOUNDS: Range<f32> = match Range::new(-0.3, 1.024) {
    Ok(range) => range,
    Err(_) => panic!("the bounds"),
};

/// Returns a checksum without a byte buffer: each word is added to the checksum so far.
pub fn checksum(words: impl Iterator<Item = u32>) -> u32 {
    words.fold(0, |sum, word| {
        crc32([sum, word].map(u32::to_le_bytes).as_flattened())
    })
}

/// A number that fits in a checksum word.
pub trait Word: Copy {
    /// Returns the bits of the number.
    fn word(self) -> u32;
}

impl Word for f32 {
    fn word(self) -> u32 {
        self.to_bits()
    }
}

impl Word for i32 {
    fn word(self) -> u32 {
        self.cast_unsigned()
    }
}

impl Word for u16 {
    fn word(self) -> u32 {
        self.into()
    }
}

/// A network of convolutions for the samples as images.
pub const IMAGES: Sequential = checked(Sequential::new(
    Shape::Image {
        channels: 2,
        height: 2,
        width: 4,
    },
    &[
        Layer::Convolution {
            channels: 9,
            kernel: [2, 3],
            stride: [1, 1],
            padding: [1, 1],
        },
        Layer::Relu,
        Layer::MaxPool {
            size: [2, 2],
            stride: [1, 2],
        },
        Layer::Convolution {
            channels: 3,
            kernel: [2, 2],
            stride: [1, 1],
            padding: [1, 0],
        },
        Layer::Dense {
            outputs: CLASSES as u16,
        },
    ],
));
/// A recurrent network for the samples as sequences.
pub const SEQUENCES: Sequential = checked(Sequential::new(
    Shape::Sequence {
        length: 4,
        width: 4,
    },
    &[
        Layer::Lstm { hidden: 5 },
        Layer::Lstm { hidden: 3 },
        Layer::Last,
        Layer::Dense {
            outputs: CLASSES as u16,
        },
    ],
));

const fn checked(network: Result<Sequential, SequentialError>) -> Sequential {
    match network {
        Ok(network) => network,
        Err(_) => panic!("the layers do not fit"),
    }
}

/// Feature values that use many bits, in the range of standardised data.
pub static DATA: [f32; FEATURES * SAMPLES] = {
    let mut values = [0.0; FEATURES * SAMPLES];
    let mut i = 0;
    while i < values.len() {
        values[i] = ((i * 7_919 + 13) % 1_009) as f32 / 271.0 - 1.83;
        i += 1;
    }
    values
};

/// Samples of [`DATA`]'s device for networks: simulated windows of six channels of up to 50 values.
/// Shorter windows take the first values.
pub static SENSOR_DATA: [f32; 300 * SAMPLES] = {
    let mut values = [0.0; 300 * SAMPLES];
    let mut i = 0;
    while i < values.len() {
        values[i] = ((i * 6_151 + 29) % 2_003) as f32 / 641.0 - 1.57;
        i += 1;
    }
    values
};

/// Returns a count of one channel of a simulated sensor: steps of all sizes, up to the extremes.
pub fn raw_sample(channel: usize, time: usize) -> i16 {
    let word = ((channel * 1_000 + time) as u32).wrapping_mul(0x9e37_79b9);
    // Two channels have all values, the others fewer and fewer bits, on a slow wave.
    let noise = ((word >> 16) as u16).cast_signed() >> (channel / 2 * 3);
    let wave = (time * (channel + 1) * 700 % 8_192) as i16 - 4_096;
    noise.saturating_add(wave)
}

/// Returns an image of a simulated camera with the backbone's number of pixels. It has all 8-bit
/// values, including values outside the backbone's 0 to 16.
pub fn image<const PIXELS: usize>(number: usize) -> [i8; PIXELS] {
    core::array::from_fn(|pixel| raw_sample(0, number * PIXELS + pixel).to_le_bytes()[1] as i8)
}

/// Returns the class of a sample, below `classes`.
pub fn class(sample: usize, classes: usize) -> u16 {
    (sample * 5 % 7 % classes) as u16
}

/// Returns the target value of a sample.
pub fn value(sample: usize) -> f32 {
    (sample * 11 % 17) as f32 / 3.0 - 2.0
}

/// Returns a parameter of the global model.
pub fn parameter(index: usize) -> f32 {
    (index * 31 % 29) as f32 / 113.0 - 0.1
}

/// Returns a parameter of an integer model, in units of 2⁻¹⁸: up to 1/8.
pub fn weight(index: usize) -> i32 {
    (index * 7_919 % 65_537) as i32 - 32_768
}

/// Training and update settings of the device.
pub struct Setting {
    /// Name in the output.
    pub name: &'static str,
    /// Smoothing of the local gradient, 0 for none.
    pub smoothing_factor: f32,
    /// When to clip the update.
    pub clipping: Clipping,
    /// Whether the device adds its own noise.
    pub noise: bool,
}

/// All settings of the self-test.
pub const SETTINGS: [Setting; 4] = [
    Setting {
        name: "plain",
        smoothing_factor: 0.0,
        clipping: Clipping::EveryStep,
        noise: false,
    },
    Setting {
        name: "noise",
        smoothing_factor: 0.0,
        clipping: Clipping::Final,
        noise: true,
    },
    Setting {
        name: "smoothed",
        smoothing_factor: 1.5,
        clipping: Clipping::Final,
        noise: false,
    },
    Setting {
        name: "smoothed-noise",
        smoothing_factor: 3.0,
        clipping: Clipping::EveryStep,
        noise: true,
    },
];

/// Settings for a network that is slow without a floating-point unit.
pub const LARGE_SETTINGS: [Setting; 1] = {
    let [.., last] = SETTINGS;
    [last]
};

impl Setting {
    /// Returns the settings of local training.
    ///
    /// # Errors
    /// A message, if a constant above is wrong.
    pub fn training(&self) -> Result<LocalTraining, &'static str> {
        let training = || -> Result<LocalTraining, ParamError> {
            let (rate, clip_norm) = (LearningRate::new(0.07)?, ClipNorm::new(0.3)?);
            Ok(LocalTraining::new(rate, clip_norm)
                .with_epochs(3)
                .with_batch_size(NonZeroU32::MIN.saturating_add(4))
                .with_weight_decay(Penalty::new(0.001)?)
                .with_proximal(Penalty::new(0.01)?)
                .with_clipping(self.clipping))
        };
        let smoothing = NarrowSmoothing::new(self.smoothing_factor);
        let smoothing = smoothing.map_err(|_: SmoothingError| "the smoothing factor")?;
        Ok(LocalTraining {
            gradient_smoothing: (self.smoothing_factor > 0.0).then_some(smoothing),
            ..training().map_err(|_| "a parameter of training")?
        })
    }

    /// Returns the noise of the device.
    ///
    /// # Errors
    /// A message, if a constant is wrong.
    pub fn noise(&self) -> Result<Option<DiscreteGaussian>, &'static str> {
        let noise = DiscreteGaussian::new(11 << 20, 10);
        let noise = noise.map_err(|_: NoiseError| "the noise")?;
        Ok(self.noise.then_some(noise))
    }
}

/// Returns local training of a personal model.
///
/// # Errors
/// A message, if a constant is wrong.
pub fn personal() -> Result<PersonalTraining, &'static str> {
    let training = || -> Result<PersonalTraining, ParamError> {
        Ok(PersonalTraining {
            effort: Effort::Steps(NonZeroU32::MIN.saturating_add(6)),
            batch_size: NonZeroU32::MIN.saturating_add(4),
            learning_rate: LearningRate::new(0.07)?,
            weight_decay: Penalty::new(0.001)?,
        })
    };
    training().map_err(|_| "a parameter of personal training")
}

/// Returns the pull of the personal model to the shared model.
///
/// # Errors
/// A message, if a constant is wrong.
pub fn pull() -> Result<Penalty, &'static str> {
    Penalty::new(0.3).map_err(|_| "the pull")
}

/// Width of a representation.
pub const WIDTH: usize = 4;
/// V: a sample has 2V views.
pub const PAIRS: usize = 2;

/// All variations of a window of channels over time, one after another.
pub type Variations = ((Jitter, Scaling), ((TimeShift, ChannelDrop), Rotation));

/// Returns the variations of a sample's views, as four channels of four values.
pub const fn variations() -> Variations {
    const TIME: usize = 4;
    let (reach, time) = (0.2, TIME);
    (
        (Jitter(0.1), Scaling { reach, time }),
        (
            (
                TimeShift { reach: 1, time },
                ChannelDrop {
                    probability: 0.1,
                    time,
                },
            ),
            Rotation { reach: 0.4 },
        ),
    )
}

/// Returns local training without labels.
///
/// # Errors
/// A message, if a constant is wrong.
pub fn contrast() -> Result<ContrastTraining, &'static str> {
    Ok(ContrastTraining {
        epochs: 2,
        batch_size: NonZeroU32::MIN.saturating_add(4),
        learning_rate: LearningRate::new(0.05).map_err(|_| "the step size")?,
        weight_decay: Penalty::NONE,
    })
}

/// Returns the noise of one local step.
///
/// # Errors
/// A message, if a constant is wrong.
pub fn step_noise() -> Result<DiscreteGaussian, &'static str> {
    DiscreteGaussian::new(3 << 20, 10).map_err(|_: NoiseError| "the noise of a step")
}

/// Returns the grid of the updates.
///
/// # Errors
/// A message, if a constant is wrong.
pub fn grid() -> Result<Grid, &'static str> {
    let clip_norm = ClipNorm::new(0.3).map_err(|_| "the clip norm")?;
    Grid::new(clip_norm, 20).map_err(|_: QuantizeError| "the grid")
}

/// Returns a stream of device 42 in round 7, from a known seed: for tests only.
pub fn stream(purpose: Purpose) -> Stream {
    Root::from_seed(2026).stream(StreamId {
        purpose,
        round: 7,
        device: 42,
    })
}
