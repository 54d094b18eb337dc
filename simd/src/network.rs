//! Encoders trained without labels, with the widest vectors of this machine.

use pulp::{Arch, NullaryFnOnce};
use smolfed_core::contrast::{Projection, Representation};
use smolfed_core::model::{Encoder, ModelError, ModelKind, Parametric, Sequential};
use smolfed_core::stream::{Purpose, Root, StreamId};

/// An encoder of run-time size.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::large_enum_variant, reason = "an experiment has one encoder")]
pub enum Network {
    /// A linear map without biases.
    Linear(Projection<usize, usize>),
    /// One hidden layer.
    Hidden(Encoder<usize, usize, usize>),
    /// Layers whose last results are the representation.
    Layers(Sequential),
}

impl Network {
    /// Returns the parameters before the first round, drawn from the run's stream and independent
    /// of data.
    #[must_use]
    pub fn initial(&self, root: &Root) -> Vec<f32> {
        let mut parameters = vec![0.0; self.parameter_count()];
        let mut rng = root.stream(StreamId {
            purpose: Purpose::Initialisation,
            round: 0,
            device: 0,
        });
        match self {
            Self::Linear(map) => map.initialise(&mut parameters, &mut rng),
            Self::Hidden(network) => {
                // The length fits, since it comes from the network.
                let _ = network.initialise(&mut parameters, &mut rng);
                // A network for classes starts with an upper layer of zeros, but all-zero
                // representations would have no gradient.
                let (hidden, width) = (network.hidden_count(), self.output_count());
                let upper = (self.feature_count() + 1) * hidden;
                let weights = parameters.get_mut(upper..upper + hidden * width);
                Projection::new(hidden, width).initialise(weights.unwrap_or_default(), &mut rng);
            }
            Self::Layers(network) => {
                let _ = network.initialise(&mut parameters, &mut rng);
            }
        }
        parameters
    }
}

impl Parametric for Network {
    fn feature_count(&self) -> usize {
        match self {
            Self::Linear(map) => map.feature_count(),
            Self::Hidden(network) => network.feature_count(),
            Self::Layers(network) => network.feature_count(),
        }
    }

    fn output_count(&self) -> usize {
        match self {
            Self::Linear(map) => map.output_count(),
            Self::Hidden(network) => network.output_count(),
            Self::Layers(network) => network.output_count(),
        }
    }

    fn parameter_count(&self) -> usize {
        match self {
            Self::Linear(map) => map.parameter_count(),
            Self::Hidden(network) => network.parameter_count(),
            Self::Layers(network) => network.parameter_count(),
        }
    }

    fn network(&self) -> Option<&Sequential> {
        match self {
            Self::Layers(network) => Some(network),
            Self::Linear(_) | Self::Hidden(_) => None,
        }
    }
}

impl Representation for Network {
    fn kind(&self) -> ModelKind {
        match self {
            Self::Linear(map) => map.kind(),
            Self::Hidden(network) => network.kind(),
            Self::Layers(network) => network.kind(),
        }
    }

    fn hidden_count(&self) -> usize {
        match self {
            Self::Linear(map) => map.hidden_count(),
            Self::Hidden(network) => Representation::hidden_count(network),
            Self::Layers(network) => network.hidden_count(),
        }
    }

    // Called once per batch, so no vectors are needed.
    fn begin(&self, parameters: &[f32], hidden: &mut [f32]) -> Result<(), ModelError> {
        match self {
            Self::Linear(map) => map.begin(parameters, hidden),
            Self::Hidden(network) => network.begin(parameters, hidden),
            Self::Layers(network) => Representation::begin(network, parameters, hidden),
        }
    }

    fn end(&self, hidden: &mut [f32], gradient: &mut [f32]) -> Result<(), ModelError> {
        match self {
            Self::Linear(map) => map.end(hidden, gradient),
            Self::Hidden(network) => network.end(hidden, gradient),
            Self::Layers(network) => Representation::end(network, hidden, gradient),
        }
    }

    #[inline(never)]
    fn forward(
        &self,
        parameters: &[f32],
        features: &[f32],
        hidden: &mut [f32],
        representation: &mut [f32],
    ) -> Result<(), ModelError> {
        Arch::new().dispatch(Forward {
            network: self,
            parameters,
            features,
            hidden,
            representation,
        })
    }

    #[inline(never)]
    fn backward(
        &self,
        parameters: &[f32],
        features: &[f32],
        hidden: &mut [f32],
        derivative: &[f32],
        gradient: &mut [f32],
    ) -> Result<(), ModelError> {
        Arch::new().dispatch(Backward {
            network: self,
            parameters,
            features,
            hidden,
            derivative,
            gradient,
        })
    }
}

/// The arguments of [`Representation::forward`]. A closure would not be inlined into the code
/// compiled for wider vectors, but a method marked for inlining is.
struct Forward<'a> {
    network: &'a Network,
    parameters: &'a [f32],
    features: &'a [f32],
    hidden: &'a mut [f32],
    representation: &'a mut [f32],
}

impl NullaryFnOnce for Forward<'_> {
    type Output = Result<(), ModelError>;

    #[inline(always)]
    fn call(self) -> Self::Output {
        let Self {
            network,
            parameters,
            features,
            hidden,
            representation,
        } = self;
        match network {
            Network::Linear(map) => map.forward(parameters, features, hidden, representation),
            Network::Hidden(network) => {
                Representation::forward(network, parameters, features, hidden, representation)
            }
            Network::Layers(network) => {
                network.forward(parameters, features, hidden, representation)
            }
        }
    }
}

/// The arguments of [`Representation::backward`].
struct Backward<'a> {
    network: &'a Network,
    parameters: &'a [f32],
    features: &'a [f32],
    hidden: &'a mut [f32],
    derivative: &'a [f32],
    gradient: &'a mut [f32],
}

impl NullaryFnOnce for Backward<'_> {
    type Output = Result<(), ModelError>;

    #[inline(always)]
    fn call(self) -> Self::Output {
        let Self {
            network,
            parameters,
            features,
            hidden,
            derivative,
            gradient,
        } = self;
        match network {
            Network::Linear(map) => {
                map.backward(parameters, features, hidden, derivative, gradient)
            }
            Network::Hidden(network) => Representation::backward(
                network, parameters, features, hidden, derivative, gradient,
            ),
            Network::Layers(network) => {
                network.backward(parameters, features, hidden, derivative, gradient)
            }
        }
    }
}
