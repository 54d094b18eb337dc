//! The recipe as a header in C99: constants, with the fields of the types of `smolfed_core`.

use std::fmt::Write as _;

use smolfed_core::recipe::MAX_RECIPE_BYTES;
use smolfed_core::window::Measure;
use smolfed_data::features::ImageFeatures;

use super::facts::{DeviceRecipe, Format, Map, Source};

/// The text.
pub(super) fn text(recipe: &DeviceRecipe) -> String {
    let mut text = format!(
        "/* The features of \"{}\": `smolfed data recipe experiment.toml --c`.\n\n   \
         Constants only: smolfed has no library in C. docs/data.md has the formulas. */\n\
         #ifndef SMOLFED_RECIPE_H\n#define SMOLFED_RECIPE_H\n\n#include <stdint.h>\n\n",
        recipe.name.replace("*/", "* /")
    );
    define(&mut text, "FEATURES", recipe.feature_count, "of a sample");
    define(
        &mut text,
        "CLASSES",
        recipe.classes.len(),
        &recipe.class_list(),
    );
    match recipe.format {
        Format::Numbers => {
            define(&mut text, "INTEGER", 0, "the model reads floats");
        }
        Format::Integers { is_wide, fraction } => {
            let bits = if is_wide { 16 } else { 8 };
            define(&mut text, "INTEGER", 1, "the model reads integers");
            define(&mut text, "FEATURE_BITS", bits, "of such an integer");
            define(&mut text, "FRACTION", fraction, "places behind the point");
        }
    }
    match &recipe.source {
        Source::Windows { .. } => windows(&mut text, recipe),
        Source::Image { features, planes } => image(&mut text, *features, *planes),
    }
    let mut bytes = [0; MAX_RECIPE_BYTES];
    let bytes = recipe.recipe.write(&mut bytes);
    text += "\n/* The recipe, as records and greetings name it: docs/protocol.md. */\n";
    array(
        &mut text,
        "uint8_t",
        "recipe",
        bytes.iter().map(ToString::to_string),
    );
    text + "\n#endif\n"
}

fn windows(text: &mut String, whole: &DeviceRecipe) {
    let Source::Windows {
        recipe,
        channels,
        length,
        step,
        every,
        counts,
        maps,
    } = &whole.source
    else {
        return;
    };
    let names = channels.join(", ").replace("*/", "* /");
    define(text, "CHANNELS", channels.len(), &names);
    define(text, "LENGTH", length, "rows of a window");
    define(text, "STEP", step, "rows from one window to the next");
    define(
        text,
        "EVERY",
        every,
        "every so many rows of a window are read",
    );
    for feature in smolfed_core::window::Feature::ALL {
        let name = feature.name().to_uppercase().replace('-', "_");
        let is_computed = recipe.features().any(|own| own == feature);
        define(text, &format!("HAS_{name}"), u8::from(is_computed), "");
    }
    let is_amplitude = recipe.measure() == Measure::Amplitude;
    let about = "1: a band's root mean square, 0: its mean square";
    define(text, "BAND_AMPLITUDE", u8::from(is_amplitude), about);
    define(
        text,
        "BOUND_COUNT",
        recipe.bounds().len(),
        "one more than bands, or 0",
    );
    if !recipe.bounds().is_empty() {
        *text += "\n/* The first frequency of each band, and the one behind the last band. */\n";
        let bounds = recipe.bounds().iter().map(ToString::to_string);
        array(text, "uint16_t", "bounds", bounds);
    }
    match counts.as_deref() {
        Some(counts) => {
            *text += "\n/* The counts of a unit, of each channel or of all. */\n";
            let counts = counts.iter().map(|x| format!("{x:?}"));
            array(text, "double", "counts", counts);
        }
        None => *text += "\n/* Samples are in the unit of the experiment's table. */\n",
    }
    scales(text, maps);
}

fn scales(text: &mut String, maps: &[Map]) {
    let items = maps.iter().map(|map| match map {
        Map::Integer(scale) => {
            let (offset, multiplier, shift) = scale.parts();
            format!("{{{offset}, {multiplier}, {shift}}}")
        }
        Map::Number { bounds, mean, std } => {
            let [low, high] = bounds.unwrap_or([f64::MIN, f64::MAX]);
            format!("{{{low:?}, {high:?}, {mean:?}, {std:?}}}")
        }
    });
    *text += match maps.first() {
        Some(Map::Integer(_)) => {
            "\n/* (feature - offset) * multiplier / 2^shift, halves away from zero, saturated. */\n\
             struct smolfed_scale {\n    int32_t offset;\n    uint16_t multiplier;\n    \
             uint8_t shift;\n};\n"
        }
        _ => {
            "\n/* (feature - mean) / std in double, of a feature between low and high, rounded to \
             float. */\n\
             struct smolfed_scale {\n    double low, high, mean, std;\n};\n"
        }
    };
    array(text, "struct smolfed_scale", "scales", items);
}

fn image(text: &mut String, features: ImageFeatures, planes: usize) {
    let (cells, is_gradients) = match features {
        ImageFeatures::Gradients(cells) => (cells, 1),
        ImageFeatures::Pool(cells) => (cells, 0),
    };
    define(
        text,
        "GRADIENTS",
        is_gradients,
        "1: gradients, 0: brightness",
    );
    define(text, "ROWS", cells.rows(), "of an image");
    define(text, "COLUMNS", cells.columns(), "of an image");
    define(text, "PLANES", planes, "of an image: 3 of a colour image");
    define(text, "CELL", cells.cell(), "pixels of a cell's side");
}

fn define(text: &mut String, name: &str, value: impl ToString, about: &str) {
    let value = value.to_string();
    let _ = match about {
        "" => writeln!(text, "#define SMOLFED_{name} {value}"),
        about => writeln!(text, "#define SMOLFED_{name} {value} /* {about} */"),
    };
}

fn array(text: &mut String, kind: &str, name: &str, items: impl Iterator<Item = String>) {
    let items: Vec<String> = items.map(|item| format!("    {item},\n")).collect();
    let count = items.len();
    let _ = write!(
        text,
        "static const {kind} smolfed_{name}[{count}] = {{\n{}}};\n",
        items.concat()
    );
}
