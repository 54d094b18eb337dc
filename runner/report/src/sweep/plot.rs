//! `plot.svg`: the metric with its standard error over the first key of the grid, a line for each
//! level of the second, and a panel for each combination of the others.

use super::file::Sweep;
use super::grid::Dimension;
use super::summary::Summaries;
use crate::report::plot::{Plot, Point, Series, Tone};

/// Number of lines with distinct colours. Later ones are dashed.
const COLOURS: usize = 6;

/// Returns the plots of a sweep, one for each combination of the keys after the first two. Empty if
/// there is no dimension for the horizontal axis.
pub(super) fn plots(sweep: &Sweep, summaries: &Summaries) -> Vec<Plot> {
    let Some(across) = across(&sweep.dimensions) else {
        return Vec::new();
    };
    let is_panel = |index: usize| index != across && index != line_key(across);
    let mut panels: Vec<(String, Vec<usize>)> = Vec::new();
    for (number, cell) in sweep.cells.iter().enumerate() {
        let label = label(sweep, &cell.levels, is_panel);
        match panels.iter_mut().find(|(known, _)| *known == label) {
            Some((_, cells)) => cells.push(number),
            None => panels.push((label, vec![number])),
        }
    }
    let panels = panels.into_iter();
    panels
        .map(|(label, cells)| panel(sweep, summaries, across, &label, &cells))
        .collect()
}

/// Returns the plot of some cells, whose common settings are in `label`.
fn panel(
    sweep: &Sweep,
    summaries: &Summaries,
    across: usize,
    panel: &str,
    cells: &[usize],
) -> Plot {
    let dimension = &sweep.dimensions[across];
    let places = places(dimension);
    let metric = summaries.metric;
    let mut lines: Vec<Series> = Vec::new();
    for (cell, summary) in cells
        .iter()
        .map(|cell| (&sweep.cells[*cell], &summaries.cells[*cell]))
    {
        let label = label(sweep, &cell.levels, |index| index == line_key(across));
        let number = match lines.iter().position(|line| line.label == label) {
            Some(number) => number,
            None => {
                lines.push(Series {
                    label,
                    tone: Tone::nth(lines.len()),
                    dashed: lines.len() >= COLOURS,
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
    let mark = summaries.origin().mark();
    let y_label = match panel {
        "" => format!("{}{mark}", metric.title()),
        panel => format!("{}{mark}: {panel}", metric.title()),
    };
    let meaning = summaries.origin().meaning();
    let meaning = meaning.map_or(String::new(), |meaning| format!(" {meaning}."));
    Plot {
        title: format!("{}: {y_label}", sweep.name),
        description: format!(
            "{} over {}, mean and standard error of {} seeds.{meaning}",
            metric.title(),
            dimension.name,
            sweep.seeds.len()
        ),
        x_label: x_label(dimension),
        y_label,
        // Panels are compared.
        y_reach: summaries
            .cells
            .iter()
            .flat_map(|cell| cell.mean)
            .map(|mean| metric.shown(mean.mean))
            .collect(),
        series: lines,
        ..Plot::default()
    }
}

/// Returns the dimension whose levels are lines: the first that does not go across.
const fn line_key(across: usize) -> usize {
    if across == 0 { 1 } else { 0 }
}

/// Returns the first numeric dimension, otherwise the first one.
fn across(dimensions: &[Dimension]) -> Option<usize> {
    let numeric = dimensions
        .iter()
        .position(|dimension| dimension.numbers().is_some());
    numeric.or((!dimensions.is_empty()).then_some(0))
}

/// Returns the position of each level: its value, or its number.
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

/// Returns the levels of some dimensions.
fn label(sweep: &Sweep, levels: &[usize], of: impl Fn(usize) -> bool) -> String {
    let dimensions = sweep.dimensions.iter().zip(levels).enumerate();
    let parts = dimensions.filter(|(index, _)| of(*index));
    let parts = parts.map(|(_, (dimension, level))| {
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
        let [plot] = &*plots(&sweep, &summaries(&sweep, &runs)) else {
            unreachable!()
        };
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

    /// A third key makes panels, so that labels stay short and colours do not repeat.
    #[test]
    fn a_third_key_makes_panels() {
        let sweep = sweep(
            "[sweep]\nseeds = 1\n[sweep.grid]\n\"train.epochs\" = [1, 2]\n\
             \"train.batch_size\" = [1, 2, 3, 4, 5, 6, 7]\n\
             \"train.clip\" = [\"final\", \"every-step\"]",
        );
        let run: &[Option<f64>] = &[Some(0.5)];
        let plots = plots(&sweep, &summaries(&sweep, &[run; 28]));
        let names: Vec<&str> = plots.iter().map(|plot| plot.y_label.as_str()).collect();
        assert!(names[0].ends_with(": clip final") && names[1].ends_with(": clip every-step"));
        for plot in &plots {
            assert_eq!((plot.series.len(), plot.series[6].points.len()), (7, 2));
            assert_eq!(plot.series[0].label, "batch_size 1");
            assert!(!plot.series[5].dashed && plot.series[6].dashed);
        }
    }

    #[test]
    fn variants_stand_in_the_order_of_the_table() {
        let sweep = sweep(
            "[[sweep.variants]]\nlabel = \"a\"\n\
             [[sweep.variants]]\nlabel = \"b\"\nset = { rounds = 3 }",
        );
        let plots = plots(&sweep, &summaries(&sweep, &[&[Some(0.25)], &[Some(0.5)]]));
        assert_eq!(plots[0].x_label, "row of the table");
        assert_eq!(plots[0].series[0].points[1], Point::new(2.0, 50.0));
    }

    #[test]
    fn seeds_alone_make_no_plot() {
        let sweep = sweep("[sweep]\nseeds = 2");
        let summaries = summaries(&sweep, &[&[Some(0.5), Some(0.5)]]);
        assert_eq!(plots(&sweep, &summaries), []);
    }
}
