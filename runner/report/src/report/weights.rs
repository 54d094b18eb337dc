//! The report's section "Learned weights": images if the input is an image, bars for a single
//! output, otherwise a heat map with one row per output.

use std::fmt::Write;

use super::html::escape;
use super::input::{Audience, ReportInput};
use super::page::{Figure, paragraph, section};
use super::png;
use smolfed_engine::run::directory::model_file::ModelFile;
use smolfed_release::number::significant;
use smolfed_release::provenance::Provenance;

/// Maximum number of images or rows: a longer page is not read.
const MAX_OUTPUTS: usize = 64;
/// Maximum number of bars.
const MAX_BARS: usize = 40;

/// Returns the section. Weights are released, so they need no badge.
pub(super) fn section_of(input: &ReportInput) -> String {
    let heading = "Learned weights";
    let Some(model) = input.model.as_ref().filter(|model| model.features > 0) else {
        let reason = match input.audience {
            Audience::Owner => "There is no model yet: it is written when the run ends or stops.",
            Audience::Public => "This page has no model that epsilon covers.",
        };
        return section(heading, &paragraph(reason));
    };
    let axes = match model.axes.as_slice() {
        [] => input.config.server.axes.as_slice(),
        axes => axes,
    };
    let figure = match axes {
        &[height, width] if height > 1 && height.checked_mul(width) == Some(model.features) => {
            images(model, height, width)
        }
        _ if model.weights.len() == model.features => bars(model),
        _ => heat_map(model),
    };
    section(heading, &figure)
}

/// Returns the weights of each output, with its name.
fn outputs(model: &ModelFile) -> impl Iterator<Item = (String, &[f32])> {
    let rows = model.weights.chunks_exact(model.features);
    // The single output of a classifier represents the second class.
    let first = usize::from(rows.len() == 1);
    rows.enumerate()
        .take(MAX_OUTPUTS)
        .map(move |(row, weights)| {
            let class = row + first;
            let name = match model.hidden {
                Some(_) => Some(format!("unit {class}")),
                None => model.class_names.get(class).cloned(),
            };
            (name.unwrap_or_else(|| class.to_string()), weights)
        })
}

fn images(model: &ModelFile, height: usize, width: usize) -> String {
    let full = full_colour(&model.weights);
    let is_wide = width > 3 * height;
    let class = if is_wide { "images wide" } else { "images" };
    // Windows with few channels are stretched to be visible.
    let shape = if is_wide {
        4 * height.max(width / 16)
    } else {
        height
    };
    let is_only = model.weights.len() == model.features;
    let mut content = format!("<ul class=\"{class}\">\n");
    for (name, weights) in outputs(model) {
        let name = match (is_only, model.class_names.is_empty()) {
            (true, true) => "weights".to_owned(),
            _ => name,
        };
        let Some(uri) = png::data_uri(weights, width, full) else {
            continue;
        };
        let name = escape(&name);
        let _ = writeln!(
            content,
            "<li><img src=\"{uri}\" width=\"{width}\" height=\"{shape}\" \
             style=\"aspect-ratio:{width}/{shape};height:auto\" alt=\"Weights for {name}\">\
             <span>{name}</span></li>"
        );
    }
    content.push_str("</ul>\n");
    content.push_str(&key(full));
    let caption = format!(
        "The weights of each output in the shape of its input, {height} × {width}. {}{}",
        colours(model),
        left_off(model)
    );
    Figure {
        title: "Weights as images",
        caption: &caption,
        origin: Provenance::Released,
        caption_beside: false,
    }
    .around(&content)
}

/// Returns the meaning of the weights' colours.
const fn colours(model: &ModelFile) -> &'static str {
    match model.hidden {
        Some(_) => "Orange: a larger input raises the unit's output; blue: it lowers it.",
        None => "Orange: a larger input speaks for the class; blue: against it.",
    }
}

