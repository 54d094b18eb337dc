//! A network as a type: its sizes are known where arrays are declared.

use core::marker::PhantomData;

use super::{
    super::{FixedModel, Model, ModelError, ModelKind, Tensors, Then},
    Layer, Sequential, SequentialError, Shape,
};
use crate::samples::Samples;

/// The layers of a network, written down once.
pub trait Architecture {
    /// The shape of a sample.
    const INPUT: Shape;
    /// The layers, the dense one to the classes included.
    const LAYERS: &'static [Layer];
}

/// The network of an [`Architecture`]: a [`Sequential`] that takes no memory, whose sizes are
/// constants.
///
/// ```
/// use smolfed_core::{Client, FixedModel};
/// use smolfed_core::model::{Architecture, Fixed, Layer, Shape};
///
/// /// Windows of six channels, two classes.
/// struct Windows;
///
/// impl Architecture for Windows {
///     const INPUT: Shape = Shape::Image { channels: 6, height: 1, width: 25 };
///     const LAYERS: &'static [Layer] = &[
///         Layer::Convolution { channels: 4, kernel: [1, 5], stride: [1, 1], padding: [0, 0] },
///         Layer::Relu,
///         Layer::GlobalAverage,
///         Layer::Dense { outputs: 2 },
///     ];
/// }
///
/// type Model = Fixed<Windows>;
/// let client: Client<Model, { Model::PARAMETERS }, 20, { Model::SCRATCH }> =
///     Client::new(Fixed::new());
/// // What does not fit into the board does not compile.
/// const _: () = assert!(Model::TRAINING_BYTES < 8 << 10, "the network needs too much RAM");
/// ```
///
/// Layers that do not fit each other do not compile: `the network is wrong: layer 1 has a window
/// larger than its input`.
///
/// ```compile_fail
/// use smolfed_core::FixedModel;
/// use smolfed_core::model::{Architecture, Fixed, Layer, Shape};
/// struct Windows;
/// impl Architecture for Windows {
///     const INPUT: Shape = Shape::Image { channels: 6, height: 1, width: 4 };
///     const LAYERS: &'static [Layer] = &[
///         Layer::Convolution { channels: 4, kernel: [1, 5], stride: [1, 1], padding: [0, 0] },
///         Layer::Dense { outputs: 2 },
///     ];
/// }
/// let parameters = [0.0; Fixed::<Windows>::PARAMETERS];
/// ```
pub struct Fixed<A>(PhantomData<fn() -> A>);

impl<A: Architecture> Fixed<A> {
    /// The same network as a value.
    pub const NETWORK: &'static Sequential = &checked(Sequential::new(A::INPUT, A::LAYERS));

    /// The network.
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<A: Architecture> Default for Fixed<A> {
    fn default() -> Self {
        Self::new()
    }
}

impl<A> Clone for Fixed<A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A> Copy for Fixed<A> {}

impl<A: Architecture> core::fmt::Debug for Fixed<A> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Fixed({:?})", Self::NETWORK)
    }
}

/// The network, or an error of the compiler that says what is wrong.
#[expect(clippy::panic, reason = "while compiling only")]
const fn checked(network: Result<Sequential, SequentialError>) -> Sequential {
    match network {
        Ok(network) => network,
        Err(error) => {
            let mut text = Text::new();
            text.push("the network is wrong: ");
            error.describe(&mut text);
            panic!("{}", text.get())
        }
    }
}

/// A text that is made while compiling, where nothing can be formatted.
pub(super) struct Text {
    bytes: [u8; 96],
    length: usize,
}

impl Text {
    const fn new() -> Self {
        Self {
            bytes: [0; 96],
            length: 0,
        }
    }

    /// Appends, as far as there is room.
    pub(super) const fn push(&mut self, part: &str) {
        let (part, mut i) = (part.as_bytes(), 0);
        while i < part.len() && self.length < self.bytes.len() {
            self.bytes[self.length] = part[i];
            self.length += 1;
            i += 1;
        }
    }

    /// Appends a number below 100.
    pub(super) const fn push_number(&mut self, number: usize) {
        const DIGITS: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
        if number >= 10 {
            self.push(DIGITS[number / 10 % 10]);
        }
        self.push(DIGITS[number % 10]);
    }

    /// The text: ASCII, as all parts.
    const fn get(&self) -> &str {
        let (text, _) = self.bytes.split_at(self.length);
        match core::str::from_utf8(text) {
            Ok(text) => text,
            Err(_) => "the layers do not fit each other",
        }
    }
}

impl<A: Architecture> Model for Fixed<A> {
    type Target = u16;
    type Tensors = Tensors;

    const KIND: ModelKind = ModelKind::Sequential;
    const LARGEST_TENSOR: usize = Self::NETWORK.largest_tensor();

    #[inline(always)]
    fn feature_count(&self) -> usize {
        const { Self::NETWORK.input().count() }
    }

    #[inline(always)]
    fn output_count(&self) -> usize {
        Self::OUTPUTS
    }

    fn network(&self) -> Option<&Sequential> {
        Some(Self::NETWORK)
    }

    fn tensors(&self) -> Tensors {
        Self::NETWORK.tensors()
    }

    #[inline(always)]
    fn parameter_count(&self) -> usize {
        Self::PARAMETERS
    }

    #[inline(always)]
    fn scratch_count(&self, _: usize) -> usize {
        Self::SCRATCH
    }

    #[inline(always)]
    fn score_scratch_count(&self) -> usize {
        const { Self::NETWORK.forward_count() }
    }

    #[inline(always)]
    fn loss_and_gradient_then<S: Samples<Target = u16>>(
        &self,
        parameters: &[f32],
        samples: &S,
        batch: &[u32],
        scratch: &mut [f32],
        gradient: &mut [f32],
        then: &mut impl Then,
    ) -> Result<f32, ModelError> {
        let network = Self::NETWORK;
        network.loss_and_gradient_then(parameters, samples, batch, scratch, gradient, then)
    }

    #[inline(always)]
    fn batch_scores<S: Samples>(
        &self,
        parameters: &[f32],
        samples: &S,
        batch: &[u32],
        scratch: &mut [f32],
        scores: &mut [f32],
    ) -> Result<(), ModelError> {
        Self::NETWORK.batch_scores(parameters, samples, batch, scratch, scores)
    }

    #[inline(always)]
    fn loss_in_place(&self, scores: &mut [f32], target: u16) -> f32 {
        Self::NETWORK.loss_in_place(scores, target)
    }

    #[inline]
    fn predict(&self, scores: &[f32]) -> u16 {
        Self::NETWORK.predict(scores)
    }
}

impl<A: Architecture> FixedModel for Fixed<A> {
    const PARAMETERS: usize = Self::NETWORK.parameter_count();
    const OUTPUTS: usize = Self::NETWORK.score_count();
    const SCRATCH: usize = Self::NETWORK.sample_scratch_count();
}
