//! Cells as tables of text, for the terminal and for Markdown.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ColumnConstraint, Width};

use super::choice::{Choice, Pick};
use super::file::Sweep;
use super::grid::Dimension;
use super::layout::{cell_number, with};
use super::metric::Metric;
use super::summary::{CellSummary, Mean, Summaries};
use smolfed_release::statement::PrivacyStatement;

/// Minimum width of a column: a Markdown rule has three characters or more.
const MIN_WIDTH: u16 = 3;

/// A table of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Table {
    /// The common settings of its cells, if it is one of several.
    pub(super) title: Option<String>,
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Returns columns padded to one width, the first aligned left and the others right.
    pub(super) fn to_text(&self) -> String {
        let mut table = comfy_table::Table::new();
        table.load_preset(NOTHING).add_row(&self.header);
        table.add_rows(&self.rows);
        let gap = 2;
        for (index, column) in table.column_iter_mut().enumerate() {
            if index > 0 {
                column.set_cell_alignment(CellAlignment::Right);
            }
            column.set_padding((0, gap));
            column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(
                MIN_WIDTH + gap,
            )));
        }
        table.trim_fmt() + "\n"
    }

    /// Returns a Markdown table, whose rule defines the alignment of columns.
    pub(super) fn to_markdown(&self) -> String {
        let width = |column: usize| {
            let rows = self.rows.iter().chain([&self.header]);
            let cells = rows.filter_map(|row| row.get(column));
            let widths = cells.map(|cell| cell.chars().count());
            widths.fold(usize::from(MIN_WIDTH), usize::max)
        };
        let widths: Vec<usize> = (0..self.header.len()).map(width).collect();
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&widths).enumerate();
            let cells = cells.map(|(index, (cell, &width))| match index {
                0 => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            });
            format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
        };
        let rule = widths.iter().enumerate().map(|(index, width)| match index {
            0 => "-".repeat(*width),
            _ => "-".repeat(width - 1) + ":",
        });
        let rows = self.rows.iter().map(line);
        line(&self.header) + &line(&rule.collect()) + &rows.collect::<String>()
    }
}

/// Returns the tables of a sweep: rows by columns if there are two dimensions, otherwise one row
/// per cell with its privacy cost.
pub(super) fn tables(sweep: &Sweep, summaries: &Summaries) -> Vec<Table> {
    let dimensions = &sweep.dimensions;
    let make = |levels: Vec<usize>, compare_with: Option<usize>| {
        let rest = sweep.layout.rest.iter();
        let mut parts: Vec<String> = rest
            .map(|index| {
                let dimension = &dimensions[*index];
                format!(
                    "{} = {}",
                    dimension.name, dimension.levels[levels[*index]].label
                )
            })
            .collect();
        if let (Some(level), Some(rows)) = (compare_with, sweep.layout.rows) {
            let label = &dimensions[rows].levels[level].label;
            parts.push(format!("difference from {label}, paired by seed"));
        }
        let title = parts.join(", ");
        let (header, rows) = match sweep.layout.columns {
            Some(columns) => crossed(sweep, summaries, columns, &levels, compare_with),
            None => listed(sweep, summaries),
        };
        Table {
            title: (!title.is_empty()).then_some(title),
            header,
            rows,
        }
    };
    let tables = sweep.layout.tables(dimensions).into_iter();
    let compared = sweep
        .layout
        .compare_with
        .filter(|_| sweep.layout.columns.is_some());
    let both = |levels: Vec<usize>| {
        let differences = compared.map(|level| make(levels.clone(), Some(level)));
        std::iter::once(make(levels, None)).chain(differences)
    };
    tables.flat_map(both).collect()
}

type Lines = (Vec<String>, Vec<Vec<String>>);

