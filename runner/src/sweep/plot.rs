//! `plot.svg`: the metric with its standard error over the first key of the grid, a line for each
//! combination of the others.

use super::file::Sweep;
use super::grid::Dimension;
use super::summary::Summaries;
use crate::report::plot::{Plot, Point, Series, Tone};

/// The plot of a sweep; `None` where there is nothing to go across.
pub(super) fn plot(sweep: &Sweep, summaries: &Summaries) -> Option<Plot> {
    let across = across(&sweep.dimensions)?;
    let dimension = &sweep.dimensions[across];
    let places = places(dimension);
    let metric = summaries.metric;
    let mut lines: Vec<Series> = Vec::new();
    for (cell, summary) in sweep.cells.iter().zip(&summaries.cells) {
        let label = line_label(sweep, &cell.levels, across);
        let number = match lines.iter().position(|line| line.label == label) {
            Some(number) => number,
            None => {
                lines.push(Series {
                    label,
                    tone: Tone::nth(lines.len()),
                    ..Series::default()
                });
                lines.len() - 1
            }
        };
        if let (Some(mean), Some(line)) = (summary.mean, lines.get_mut(number)) {
            let error = mean.standard_error.unwrap_or(0.0);
            let x = places[cell.levels[across]];
            line.points.push(Point::with_error(
                x,
                metric.shown(mean.mean),
                metric.shown(error),
            ));
        }
    }
    for line in &mut lines {
        line.points.sort_by(|a, b| a.x.total_cmp(&b.x));
    }
    Some(Plot {
        title: format!("{}: {}", sweep.name, metric.title()),
        description: format!(
            "{} over {}, mean and standard error of {} seeds.",
            metric.title(),
            dimension.name,
            sweep.seeds.len()
        ),
        x_label: x_label(dimension),
        y_label: metric.title(),
        series: lines,
        ..Plot::default()
    })
}

/// The first dimension of numbers, else the first.
fn across(dimensions: &[Dimension]) -> Option<usize> {
    let numeric = dimensions
        .iter()
        .position(|dimension| dimension.numbers().is_some());
    numeric.or((!dimensions.is_empty()).then_some(0))
}

/// Where each level is drawn: at its value, or one after the other.
fn places(dimension: &Dimension) -> Vec<f64> {
    let counted = || {
        (1..=dimension.levels.len())
            .map(|number| number as f64)
            .collect()
    };
    dimension.numbers().unwrap_or_else(counted)
}

fn x_label(dimension: &Dimension) -> String {
    if dimension.numbers().is_some() {
        return dimension.name.clone();
    }
    if dimension.name == Dimension::VARIANTS {
        return "row of the table".to_owned();
    }
    let levels = dimension.levels.iter().enumerate();
    let levels = levels.map(|(index, level)| format!("{} {}", index + 1, level.label));
    format!(
        "{}: {}",
        dimension.name,
        levels.collect::<Vec<_>>().join(", ")
    )
}

/// What the cells of a line have in common.
fn line_label(sweep: &Sweep, levels: &[usize], across: usize) -> String {
    let others = sweep.dimensions.iter().zip(levels).enumerate();
    let others = others.filter(|(index, _)| *index != across);
    let parts = others.map(|(_, (dimension, level))| {
        let label = &dimension.levels[*level].label;
        match dimension.name.as_str() {
            Dimension::VARIANTS => label.clone(),
            _ => format!("{} {label}", dimension.short_name()),
        }
    });
    parts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::fixture::{summaries, sweep};

    #[test]
    fn the_first_key_of_numbers_goes_across_and_the_other_makes_lines() {
        let sweep = sweep(
            "[sweep]\nseeds = 2\n[sweep.grid]\n\"train.clip\" = [\"final\", \"every-step\"]\n\
             \"train.epochs\" = [4, 2]",
        );
        let (half, one) = (Some(0.5), Some(1.0));
        let runs: [&[Option<f64>]; 4] = [&[half, half], &[half, one], &[None, None], &[one, one]];
        let plot = plot(&sweep, &summaries(&sweep, &runs)).unwrap();
        assert_eq!(
            (plot.x_label.as_str(), plot.series.len()),
            ("train.epochs", 2)
        );
        assert_eq!(plot.series[0].label, "clip final");
        let points = &plot.series[0].points;
        assert_eq!(points[0], Point::with_error(2.0, 75.0, 25.0));
        assert_eq!(points[1], Point::with_error(4.0, 50.0, 0.0));
        assert_eq!(plot.series[1].points, [Point::with_error(2.0, 100.0, 0.0)]);
    }

    #[test]
    fn variants_stand_in_the_order_of_the_table() {
        let sweep = sweep(
            "[[sweep.variants]]\nlabel = \"a\"\n\
             [[sweep.variants]]\nlabel = \"b\"\nset = { rounds = 3 }",
        );
        let plot = plot(&sweep, &summaries(&sweep, &[&[Some(0.25)], &[Some(0.5)]])).unwrap();
        assert_eq!(plot.x_label, "row of the table");
        assert_eq!(plot.series[0].points[1], Point::new(2.0, 50.0));
    }

    #[test]
    fn seeds_alone_make_no_plot() {
        let sweep = sweep("[sweep]\nseeds = 2");
        let summaries = summaries(&sweep, &[&[Some(0.5), Some(0.5)]]);
        assert_eq!(plot(&sweep, &summaries), None);
    }
}
