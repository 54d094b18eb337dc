//! A header for C99 (and C++) with the model and its preprocessing. It needs only the mathematics
//! of the standard library, and memory for one number per unit.

mod features;
mod integers;
mod kernels;
mod literal;
mod network;

use std::fmt::Write;

use super::{Constants, tensor_names};
use crate::inference::error::InferenceError;
use crate::inference::integers::{IntegerModel, Integers};
use crate::inference::model::{Layer, Outputs, TrainedModel};
use crate::inference::quantised::QuantisedModel;
use literal::{double, float, quoted};
use smolfed_engine::preprocessing::WindowColumns;
use smolfed_engine::tables::model::ActivationName;

/// Numbers per line of an array.
const PER_LINE: usize = 6;

/// Returns the text of the header.
#[must_use]
pub fn encode(model: &TrainedModel) -> String {
    let mut header = Header {
        text: String::new(),
        constants: Constants::of(model),
    };
    header.begin(model, "");
    header.columns();
    let reader = features::reader(&model.preprocessing);
    header.text += reader.as_deref().unwrap_or_default();
    for (at, layer) in model.layers().iter().enumerate() {
        header.layer(at, *layer);
    }
    header.predict(model, &Reading::new(reader.is_some()));
    header.text += "\n#endif\n";
    header.text
}

/// Returns the text of a header that predicts in integers.
///
/// # Errors
/// As [`IntegerModel::weights`], and [`QuantisedModel::with_network`].
pub fn encode_integers(model: &Integers<'_>) -> Result<String, InferenceError> {
    match model {
        Integers::Layer(model) => of_layer(model),
        Integers::Network(model) => of_network(model),
    }
}

fn of_layer(model: &IntegerModel<'_>) -> Result<String, InferenceError> {
    let preprocessing = &model.model().preprocessing;
    let mut header = Header {
        text: String::new(),
        constants: Constants::of(model.model()),
    };
    header.begin(model.model(), "#include <stdint.h>\n");
    let functions = integers::functions(model)?;
    header.text += &functions.types;
    if preprocessing.features.is_some() {
        header.text += integers::NOT_COMPUTED;
    } else {
        header.columns();
        let reader = features::reader(preprocessing);
        header.text += reader.as_deref().unwrap_or_default();
        header.text += &integers::rounding(reader.is_some());
    }
    let (weights, biases) = functions
        .weights
        .split_at(functions.weights.len() - functions.outputs);
    for (name, values) in tensor_names(0).iter().zip([weights, biases]) {
        let numbers: Vec<String> = values.iter().map(i32::to_string).collect();
        header.array(
            &format!("int32_t smolfed_{name}[{}]", values.len()),
            &numbers,
        );
    }
    header.text += &functions.body;
    header.text += "\n#endif\n";
    Ok(header.text)
}

fn of_network(model: &QuantisedModel<'_>) -> Result<String, InferenceError> {
    let preprocessing = &model.model().preprocessing;
    let mut header = Header {
        text: String::new(),
        constants: Constants::of(model.model()),
    };
    header.begin(model.model(), "#include <stdint.h>\n");
    header.text += &network::types(model);
    let (input, scores) = model.with_network(|it| (it.input(), network::scores(it)))?;
    if preprocessing.features.is_some() {
        header.text += network::NOT_COMPUTED;
    } else {
        header.columns();
        let reader = features::reader(preprocessing);
        header.text += reader.as_deref().unwrap_or_default();
        header.text += &network::reading(model, input, reader.is_some());
    }
    header.text += &scores;
    header.text += &integers::classes();
    header.text += "\n#endif\n";
    Ok(header.text)
}

/// The text so far.
struct Header {
    text: String,
    constants: Constants,
}

