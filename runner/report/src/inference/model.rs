//! A trained model: the parameters of a run, or of one of its devices, with the preprocessing of
//! new rows.

use std::fmt;
use std::path::Path;

use smolfed_data::constants::Affine;
use smolfed_engine::method::personal::states::States;
use smolfed_engine::method::state::PersonalState;
use smolfed_engine::round::TrainingState;
use smolfed_engine::run::directory::RunDir;
use smolfed_engine::run_files::error::damaged;
use smolfed_engine::tables::model::{ActivationName, ModelKind};
use smolfed_engine::task::Task;

use super::error::InferenceError;
use smolfed_engine::preprocessing::{Basis, Preprocessing, Target};

/// A trained model.
#[derive(Clone)]
pub struct TrainedModel {
    /// The preprocessing of a row.
    pub preprocessing: Preprocessing,
    /// All parameters of the task, or only the hidden layer's if heads above shared layers are
    /// personal.
    parameters: Vec<f32>,
    /// Whether the parameters belong to one device. No ε covers them then.
    is_personal: bool,
}

/// A layer: `activation(Wx + b)`.
#[derive(Clone, Copy)]
pub struct Layer<'a> {
    /// Rows of W, one per output, as a flat slice.
    pub weights: &'a [f32],
    /// One per output.
    pub biases: &'a [f32],
    /// Activation of each sum. `None` in the last layer.
    pub activation: Option<ActivationName>,
}

impl Layer<'_> {
    /// Returns the number of outputs.
    #[must_use]
    pub const fn outputs(&self) -> usize {
        self.biases.len()
    }

    /// Returns the number of inputs.
    #[must_use]
    pub const fn inputs(&self) -> usize {
        self.weights.len() / self.biases.len()
    }
}

/// Meaning of the last layer's outputs.
#[derive(Clone, Copy, Debug)]
pub enum Outputs<'a> {
    /// A scaled value.
    Value(Affine),
    /// The logit of the second of two classes.
    Logit(&'a [String]),
    /// A logit of each class.
    Logits(&'a [String]),
    /// A representation.
    Representation,
}

/// Only the shape: a personal model never reaches a log.
impl fmt::Debug for TrainedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TrainedModel({} parameters)", self.parameters.len())
    }
}

impl TrainedModel {
    /// Opens the shared model of a run, or the personal model of a device.
    ///
    /// # Errors
    /// [`InferenceError`] if the model does not exist, or files are missing or damaged.
    pub fn open(path: &Path, device: Option<u32>) -> Result<Self, InferenceError> {
        let dir = RunDir::open(path)?;
        let file = path.join(Preprocessing::FILE);
        if !file.is_file() {
            let path = path.display().to_string();
            return Err(InferenceError::NoPreprocessing { path });
        }
        let preprocessing = Preprocessing::read(&file)?;
        let not_shared = |reason| InferenceError::NotShared {
            path: path.display().to_string(),
            reason,
        };
        let shared = dir.shared_parameters()?;
        let parameters = match device {
            Some(device) => personal(&dir, &preprocessing, &shared.unwrap_or_default(), device)?,
            None => shared.ok_or_else(|| not_shared("each device trains a model by itself"))?,
        };
        let model = Self {
            parameters: with_biases(parameters, &preprocessing),
            preprocessing,
            is_personal: device.is_some(),
        };
        let count = model.task().parameter_count();
        let is_head_personal = model.preprocessing.personal == Some(PersonalState::Rest);
        match model.parameters.len() {
            found if found == count || model.is_hidden_layer() => Ok(model),
            found if found < count && is_head_personal => {
                Err(not_shared("a part of the parameters stays on each device"))
            }
            found => {
                let reason = format!("it has {found} parameters, but the model has {count}");
                Err(damaged(&dir.path().join("model.safetensors"), reason).into())
            }
        }
    }

    /// Returns the sources of the constants, and of the parameters of a device's model.
    pub fn origins(&self) -> impl Iterator<Item = (&'static str, Basis)> {
        let personal = self.is_personal.then_some(("parameters", Basis::Measured));
        self.preprocessing.disclosure.origins().chain(personal)
    }

    /// Returns the sources in sentences, for the heads of exported files: measured ones are
    /// private.
    pub(super) fn origin_sentences(&self) -> impl Iterator<Item = String> {
        self.origins().map(|(name, basis)| {
            let warning = match basis {
                Basis::Declared | Basis::Released => "",
                Basis::Measured => " on the devices' rows without noise: no epsilon covers it",
            };
            format!("{name}: {}{warning}.", basis.name())
        })
    }

