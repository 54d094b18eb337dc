//! The TensorBoard messages for scalars and texts, as Protocol Buffers.
//!
//! Source: `event.proto`, `summary.proto`, `tensor.proto` and `tensor_shape.proto` of TensorFlow.
//! The omitted fields have other numbers.

use prost::Message;

/// `DataType::DT_STRING`.
const STRING: i32 = 7;
/// `DataClass::DATA_CLASS_SCALAR` and `DATA_CLASS_TENSOR`.
const SCALAR_CLASS: i32 = 1;
const TENSOR_CLASS: i32 = 2;

/// `Event`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Event {
    /// Seconds since 1970.
    #[prost(double, tag = "1")]
    pub(super) wall_time: f64,
    #[prost(int64, tag = "2")]
    pub(super) step: i64,
    /// Only in the first event of a file.
    #[prost(string, optional, tag = "3")]
    pub(super) file_version: Option<String>,
    #[prost(message, optional, tag = "5")]
    pub(super) summary: Option<Summary>,
}

/// `Summary`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Summary {
    #[prost(message, repeated, tag = "1")]
    pub(super) value: Vec<Value>,
}

/// `Summary.Value`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Value {
    #[prost(string, tag = "1")]
    pub(super) tag: String,
    #[prost(float, optional, tag = "2")]
    pub(super) simple_value: Option<f32>,
    #[prost(message, optional, tag = "8")]
    pub(super) tensor: Option<Tensor>,
    #[prost(message, optional, tag = "9")]
    pub(super) metadata: Option<Metadata>,
}

/// `SummaryMetadata`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Metadata {
    #[prost(message, optional, tag = "1")]
    plugin_data: Option<Plugin>,
    #[prost(int32, tag = "4")]
    data_class: i32,
}

/// `SummaryMetadata.PluginData`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Plugin {
    #[prost(string, tag = "1")]
    plugin_name: String,
}

/// `TensorProto` of text. Without a shape it is a single value.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Tensor {
    #[prost(int32, tag = "1")]
    dtype: i32,
    #[prost(message, optional, tag = "2")]
    shape: Option<TensorShapeProto>,
    #[prost(bytes = "vec", repeated, tag = "8")]
    string_val: Vec<Vec<u8>>,
}

/// `TensorShapeProto` of a single value, which has no dimensions.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TensorShapeProto {}

impl Metadata {
    fn new(plugin: &str, data_class: i32) -> Option<Self> {
        Some(Self {
            plugin_data: Some(Plugin {
                plugin_name: plugin.to_owned(),
            }),
            data_class,
        })
    }
}

impl Value {
    /// Returns a value of a curve.
    pub(super) fn scalar(tag: &str, value: f64) -> Self {
        Self {
            tag: tag.to_owned(),
            simple_value: Some(value as f32),
            tensor: None,
            metadata: Metadata::new("scalars", SCALAR_CLASS),
        }
    }

    /// Returns a text in Markdown.
    pub(super) fn text(tag: &str, text: &str) -> Self {
        Self {
            tag: tag.to_owned(),
            simple_value: None,
            tensor: Some(Tensor {
                dtype: STRING,
                shape: Some(TensorShapeProto {}),
                string_val: vec![text.as_bytes().to_vec()],
            }),
            metadata: Metadata::new("text", TENSOR_CLASS),
        }
    }
}
