//! The trained model: its kind with its sizes, and the shape of its parameters.
//!
//! A model of the core is added to experiments here: as a variant of [`Task`] with its line in
//! [`of_task!`](crate::of_task), and the data that it fits in [`Task::new`].

mod layers;
mod layout;
pub mod pretrained;

use std::fmt;
use std::str::FromStr;

use smolfed_core::model::{
    Activation, Encoder, Linear, Logistic, Model, Parametric, Sequential, Softmax, Tensors,
};
use smolfed_core::provision::{Target, TargetKind};
use smolfed_core::stream::{Purpose, Root, StreamId};
use smolfed_simd::Rows;

use crate::combinations::{Setting, Settings};
use crate::tables::model::{ActivationName, LayerConfig, ModelConfig, ModelKind};
pub use layers::LayersError;
pub use layout::{DENSE_NAMES, LAYER_NAMES, layer_tensor};
use smolfed_data::dataset::{DatasetView, SampleTarget};

/// A model of run-time size.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::large_enum_variant, reason = "an experiment has one task")]
pub enum Task {
    /// Linear regression.
    Linear(Linear<usize>),
    /// Logistic regression.
    Logistic(Logistic<usize>),
    /// Softmax regression.
    Softmax(Softmax<usize, usize>),
    /// Softmax regression on a hidden layer.
    Encoder(Encoder<usize, usize, usize>),
    /// Softmax regression on a network of layers.
    Sequential(Sequential),
}

/// Runs the block for the model of a task.
#[macro_export]
macro_rules! of_task {
    ($task:expr, $model:ident => $body:expr) => {
        match $task {
            $crate::task::Task::Linear($model) => $body,
            $crate::task::Task::Logistic($model) => $body,
            $crate::task::Task::Softmax($model) => $body,
            $crate::task::Task::Encoder($model) => $body,
            $crate::task::Task::Sequential($model) => $body,
        }
    };
}

/// Runs the block for a model whose scores are linear in the features, or else the other.
#[macro_export]
macro_rules! of_linear_scores {
    ($task:expr, $model:ident => $body:expr, $other:expr) => {
        match $task {
            $crate::task::Task::Linear($model) => $body,
            $crate::task::Task::Logistic($model) => $body,
            $crate::task::Task::Softmax($model) => $body,
            $crate::task::Task::Encoder(_) | $crate::task::Task::Sequential(_) => $other,
        }
    };
}

/// Runs the block for the model of a task, with the samples of a view for that model: with values
/// or with classes.
#[macro_export]
macro_rules! on_samples {
    ($task:expr, $view:expr, ($model:ident, $rows:ident) => $body:expr) => {
        $crate::of_task!($task, $model => {
            let $rows = &$crate::task::rows($model, &$view);
            $body
        })
    };
}

/// Returns the samples of a view for a model.
#[must_use]
pub fn rows<'a, M: Model<Target: SampleTarget>>(
    _: &M,
    view: &DatasetView<'a>,
) -> Rows<'a, M::Target> {
    SampleTarget::rows(view)
}

/// Maximum number of parameters of a model with a hidden layer: a gigabyte of them.
pub const MAX_PARAMETERS: u64 = 1 << 28;

/// Why a model does not fit the data. Each text is a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TaskError {
    /// Regression on classes.
    #[error(
        "`model.kind` is \"{kind}\", but the data have classes: use \"logistic\" or \"softmax\""
    )]
    ValuesNeeded {
        /// The requested kind.
        kind: &'static str,
    },
    /// A classifier on values.
    #[error("`model.kind` is \"{kind}\", but the data have values to predict: use \"linear\"")]
    ClassesNeeded {
        /// The requested kind.
        kind: &'static str,
    },
    /// Logistic regression on more than two classes.
    #[error("`model.kind` is \"logistic\", but the data have {classes} classes: use \"softmax\"")]
    TwoClassesNeeded {
        /// Classes of the data.
        classes: usize,
    },
    /// A hidden layer below something other than a softmax.
    #[error(
        "`model.kind` is \"{kind}\", but `model.hidden` needs \"softmax\" and data with classes"
    )]
    HiddenNeedsSoftmax {
        /// The requested kind.
        kind: &'static str,
    },
    /// A hidden layer without units.
    #[error("`model.hidden` is 0: leave it out for no hidden layer")]
    NoUnits,
    /// More parameters than supported.
    #[error(
        "`model.hidden` = {hidden} asks for {parameters} parameters, but at most {MAX_PARAMETERS} \
         are supported"
    )]
    TooLarge {
        /// Units of the hidden layer.
        hidden: u32,
        /// Parameters of the model.
        parameters: u64,
    },
    /// A kind that is not an encoder.
    #[error(
        "`model.kind` is \"{kind}\", but the method learns an encoder: use \"softmax\" or remove it"
    )]
    NoKind {
        /// The requested kind.
        kind: &'static str,
    },
    /// Symbols without labels.
    #[error(
        "`model.layers` begin with an embedding of symbols, but the method learns an encoder from \
         variations of samples, which symbols do not have: use layers for numbers"
    )]
    NoVariations,
    /// An activation without a hidden layer.
    #[error("`model.activation` has no effect without `model.hidden`; remove it")]
    ActivationOfNothing,
    /// Layers that do not form a network for the data.
    #[error(transparent)]
    Layers(#[from] LayersError),
}