/// Returns rows by columns: the figure of each cell, or its difference from the same cell of one
/// row.
fn crossed(
    sweep: &Sweep,
    summaries: &Summaries,
    columns: usize,
    levels: &[usize],
    compare_with: Option<usize>,
) -> Lines {
    let across = &sweep.dimensions[columns];
    let down = sweep.layout.rows.map(|index| &sweep.dimensions[index]);
    let at = |row: usize, column: usize| {
        let levels = with(&with(levels, sweep.layout.rows, row), Some(columns), column);
        &summaries.cells[cell_number(&sweep.dimensions, &levels)]
    };
    let cell = |row: usize, column: usize| match compare_with {
        None => figure(at(row, column), summaries.metric),
        Some(base) if base == row => String::new(),
        Some(base) => change(at(row, column), at(base, column), summaries.metric),
    };
    let row = |(index, label): (usize, String)| {
        let cells = (0..across.levels.len()).map(|column| cell(index, column));
        std::iter::once(label).chain(cells).collect()
    };
    let header = across
        .levels
        .iter()
        .map(|level| match across.name.as_str() {
            Dimension::VARIANTS => level.label.clone(),
            _ => format!("{} {}", across.short_name(), level.label),
        });
    let corner = down.map_or("", Dimension::short_name).to_owned();
    let labels = down.into_iter().flat_map(|dimension| &dimension.levels);
    let labels = labels.map(|level| level.label.clone()).enumerate();
    (
        std::iter::once(corner).chain(header).collect(),
        labels.map(row).collect(),
    )
}

fn listed(sweep: &Sweep, summaries: &Summaries) -> Lines {
    let metric = summaries.metric;
    let down = sweep.layout.rows.map(|index| &sweep.dimensions[index]);
    let corner = down.map_or("sweep", Dimension::short_name).to_owned();
    let mut header = vec![corner, metric.title()];
    header.extend(sweep.also.iter().map(|metric| metric.title()));
    if sweep.is_cumulative {
        header.push("change".to_owned());
    }
    if let Some(base) = sweep.layout.compare_with {
        let label = summaries.cells[base].labels.first();
        header.push(format!("from {}", label.unwrap_or(&sweep.name)));
    }
    header.extend(PRIVACY_HEADER.map(str::to_owned));
    let mut rows = Vec::new();
    for (number, cell) in summaries.cells.iter().enumerate() {
        let label = cell.labels.first().unwrap_or(&sweep.name).clone();
        let mut row = vec![label, figure(cell, metric)];
        let also = cell.also.iter().zip(&sweep.also);
        row.extend(
            also.map(|(mean, metric)| {
                mean.map_or_else(String::new, |mean| plus_minus(mean, *metric))
            }),
        );
        if sweep.is_cumulative {
            let before = number
                .checked_sub(1)
                .and_then(|above| summaries.cells.get(above));
            row.push(before.map_or_else(String::new, |before| change(cell, before, metric)));
        }
        row.extend(sweep.layout.compare_with.map(|base| match base == number {
            true => String::new(),
            false => change(cell, &summaries.cells[base], metric),
        }));
        row.extend(privacy(cell));
        rows.push(row);
    }
    (header, rows)
}

/// Returns a paired difference with its sign, or nothing without one.
fn change(cell: &CellSummary, other: &CellSummary, metric: Metric) -> String {
    let gain = cell.gain_over(other);
    gain.map_or_else(String::new, |gain| {
        let sign = if gain.mean < 0.0 { "" } else { "+" };
        format!("{sign}{}", plus_minus(gain, metric))
    })
}

