//! ONNX: one graph with the preprocessing and the model, from raw features to predictions. It uses
//! only operators of the standard set, version 13.
//!
//! | input | `features` | float, rows × features, with NaN for a missing value |
//! | --- | --- | --- |
//! | outputs of a classifier | `class` | int64, rows: the number of the class |
//! | | `probabilities` | float, rows × classes |
//! | output of a regression | `prediction` | float, rows × 1, in the target's own unit |
//! | output of an encoder | `representation` | float, rows × outputs |
//!
//! The metadata `features` and `classes` are the names of the columns and classes, as JSON. `cells`
//! describes how the cells of a table become features, and `origin` says of each kind of constant
//! whether it is declared, released or measured.

mod features;
mod proto;

use std::collections::BTreeMap;

use prost::Message;

use super::{Constants, activation_name, cells_of, tensor_names};
use crate::inference::model::{Layer, Outputs, TrainedModel};
use proto::{Attribute, ElementType, Graph, Model, Node, OperatorSet, Property, Tensor, ValueInfo};
use smolfed_data::constants::Affine;
use smolfed_engine::tables::model::ActivationName;

/// Version of the standard operators, which every runtime since 2020 supports.
const OPERATORS: i64 = 13;
/// Version of the format that introduced them.
const IR_VERSION: i64 = 7;

/// A graph during construction: each operation reads existing values and names its result.
#[derive(Default)]
struct Builder {
    graph: Graph,
}

/// Returns the model as the bytes of an ONNX file.
#[must_use]
pub fn encode(model: &TrainedModel) -> Vec<u8> {
    let mut builder = Builder::default();
    builder.graph.name = "smolfed".to_owned();
    let features = model.preprocessing.columns.len();
    builder.graph.input = vec![ValueInfo::matrix("features", ElementType::Float, features)];
    let mut scores = builder.prepare(&Constants::of(model));
    if let Some(recipe) = &model.preprocessing.features {
        scores = builder.features(recipe, &scores);
    }
    if let Some(bound) = model.preprocessing.norm_bound {
        scores = builder.shortened(bound, &scores);
    }
    for (at, layer) in model.layers().iter().enumerate() {
        scores = builder.layer(at, layer, &scores);
    }
    builder.conclude(model, &scores);
    let names = model.preprocessing.names();
    let names = names.map(|names| Property::json("features", &names));
    let cells = cells_of(model).map(|value| Property {
        key: "cells".to_owned(),
        value,
    });
    let classes = match model.outputs() {
        Outputs::Logit(labels) | Outputs::Logits(labels) => {
            Some(Property::json("classes", &labels))
        }
        Outputs::Value(_) | Outputs::Representation => None,
    };
    let origin = model.origins();
    let origin = origin.map(|(name, basis)| (name, basis.name()));
    let origin = Property::json("origin", &origin.collect::<BTreeMap<_, _>>());
    let model = Model {
        ir_version: IR_VERSION,
        producer_name: "smolfed".to_owned(),
        producer_version: env!("CARGO_PKG_VERSION").to_owned(),
        graph: Some(builder.graph),
        opset_import: vec![OperatorSet { version: OPERATORS }],
        metadata_props: names
            .into_iter()
            .chain(classes)
            .chain(cells)
            .chain([origin])
            .collect(),
    };
    model.encode_to_vec()
}

impl Builder {
    /// Adds replacing, clipping and scaling. Returns the name of the result.
    fn prepare(&mut self, constants: &Constants) -> String {
        let (fills, clips, scales) = (constants.fills(), constants.clips(), constants.scales());
        if !(fills || clips || scales) {
            return "features".to_owned();
        }
        let mut x = self.cast("features", ElementType::Double, "wide");
        if fills {
            let missing = self.doubles("missing", &constants.missing);
            let gaps = self.add("IsNaN", &[&x], "gaps", vec![]);
            x = self.add("Where", &[&gaps, &missing, &x], "filled", vec![]);
        }
        if clips {
            let (min, max) = (
                self.doubles("min", &constants.min),
                self.doubles("max", &constants.max),
            );
            x = self.add("Max", &[&x, &min], "raised", vec![]);
            x = self.add("Min", &[&x, &max], "clipped", vec![]);
        }
        if scales {
            let (mean, std) = (
                self.doubles("mean", &constants.mean),
                self.doubles("std", &constants.std),
            );
            x = self.add("Sub", &[&x, &mean], "centred", vec![]);
            x = self.add("Div", &[&x, &std], "scaled", vec![]);
        }
        self.cast(&x, ElementType::Float, "prepared")
    }