impl Header {
    /// Writes sizes, and the names of features and classes.
    fn begin(&mut self, model: &TrainedModel, include: &str) {
        let layers = model.layers();
        let features = model.preprocessing.columns.len();
        self.text += "/* A model trained with smolfed, and what it needs of a row: \
                      docs/inference.md.\n   Written by `smolfed export --format c-header`. */\n\
                      #ifndef SMOLFED_MODEL_H\n#define SMOLFED_MODEL_H\n\n\
                      #include <math.h>\n#include <stddef.h>\n";
        self.text += include;
        self.text.push('\n');
        self.line(&format!("#define SMOLFED_FEATURES {features}"));
        if let ([hidden, _], None) = (layers.as_slice(), model.task().network()) {
            self.line(&format!("#define SMOLFED_HIDDEN {}", hidden.outputs()));
        }
        self.origins(model);
        let outputs = layers.last().map_or(0, Layer::outputs);
        self.line(&format!("#define SMOLFED_OUTPUTS {outputs}"));
        if let Some(window) = &model.preprocessing.window {
            self.window(window);
        }
        if let Some(names) = model.preprocessing.names() {
            self.line("\n/* The features, in this order. */");
            if !model.preprocessing.cells.is_empty() {
                self.line(
                    "/* NAME=CATEGORY is 1 where the column NAME has this category, else 0. \
                     NAME:hour, NAME:weekday\n   (0 is Monday) and NAME:day (since 1970) are \
                     parts of the time in the column NAME. */",
                );
            }
            self.names("smolfed_feature_names", "SMOLFED_FEATURES", &names);
        }
        if let Outputs::Logit(labels) | Outputs::Logits(labels) = model.outputs() {
            let names: Vec<&str> = labels.iter().map(String::as_str).collect();
            self.line(&format!("\n#define SMOLFED_CLASSES {}", names.len()));
            self.names("smolfed_class_names", "SMOLFED_CLASSES", &names);
        }
        self.text.push('\n');
    }

    /// Writes the sources of the constants: measured ones are private.
    fn origins(&mut self, model: &TrainedModel) {
        for origin in model.origin_sentences() {
            self.line(&format!("/* {origin} */"));
        }
        self.text.push('\n');
    }

    /// Writes the source of features that are not columns of the data.
    fn window(&mut self, window: &WindowColumns) {
        let Some(features) = &window.recordings.features else {
            return;
        };
        let (recipe, kind) = match features.counts() {
            None => (features.recipe(), "features_into"),
            Some(_) => (features.recipe(), "counts_into"),
        };
        let _ = write!(
            self.text,
            "\n/* The features are not computed here, but from windows of {} samples of\n   \
             {} channels, as smolfed_core::window::Recipe::{kind} computes them: docs/data.md. */\n\
             #define SMOLFED_CHANNELS {}\n#define SMOLFED_WINDOW {}\n",
            recipe.length(),
            window.channels.len(),
            window.channels.len(),
            recipe.length(),
        );
        let names: Vec<&str> = window.channels.iter().map(String::as_str).collect();
        self.names("smolfed_channel_names", "SMOLFED_CHANNELS", &names);
    }

    /// Writes the constants of the columns, and the preparation of a feature.
    fn columns(&mut self) {
        let Constants {
            missing,
            min,
            max,
            mean,
            std,
        } = self.constants.clone();
        let mut steps = String::new();
        if self.constants.fills() {
            let missing = self.doubles("missing", &missing);
            let _ = writeln!(
                steps,
                "    if (isnan(x)) {{\n        x = {missing};\n    }}"
            );
        }
        if self.constants.clips() {
            let (min, max) = (self.doubles("min", &min), self.doubles("max", &max));
            for (bound, sign) in [(min, '<'), (max, '>')] {
                let _ = writeln!(
                    steps,
                    "    if (x {sign} {bound}) {{\n        x = {bound};\n    }}"
                );
            }
        }
        if self.constants.scales() {
            let (mean, std) = (self.doubles("mean", &mean), self.doubles("std", &std));
            let _ = writeln!(steps, "    x = (x - {mean}) / {std};");
        }
        let _ = write!(
            self.text,
            "\n/* What the model reads of feature i; NaN is a missing value. */\n\
             static inline float smolfed_prepare(const float *features, size_t i)\n{{\n    \
             double x = features[i];\n{steps}    return (float)x;\n}}\n\n"
        );
    }

