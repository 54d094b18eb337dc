//! The report's section "Representations" of an encoder: their principal components (PCA) by class,
//! and their spectrum.

use std::collections::BTreeMap;

use super::input::ReportInput;
use super::page::{Figure, grid, section};
use super::plot::{Cloud, Plot, Point, Scale, Series};
use smolfed_engine::representation::{Dot, Picture};
use smolfed_release::number::fixed;
use smolfed_release::provenance::Provenance;

/// Eigenvalues below this share of the largest are `f32` rounding. They are drawn at this level.
const ROUNDING: f64 = 1e-8;
/// Eigenvalues above this share of the largest count as directions in use.
const IN_USE: f64 = 0.01;

/// Returns the section, which is empty for a run without an unsupervised encoder.
pub(super) fn section_of(input: &ReportInput) -> String {
    let Some(picture) = &input.representation else {
        return String::new();
    };
    let figures = [components(picture), spectrum(picture)];
    let figures: Vec<String> = figures.into_iter().flatten().collect();
    if figures.is_empty() {
        return String::new();
    }
    section("Representations", &grid(&figures))
}

/// Plots the samples in the plane of the two principal axes, by class.
fn components(picture: &Picture) -> Option<String> {
    let mut by_class: BTreeMap<u16, Vec<Point>> = BTreeMap::new();
    for Dot { x, y, class } in &picture.points {
        let points = by_class.entry(*class).or_default();
        points.push(Point::new(f64::from(*x), f64::from(*y)));
    }
    if by_class.is_empty() {
        return None;
    }
    let clouds = by_class.into_iter().map(|(class, points)| {
        let index = usize::from(class);
        let name = picture.class_names.get(index).cloned();
        Cloud::nth(index, name.unwrap_or_else(|| class.to_string()), points)
    });
    let clouds: Vec<Cloud> = clouds.collect();
    let share = |index: usize| fixed(100.0 * picture.explained[index], 0);
    let caption = format!(
        "{} samples in the plane in which representations vary most; names mark the means of their \
         classes. Classes that are separate here are easy to classify; others may differ in \
         directions that are not shown.{}",
        picture.points.len(),
        if clouds.len() > Cloud::DISTINCT {
            " Marks and colours repeat."
        } else {
            ""
        }
    );
    let figure = Figure {
        title: "Principal components",
        caption: &caption,
        origin: Provenance::SimulationOnly,
        caption_beside: false,
    };
    Some(figure.with_plot(Plot {
        x_label: format!("first component, {} % of the variance", share(0)),
        y_label: format!("second component, {} %", share(1)),
        clouds,
        ..Plot::default()
    }))
}

/// Plots the eigenvalues of the correlation matrix, the largest first.
fn spectrum(picture: &Picture) -> Option<String> {
    let largest = *picture.eigenvalues.first().filter(|value| **value > 0.0)?;
    let points = (1..)
        .zip(&picture.eigenvalues)
        .map(|(number, value)| Point::new(f64::from(number), value.max(ROUNDING * largest)));
    let in_use = picture.eigenvalues.iter();
    let in_use = in_use.filter(|value| **value > IN_USE * largest).count();
    let caption = format!(
        "Eigenvalues of the mean of z zᵀ over samples with representations z; {in_use} of {} are \
         above a hundredth of the largest. Values near zero mean collapse: directions that carry \
         no information. Values below 10⁻⁸ of the largest are drawn at that level.",
        picture.eigenvalues.len()
    );
    let figure = Figure {
        title: "Spectrum of the correlation matrix",
        caption: &caption,
        origin: Provenance::SimulationOnly,
        caption_beside: false,
    };
    Some(figure.with_plot(Plot {
        x_label: "number of the eigenvalue".to_owned(),
        y_label: "eigenvalue".to_owned(),
        x_scale: Scale::Whole,
        y_scale: Scale::Log,
        series: vec![Series {
            points: points.collect(),
            ..Series::default()
        }],
        ..Plot::default()
    }))
}
