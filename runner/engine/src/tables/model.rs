//! `[model]`: the kind, layers, activation and initial parameters of the trained model.

use std::fmt;
use std::path::PathBuf;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, SeqAccess, Visitor, value::SeqAccessDeserializer};
use serde::{Deserialize, Deserializer, Serialize};
use smolfed_core::model::Layer;

use crate::combinations::{Setting, Settings};

/// The kind of model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ModelKind {
    /// Linear regression.
    Linear,
    /// Logistic regression, two classes.
    Logistic,
    /// Softmax regression, on top of a hidden layer with `model.hidden`.
    Softmax,
}

impl ModelKind {
    /// The name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Logistic => "logistic",
            Self::Softmax => "softmax",
        }
    }
}

/// `[model]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// `"linear"` (regression), `"logistic"` (two classes) or `"softmax"` (two or more).
    ///
    /// Default: depends on the data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<ModelKind>,
    /// Units in a hidden layer before the softmax.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden: Option<u32>,
    /// Activation of the hidden units: `"tanh"` or `"relu"`.
    ///
    /// Default: `"tanh"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activation: Option<ActivationName>,
    /// Shape of a sample for `layers`.
    ///
    /// Default: the shape of the data.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub input: Vec<u16>,
    /// Safetensors file with the initial parameters (docs/models.md#from-a-file).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub init: Option<PathBuf>,
    /// Declares that the file was trained on public rows alone. Otherwise ε does not cover it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub init_is_public: bool,
    /// Written by `smolfed ask --run`: the statement of that run covers the model, and its ε adds
    /// to that of the answers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub init_has_statement: bool,
    /// CRC-32 of the file. A run writes it, and can resume only with the same file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub init_checksum: Option<String>,
    /// A network (docs/models.md): one `[[model.layers]]` table for each layer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<LayerConfig>,
}

impl ModelConfig {
    /// The settings that it declares ([`crate::combinations`]).
    pub(crate) fn settings(&self) -> Settings {
        Settings::of([(Setting::InitialModel, self.init.is_some())])
    }
}

/// Activation of the hidden units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ActivationName {
    /// Hyperbolic tangent.
    Tanh,
    /// max(x, 0).
    Relu,
}

/// A layer. [`Layer`] describes each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum LayerConfig {
    /// Convolution of an image. Windows of sensors are images with one row.
    Convolution {
        /// Channels of the result.
        channels: u16,
        /// Rows and columns of the kernel.
        kernel: Pair,
        /// Distance of neighbouring windows. The default is 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stride: Option<Pair>,
        /// Zeros on either side of the image. By default, there are none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        padding: Option<Pair>,
    },
    /// max(x, 0).
    Relu {},
    /// The largest entry of each window of an image.
    MaxPool {
        /// Rows and columns of a window.
        size: Pair,
        /// Distance of neighbouring windows. The default is their size.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stride: Option<Pair>,
    },
    /// The mean of each channel.
    GlobalAverage {},
    /// A dense layer.
    Dense {
        /// Entries of the result.
        outputs: u16,
    },
    /// A row of a table for each symbol of a text.
    Embedding {
        /// Symbols.
        vocabulary: u16,
        /// Entries of a row.
        width: u16,
    },
    /// A long short-term memory.
    Lstm {
        /// Entries of the hidden state.
        hidden: u16,
    },
    /// The last step of a sequence.
    Last {},
}

impl LayerConfig {
    /// The layer of the core.
    #[must_use]
    pub fn layer(self) -> Layer {
        match self {
            Self::Convolution {
                channels,
                kernel,
                stride,
                padding,
            } => Layer::Convolution {
                channels,
                kernel: kernel.0,
                stride: stride.map_or([1, 1], |stride| stride.0),
                padding: padding.map_or([0, 0], |padding| padding.0),
            },
            Self::Relu {} => Layer::Relu,
            Self::MaxPool { size, stride } => Layer::MaxPool {
                size: size.0,
                stride: stride.unwrap_or(size).0,
            },
            Self::GlobalAverage {} => Layer::GlobalAverage,
            Self::Dense { outputs } => Layer::Dense { outputs },
            Self::Embedding { vocabulary, width } => Layer::Embedding { vocabulary, width },
            Self::Lstm { hidden } => Layer::Lstm { hidden },
            Self::Last {} => Layer::Last,
        }
    }
}