impl Task {
    /// Creates a model for data of `features` features, which lie along `axes` if there are any,
    /// and `classes` classes (`None` for values).
    ///
    /// # Errors
    /// [`TaskError`] if the kind or the layers do not fit the data.
    pub fn new(
        model: &ModelConfig,
        axes: &[usize],
        features: usize,
        classes: Option<usize>,
    ) -> Result<Self, TaskError> {
        if !model.layers.is_empty() {
            return match (model.kind, classes, model.hidden) {
                (.., Some(_)) => Err(LayersError::Hidden.into()),
                (None | Some(ModelKind::Softmax), Some(classes), None) => {
                    let network = layers::network(model, axes, features, classes)?;
                    Ok(Self::Sequential(network))
                }
                _ => Err(LayersError::Softmax.into()),
            };
        }
        if !model.input.is_empty() {
            return Err(LayersError::InputOfNothing.into());
        }
        if model.hidden.is_none() && model.activation.is_some() {
            return Err(TaskError::ActivationOfNothing);
        }
        if let Some(hidden) = model.hidden {
            let activation = match model.activation {
                None | Some(ActivationName::Tanh) => Activation::Tanh,
                Some(ActivationName::Relu) => Activation::Relu,
            };
            return match (model.kind, classes) {
                (None | Some(ModelKind::Softmax), Some(_)) if hidden == 0 => {
                    Err(TaskError::NoUnits)
                }
                (None | Some(ModelKind::Softmax), Some(classes)) => {
                    let below = (features as u64 + 1).saturating_mul(hidden.into());
                    let above = (u64::from(hidden) + 1).saturating_mul(classes as u64);
                    let parameters = below.saturating_add(above);
                    if parameters > MAX_PARAMETERS {
                        return Err(TaskError::TooLarge { hidden, parameters });
                    }
                    let hidden = hidden as usize;
                    let encoder = Encoder::new(features, hidden, classes, activation);
                    Ok(Self::Encoder(encoder))
                }
                (kind, _) => {
                    let kind = kind.unwrap_or(ModelKind::Linear).name();
                    Err(TaskError::HiddenNeedsSoftmax { kind })
                }
            };
        }
        match (model.kind, classes) {
            (None | Some(ModelKind::Linear), None) => Ok(Self::Linear(Linear::new(features))),
            (None | Some(ModelKind::Softmax), Some(classes)) => {
                Ok(Self::Softmax(Softmax::new(features, classes)))
            }
            (Some(ModelKind::Logistic), Some(0..=2)) => Ok(Self::Logistic(Logistic::new(features))),
            (Some(ModelKind::Logistic), Some(classes)) => {
                Err(TaskError::TwoClassesNeeded { classes })
            }
            (Some(kind @ ModelKind::Linear), Some(_)) => {
                Err(TaskError::ValuesNeeded { kind: kind.name() })
            }
            (Some(kind @ (ModelKind::Logistic | ModelKind::Softmax)), None) => {
                Err(TaskError::ClassesNeeded { kind: kind.name() })
            }
        }
    }

    /// Creates the layout of an encoder of `width` outputs, whose parameters come first. Without a
    /// hidden layer it is a linear map, and the biases of this layout are not used. Layers get a
    /// dense one to the outputs on top.
    ///
    /// # Errors
    /// [`TaskError`] if the file names a kind without such outputs, or an invalid hidden layer or
    /// layers.
    pub fn encoder(
        model: &ModelConfig,
        axes: &[usize],
        features: usize,
        width: usize,
    ) -> Result<Self, TaskError> {
        match (model.kind, model.layers.first()) {
            (Some(kind @ (ModelKind::Linear | ModelKind::Logistic)), _) => {
                Err(TaskError::NoKind { kind: kind.name() })
            }
            (_, Some(LayerConfig::Embedding { .. })) => Err(TaskError::NoVariations),
            _ => Self::new(model, axes, features, Some(width)),
        }
    }

