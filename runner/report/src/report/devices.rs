//! The report's section "Device by device": the distribution of the quality of models on devices,
//! its figures, and the gains from personal models.

use super::input::ReportInput;
use super::page::{Column, Figure, grid, section, table};
use super::plot::{Plot, Point, Series, Tone};
use smolfed_engine::evaluation::devices::{DeviceFigures, DeviceReport, Which};
use smolfed_release::number::{fixed, significant};
use smolfed_release::provenance::Provenance;

/// Returns the section, which is empty if devices have no test samples.
pub(super) fn section_of(input: &ReportInput) -> String {
    let Some(report) = input.devices.as_ref().filter(|r| r.devices.len() > 1) else {
        return String::new();
    };
    let mut cards = vec![distribution(report)];
    cards.extend(gains(report));
    // The table is as wide as two plots.
    section("Device by device", &(grid(&cards) + &figures(report)))
}

/// Converts a figure to its display unit: percent, or the target's own.
fn shown(report: &DeviceReport, figure: f64) -> f64 {
    if report.is_error {
        figure
    } else {
        100.0 * figure
    }
}

fn words(report: &DeviceReport, figure: f64) -> String {
    match report.is_error {
        true => significant(figure, 4),
        false => format!("{} %", fixed(100.0 * figure, 1)),
    }
}

fn axis(report: &DeviceReport) -> &'static str {
    if report.is_error {
        "rmse, in units of the target"
    } else {
        "accuracy, %"
    }
}

/// Plots the devices from the worst to the best: the share of devices that do no better than a
/// figure.
fn distribution(report: &DeviceReport) -> String {
    let series = Which::ALL
        .into_iter()
        .enumerate()
        .filter_map(|(index, which)| {
            let mut figures: Vec<f64> = report
                .devices
                .iter()
                .filter_map(|d| d.models.get(which))
                .collect();
            figures.sort_by(f64::total_cmp);
            let mean = report.spread(which)?.mean;
            let count = figures.len().max(2) as f64 - 1.0;
            let place = |(rank, figure): (usize, &f64)| {
                Point::new(100.0 * rank as f64 / count, shown(report, *figure))
            };
            Some(Series {
                label: report.words(which).to_owned(),
                end: words(report, mean),
                points: figures.iter().enumerate().map(place).collect(),
                tone: Tone::nth(index),
                dashed: which == Which::Alone,
            })
        });
    let plot = Plot {
        title: "Models over devices".to_owned(),
        description: "Figure of each device, in ascending order, for each kind of model."
            .to_owned(),
        x_label: "devices, %".to_owned(),
        y_label: axis(report).to_owned(),
        series: series.collect(),
        ..Plot::default()
    };
    let figure = Figure {
        title: "How are devices served?",
        caption: "Each curve sorts the devices by their figure on the samples that they hold out; \
                  its label shows the mean. A flat curve means equal service.",
        origin: Provenance::SimulationOnly,
        caption_beside: false,
    };
    figure.with_plot(plot)
}

/// Returns a table with one row per kind of model.
fn figures(report: &DeviceReport) -> String {
    let rows: Vec<Vec<String>> = Which::ALL
        .into_iter()
        .filter_map(|which| {
            let spread = report.spread(which)?;
            let q = spread.quantiles;
            let worst = if report.is_error { q.max } else { q.min };
            let figures = [
                spread.mean,
                spread.weighted_mean,
                worst,
                q.p10,
                q.median,
                q.p90,
                spread.std,
            ];
            let figures = figures.map(|figure| words(report, figure));
            Some(
                [report.words(which).to_owned()]
                    .into_iter()
                    .chain(figures)
                    .collect(),
            )
        })
        .collect();
    let head = [
        ("model", Column::Words),
        ("mean", Column::Number),
        ("by samples", Column::Number),
        ("worst", Column::Number),
        ("10th", Column::Number),
        ("median", Column::Number),
        ("90th", Column::Number),
        ("spread", Column::Number),
    ];
    let caption = format!(
        "{} devices. The mean counts each device once, and \"by samples\" weights it by its \
         samples; 10th, median and 90th are percentiles; spread is the standard deviation over \
         devices.",
        report.devices.len()
    );
    let figure = Figure {
        title: "The figures",
        caption: &caption,
        origin: Provenance::SimulationOnly,
        caption_beside: false,
    };
    figure.around(&table("figures", &head, &rows))
}

/// Plots a device's gain from its personal model over the shared one and over training alone.
fn gains(report: &DeviceReport) -> Option<String> {
    let series: Vec<Series> = [(Which::Shared, Tone::nth(0)), (Which::Alone, Tone::nth(3))]
        .into_iter()
        .filter_map(|(which, tone)| gains_over(report, which, tone))
        .collect();
    if series.is_empty() {
        return None;
    }
    let plot = Plot {
        title: "Gains of devices".to_owned(),
        description: "Gain of each device from its personal model, in ascending order.".to_owned(),
        x_label: "devices, %".to_owned(),
        y_label: if report.is_error {
            "gain in rmse, in units of the target"
        } else {
            "gain, points"
        }
        .to_owned(),
        y_reach: vec![0.0],
        series,
        ..Plot::default()
    };
    let (title, caption) = match report.labels {
        None => (
            "Who gains from a personal model?",
            "Above zero the personal (or fine-tuned) model is better than the other one; the label \
             shows the share of such devices.",
        ),
        Some(_) => (
            "Who gains from the encoder?",
            "Above zero the head on the encoder is better than the same model without it; the \
             label shows the share of such devices.",
        ),
    };
    let figure = Figure {
        title,
        caption,
        origin: Provenance::SimulationOnly,
        caption_beside: false,
    };
    Some(figure.with_plot(plot))
}

/// Returns the gain of each device over one kind of model, in ascending order.
fn gains_over(report: &DeviceReport, which: Which, tone: Tone) -> Option<Series> {
    let gain = |device: &DeviceFigures| {
        let gain = device.models.tuned.or(device.models.own)? - device.models.get(which)?;
        Some(if report.is_error { -gain } else { 100.0 * gain })
    };
    let mut gains: Vec<f64> = report.devices.iter().filter_map(gain).collect();
    gains.sort_by(f64::total_cmp);
    let last = gains.len().checked_sub(1).filter(|last| *last > 0)?;
    let better = gains.iter().filter(|gain| **gain > 0.0).count();
    let share = 100.0 * better as f64 / gains.len() as f64;
    let place = |(rank, gain): (usize, &f64)| Point::new(100.0 * rank as f64 / last as f64, *gain);
    Some(Series {
        label: format!("over {}", report.words(which)),
        end: format!("{} % gain", fixed(share, 0)),
        points: gains.iter().enumerate().map(place).collect(),
        tone,
        dashed: which == Which::Alone,
    })
}
