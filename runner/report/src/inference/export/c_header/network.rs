//! The C functions that predict with a network in 8 bits, with the bits of
//! `smolfed_core::quantised`.

use std::fmt::Write;

use smolfed_core::quantised::{Convolution, Dense, Image, Layer, Output, Quantised, Windows};

use super::kernels::{AVERAGE, CONVOLVE, DENSE, FUNCTIONS, MAX_POOL};
use super::literal::float;
use crate::inference::quantised::QuantisedModel;

/// 8-bit numbers per line of an array.
const PER_LINE: usize = 16;

/// Returns the type of features, and the conversion of a number to it.
pub(super) fn types(model: &QuantisedModel<'_>) -> String {
    let scale = model.scale();
    format!(
        "/* The model reads SMOLFED_READ integers of 8 bits: a feature over SMOLFED_UNIT, plus \
         SMOLFED_ZERO.\n   {}. */\n\
         #define SMOLFED_READ {}\n#define SMOLFED_UNIT {}\n#define SMOLFED_ZERO ({})\n\
         typedef int8_t smolfed_feature;\n{ROUND}",
        model.origin().replace(": ", ":\n   "),
        model.order().len(),
        float(scale.unit),
        scale.zero,
    )
}

/// Replaces the function that reads a row.
pub(super) const NOT_COMPUTED: &str = "
/* The features are not computed here, but from a row as smolfed_core::features does it:
   docs/features.md. */

";

const ROUND: &str = "
/* The integer of a number that the model reads. */
static inline smolfed_feature smolfed_round(float x)
{
    const double units = (double)x / (double)SMOLFED_UNIT;
    if (isnan(units)) {
        return SMOLFED_ZERO;
    }
    if (units < -256.0 || units > 256.0) {
        return units < 0.0 ? -128 : 127;
    }
    const int integer = (int)(units < 0.0 ? units - 0.5 : units + 0.5) + SMOLFED_ZERO;
    return (smolfed_feature)(integer < -128 ? -128 : integer > 127 ? 127 : integer);
}
";

/// Returns the function that reads a row.
pub(super) fn reading(model: &QuantisedModel<'_>, input: Image, is_whole: bool) -> String {
    let (before, number) = match is_whole {
        true => (
            "    float read[SMOLFED_READ];\n    smolfed_read(features, read);\n",
            "read[place]",
        ),
        false => ("", "smolfed_prepare(features, place)"),
    };
    let channels = usize::from(input.channels);
    let place = match model.order().is_sorted() {
        true => "i".to_owned(),
        false => format!(
            "i % {channels} * {} + i / {channels}",
            input.count() / channels.max(1)
        ),
    };
    format!(
        "\n/* Writes the SMOLFED_READ integers that the model reads of a row, which is \
         SMOLFED_FEATURES numbers\n   as in the data; NaN is a missing value. The integers of an \
         image lie pixel by pixel. Firmware\n   without floating point writes them itself. */\n\
         static inline void smolfed_integers(const float *features, smolfed_feature *integers)\n\
         {{\n{before}    for (size_t i = 0; i < SMOLFED_READ; i++) {{\n        \
         const size_t place = {place};\n        \
         integers[i] = smolfed_round({number});\n    }}\n}}\n"
    )
}

