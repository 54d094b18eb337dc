//! The formats of models that are exported in floating point, by name: C header, ONNX, NPZ.

use super::{c_header, npz, onnx};
use crate::inference::error::InferenceError;
use crate::inference::model::TrainedModel;

/// The formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A header for C99 without dependencies, for microcontrollers.
    CHeader,
    /// A graph for ONNX runtimes, of operator set 13.
    Onnx,
    /// Arrays for NumPy.
    Npz,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 3] = [Self::CHeader, Self::Onnx, Self::Npz];

    /// Returns the name in options and arguments.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CHeader => "c-header",
            Self::Onnx => "onnx",
            Self::Npz => "npz",
        }
    }

    /// Returns the format of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }
}

/// Returns the contents of a model's file.
///
/// # Errors
/// [`InferenceError::Network`] for a network of `model.layers`, and [`InferenceError::Npz`] if an
/// archive cannot be written.
pub fn encode(model: &TrainedModel, format: Format) -> Result<Vec<u8>, InferenceError> {
    if model.task().network().is_some() {
        return Err(InferenceError::Network);
    }
    match format {
        Format::CHeader => Ok(c_header::encode(model).into_bytes()),
        Format::Onnx => Ok(onnx::encode(model)),
        Format::Npz => npz::encode(model).map_err(InferenceError::Npz),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_found_by_their_names() {
        for format in Format::ALL {
            assert_eq!(Format::named(format.name()), Some(format));
        }
        assert_eq!(Format::named("pickle"), None);
    }
}