fn heat_map(model: &ModelFile) -> String {
    let full = full_colour(&model.weights);
    let mut content = String::from("<table class=\"rows\"><tbody>\n");
    for (name, weights) in outputs(model) {
        let Some(uri) = png::data_uri(weights, model.features, full) else {
            continue;
        };
        let name = escape(&name);
        let _ = writeln!(
            content,
            "<tr><th scope=\"row\">{name}</th>\
             <td><img src=\"{uri}\" alt=\"Weights for {name}\"></td></tr>"
        );
    }
    content.push_str("</tbody></table>\n");
    content.push_str(&key(full));
    let caption = format!(
        "One row for each output, one column for each of its {} inputs in their order. {}{}",
        model.features,
        colours(model),
        left_off(model)
    );
    Figure {
        title: "Weights",
        caption: &caption,
        origin: Provenance::Released,
        caption_beside: false,
    }
    .around(&content)
}

fn bars(model: &ModelFile) -> String {
    let mut order: Vec<usize> = (0..model.weights.len()).collect();
    // A stable sort: equal weights keep the order of the features.
    order.sort_by(|&a, &b| model.weights[b].abs().total_cmp(&model.weights[a].abs()));
    let largest = order.first().map_or(0.0, |&i| model.weights[i].abs());
    let largest = if largest > 0.0 && largest.is_finite() {
        largest
    } else {
        1.0
    };
    let mut content = String::from(
        "<table class=\"bars\"><thead><tr><th scope=\"col\">feature</th>\
         <td></td><th scope=\"col\" class=\"number\">weight</th></tr></thead><tbody>\n",
    );
    for &feature in order.iter().take(MAX_BARS) {
        let weight = model.weights[feature];
        let name = model.feature_names.get(feature).cloned();
        let name = name.unwrap_or_else(|| format!("feature {feature}"));
        let length = 50.0 * (weight.abs() / largest).clamp(0.0, 1.0);
        let (sign, start) = if weight < 0.0 {
            ("minus", 50.0 - length)
        } else {
            ("plus", 50.0)
        };
        let _ = writeln!(
            content,
            "<tr><th scope=\"row\">{}</th><td class=\"bar\">\
             <svg viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
             <rect class=\"{sign}\" x=\"{start:.2}\" y=\"0\" width=\"{length:.2}\" height=\"10\"/>\
             <path class=\"zero\" d=\"M50 0V10\" vector-effect=\"non-scaling-stroke\"/></svg></td>\
             <td class=\"number\">{}</td></tr>",
            escape(&name),
            significant(f64::from(weight), 3)
        );
    }
    content.push_str("</tbody></table>\n");
    let shown = model.weights.len().min(MAX_BARS);
    let caption = format!(
        "{} in the units of the scaled features, the largest first{}.",
        match model.weights.len() {
            1 => "The only weight".to_owned(),
            count if count <= MAX_BARS => format!("All {count} weights"),
            count => format!("The {shown} largest of {count} weights"),
        },
        match model.biases.first() {
            Some(bias) => format!("; the bias is {}", significant(f64::from(*bias), 3)),
            None => String::new(),
        }
    );
    Figure {
        title: "Weights",
        caption: &caption,
        origin: Provenance::Released,
        caption_beside: false,
    }
    .around(&content)
}

/// Returns the scale of the colours.
fn key(full: f32) -> String {
    let end = significant(f64::from(full), 2);
    format!(
        "<div class=\"key\"><span>−{end}</span>\
         <i style=\"background:linear-gradient(90deg,#1f7ad0,transparent,#e06c10)\"></i>\
         <span>{end}</span></div>\n"
    )
}

/// Returns the absolute weight of full colour. One weight in a hundred is larger, so that no
/// outlier pales the rest.
fn full_colour(weights: &[f32]) -> f32 {
    let mut sizes: Vec<f32> = weights
        .iter()
        .map(|w| w.abs())
        .filter(|w| w.is_finite())
        .collect();
    sizes.sort_by(f32::total_cmp);
    let full = sizes.get(sizes.len() * 99 / 100).copied().unwrap_or(0.0);
    if full > 0.0 { full } else { 1.0 }
}

fn left_off(model: &ModelFile) -> String {
    let count = model.weights.len() / model.features;
    if count > MAX_OUTPUTS {
        format!(" The first {MAX_OUTPUTS} of {count} outputs.")
    } else {
        String::new()
    }
}