    /// Writes constants of the columns: one number if all are equal. Returns how column i reads it.
    fn doubles(&mut self, name: &str, values: &[f64]) -> String {
        let first = values.first().copied().unwrap_or(0.0);
        if values
            .iter()
            .all(|value| value.to_bits() == first.to_bits())
        {
            self.line(&format!(
                "#define SMOLFED_{} {}",
                name.to_uppercase(),
                double(first)
            ));
            return format!("SMOLFED_{}", name.to_uppercase());
        }
        let numbers: Vec<String> = values.iter().copied().map(double).collect();
        self.array(
            &format!("double smolfed_{name}[SMOLFED_FEATURES]"),
            &numbers,
        );
        format!("smolfed_{name}[i]")
    }

    fn layer(&mut self, at: usize, layer: Layer<'_>) {
        for (name, values) in tensor_names(at).iter().zip([layer.weights, layer.biases]) {
            let numbers: Vec<String> = values.iter().copied().map(float).collect();
            self.array(&format!("float smolfed_{name}[{}]", values.len()), &numbers);
        }
    }

    /// Writes the function for users.
    fn predict(&mut self, model: &TrainedModel, reading: &Reading) {
        let (about, signature, conclusion) = match model.outputs() {
            Outputs::Value(scale) => (
                "The predicted value, in its own unit.".to_owned(),
                "float smolfed_predict(const float *features)",
                format!(
                    "    return (float)(outputs[0] * {} + {});\n",
                    double(scale.std()),
                    double(scale.mean())
                ),
            ),
            Outputs::Representation => (
                "Writes the representation, SMOLFED_OUTPUTS numbers.".to_owned(),
                "void smolfed_predict(const float *features, float *outputs)",
                String::new(),
            ),
            Outputs::Logit(_) => (of_classes(), CLASSIFIER, LOGIT.to_owned()),
            Outputs::Logits(_) => (of_classes(), CLASSIFIER, LOGITS.to_owned()),
        };
        let layers = model.layers();
        let own = match model.outputs() {
            Outputs::Representation => "",
            _ => "    float outputs[SMOLFED_OUTPUTS];\n",
        };
        let body = match layers.as_slice() {
            [only] => first_layer("outputs", "SMOLFED_OUTPUTS", only, reading),
            [hidden, _] => format!(
                "    float hidden[SMOLFED_HIDDEN];\n{}{SECOND_LAYER}",
                first_layer("hidden", "SMOLFED_HIDDEN", hidden, reading)
            ),
            _ => String::new(),
        };
        let _ = write!(
            self.text,
            "\n/* {about}\n   `features` are SMOLFED_FEATURES numbers as in the data; NaN is a \
             missing value. */\nstatic inline {signature}\n{{\n{own}{body}{conclusion}}}\n"
        );
    }

    fn names(&mut self, name: &str, length: &str, names: &[&str]) {
        let quoted: Vec<String> = names.iter().map(|name| quoted(name)).collect();
        let lines = quoted.join(",\n    ");
        self.line(&format!(
            "static const char *const {name}[{length}] = {{\n    {lines}}};"
        ));
    }

    fn array(&mut self, declaration: &str, numbers: &[String]) {
        let lines: Vec<String> = numbers
            .chunks(PER_LINE)
            .map(|line| line.join(", "))
            .collect();
        self.line(&format!(
            "static const {declaration} = {{\n    {}}};",
            lines.join(",\n    ")
        ));
    }

    fn line(&mut self, line: &str) {
        self.text += line;
        self.text.push('\n');
    }
}

const CLASSIFIER: &str = "int smolfed_predict(const float *features, float *probabilities)";

