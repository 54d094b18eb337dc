//! The weights of the filters that `denoiser = "auto"` mixes, over rounds.

use super::input::ReportInput;
use super::page::Figure;
use super::plot::{Plot, Point, Scale, Series, Tone};
use crate::number::fixed;
use crate::round::RoundRecord;

/// Curves: more cannot be told apart.
const CURVES: usize = 6;

/// The figure; `None` with another denoiser, or none.
pub(super) fn figure_of(input: &ReportInput) -> Option<String> {
    let records = &input.records;
    let last = records.iter().rev().find(|r| !r.experts.is_empty())?;
    let weights = |name: &str| -> Vec<Point> {
        let of_round = |record: &RoundRecord| {
            let found = record.experts.iter().find(|e| e.expert == name)?;
            Some(Point::new(f64::from(record.round) + 1.0, found.weight))
        };
        records.iter().filter_map(of_round).collect()
    };
    let mut curves: Vec<(&str, Vec<Point>)> = last
        .experts
        .iter()
        .map(|e| (e.expert.as_str(), weights(&e.expert)))
        .collect();
    let total = |points: &[Point]| points.iter().map(|point| point.y).sum::<f64>();
    curves.sort_by(|a, b| total(&b.1).total_cmp(&total(&a.1)));
    let named = curves.into_iter().take(CURVES).enumerate();
    let series = named.map(|(index, (name, points))| Series {
        label: name.to_owned(),
        end: points.last().map_or(String::new(), |p| fixed(p.y, 2)),
        points,
        tone: Tone::nth(index),
        dashed: false,
    });
    let figure = Figure {
        title: "Weights of filters",
        caption: "What the model of each round is mixed from: filters of all steps so far, judged \
                  by what is released next. \"none\" is their plain sum.",
        ..Figure::default()
    };
    Some(figure.of(Plot {
        x_label: "round".to_owned(),
        y_label: "weight".to_owned(),
        x_scale: Scale::Whole,
        y_reach: vec![0.0, 1.0],
        series: series.collect(),
        ..Plot::default()
    }))
}