/// Returns a table of the noise, one line for each distinct kind.
pub(super) fn noise(summaries: &Summaries) -> Table {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for cell in summaries
        .cells
        .iter()
        .filter(|cell| cell.statement().is_some())
    {
        let row = privacy(cell).to_vec();
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    Table {
        title: None,
        header: PRIVACY_HEADER.map(str::to_owned).to_vec(),
        rows,
    }
}

/// Returns ε and noise of correlation matrices, once for each amount. `None` if no device sends
/// some.
pub(super) fn matrix_noise(summaries: &Summaries) -> Option<Table> {
    let mut rows: Vec<(Vec<String>, Vec<String>)> = Vec::new();
    for cell in &summaries.cells {
        let Some(statement) = cell.matrix_statement() else {
            continue;
        };
        let row = vec![
            epsilon(statement),
            format!("{:.1e}", statement.delta.get()),
            match statement.is_upper_bound() {
                true => statement.accountant.name().to_owned(),
                false => format!("{} (no bound)", statement.accountant.name()),
            },
            statement.max_participations.unwrap_or(0).to_string(),
            format!("{:.4}", statement.noise_multiplier),
        ];
        let label = cell.labels.join(", ");
        match rows.iter_mut().find(|(_, known)| *known == row) {
            Some((labels, _)) => labels.push(label),
            None => rows.push((vec![label], row)),
        }
    }
    let line = |(labels, row): (Vec<String>, Vec<String>)| [vec![labels.join("; ")], row].concat();
    (!rows.is_empty()).then(|| Table {
        title: None,
        header: MATRIX_HEADER.map(str::to_owned).to_vec(),
        rows: rows.into_iter().map(line).collect(),
    })
}

/// Returns the choice for each combination of the shown settings.
pub(super) fn choice(sweep: &Sweep, choice: &Choice) -> Table {
    let shown = sweep.dimensions.iter().map(Dimension::short_name);
    let short = |key: &String| key.rsplit('.').next().unwrap_or(key).to_owned();
    let header = shown
        .map(str::to_owned)
        .chain(choice.keys.iter().map(short))
        .chain([choice.by.title()]);
    let row = |pick: &Pick| {
        let labels = pick.shown.iter().chain(&pick.chosen).cloned();
        labels.chain([plus_minus(pick.figure, choice.by)]).collect()
    };
    Table {
        title: None,
        header: header.collect(),
        rows: choice.picks.iter().map(row).collect(),
    }
}

const MATRIX_HEADER: [&str; 6] = [
    "of",
    "matrix epsilon",
    "delta",
    "accountant",
    "most releases of a device",
    "noise multiplier",
];

const PRIVACY_HEADER: [&str; 5] = [
    "epsilon",
    "accountant",
    "upper bound",
    "noise multiplier",
    "noise std",
];

fn epsilon(statement: &PrivacyStatement) -> String {
    match statement.epsilon.is_finite() {
        true => format!("{:.3}", statement.epsilon),
        false => "infinite".to_owned(),
    }
}

/// Returns ε of the runs' own accountant, its name, the proved ε, z and ν.
fn privacy(cell: &CellSummary) -> [String; 5] {
    let Some(statement) = cell.statement() else {
        return ["", "", "", "", ""].map(str::to_owned);
    };
    [
        epsilon(statement),
        statement.accountant.name().to_owned(),
        cell.sound_statement()
            .map_or_else(|| "unknown".to_owned(), epsilon),
        format!("{:.4}", statement.noise_multiplier),
        // The noise follows a changing clip norm, or one selected for each seed.
        match statement
            .noise_std
            .filter(|_| statement.selection.is_none())
        {
            None if statement.noise_multiplier > 0.0 => "varies".to_owned(),
            std => format!("{:.4}", std.unwrap_or(0.0)),
        },
    ]
}

/// Returns "84.29 ± 0.12", or the reason why there is no such figure.
fn figure(cell: &CellSummary, metric: Metric) -> String {
    match (cell.mean, cell.refusals.is_empty()) {
        (Some(mean), true) => plus_minus(mean, metric),
        (Some(mean), false) => {
            let all = cell.values.len() + cell.refusals.len();
            format!(
                "{} ({} of {all})",
                plus_minus(mean, metric),
                cell.values.len()
            )
        }
        (None, false) => "infeasible".to_owned(),
        (None, true) => String::new(),
    }
}

fn plus_minus(mean: Mean, metric: Metric) -> String {
    let digits = metric.digits();
    let shown = |value| format!("{:.digits$}", metric.shown(value));
    let mark = mean.origin.mark();
    match mean.standard_error {
        Some(error) => format!("{} ± {}{mark}", shown(mean.mean), shown(error)),
        None => shown(mean.mean) + mark,
    }
}

#[cfg(test)]
mod tests;