    /// Returns the shared model of a run in memory.
    ///
    /// # Errors
    /// [`InferenceError::NotWhole`] if devices keep some of the parameters.
    pub fn of_run(
        preprocessing: Preprocessing,
        parameters: Vec<f32>,
    ) -> Result<Self, InferenceError> {
        let model = Self {
            parameters: with_biases(parameters, &preprocessing),
            preprocessing,
            is_personal: false,
        };
        let (found, expected) = (model.parameters.len(), model.task().parameter_count());
        match found == expected {
            true => Ok(model),
            false => Err(InferenceError::NotWhole { found, expected }),
        }
    }

    /// Returns its task. For a hidden layer alone, the task of the whole model.
    #[must_use]
    pub fn task(&self) -> &Task {
        &self.preprocessing.task
    }

    /// Returns all parameters, if it is a whole model.
    ///
    /// # Errors
    /// [`InferenceError::NoPrediction`] for a hidden layer alone.
    pub fn parameters(&self) -> Result<&[f32], InferenceError> {
        match self.is_hidden_layer() {
            true => Err(InferenceError::NoPrediction(
                "the shared layer predicts nothing by itself, as the head above it stays on each \
                 device; `--device K` uses the head of device K",
            )),
            false => Ok(&self.parameters),
        }
    }

    /// Returns all parameters, if integers can represent them.
    ///
    /// # Errors
    /// As [`Self::parameters`], and [`InferenceError::NotFinite`].
    pub(super) fn finite_parameters(&self) -> Result<&[f32], InferenceError> {
        let parameters = self.parameters()?;
        match parameters.iter().all(|x| x.is_finite()) {
            true => Ok(parameters),
            false => Err(InferenceError::NotFinite),
        }
    }

    /// Returns whether it is only the hidden layer, below heads that stay on the devices.
    #[must_use]
    pub fn is_hidden_layer(&self) -> bool {
        let tensors = self.task().tensors();
        let lengths = tensors.as_slice();
        let is_personal = self.preprocessing.personal == Some(PersonalState::Rest);
        let hidden: usize = lengths.iter().take(2).sum();
        is_personal && lengths.len() == 4 && self.parameters.len() == hidden
    }

    /// Returns the layers, starting at the features.
    #[must_use]
    pub fn layers(&self) -> Vec<Layer<'_>> {
        let tensors = self.task().tensors();
        let mut rest = self.parameters.as_slice();
        let mut layers = Vec::new();
        for lengths in tensors.as_slice().chunks_exact(2) {
            let Some((weights, after)) = rest.split_at_checked(lengths[0]) else {
                break;
            };
            let Some((biases, after)) = after.split_at_checked(lengths[1]) else {
                break;
            };
            let activation = self.task().activation().filter(|_| layers.is_empty());
            layers.push(Layer {
                weights,
                biases,
                activation,
            });
            rest = after;
        }
        layers
    }

    /// Returns the meaning of the last layer's outputs.
    #[must_use]
    pub fn outputs(&self) -> Outputs<'_> {
        match &self.preprocessing.target {
            _ if self.is_hidden_layer() => Outputs::Representation,
            Target::Representation => Outputs::Representation,
            Target::Value { scale, .. } => Outputs::Value(*scale),
            Target::Classes { labels, .. } if self.task().kind() == ModelKind::Logistic => {
                Outputs::Logit(labels)
            }
            Target::Classes { labels, .. } => Outputs::Logits(labels),
        }
    }
}

/// Appends the layout's zero biases to the parameters of a linear encoder. Returns the parameters
/// of any other model unchanged.
fn with_biases(mut parameters: Vec<f32>, preprocessing: &Preprocessing) -> Vec<f32> {
    let (task, target) = (&preprocessing.task, &preprocessing.target);
    let is_linear = *target == Target::Representation && task.is_one_layer();
    if is_linear && task.tensors().as_slice().first() == Some(&parameters.len()) {
        parameters.resize(task.parameter_count(), 0.0);
    }
    parameters
}

/// Returns the parameters of a device's own model.
fn personal(
    dir: &RunDir,
    preprocessing: &Preprocessing,
    shared: &[f32],
    device: u32,
) -> Result<Vec<f32>, InferenceError> {
    let path = dir.path().display().to_string();
    let Some(kind) = preprocessing.personal else {
        return Err(InferenceError::NotPersonal { path, device });
    };
    let rounds = TrainingState::read(&dir.checkpoint())?.map_or(0, |(state, _)| state.round);
    let states = States::inspect(&dir.personal_models(), rounds)?;
    let Some(state) = states.read(device)? else {
        return Err(InferenceError::NoDevice { path, device });
    };
    Ok(kind.own_model(shared, &[], Some(&state)))
}
