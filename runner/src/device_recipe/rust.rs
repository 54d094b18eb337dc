//! The recipe as a module in Rust, in the form of `firmware-example/template/src/recipe/`.

use std::fmt::Write as _;

use smolfed_core::window::{Feature, Measure};
use smolfed_data::features::ImageFeatures;

use super::facts::{DeviceRecipe, Format, Map, Source};

/// The text, which rustfmt leaves as it is.
pub(super) fn text(recipe: &DeviceRecipe) -> String {
    let mut text =
        "//! What follows from the experiment: features, classes, model and arithmetic.\n\
         //!\n//! `smolfed data recipe experiment.toml --rust` prints this file.\n\n"
            .to_owned();
    text += &uses(recipe);
    match &recipe.source {
        Source::Windows { .. } => windows(&mut text, recipe),
        Source::Image { features, planes } => image(&mut text, recipe, *features, *planes),
    }
    text += &model(recipe.format);
    text
}

fn uses(recipe: &DeviceRecipe) -> String {
    let is_integer = recipe.format != Format::Numbers;
    let mut lines = vec![match is_integer {
        true => "Const, Softmax",
        false => "Const, FixedModel, Softmax",
    }];
    match &recipe.source {
        Source::Image {
            features: ImageFeatures::Gradients(_),
            ..
        } => lines.push("features::{Cells, FeatureError, Gradients}"),
        Source::Image { .. } => lines.push("features::{Cells, FeatureError, Pool}"),
        Source::Windows { .. } => {}
    }
    if is_integer {
        lines.push("fixed_point::FeatureScale");
    }
    lines.push("recipe::Recipe");
    if is_integer {
        lines.push("session::FixedPoint");
    }
    if let Source::Windows { recipe, .. } = &recipe.source {
        lines.push(match (recipe.features().next().is_some(), is_integer) {
            (true, true) => "window::{self, Feature, Measure, Scale, WindowError}",
            (true, false) => "window::{self, Feature, Measure, WindowError}",
            (false, true) => "window::{self, Measure, Scale, WindowError}",
            (false, false) => "window::{self, Measure, WindowError}",
        });
    }
    format!(
        "use smolfed_core::{{\n    {},\n}};\n\n",
        lines.join(",\n    ")
    )
}

/// A feature's type, and the classes.
fn shared(recipe: &DeviceRecipe) -> String {
    let (classes, value) = (recipe.classes.len(), value(recipe.format));
    format!(
        "/// Classes, in the order of the experiment.\n// {}\n\
         pub const CLASSES: usize = {classes};\n\
         /// A feature, as it is stored.\npub type Value = {value};\n",
        recipe.class_list()
    )
}

fn value(format: Format) -> &'static str {
    match format {
        Format::Numbers => "f32",
        Format::Integers { is_wide: false, .. } => "i8",
        Format::Integers { is_wide: true, .. } => "i16",
    }
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
    let names = channels.join(", ");
    let count = channels.len();
    *text += &match counts.as_deref() {
        Some([all]) => format!("// A sample is a count: {all:?} counts are a unit of the table.\n"),
        Some(each) => format!("// A sample is a count; the counts of a unit: {each:?}.\n"),
        None => "// A sample is a whole number in the unit of the experiment's table.\n".into(),
    };
    let features: Vec<&str> = recipe.features().map(variant).collect();
    let features = features.join(", Feature::");
    let features = match features.is_empty() {
        true => features,
        false => format!("Feature::{features}"),
    };
    let measure = match recipe.measure() {
        Measure::Energy => "Energy",
        Measure::Amplitude => "Amplitude",
    };
    let _ = write!(
        text,
        "/// Channels of the sensor, in the order of the experiment.\n// {names}\n\
         pub const CHANNELS: usize = {count};\n\
         /// Rows of a window.\npub const LENGTH: usize = {length};\n\
         /// Rows from one window to the next.\npub const STEP: usize = {step};\n\
         /// Every so many rows of a window are read.\npub const EVERY: usize = {every};\n\
         /// Features of each channel.\n\
         #[rustfmt::skip]\n\
         const WINDOW: window::Recipe = match window::Recipe::new(\n    LENGTH / EVERY,\n    \
         &[{features}],\n    &{:?},\n    Measure::{measure},\n) {{\n    Ok(recipe) => recipe,\n    \
         Err(_) => panic!(\"the recipe of the windows is wrong\"),\n}};\n\
         /// Features of a window.\n\
         pub const FEATURES: usize = CHANNELS * WINDOW.feature_count();\n",
        recipe.bounds()
    );
    *text += &shared(whole);
    *text += "/// The recipe, which records and coordinators must have as well.\n\
              pub const RECIPE: Option<Recipe> = Some(Recipe::Windows {\n    recipe: WINDOW,\n    \
              channels: CHANNELS as u16,\n});\n\n";
    *text += &scales(maps);
    *text += &of_window(whole.format, counts.is_some(), maps);
}