    fn layer(&mut self, at: usize, layer: &Layer<'_>, x: &str) -> String {
        let [weights, biases] = tensor_names(at);
        let shape = [layer.outputs(), layer.inputs()];
        self.initialise(Tensor::floats(weights, &shape, layer.weights));
        self.initialise(Tensor::floats(biases, &[layer.outputs()], layer.biases));
        let transposed = vec![Attribute::integer("transB", 1)];
        let name = format!("sums_{at}");
        let sums = self.add("Gemm", &[x, weights, biases], &name, transposed);
        match layer.activation {
            None => sums,
            Some(activation) => {
                let operator = match activation {
                    ActivationName::Tanh => "Tanh",
                    ActivationName::Relu => "Relu",
                };
                let name = activation_name(activation);
                self.add(operator, &[&sums], name, vec![])
            }
        }
    }

    /// Adds the operations from scores to the outputs of the graph.
    fn conclude(&mut self, model: &TrainedModel, scores: &str) {
        match model.outputs() {
            Outputs::Value(scale) => self.value(scores, scale),
            Outputs::Logits(labels) => {
                let axis = || Attribute::integer("axis", 1);
                self.add("Softmax", &[scores], "probabilities", vec![axis()]);
                let attributes = vec![axis(), Attribute::integer("keepdims", 0)];
                self.add("ArgMax", &[scores], "class", attributes);
                self.classes(labels.len());
            }
            Outputs::Logit(labels) => {
                self.logit(scores);
                self.classes(labels.len());
            }
            Outputs::Representation => {
                let width = model.layers().last().map_or(0, Layer::outputs);
                self.add("Identity", &[scores], "representation", vec![]);
                let output = ValueInfo::matrix("representation", ElementType::Float, width);
                self.graph.output = vec![output];
            }
        }
    }

    fn value(&mut self, scores: &str, scale: Affine) {
        let std = self.doubles("target_std", &[scale.std()]);
        let mean = self.doubles("target_mean", &[scale.mean()]);
        let wide = self.cast(scores, ElementType::Double, "wide_scores");
        let spread = self.add("Mul", &[&wide, &std], "spread", vec![]);
        let moved = self.add("Add", &[&spread, &mean], "moved", vec![]);
        self.cast(&moved, ElementType::Float, "prediction");
        self.graph.output = vec![ValueInfo::matrix("prediction", ElementType::Float, 1)];
    }

    fn logit(&mut self, scores: &str) {
        self.initialise(Tensor::floats("one", &[1], &[1.0]));
        self.initialise(Tensor::floats("zero", &[1], &[0.0]));
        self.initialise(Tensor::integers("last_axis", &[1]));
        let second = self.add("Sigmoid", &[scores], "second", vec![]);
        let first = self.add("Sub", &["one", &second], "first", vec![]);
        let axis = vec![Attribute::integer("axis", 1)];
        self.add("Concat", &[&first, &second], "probabilities", axis);
        let is_second = self.add("Greater", &[scores, "zero"], "is_second", vec![]);
        let column = self.cast(&is_second, ElementType::Int64, "column");
        self.add("Squeeze", &[&column, "last_axis"], "class", vec![]);
    }

    /// Adds the outputs of a classifier.
    fn classes(&mut self, count: usize) {
        self.graph.output = vec![
            ValueInfo::vector("class", ElementType::Int64),
            ValueInfo::matrix("probabilities", ElementType::Float, count),
        ];
    }

    fn cast(&mut self, x: &str, to: ElementType, name: &str) -> String {
        let to = vec![Attribute::integer("to", to as i64)];
        self.add("Cast", &[x], name, to)
    }

    fn doubles(&mut self, name: &str, values: &[f64]) -> String {
        self.initialise(Tensor::doubles(name, values));
        name.to_owned()
    }

    fn initialise(&mut self, tensor: Tensor) {
        self.graph.initializer.push(tensor);
    }

    /// Adds an operation with the result `output`, and returns that name.
    fn add(
        &mut self,
        operator: &str,
        inputs: &[&str],
        output: &str,
        attribute: Vec<Attribute>,
    ) -> String {
        self.graph.node.push(Node {
            input: inputs.iter().map(|&name| name.to_owned()).collect(),
            output: vec![output.to_owned()],
            name: output.to_owned(),
            op_type: operator.to_owned(),
            attribute,
        });
        output.to_owned()
    }
}