/// Returns tables, and the function that computes scores.
pub(super) fn scores(network: &Quantised<'_>) -> String {
    let mut text = FUNCTIONS.to_owned();
    let used = |is: fn(&Layer<'_>) -> bool| network.layers().iter().any(is);
    for (is_used, function) in [
        (used(|l| matches!(l, Layer::Convolution(_))), CONVOLVE),
        (used(|l| matches!(l, Layer::Dense(_))), DENSE),
        (used(|l| matches!(l, Layer::MaxPool(_))), MAX_POOL),
        (used(|l| matches!(l, Layer::GlobalAverage(_))), AVERAGE),
    ] {
        if is_used {
            text += function;
        }
    }
    let scratch = network.scratch_bytes();
    let (mut calls, mut image) = (String::new(), network.input());
    let mut values = "features".to_owned();
    for (at, (layer, output)) in network.layers().iter().zip(network.images()).enumerate() {
        // Results alternate between the beginning and the end of the memory.
        let results = match at % 2 {
            0 => "scratch".to_owned(),
            _ => format!("scratch + {}", scratch - output.count()),
        };
        calls += &call(
            &mut text,
            at + 1,
            layer,
            [image, output],
            [&values, &results],
        );
        (image, values) = (output, results);
    }
    let head = network.head();
    let name = network.layers().len() + 1;
    tables(&mut text, name, head);
    let memory = match scratch {
        0 => String::new(),
        _ => "    int8_t scratch[SMOLFED_SCRATCH];\n".to_owned(),
    };
    let _ = write!(
        text,
        "\n/* Bytes on the stack of a prediction. */\n#define SMOLFED_SCRATCH {scratch}\n\n\
         /* Writes SMOLFED_OUTPUTS scores of SMOLFED_READ features, in units of 2^-16. */\n\
         static inline void smolfed_scores(const smolfed_feature *features, int32_t *scores)\n{{\n\
         {memory}{calls}    for (size_t k = 0; k < SMOLFED_OUTPUTS; k++) {{\n        \
         const int32_t sum = smolfed_dot(smolfed_weights_{name} + k * {count}, {values}, {count}, \
         {zero});\n        const smolfed_output *output = smolfed_outputs_{name} + k;\n        \
         scores[k] = smolfed_scaled(sum + output->bias, output);\n    }}\n}}\n",
        count = image.count(),
        zero = head.input_zero,
    );
    text
}

/// Returns the call that computes a layer, and adds its tables to `text`.
fn call(
    text: &mut String,
    number: usize,
    layer: &Layer<'_>,
    [image, output]: [Image; 2],
    [values, results]: [&str; 2],
) -> String {
    let Image {
        width, channels, ..
    } = image;
    match layer {
        Layer::Convolution(layer) => {
            convolution(text, number, layer, [image, output]);
            format!(
                "    smolfed_convolve(&smolfed_layer_{number}, smolfed_weights_{number}, \
                 smolfed_outputs_{number},\n                     {values}, {results});\n"
            )
        }
        Layer::Dense(layer) => {
            tables(text, number, &layer.dense);
            format!(
                "    smolfed_dense(smolfed_weights_{number}, smolfed_outputs_{number}, {values}, \
                 {}, {},\n                  {}, {}, {}, {results});\n",
                image.count(),
                output.channels,
                layer.dense.input_zero,
                layer.output_zero,
                layer.least,
            )
        }
        Layer::MaxPool(Windows { size, stride }) => format!(
            "    smolfed_max_pool({values}, {width}, {channels}, {}, {}, {}, {}, {}, {}, \
             {results});\n",
            output.height, output.width, size[0], size[1], stride[0], stride[1],
        ),
        Layer::GlobalAverage(layer) => {
            let _ = write!(
                text,
                "\nstatic const smolfed_output smolfed_outputs_{number} = {};\n",
                literal(&layer.output)
            );
            format!(
                "    smolfed_average({values}, {}, {channels}, &smolfed_outputs_{number}, {}, {}, \
                 {}, {results});\n",
                image.count(),
                layer.input_zero,
                layer.output_zero,
                layer.least,
            )
        }
        Layer::Relu(zero) => format!(
            "    for (size_t i = 0; i < {}; i++) {{\n        \
             ({results})[i] = ({values})[i] > {zero} ? ({values})[i] : {zero};\n    }}\n",
            image.count(),
        ),
    }
}

/// Adds the tables and sizes of a convolution.
fn convolution(
    text: &mut String,
    number: usize,
    layer: &Convolution<'_>,
    [image, output]: [Image; 2],
) {
    let dense = Dense {
        weights: layer.weights,
        outputs: layer.outputs,
        input_zero: layer.input_zero,
    };
    tables(text, number, &dense);
    let pair = |[a, b]: [u16; 2]| format!("{{{a}, {b}}}");
    let _ = write!(
        text,
        "static const smolfed_convolution smolfed_layer_{number} = {{\n    \
         {}, {}, {}, {}, {}, {}, {},\n    {}, {}, {}, {}, {}}};\n",
        pair([image.height, image.width]),
        image.channels,
        pair([output.height, output.width]),
        output.channels,
        pair(layer.kernel.size),
        pair(layer.kernel.stride),
        pair(layer.padding),
        pair(layer.pool.size),
        pair(layer.pool.stride),
        layer.input_zero,
        layer.output_zero,
        layer.least,
    );
}

fn literal(output: &Output) -> String {
    let Output {
        bias,
        mantissa,
        shift,
    } = output;
    format!("{{{bias}, {mantissa}, {shift}}}")
}

/// Adds the tables of a layer.
fn tables(text: &mut String, number: usize, dense: &Dense<'_>) {
    let lines = |numbers: Vec<String>, per_line: usize| {
        let lines: Vec<String> = numbers
            .chunks(per_line)
            .map(|line| line.join(", "))
            .collect();
        lines.join(",\n    ")
    };
    let weights = dense.weights.iter().map(i8::to_string).collect();
    let outputs = dense.outputs.iter().map(literal).collect();
    let _ = write!(
        text,
        "\nstatic const int8_t smolfed_weights_{number}[{}] = {{\n    {}}};\n\
         static const smolfed_output smolfed_outputs_{number}[{}] = {{\n    {}}};\n",
        dense.weights.len(),
        lines(weights, PER_LINE),
        dense.outputs.len(),
        lines(outputs, 3),
    );
}
