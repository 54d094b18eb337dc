//! The recipe as a header for the library `smolfed-c`.

use std::fmt::Write as _;

use smolfed_core::recipe::MAX_RECIPE_BYTES;

use super::facts::{DeviceRecipe, Format, Map, Source};

/// The text.
pub(super) fn text(recipe: &DeviceRecipe) -> String {
    let mut text = format!(
        "// The features of \"{}\": `smolfed data recipe experiment.toml --c` prints this file.\n\
         // docs/c.md shows its use.\n\
         #ifndef SMOLFED_RECIPE_H\n#define SMOLFED_RECIPE_H\n\n#include \"smolfed.h\"\n\n",
        recipe.name.replace(|c: char| c.is_control(), " ")
    );
    let kind = match recipe.format {
        Format::Numbers => "f32",
        Format::Integers { is_wide: false, .. } => "i8",
        Format::Integers { is_wide: true, .. } => "i16",
    };
    let places = match recipe.format {
        Format::Numbers => 0,
        Format::Integers { fraction, .. } => fraction,
    };
    let (trains, infers) = (
        format!("sf_softmax_{kind}"),
        format!("sf_infer_softmax_{kind}"),
    );
    define(&mut text, "KIND", trains, "the model and its arithmetic");
    define(
        &mut text,
        "INFER_KIND",
        infers,
        "the same for a device that only infers",
    );
    define(&mut text, "FEATURES", recipe.feature_count, "of a sample");
    let classes = recipe.classes.len();
    define(&mut text, "CLASSES", classes, &recipe.class_list());
    define(&mut text, "PLACES", places, "binary places of a feature");
    let (every, is_in_counts) = match &recipe.source {
        Source::Windows { every, counts, .. } => (*every, counts.is_some()),
        Source::Image { .. } => (1, false),
    };
    sizes(&mut text, &recipe.source);
    text += "\n// As docs/protocol.md encodes it.\n";
    let mut bytes = [0; MAX_RECIPE_BYTES];
    let bytes = recipe.recipe.write(&mut bytes);
    let numbers = bytes.iter().map(ToString::to_string);
    array(&mut text, "uint8_t", "recipe_bytes", numbers);
    let maps: &[Map] = match &recipe.source {
        Source::Windows { maps, .. } => maps,
        Source::Image { .. } => &[],
    };
    let [scales, ranges] = maps_of(&mut text, maps);
    let _ = write!(
        text,
        "\nstatic const sf_recipe smolfed_recipe = {{\n    smolfed_recipe_bytes, \
         sizeof smolfed_recipe_bytes, {scales}, {ranges}, {every}, \
         SMOLFED_PLACES, {is_in_counts},\n}};\n\
         \n#endif\n"
    );
    text
}

/// The sizes of a window or of an image.
fn sizes(text: &mut String, source: &Source) {
    match source {
        Source::Windows {
            recipe,
            channels,
            length,
            step,
            ..
        } => {
            let names = channels.join(", ");
            define(text, "CHANNELS", channels.len(), &names);
            define(text, "LENGTH", length, "rows of a window");
            define(text, "STEP", step, "rows from one window to the next");
            let about = "words of working memory";
            define(text, "WORK", recipe.work_count(), about);
        }
        Source::Image { features, planes } => {
            let cells = features.cells();
            define(text, "ROWS", cells.rows(), "of an image");
            define(text, "COLUMNS", cells.columns(), "of an image");
            define(text, "PLANES", planes, "of an image");
        }
    }
}

/// Writes the constants of each feature. Returns the names of the integer and number constants.
fn maps_of(text: &mut String, maps: &[Map]) -> [&'static str; 2] {
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
    match maps.first() {
        Some(Map::Integer(_)) => {
            *text += "\n// (feature - offset) * multiplier / 2^shift.\n";
            array(text, "sf_scale", "scales", items);
            ["smolfed_scales", "NULL"]
        }
        Some(Map::Number { .. }) => {
            *text += "\n// (feature - mean) / std of a feature between low and high.\n";
            array(text, "sf_range", "ranges", items);
            ["NULL", "smolfed_ranges"]
        }
        None => ["NULL", "NULL"],
    }
}

fn define(text: &mut String, name: &str, value: impl ToString, about: &str) {
    let value = value.to_string();
    // No line of the comment goes on in the next one.
    let about = about.replace(|c: char| c.is_control() || c == '\\', " ");
    let _ = writeln!(text, "#define SMOLFED_{name} {value} // {about}");
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
