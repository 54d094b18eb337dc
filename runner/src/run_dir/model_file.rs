//! `model.safetensors`: `weights` (outputs × features) and `biases` (outputs).

use std::collections::HashMap;

use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};

use super::checkpoint::{bytes_to_floats, floats_to_bytes};
use crate::task::Task;

/// A trained model as it stands in its file.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelFile {
    /// Rows of W, one an output, as a flat slice.
    pub weights: Vec<f32>,
    /// One an output.
    pub biases: Vec<f32>,
    /// Number of features.
    pub features: usize,
}

pub(super) fn encode(task: &Task, parameters: &[f32]) -> Result<Vec<u8>, String> {
    let (features, outputs) = (task.feature_count(), task.output_count());
    let (weights, biases) = parameters
        .split_at_checked(features * outputs)
        .ok_or("the model has too few parameters")?;
    let (weights, biases) = (floats_to_bytes(weights), floats_to_bytes(biases));
    let view =
        |shape, data| TensorView::new(Dtype::F32, shape, data).map_err(|error| error.to_string());
    let tensors = [
        ("weights", view(vec![outputs, features], &weights)?),
        ("biases", view(vec![outputs], &biases)?),
    ];
    let metadata = HashMap::from([("model".to_owned(), task.kind().name().to_owned())]);
    serialize(tensors, Some(metadata)).map_err(|error| error.to_string())
}

impl ModelFile {
    /// Reads the bytes of a model's file.
    ///
    /// # Errors
    /// What is wrong with them, to follow "the file is damaged: ".
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        let tensors = SafeTensors::deserialize(bytes).map_err(|error| error.to_string())?;
        let tensor = |name| tensors.tensor(name).map_err(|error| error.to_string());
        let weights = tensor("weights")?;
        let &[_, features] = weights.shape() else {
            return Err("`weights` is no matrix".to_owned());
        };
        Ok(Self {
            weights: bytes_to_floats(&weights)?,
            biases: bytes_to_floats(&tensor("biases")?)?,
            features,
        })
    }
}