fn of_classes() -> String {
    "The number of the predicted class. Writes SMOLFED_CLASSES probabilities, unless\n   \
     `probabilities` is NULL."
        .to_owned()
}

/// How a layer reads a row.
struct Reading {
    /// Code before the reading.
    before: &'static str,
    /// The number of values that it reads.
    count: &'static str,
    /// Value i.
    number: &'static str,
}

impl Reading {
    /// All values at once, or each separately, so that no row of them is stored.
    const fn new(is_whole: bool) -> Self {
        match is_whole {
            true => Self {
                before: "    float read[SMOLFED_READ];\n    smolfed_read(features, read);\n",
                count: "SMOLFED_READ",
                number: "read[i]",
            },
            false => Self {
                before: "",
                count: "SMOLFED_FEATURES",
                number: "smolfed_prepare(features, i)",
            },
        }
    }
}

/// Returns the code of the first layer. Its sums follow the order in which numbers are read.
fn first_layer(sums: &str, length: &str, layer: &Layer<'_>, reading: &Reading) -> String {
    let Reading {
        before,
        count,
        number,
    } = reading;
    let activated = match layer.activation {
        None => String::new(),
        Some(activation) => {
            let value = match activation {
                ActivationName::Tanh => format!("tanhf({sums}[k])"),
                // NaN stays NaN.
                ActivationName::Relu => format!("{sums}[k] < 0.0f ? 0.0f : {sums}[k]"),
            };
            format!(
                "    for (size_t k = 0; k < {length}; k++) {{
        {sums}[k] = {value};
    }}
"
            )
        }
    };
    format!(
        "{before}    for (size_t k = 0; k < {length}; k++) {{
        {sums}[k] = smolfed_biases[k];
    }}
    for (size_t i = 0; i < {count}; i++) {{
        const float x = {number};
        for (size_t k = 0; k < {length}; k++) {{
            {sums}[k] += smolfed_weights[k * {count} + i] * x;
        }}
    }}
{activated}"
    )
}

const SECOND_LAYER: &str = "\
    for (size_t k = 0; k < SMOLFED_OUTPUTS; k++) {
        outputs[k] = smolfed_head_biases[k];
        for (size_t i = 0; i < SMOLFED_HIDDEN; i++) {
            outputs[k] += smolfed_head_weights[k * SMOLFED_HIDDEN + i] * hidden[i];
        }
    }
";

const LOGIT: &str = "    if (probabilities != NULL) {
        probabilities[1] = 1.0f / (1.0f + expf(-outputs[0]));
        probabilities[0] = 1.0f - probabilities[1];
    }
    return outputs[0] > 0.0f;
";

const LOGITS: &str = "    int best = 0;
    for (int k = 1; k < SMOLFED_CLASSES; k++) {
        if (outputs[k] > outputs[best]) {
            best = k;
        }
    }
    if (probabilities != NULL) {
        float sum = 0.0f;
        for (size_t k = 0; k < SMOLFED_CLASSES; k++) {
            probabilities[k] = expf(outputs[k] - outputs[best]);
            sum += probabilities[k];
        }
        for (size_t k = 0; k < SMOLFED_CLASSES; k++) {
            probabilities[k] /= sum;
        }
    }
    return best;
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_the_same_numbers() {
        for value in [0.1f32, -3.0, 1e-40, f32::MAX] {
            let text = float(value);
            assert_eq!(text.trim_end_matches('f').parse(), Ok(value), "{text}");
        }
        assert_eq!(double(1.0), "1e0");
        assert_eq!(double(-0.5), "(-5e-1)");
        assert_eq!(double(f64::NEG_INFINITY), "-(double)INFINITY");
    }

    #[test]
    fn names_are_literals_whatever_they_hold() {
        assert_eq!(quoted("a b"), "\"a b\"");
        assert_eq!(quoted("\"\\??/"), "\"\\\"\\\\\\?\\?/\"");
        assert_eq!(quoted("é1\n"), "\"\\303\\2511\\012\"");
    }
}