    /// Returns the parameters before the first round, which do not depend on data: zeros, and for
    /// layers below the last one, draws from the run's own stream.
    #[must_use]
    pub fn initial(&self, root: &Root) -> Vec<f32> {
        let mut parameters = vec![0.0; self.parameter_count()];
        let id = StreamId {
            purpose: Purpose::Initialisation,
            round: 0,
            device: 0,
        };
        let stream = &mut root.stream(id);
        // The length fits, as it is the model's own.
        let _ = match self {
            Self::Encoder(model) => model.initialise(&mut parameters, stream),
            Self::Sequential(model) => model.initialise(&mut parameters, stream),
            Self::Linear(_) | Self::Logistic(_) | Self::Softmax(_) => Ok(()),
        };
        parameters
    }

    /// Returns the kind.
    #[must_use]
    pub const fn kind(&self) -> ModelKind {
        match self {
            Self::Linear(_) => ModelKind::Linear,
            Self::Logistic(_) => ModelKind::Logistic,
            Self::Softmax(_) | Self::Encoder(_) | Self::Sequential(_) => ModelKind::Softmax,
        }
    }

    /// Returns whether it predicts values instead of classes.
    #[must_use]
    pub fn predicts_values(&self) -> bool {
        fn kind_of<M: Model<Target: Target>>(_: &M) -> TargetKind {
            M::Target::KIND
        }
        of_task!(self, model => kind_of(model)) == TargetKind::Value
    }

    /// Returns the lengths of the parameter tensors: weights and biases, layer by layer.
    #[must_use]
    pub fn tensors(&self) -> Tensors {
        of_task!(self, model => Tensors::of(model.tensors().as_slice().iter().copied()))
    }

    /// Returns the number of parameters.
    #[must_use]
    pub fn parameter_count(&self) -> usize {
        self.tensors().total()
    }

    /// Returns the number of units of the hidden layer, if there is one.
    #[must_use]
    pub fn hidden_count(&self) -> Option<usize> {
        match self {
            Self::Encoder(model) => Some(model.hidden_count()),
            _ => None,
        }
    }

    /// Returns the activation of the hidden units, if there is a hidden layer.
    #[must_use]
    pub const fn activation(&self) -> Option<ActivationName> {
        match self {
            Self::Encoder(model) => Some(match model.activation() {
                Activation::Tanh => ActivationName::Tanh,
                Activation::Relu => ActivationName::Relu,
            }),
            _ => None,
        }
    }

    /// Returns the network of layers, if it is one.
    #[must_use]
    pub const fn network(&self) -> Option<&Sequential> {
        match self {
            Self::Sequential(network) => Some(network),
            _ => None,
        }
    }

    /// Returns `model.input` of a network: the shape of a sample, where the data do not determine
    /// it.
    #[must_use]
    pub fn input(&self) -> Vec<u16> {
        let shape = self.network().map(Sequential::input);
        shape.map(layers::axes_of).unwrap_or_default()
    }

    /// Returns the settings that the model declares ([`crate::combinations`]).
    #[must_use]
    pub fn settings(&self) -> Settings {
        Settings::of([
            (Setting::HiddenLayer, matches!(self, Self::Encoder(_))),
            (Setting::Layers, matches!(self, Self::Sequential(_))),
            (Setting::OtherThanSoftmax, !matches!(self, Self::Softmax(_))),
            (Setting::Values, self.predicts_values()),
        ])
    }

    /// Returns whether scores are linear in the features.
    #[must_use]
    pub const fn is_one_layer(&self) -> bool {
        match self {
            Self::Linear(_) | Self::Logistic(_) | Self::Softmax(_) => true,
            Self::Encoder(_) | Self::Sequential(_) => false,
        }
    }

    /// Returns the number of features of a sample.
    #[must_use]
    pub fn feature_count(&self) -> usize {
        of_task!(self, model => model.feature_count())
    }

    /// Returns the number of scores of a sample.
    #[must_use]
    pub fn output_count(&self) -> usize {
        of_task!(self, model => model.output_count())
    }

    /// Returns the number of classes, or 0 for values.
    #[must_use]
    pub fn class_count(&self) -> usize {
        match self {
            Self::Linear(_) => 0,
            Self::Logistic(_) => 2,
            Self::Softmax(_) | Self::Encoder(_) | Self::Sequential(_) => self.output_count(),
        }
    }

