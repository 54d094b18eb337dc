//! A network as a type, with sizes known in array declarations.

use core::marker::PhantomData;

use super::{
    super::{BatchPart, FixedModel, Model, ModelError, ModelKind, Parametric, Sums, Tensors, Then},
    Layer, Sequential, SequentialError, Shape,
    text::Text,
};
use crate::samples::Samples;

/// The layers of a network.
pub trait Architecture {
    /// The shape of a sample.
    const INPUT: Shape;
    /// The layers, including the dense one to the classes.
    const LAYERS: &'static [Layer];
}

/// The network of an [`Architecture`]: a [`Sequential`] of size zero, with constant sizes.
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
/// Incompatible layers do not compile: `the network is wrong: layer 1 has a window larger than its
/// input with padding`.
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
    /// The network as a value.
    pub const NETWORK: &'static Sequential = &checked(Sequential::new(A::INPUT, A::LAYERS));

    /// Creates the network.
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

/// Returns the network, or a compiler error with the reason.
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

impl<A: Architecture> Parametric for Fixed<A> {
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

    #[inline(always)]
    fn parameter_count(&self) -> usize {
        Self::PARAMETERS
    }
}

impl<A: Architecture> Model for Fixed<A> {
    type Target = u16;
    type Tensors = Tensors;

    const KIND: ModelKind = ModelKind::Sequential;
    const LARGEST_TENSOR: usize = Self::NETWORK.largest_tensor();

    fn tensors(&self) -> Tensors {
        Self::NETWORK.tensors()
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
    fn add_part<S: Samples<Target = u16>>(
        &self,
        parameters: &[f32],
        samples: &S,
        part: BatchPart<'_>,
        scratch: &mut [f32],
        sums: Sums<'_>,
        then: &mut impl Then,
    ) -> Result<(), ModelError> {
        Self::NETWORK.add_part(parameters, samples, part, scratch, sums, then)
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

    #[inline]
    fn probabilities_in_place(&self, scores: &mut [f32]) {
        Self::NETWORK.probabilities_in_place(scores);
    }

    #[inline(always)]
    fn has_target(&self, target: u16) -> bool {
        Self::NETWORK.has_target(target)
    }
}

impl<A: Architecture> FixedModel for Fixed<A> {
    const PARAMETERS: usize = Self::NETWORK.parameter_count();
    const OUTPUTS: usize = Self::NETWORK.score_count();
    const SCRATCH: usize = Self::NETWORK.sample_scratch_count();
}

#[cfg(test)]
mod tests {
    use super::{super::MAX_LAYERS, *};
    use crate::{
        Client, ClipNorm, LearningRate, LocalTraining, Purpose, Root, SampleSlice, StreamId,
        train::{Workspace, local_update},
    };
    use std::{string::String, vec, vec::Vec};

    struct Windows;

    impl Architecture for Windows {
        const INPUT: Shape = Shape::Image {
            channels: 2,
            height: 1,
            width: 9,
        };
        const LAYERS: &'static [Layer] = &[
            Layer::Convolution {
                channels: 3,
                kernel: [1, 4],
                stride: [1, 1],
                padding: [0, 0],
            },
            Layer::Relu,
            Layer::MaxPool {
                size: [1, 2],
                stride: [1, 2],
            },
            Layer::Dense { outputs: 3 },
        ];
    }

    type Network = Fixed<Windows>;

    fn order() -> impl rand_core::Rng {
        Root::from_seed(5).stream(StreamId {
            purpose: Purpose::BatchShuffle,
            round: 1,
            device: 2,
        })
    }

    #[test]
    fn a_type_trains_as_the_same_layers_at_run_time() {
        let features: Vec<f32> = (0..18 * 5)
            .map(|i| (i * 7 % 23) as f32 / 9.0 - 1.0)
            .collect();
        let samples = SampleSlice::new(&features, &[0, 2, 1, 1, 0], 18).unwrap();
        let clip_norm = ClipNorm::new(0.7).unwrap();
        let settings =
            LocalTraining::new(LearningRate::new(0.2).unwrap(), clip_norm).with_epochs(2);
        let global: [f32; Network::PARAMETERS] =
            core::array::from_fn(|i| (i * 5 % 13) as f32 / 20.0 - 0.3);
        let mut client: Client<Network, { Network::PARAMETERS }, 5, { Network::SCRATCH }> =
            Client::new(Fixed::default());
        let report = client.train_unrecorded(&samples, &global, &settings, &mut order());
        assert!(report.unwrap().first_loss > 0.0);

        let network = Sequential::new(Windows::INPUT, Windows::LAYERS).unwrap();
        let count = network.parameter_count();
        assert_eq!(
            (count, Parametric::parameter_count(&Network::new())),
            (27 + 30, count)
        );
        assert_eq!(Network::LARGEST_TENSOR, 27);
        assert_eq!(Network::new().tensors(), network.tensors());
        let (mut local, mut update) = (vec![0.0; count], vec![0.0; count]);
        let work = Workspace {
            local: &mut local,
            update: &mut update,
            order: &mut [0; 5],
            scratch: &mut vec![0.0; network.scratch_count(1)],
        };
        local_update(&network, &samples, &global, &settings, &mut order(), work).unwrap();
        assert_eq!(client.update()[..], update);
    }

    #[test]
    fn what_is_wrong_with_layers_is_said_while_compiling() {
        let text = |input, layers: &[Layer]| {
            let mut text = Text::new();
            match Sequential::new(input, layers) {
                Ok(_) => text.push("nothing"),
                Err(error) => error.describe(&mut text),
            }
            String::from(text.get())
        };
        let dense = Layer::Dense { outputs: 2 };
        let (input, vector) = (Windows::INPUT, Shape::Vector { length: 4 });
        assert_eq!(text(input, &[dense]), "nothing");
        assert_eq!(text(input, &[]), "it needs at least one layer");
        let many = [Layer::Relu; MAX_LAYERS + 1];
        assert_eq!(text(input, &many), "it has more layers than 12");
        let none = Shape::Vector { length: 0 };
        assert_eq!(text(none, &[dense]), "its input is empty");
        assert_eq!(
            text(input, &[Layer::Relu]),
            "its last layer does not give a vector of scores"
        );
        let mut late = [Layer::Relu; 11];
        late[10] = Layer::GlobalAverage;
        assert_eq!(text(vector, &late), "layer 11 expects an image");
        let window = |size| Layer::MaxPool {
            size,
            stride: [1, 1],
        };
        assert_eq!(
            text(input, &[dense, Layer::Last]),
            "layer 2 expects a sequence"
        );
        assert_eq!(
            text(input, &[window([1, 10])]),
            "layer 1 has a window larger than its input with padding"
        );
        assert_eq!(
            text(input, &[window([0, 1])]),
            "layer 1 has a size or a stride of 0"
        );
    }
}