impl From<Layer> for LayerConfig {
    fn from(layer: Layer) -> Self {
        let pair = |numbers| Some(Pair(numbers));
        match layer {
            Layer::Convolution {
                channels,
                kernel,
                stride,
                padding,
            } => Self::Convolution {
                channels,
                kernel: Pair(kernel),
                stride: pair(stride),
                padding: pair(padding),
            },
            Layer::Relu => Self::Relu {},
            Layer::MaxPool { size, stride } => Self::MaxPool {
                size: Pair(size),
                stride: pair(stride),
            },
            Layer::GlobalAverage => Self::GlobalAverage {},
            Layer::Dense { outputs } => Self::Dense { outputs },
            Layer::Embedding { vocabulary, width } => Self::Embedding { vocabulary, width },
            Layer::Lstm { hidden } => Self::Lstm { hidden },
            Layer::Last => Self::Last {},
        }
    }
}

/// Rows and columns: `5` for `[5, 5]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Pair(pub [u16; 2]);

impl<'de> Deserialize<'de> for Pair {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PairVisitor)
    }
}

impl JsonSchema for Pair {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Pair".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let number = json_schema!({ "type": "integer", "minimum": 0, "maximum": u16::MAX });
        json_schema!({
            "description": "Rows and columns: `5` for `[5, 5]`.",
            "anyOf": [
                number,
                { "type": "array", "items": number, "minItems": 2, "maxItems": 2 }
            ]
        })
    }
}

/// Returns the complaint about a number that is not a size.
fn not_a_size(found: impl fmt::Display) -> String {
    let most = u16::MAX;
    format!("a size of a layer is {found}, but must be a whole number of at most {most}")
}

struct PairVisitor;

impl<'de> Visitor<'de> for PairVisitor {
    type Value = Pair;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number, or two: rows and columns")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Pair, E> {
        let size = u16::try_from(number);
        let size = size.map_err(|_| E::custom(not_a_size(number)))?;
        Ok(Pair([size; 2]))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Pair, E> {
        let size = u16::try_from(number);
        let size = size.map_err(|_| E::custom(not_a_size(number)))?;
        Ok(Pair([size; 2]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, numbers: A) -> Result<Pair, A::Error> {
        Deserialize::deserialize(SeqAccessDeserializer::new(numbers)).map(Pair)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(text: &str) -> Result<LayerConfig, String> {
        toml::from_str(text).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn one_number_stands_for_two() {
        let square = layer("type = \"max-pool\"\nsize = 2").unwrap();
        let pair = layer("type = \"max-pool\"\nsize = [2, 2]").unwrap();
        assert_eq!(square, pair);
        let row = layer("type = \"max-pool\"\nsize = [1, 4]").unwrap().layer();
        let (size, stride) = ([1, 4], [1, 4]);
        assert_eq!(row, Layer::MaxPool { size, stride });
    }

    #[test]
    fn what_is_no_layer_is_refused() {
        for (text, part) in [
            ("type = \"relu\"\nsize = 2", "unknown field `size`"),
            ("type = \"max-pool\"\nsize = -1", "is -1"),
            ("type = \"max-pool\"\nsize = 70000", "of at most 65535"),
            ("type = \"max-pool\"\nsize = [1]", "2"),
            ("type = \"max-pool\"\nsize = \"two\"", "rows and columns"),
            ("type = \"pool\"", "unknown variant"),
            ("size = 2", "type"),
        ] {
            let error = layer(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
