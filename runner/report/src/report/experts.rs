//! The mix of `denoiser = "auto"` over rounds: the weights of its filters, the evidence for them,
//! and the kept share of each tensor.

use super::input::ReportInput;
use super::page::Figure;
use super::plot::{Plot, Point, Scale, Series, Tone};
use smolfed_engine::denoise::auto::ExpertWeight;
use smolfed_engine::round::RoundRecord;
use smolfed_release::number::fixed;
use smolfed_release::provenance::Provenance;

/// Maximum number of curves: more cannot be distinguished.
const CURVES: usize = 6;

/// Returns the figures, or none with another denoiser, or without one.
pub(super) fn figures_of(input: &ReportInput) -> Vec<String> {
    let records = &input.records;
    if records.iter().all(|record| record.experts.is_empty()) {
        return Vec::new();
    }
    let weights = Figure {
        title: "Weights of filters",
        caption: "The mixture behind the model of each round: filters of all steps so far, judged \
                  by the next release. \"none\" is their plain sum.",
        origin: Provenance::Released,
        caption_beside: false,
    };
    let evidence = Figure {
        title: "Evidence for filters",
        caption: "Evidence of all releases for each filter over the initial one, in standard \
                  deviations of its noise. A change takes two.",
        origin: Provenance::Released,
        caption_beside: false,
    };
    let kept = Figure {
        title: "Kept by the filters",
        caption: "The length of the mixture as a share of the length of the plain sum of the \
                  steps, for each weight tensor.",
        origin: Provenance::Released,
        caption_beside: false,
    };
    vec![
        weights.with_plot(plot(
            "weight",
            vec![0.0, 1.0],
            of_experts(records, |e| e.weight),
        )),
        evidence.with_plot(plot(
            "standard deviations",
            vec![0.0],
            of_experts(records, |e| e.evidence),
        )),
        kept.with_plot(plot("share", vec![0.0, 1.0], of_tensors(records))),
    ]
}

fn plot(y_label: &str, y_reach: Vec<f64>, curves: Vec<(String, Vec<Point>)>) -> Plot {
    let named = curves.into_iter().take(CURVES).enumerate();
    let series = named.map(|(index, (label, points))| Series {
        label,
        end: points.last().map_or(String::new(), |p| fixed(p.y, 2)),
        points,
        tone: Tone::nth(index),
        dashed: false,
    });
    Plot {
        x_label: "round".to_owned(),
        y_label: y_label.to_owned(),
        x_scale: Scale::Whole,
        y_reach,
        series: series.collect(),
        ..Plot::default()
    }
}

/// Returns a curve for each expert, the one with most weight over all rounds first.
fn of_experts(
    records: &[RoundRecord],
    value: fn(&ExpertWeight) -> f64,
) -> Vec<(String, Vec<Point>)> {
    let of = |name: &str, value: fn(&ExpertWeight) -> f64| -> Vec<Point> {
        let of_round = |record: &RoundRecord| {
            let found = record.experts.iter().find(|e| e.expert == name)?;
            Some(Point::new(f64::from(record.round) + 1.0, value(found)))
        };
        records.iter().filter_map(of_round).collect()
    };
    let last = records.iter().rev().find(|r| !r.experts.is_empty());
    let names = last.into_iter().flat_map(|record| &record.experts);
    let mut names: Vec<&str> = names.map(|e| e.expert.as_str()).collect();
    let total = |name: &str| of(name, |e| e.weight).iter().map(|p| p.y).sum::<f64>();
    names.sort_by(|a, b| total(b).total_cmp(&total(a)));
    let curves = names
        .into_iter()
        .map(|name| (name.to_owned(), of(name, value)));
    curves.collect()
}

fn of_tensors(records: &[RoundRecord]) -> Vec<(String, Vec<Point>)> {
    let count = records.iter().map(|record| record.kept.len()).max();
    let of = |layer: usize| {
        let of_round = |record: &RoundRecord| {
            let kept = record.kept.get(layer)?;
            Some(Point::new(f64::from(record.round) + 1.0, *kept))
        };
        records.iter().filter_map(of_round).collect()
    };
    (0..count.unwrap_or(0))
        .map(|layer| (format!("layer {}", layer + 1), of(layer)))
        .collect()
}