fn variant(feature: Feature) -> &'static str {
    match feature {
        Feature::Mean => "Mean",
        Feature::Deviation => "Deviation",
        Feature::Minimum => "Minimum",
        Feature::Maximum => "Maximum",
        Feature::Energy => "Energy",
        Feature::ZeroCrossings => "ZeroCrossings",
    }
}

/// Whether a feature is clipped to bounds.
fn is_clipped(maps: &[Map]) -> bool {
    let has_bounds = |map: &Map| matches!(map, Map::Number { bounds, .. } if bounds.is_some());
    maps.iter().any(has_bounds)
}

/// The constants of each feature.
fn scales(maps: &[Map]) -> String {
    let is_clipped = is_clipped(maps);
    let item = |map: &Map| match map {
        Map::Number { bounds, mean, std } if is_clipped => {
            let [low, high] = bounds.unwrap_or([f64::MIN, f64::MAX]);
            format!("    ({low:?}, {high:?}, {mean:?}, {std:?}),\n")
        }
        Map::Number { mean, std, .. } => format!("    ({mean:?}, {std:?}),\n"),
        Map::Integer(scale) => {
            let (offset, multiplier, shift) = scale.parts();
            format!("    scale({offset}, {multiplier}, {shift}),\n")
        }
    };
    let items: String = maps.iter().map(item).collect();
    let (about, kind) = match (maps.first(), is_clipped) {
        (Some(Map::Integer(_)), _) => ("(feature − offset) · multiplier / 2^shift", "Scale"),
        (_, false) => ("Mean and deviation", "(f64, f64)"),
        (_, true) => ("Bounds, mean and deviation", "(f64, f64, f64, f64)"),
    };
    let mut text = format!(
        "/// {about} of each feature, as in `data.scale`.\n#[rustfmt::skip]\n\
         const SCALES: [{kind}; FEATURES] = [\n{items}];\n\n"
    );
    if kind == "Scale" {
        text += "const fn scale(offset: i32, multiplier: u16, shift: u8) -> Scale {\n    \
                 match Scale::new(offset, multiplier, shift) {\n        \
                 Ok(scale) => scale,\n        \
                 Err(_) => panic!(\"a scale is wrong\"),\n    }\n}\n\n";
    }
    text
}

/// The function that computes the features of a window.
fn of_window(format: Format, has_counts: bool, maps: &[Map]) -> String {
    let (found, compute) = match has_counts {
        true => (
            "counts",
            "    let mut counts = [0; FEATURES];\n    \
             WINDOW.counts_into(sample, &mut [0; WINDOW.work_count()], &mut counts)?;\n",
        ),
        false => (
            "numbers",
            "    let number = |channel, step| f32::from(sample(channel, step));\n    \
             let mut numbers = [0.0; FEATURES];\n    \
             WINDOW.features_into(number, &mut [0.0; WINDOW.work_count()], &mut numbers)?;\n",
        ),
    };
    let number = if has_counts { "found as f32" } else { "found" };
    let (pattern, map) = match (format, is_clipped(maps)) {
        (Format::Integers { .. }, _) => {
            let map = format!("(*feature, _) = scale.to_{}(found);", value(format));
            ("scale", map)
        }
        (Format::Numbers, false) => (
            "(mean, std)",
            format!("*feature = ((f64::from({number}) - mean) / std) as f32;"),
        ),
        (Format::Numbers, true) => (
            "(low, high, mean, std)",
            format!("*feature = ((f64::from({number}).clamp(low, high) - mean) / std) as f32;"),
        ),
    };
    format!(
        "/// Writes the features of a window: `sample` gives a sample of a channel.\n\
         ///\n/// # Errors\n/// None: lengths are those of the recipe.\n\
         pub fn features_into(\n    sample: impl Fn(usize, usize) -> i16,\n    \
         features: &mut [Value; FEATURES],\n) -> Result<(), WindowError> {{\n{compute}    \
         let found = features.iter_mut().zip({found}).zip(SCALES);\n    \
         for ((feature, found), {pattern}) in found {{\n        {map}\n    }}\n    Ok(())\n}}\n"
    )
}

