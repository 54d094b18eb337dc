//! `model.safetensors`: `weights` (outputs × features) and `biases` (outputs), and under `smolfed`
//! in its metadata, as JSON, their meaning. A model with a hidden layer has that layer under these
//! names, with one row per hidden unit, and above it `head_weights` and `head_biases`, if they are
//! shared. A network has `layer_1.weights`, `layer_1.biases` and so on, with their shapes in
//! PyTorch. An LSTM has `state_weights` as well.

use serde::{Deserialize, Serialize};
use smolfed_core::model::MAX_LAYERS;

use crate::experiment::Experiment;
use crate::task::{DENSE_NAMES, LAYER_NAMES, Task, layer_tensor};
use smolfed_data::Federation;
use smolfed_data::dataset::Names;
use smolfed_release::saved::Saved;

/// Key of our metadata. There is only one: the format writes several in no fixed order, and the
/// same model must give the same bytes.
const METADATA: &str = "smolfed";

/// Layout of a sample's features, and names of features and classes.
#[derive(Clone, Debug, Default)]
pub struct InputLayout {
    /// Lengths of the axes of a grid sample, slowest first. Empty otherwise.
    pub axes: Vec<usize>,
    /// Names of features and classes, where known.
    pub names: Names,
    /// Whether outputs are a representation instead of scores.
    pub is_encoder: bool,
}

/// A trained model as in its file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelFile {
    /// Rows of W, one per output, as a flat slice.
    pub weights: Vec<f32>,
    /// One per output. Empty if they stay on the devices.
    pub biases: Vec<f32>,
    /// Number of outputs of the first of several layers, to which the weights then belong.
    pub hidden: Option<usize>,
    /// Number of features.
    pub features: usize,
    /// Lengths of the axes of a grid sample, slowest first. Empty otherwise.
    pub axes: Vec<usize>,
    /// Name of each feature. Empty where unknown.
    pub feature_names: Vec<String>,
    /// Name of each class. Empty where unknown.
    pub class_names: Vec<String>,
}

impl InputLayout {
    /// Returns the layout of an experiment on its federation.
    #[must_use]
    pub fn new(experiment: &Experiment, federation: &Federation) -> Self {
        let is_encoder = !experiment.method.properties().uses_labels;
        let mut names = federation.names();
        if is_encoder {
            // Its outputs are not classes.
            names.classes.clear();
        }
        Self {
            axes: federation.axes(),
            names,
            is_encoder,
        }
    }
}

/// Contents of our metadata.
#[derive(Default, Serialize, Deserialize)]
struct Meaning {
    model: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hidden: Option<usize>,
    /// Layers of a network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    layers: Option<usize>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    axes: Vec<usize>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    feature_names: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    class_names: Vec<String>,
}

pub(super) fn encode(
    task: &Task,
    layout: &InputLayout,
    parameters: &[f32],
) -> Result<Vec<u8>, String> {
    // Tensors that stay on the devices are absent.
    let (mut rest, mut file) = (parameters, Saved::default());
    for layout in task.layout() {
        let Some((tensor, after)) = rest.split_at_checked(layout.length()) else {
            break;
        };
        file.put(&layout.name, layout.shape, tensor.iter().copied());
        rest = after;
    }
    if file.tensors.is_empty() || !rest.is_empty() {
        return Err("the model has a different number of parameters".to_owned());
    }
    let meaning = Meaning {
        model: match layout.is_encoder {
            true => "encoder".to_owned(),
            false => task.kind().name().to_owned(),
        },
        hidden: task.hidden_count(),
        layers: task.network().map(|network| network.layers().len()),
        axes: layout.axes.clone(),
        feature_names: layout.names.features.clone(),
        class_names: layout.names.classes.clone(),
    };
    let meaning = serde_json::to_string(&meaning).map_err(|error| error.to_string())?;
    file.entries.insert(METADATA.to_owned(), meaning);
    file.encode()
}

/// Reads the shared parameters, in the order of the model.
pub(super) fn parameters(bytes: &[u8]) -> Result<Vec<f32>, String> {
    let file = Saved::decode(bytes)?;
    let mut parameters = Vec::new();
    for name in names().filter(|name| file.tensors.contains_key(name)) {
        parameters.extend(file.get::<f32>(&name)?);
    }
    Ok(parameters)
}

/// Returns all tensor names in the order of the parameters. A file has some of them: the last ones
/// are absent if they stay on the devices.
fn names() -> impl Iterator<Item = String> {
    let of_layer = |layer| LAYER_NAMES.map(|name| layer_tensor(layer, name));
    let dense = DENSE_NAMES.into_iter().map(str::to_owned);
    dense.chain((1..=MAX_LAYERS).flat_map(of_layer))
}

impl ModelFile {
    /// Returns the contents of a file with these parameters.
    ///
    /// # Errors
    /// A description of the problem if they do not belong to the task.
    pub fn of_model(task: &Task, layout: &InputLayout, parameters: &[f32]) -> Result<Self, String> {
        Self::decode(&encode(task, layout, parameters)?)
    }

    /// Reads the bytes of a model's file.
    ///
    /// # Errors
    /// A description of the problem, to follow "the file is damaged: ".
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        let file = Saved::decode(bytes)?;
        let mut tensors = names().filter_map(|name| Some((file.tensors.get(&name)?, name)));
        let (weights, name) = tensors.next().ok_or("it has no `weights`")?;
        let [outputs, row @ ..] = &weights.shape[..] else {
            return Err("`weights` is not a matrix".to_owned());
        };
        let (outputs, features) = (*outputs, row.iter().product());
        let meaning = match file.entries.get(METADATA) {
            // A file of another tool: the numbers are enough.
            None => Meaning::default(),
            Some(text) => serde_json::from_str::<Meaning>(text)
                .map_err(|error| format!("`{METADATA}` in its metadata: {error}"))?,
        };
        Ok(Self {
            weights: file.get(&name)?,
            // They may stay on the devices.
            biases: match file.tensors.contains_key("biases") {
                true => file.get("biases")?,
                false => Vec::new(),
            },
            // The kernels of a convolution, with those of the input's channels below each other.
            axes: match row {
                &[channels, rows, columns] => vec![channels * rows, columns],
                _ if meaning.layers.is_some() => Vec::new(),
                _ => meaning.axes,
            },
            hidden: meaning.hidden.or(meaning.layers.map(|_| outputs)),
            features,
            feature_names: meaning.feature_names,
            class_names: meaning.class_names,
        })
    }
}
