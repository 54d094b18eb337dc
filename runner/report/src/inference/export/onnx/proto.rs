//! The ONNX messages that a graph needs here, as Protocol Buffers.
//!
//! Source: `onnx.proto` of ONNX, IR version 7. The omitted fields have other numbers.

use prost::Message;

/// Type of a tensor's entries, by its number in `TensorProto.DataType`.
#[derive(Clone, Copy)]
pub(super) enum ElementType {
    Float = 1,
    Int64 = 7,
    Bool = 9,
    Double = 11,
}

/// Types of attributes in `AttributeProto.AttributeType`: one integer, and several.
const INTEGER: i32 = 2;
const INTEGERS: i32 = 7;

/// `ModelProto`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Model {
    #[prost(int64, tag = "1")]
    pub(super) ir_version: i64,
    #[prost(string, tag = "2")]
    pub(super) producer_name: String,
    #[prost(string, tag = "3")]
    pub(super) producer_version: String,
    #[prost(message, optional, tag = "7")]
    pub(super) graph: Option<Graph>,
    #[prost(message, repeated, tag = "8")]
    pub(super) opset_import: Vec<OperatorSet>,
    #[prost(message, repeated, tag = "14")]
    pub(super) metadata_props: Vec<Property>,
}

/// `OperatorSetIdProto`, of the standard domain.
#[derive(Clone, PartialEq, Message)]
pub(super) struct OperatorSet {
    #[prost(int64, tag = "2")]
    pub(super) version: i64,
}

/// `StringStringEntryProto`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Property {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    #[prost(string, tag = "2")]
    pub(super) value: String,
}

/// `GraphProto`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Graph {
    #[prost(message, repeated, tag = "1")]
    pub(super) node: Vec<Node>,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(message, repeated, tag = "5")]
    pub(super) initializer: Vec<Tensor>,
    #[prost(message, repeated, tag = "11")]
    pub(super) input: Vec<ValueInfo>,
    #[prost(message, repeated, tag = "12")]
    pub(super) output: Vec<ValueInfo>,
}

/// `NodeProto`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Node {
    #[prost(string, repeated, tag = "1")]
    pub(super) input: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub(super) output: Vec<String>,
    #[prost(string, tag = "3")]
    pub(super) name: String,
    #[prost(string, tag = "4")]
    pub(super) op_type: String,
    #[prost(message, repeated, tag = "5")]
    pub(super) attribute: Vec<Attribute>,
}

/// `AttributeProto`, of whole numbers.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Attribute {
    #[prost(string, tag = "1")]
    name: String,
    /// Also written if it is 0.
    #[prost(int64, optional, tag = "3")]
    i: Option<i64>,
    #[prost(int64, repeated, packed = "false", tag = "8")]
    ints: Vec<i64>,
    #[prost(int32, tag = "20")]
    kind: i32,
}

/// `TensorProto`, with its entries as little-endian bytes.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Tensor {
    #[prost(int64, repeated, packed = "false", tag = "1")]
    dims: Vec<i64>,
    #[prost(int32, tag = "2")]
    data_type: i32,
    #[prost(string, tag = "8")]
    name: String,
    #[prost(bytes = "vec", tag = "9")]
    raw_data: Vec<u8>,
}

/// `ValueInfoProto`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ValueInfo {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    kind: Option<Type>,
}

/// `TypeProto`, of a tensor.
#[derive(Clone, PartialEq, Message)]
struct Type {
    #[prost(message, optional, tag = "1")]
    tensor: Option<TensorType>,
}

/// `TypeProto.Tensor`.
#[derive(Clone, PartialEq, Message)]
struct TensorType {
    #[prost(int32, tag = "1")]
    element: i32,
    #[prost(message, optional, tag = "2")]
    shape: Option<TensorShapeProto>,
}

/// `TensorShapeProto`.
#[derive(Clone, PartialEq, Message)]
struct TensorShapeProto {
    #[prost(message, repeated, tag = "1")]
    dim: Vec<Dimension>,
}

/// `TensorShapeProto.Dimension`: a length, or a name for any.
#[derive(Clone, PartialEq, Message)]
struct Dimension {
    #[prost(int64, optional, tag = "1")]
    value: Option<i64>,
    #[prost(string, optional, tag = "2")]
    name: Option<String>,
}

impl Property {
    pub(super) fn json<T: serde::Serialize>(key: &str, value: &T) -> Self {
        Self {
            key: key.to_owned(),
            // Serializes without errors: only texts.
            value: serde_json::to_string(value).unwrap_or_default(),
        }
    }
}

impl Attribute {
    pub(super) fn integer(name: &str, value: i64) -> Self {
        Self {
            name: name.to_owned(),
            i: Some(value),
            ints: Vec::new(),
            kind: INTEGER,
        }
    }

    pub(super) fn integers(name: &str, values: &[i64]) -> Self {
        Self {
            name: name.to_owned(),
            i: None,
            ints: values.to_vec(),
            kind: INTEGERS,
        }
    }
}

impl Tensor {
    pub(super) fn floats(name: &str, shape: &[usize], values: &[f32]) -> Self {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes());
        Self::new(name, shape, ElementType::Float, bytes.collect())
    }

    pub(super) fn doubles(name: &str, values: &[f64]) -> Self {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes());
        Self::new(name, &[values.len()], ElementType::Double, bytes.collect())
    }

    pub(super) fn integers(name: &str, values: &[i64]) -> Self {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes());
        Self::new(name, &[values.len()], ElementType::Int64, bytes.collect())
    }

    fn new(name: &str, shape: &[usize], kind: ElementType, raw_data: Vec<u8>) -> Self {
        Self {
            dims: shape.iter().map(|&length| length as i64).collect(),
            data_type: kind as i32,
            name: name.to_owned(),
            raw_data,
        }
    }
}

impl ValueInfo {
    /// Returns a matrix with any number of rows and this many columns.
    pub(super) fn matrix(name: &str, kind: ElementType, columns: usize) -> Self {
        let columns = Dimension {
            value: Some(columns as i64),
            name: None,
        };
        Self::new(name, kind, vec![rows(), columns])
    }

    /// Returns a vector with an entry for each row.
    pub(super) fn vector(name: &str, kind: ElementType) -> Self {
        Self::new(name, kind, vec![rows()])
    }

    fn new(name: &str, kind: ElementType, dim: Vec<Dimension>) -> Self {
        Self {
            name: name.to_owned(),
            kind: Some(Type {
                tensor: Some(TensorType {
                    element: kind as i32,
                    shape: Some(TensorShapeProto { dim }),
                }),
            }),
        }
    }
}

/// Returns the dimension of rows.
fn rows() -> Dimension {
    Dimension {
        value: None,
        name: Some("rows".to_owned()),
    }
}