fn image(text: &mut String, whole: &DeviceRecipe, features: ImageFeatures, planes: usize) {
    let cells = features.cells();
    let (kind, name) = match features {
        ImageFeatures::Gradients(_) => ("Gradients", "GRADIENTS"),
        ImageFeatures::Pool(_) => ("Pool", "POOL"),
    };
    let _ = write!(
        text,
        "/// Rows of an image.\npub const ROWS: usize = {};\n\
         /// Columns of an image.\npub const COLUMNS: usize = {};\n\
         /// Planes of an image: 3 of a colour image.\npub const PLANES: usize = {planes};\n\
         /// The image in cells.\n\
         const CELLS: Cells = match Cells::new(ROWS, COLUMNS, {}) {{\n    Ok(cells) => cells,\n    \
         Err(_) => panic!(\"the cells do not fit the image\"),\n}};\n\
         const {name}: {kind} = {kind}::new(CELLS);\n\
         /// Features of an image.\npub const FEATURES: usize = {name}.feature_count();\n",
        cells.rows(),
        cells.columns(),
        cells.cell()
    );
    *text += &shared(whole);
    let _ = write!(
        text,
        "/// The recipe, which records and coordinators must have as well.\n\
         pub const RECIPE: Option<Recipe> = Some(Recipe::{kind} {{\n    cells: CELLS,\n    \
         planes: PLANES as u8,\n}});\n\n\
         /// Writes the features of an image of 8 bits, row after row.\n///\n/// # Errors\n\
         /// None: lengths are those of the recipe.\n\
         pub fn features_into(\n    planes: &[[u8; ROWS * COLUMNS]; PLANES],\n    \
         features: &mut [Value; FEATURES],\n) -> Result<(), FeatureError> {{\n"
    );
    let pixels = match features {
        ImageFeatures::Gradients(_) => {
            *text += "    let planes = planes.each_ref().map(|plane| plane.as_slice());\n";
            "planes"
        }
        ImageFeatures::Pool(_) => "&planes[0]",
    };
    *text += &match whole.format {
        Format::Numbers => format!("    {name}.features_into({pixels}, features)\n"),
        Format::Integers { .. } => format!(
            "    let mut sums = [0; FEATURES];\n    \
             let _saturated = {name}.quantised_into({pixels}, SCALE, &mut sums, features)?;\n    \
             Ok(())\n"
        ),
    };
    *text += "}\n";
}

fn model(format: Format) -> String {
    let head = "\n/// The model.\npub type Model = Softmax<Const<FEATURES>, Const<CLASSES>>;\n";
    match format {
        Format::Numbers => format!(
            "{head}/// Scratch memory of training.\npub const SCRATCH: usize = Model::SCRATCH;\n\n\
             /// The model.\npub fn model() -> Model {{\n    Softmax::new(Const, Const)\n}}\n"
        ),
        Format::Integers { fraction, .. } => format!(
            "{head}/// Scratch memory of training: the scores and the features of a sample.\n\
             pub const SCRATCH: usize = CLASSES + FEATURES;\n\n\
             /// The model in integer arithmetic.\n\
             pub fn model() -> FixedPoint<Model, Value> {{\n    \
             FixedPoint::new(Softmax::new(Const, Const), SCALE)\n}}\n\n\
             /// Features in units of 2^-{fraction}.\n\
             const SCALE: FeatureScale = match FeatureScale::new::<Value>({fraction}) {{\n    \
             Ok(scale) => scale,\n    \
             Err(_) => panic!(\"the features have no room for their places\"),\n}};\n"
        ),
    }
}
