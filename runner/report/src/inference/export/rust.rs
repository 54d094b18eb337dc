//! A Rust file with the tables of a network in 8 bits, for `smolfed_core::quantised`.

use std::fmt::Write;

use smolfed_core::quantised::{Convolution, Dense, Hidden, Layer, Output, Quantised};

use crate::inference::error::InferenceError;
use crate::inference::quantised::QuantisedModel;

/// Weights per line.
const PER_LINE: usize = 16;

/// Returns the text of the file.
///
/// # Errors
/// As [`QuantisedModel::with_network`].
pub fn encode(model: &QuantisedModel<'_>) -> Result<String, InferenceError> {
    model.with_network(|network| text(model, network))
}

fn text(model: &QuantisedModel<'_>, network: &Quantised<'_>) -> String {
    let mut text = format!(
        "//! A network in integers of 8 bits, trained with smolfed: docs/board-export.md.\n//! \
         Written by `smolfed export --format rust`.\n//!\n//! {}.\n",
        model.origin().replace(": ", ":\n//! ")
    );
    for origin in model.model().origin_sentences() {
        let _ = writeln!(text, "//! {origin}");
    }
    text += "\n#[allow(unused_imports)]\nuse smolfed_core::quantised::{\n    Convolution, Dense, \
             GlobalAverage, Hidden, Image, Layer, Output, Quantised, Scale, Windows,\n};\n";
    let scale = model.scale();
    let labels = model.model().preprocessing.labels();
    let _ = write!(
        text,
        "\n/// How a feature becomes an integer. The integers of an image lie pixel by pixel.\n\
         #[rustfmt::skip]\npub const SCALE: Scale = {scale:?};\n\n\
         /// The size of a sample.\n#[rustfmt::skip]\npub const INPUT: Image = {:?};\n\n\
         /// The classes.\n#[rustfmt::skip]\npub static CLASSES: [&str; {}] = {labels:?};\n",
        network.input(),
        labels.len(),
    );
    let layers = network.layers().iter().enumerate();
    let layers: Vec<String> = layers
        .map(|(at, layer)| of(&mut text, at + 1, layer))
        .collect();
    let number = layers.len() + 1;
    let head = tables(&mut text, number, network.head());
    let _ = write!(
        text,
        "\n#[rustfmt::skip]\nstatic LAYERS: [Layer<'static>; {}] = [\n{}];\n\n\
         #[rustfmt::skip]\nstatic HEAD: Dense<'static> = {head};\n\n\
         /// The network.\npub static NETWORK: Quantised<'static> = \
         match Quantised::new(INPUT, &LAYERS, &HEAD) {{\n    Ok(network) => network,\n    \
         Err(_) => panic!(\"the tables do not fit\"),\n}};\n\n\
         /// Bytes of scratch memory of a prediction.\n\
         pub const SCRATCH: usize = NETWORK.scratch_bytes();\n",
        layers.len(),
        layers.concat(),
    );
    text
}

/// Returns the expression of a layer, in a line, and adds its tables to `text`.
fn of(text: &mut String, number: usize, layer: &Layer<'_>) -> String {
    let expression = match layer {
        Layer::Convolution(Convolution {
            weights,
            outputs,
            kernel,
            padding,
            pool,
            input_zero,
            output_zero,
            least,
        }) => {
            let dense = Dense {
                weights,
                outputs,
                input_zero: *input_zero,
            };
            tables(text, number, &dense);
            format!(
                "Layer::Convolution(Convolution {{\n        weights: &WEIGHTS_{number}, \
                 outputs: &OUTPUTS_{number},\n        kernel: {kernel:?}, \
                 padding: {padding:?},\n        pool: {pool:?},\n        \
                 input_zero: {input_zero}, output_zero: {output_zero}, least: {least},\n    }})"
            )
        }
        Layer::Dense(Hidden {
            dense,
            output_zero,
            least,
        }) => {
            let dense = tables(text, number, dense);
            format!(
                "Layer::Dense(Hidden {{\n        dense: {dense},\n        \
                 output_zero: {output_zero}, least: {least},\n    }})"
            )
        }
        Layer::MaxPool(windows) => format!("Layer::MaxPool({windows:?})"),
        Layer::GlobalAverage(layer) => format!(
            "Layer::GlobalAverage(GlobalAverage {{\n        output: {},\n        \
             input_zero: {}, output_zero: {}, least: {},\n    }})",
            output(&layer.output),
            layer.input_zero,
            layer.output_zero,
            layer.least,
        ),
        Layer::Relu(zero) => format!("Layer::Relu({zero})"),
    };
    format!("    {expression},\n")
}

/// Adds the tables of a layer. Returns the expression of a dense layer with them.
fn tables(text: &mut String, number: usize, dense: &Dense<'_>) -> String {
    let weights: Vec<String> = dense.weights.iter().map(i8::to_string).collect();
    let lines: Vec<String> = weights
        .chunks(PER_LINE)
        .map(|line| line.join(", "))
        .collect();
    let outputs: Vec<String> = dense.outputs.iter().map(output).collect();
    let _ = write!(
        text,
        "\n#[rustfmt::skip]\nstatic WEIGHTS_{number}: [i8; {}] = [\n    {},\n];\n\
         #[rustfmt::skip]\nstatic OUTPUTS_{number}: [Output; {}] = [\n    {},\n];\n",
        weights.len(),
        lines.join(",\n    "),
        outputs.len(),
        outputs.join(",\n    "),
    );
    format!(
        "Dense {{ weights: &WEIGHTS_{number}, outputs: &OUTPUTS_{number}, input_zero: {} }}",
        dense.input_zero
    )
}

fn output(output: &Output) -> String {
    format!("{output:?}")
}