    /// Returns the class with these scores, or 0 for values.
    #[must_use]
    pub fn class(&self, scores: &[f32]) -> usize {
        match self {
            Self::Linear(_) => 0,
            Self::Logistic(model) => model.predict(scores).into(),
            Self::Softmax(model) => model.predict(scores).into(),
            Self::Encoder(model) => model.predict(scores).into(),
            Self::Sequential(model) => model.predict(scores).into(),
        }
    }

    /// Returns the number of scratch entries for training on this many samples at a time.
    #[must_use]
    pub fn scratch_count(&self, samples: usize) -> usize {
        of_task!(self, model => model.scratch_count(samples))
    }
}

/// Formats the name on the command line: `linear:13`, `softmax:64x10`. It omits hidden layers,
/// which no device of the command line has.
impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, features) = (self.kind().name(), self.feature_count());
        match self.kind() {
            ModelKind::Softmax => write!(f, "{name}:{features}x{}", self.output_count()),
            _ => write!(f, "{name}:{features}"),
        }
    }
}

impl FromStr for Task {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse::<u16>().ok().filter(|n| *n > 0).map(usize::from);
        let parse = || {
            let (kind, size) = text.split_once(':')?;
            Some(match (kind, size.split_once('x')) {
                ("linear", None) => Self::Linear(Linear::new(number(size)?)),
                ("logistic", None) => Self::Logistic(Logistic::new(number(size)?)),
                ("softmax", Some((features, classes))) => {
                    Self::Softmax(Softmax::new(number(features)?, number(classes)?))
                }
                _ => return None,
            })
        };
        parse().ok_or_else(|| {
            "expected linear:FEATURES, logistic:FEATURES or softmax:FEATURESxCLASSES, for example \
             softmax:64x10"
                .to_owned()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_named_by_kind_and_size() {
        for text in ["linear:13", "logistic:30", "softmax:64x10"] {
            assert_eq!(text.parse::<Task>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "softmax",
            "softmax:64",
            "linear:0",
            "linear:2x3",
            "softmax:64x",
            "tree:3",
        ] {
            let error = text.parse::<Task>().unwrap_err();
            assert!(error.contains("softmax:64x10"), "{error}");
        }
    }

    #[test]
    fn the_data_choose_the_model_when_the_file_does_not() {
        let model = ModelConfig::default();
        let task = Task::new(&model, &[], 3, None).unwrap();
        assert_eq!(task.kind(), ModelKind::Linear);
        let task = Task::new(&model, &[], 64, Some(10)).unwrap();
        assert_eq!(
            (task.kind(), task.parameter_count()),
            (ModelKind::Softmax, 650)
        );
        assert_eq!((task.feature_count(), task.output_count()), (64, 10));
    }

    #[test]
    fn models_that_do_not_fit_the_data_are_refused() {
        let error = |kind, classes| {
            let model = ModelConfig {
                kind: Some(kind),
                ..ModelConfig::default()
            };
            Task::new(&model, &[], 2, classes).unwrap_err()
        };
        let refused = TaskError::ValuesNeeded { kind: "linear" };
        assert_eq!(error(ModelKind::Linear, Some(2)), refused);
        let refused = TaskError::TwoClassesNeeded { classes: 3 };
        assert_eq!(error(ModelKind::Logistic, Some(3)), refused);
        for kind in [ModelKind::Logistic, ModelKind::Softmax] {
            assert!(matches!(error(kind, None), TaskError::ClassesNeeded { .. }));
        }
    }

    #[test]
    fn a_hidden_layer_makes_an_encoder_that_starts_from_the_seed() {
        let model = |hidden, kind, activation| ModelConfig {
            hidden,
            kind,
            activation,
            ..ModelConfig::default()
        };
        let task = Task::new(&model(Some(16), None, None), &[], 64, Some(10)).unwrap();
        assert_eq!(task.tensors().as_slice(), [1024, 16, 160, 10]);
        let [a, b, c] = [1, 1, 2].map(|seed| task.initial(&Root::from_seed(seed)));
        assert!(a == b && a != c && a[1024..].iter().all(|x| *x == 0.0));

        let refused = |model: ModelConfig, classes| Task::new(&model, &[], 2, classes).unwrap_err();
        let regression = refused(model(Some(3), None, None), None);
        assert_eq!(regression, TaskError::HiddenNeedsSoftmax { kind: "linear" });
        assert_eq!(
            refused(model(Some(0), None, None), Some(2)),
            TaskError::NoUnits
        );
        let relu = Some(ActivationName::Relu);
        let flat = refused(model(None, None, relu), Some(2));
        assert_eq!(flat, TaskError::ActivationOfNothing);
    }
}
