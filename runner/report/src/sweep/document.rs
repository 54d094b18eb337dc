//! The output of a sweep: `table.md`, `table.csv`, the terminal's table and `--json`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use serde_json::{Value, json};

use super::choice::Choice;
use super::file::Sweep;
use super::plot;
use super::summary::{CellSummary, Mean, Summaries};
use super::table::{self, Table};
use crate::report::plot::stacked_file;
use smolfed_accounting::event::PrivacyUnit;
use smolfed_engine::run_files::error::{RunDirError, damaged, write_atomically};
use smolfed_release::condition::Condition;
use smolfed_release::provenance::{MARK, Provenance};
use smolfed_release::statement::PrivacyStatement;

/// A finished sweep, ready to be written in any form.
#[derive(Clone, Debug)]
pub struct Document<'a> {
    /// The sweep.
    pub sweep: &'a Sweep,
    /// Its cells.
    pub summaries: &'a Summaries,
    /// The choice by validation.
    pub choice: Option<&'a Choice>,
    /// The command to repeat it.
    pub command: &'a str,
}

impl Document<'_> {
    /// Writes `table.md`, `table.csv` and, if cells differ in a setting, `plot.svg` into `dir`.
    ///
    /// # Errors
    /// [`RunDirError::Io`].
    pub fn write(&self, dir: &Path) -> Result<(), RunDirError> {
        write_atomically(&dir.join("table.md"), self.to_markdown().as_bytes())?;
        let path = dir.join("table.csv");
        let csv = self
            .to_csv()
            .map_err(|error| damaged(&path, error.to_string()))?;
        write_atomically(&path, &csv)?;
        match &*plot::plots(self.sweep, self.summaries) {
            [] => Ok(()),
            [plot] => write_atomically(&dir.join("plot.svg"), plot.to_svg_file().as_bytes()),
            plots => write_atomically(&dir.join("plot.svg"), stacked_file(plots).as_bytes()),
        }
    }

    /// Returns the tables for a terminal.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!("{}: {}\n", self.sweep.name, self.what());
        for table in table::tables(self.sweep, self.summaries) {
            let title = table.title.as_ref();
            let title = title.map_or_else(String::new, |title| format!("{title}\n"));
            let _ = write!(text, "\n{title}{}", table.to_text());
        }
        for line in self.privacy_lines(Table::to_text) {
            let _ = write!(text, "\n{}\n", line.trim_end());
        }
        text
    }

    /// Returns `table.md`.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let mut text = format!("# {}\n\n{}.\n", self.sweep.name, self.what());
        let _ = write!(text, "\nMade by `{}`.\n", self.command);
        let _ = write!(text, "\nData: `{}`.\n", self.sweep.data_in_words());
        for table in table::tables(self.sweep, self.summaries) {
            if let Some(title) = &table.title {
                let _ = write!(text, "\n## {title}\n");
            }
            let _ = write!(text, "\n{}", table.to_markdown());
        }
        let _ = write!(text, "\n## Privacy\n");
        for line in self.privacy_lines(Table::to_markdown) {
            // In Markdown, a mark at the start of a line would begin a list.
            let escape = if line.starts_with(MARK) { "\\" } else { "" };
            let _ = write!(text, "\n{escape}{}\n", line.trim_end());
        }
        text
    }

    /// Returns the metric, its spread and the seeds.
    fn what(&self) -> String {
        let title = self.summaries.metric.title();
        let seeds = &self.sweep.seeds;
        match seeds.as_slice() {
            [seed] => format!("{title}, seed {seed}"),
            seeds => {
                let names: Vec<_> = seeds.iter().map(u64::to_string).collect();
                format!(
                    "{title}, mean ± standard error over {} seeds ({})",
                    seeds.len(),
                    names.join(", ")
                )
            }
        }
    }

    /// Returns the meaning of every ε in the tables, and the reasons of cells without a figure.
    fn privacy_lines(&self, render: impl Fn(&Table) -> String) -> Vec<String> {
        let mut lines = Vec::new();
        lines.extend(self.summaries.origin().meaning().map(str::to_owned));
        if self.sweep.layout.columns.is_some() {
            lines.push(render(&table::noise(self.summaries)));
        }
        if let Some(table) = table::matrix_noise(self.summaries) {
            let statements = self.summaries.cells.iter();
            let mut statements = statements.filter_map(|cell| cell.matrix_statement());
            let at_most = match statements.all(|statement| statement.is_upper_bound()) {
                true => "at most, ",
                false => "",
            };
            lines.push(format!(
                "Correlation matrices: information about one example of a device in all of its \
                 matrices together, {at_most}for everybody else who knows the encoder of each \
                 round (replace-one; each device adds its own noise). This is not a statement \
                 about the encoder."
            ));
            lines.push(render(&table));
        }
        if let Some(choice) = self.choice {
            lines.push(format!(
                "{} chosen by {}, the mean over the seeds:",
                choice.keys.join(", "),
                choice.by.title()
            ));
            lines.push(render(&table::choice(self.sweep, choice)));
        }
        lines.extend(meaning(self.summaries));
        let mut cells = self.summaries.cells.iter();
        if self.sweep.seeds.len() > 1 && cells.any(CellSummary::has_known_seed) {
            lines.push(
                "These were simulations with known seeds: anyone who knows a seed can subtract the \
                 noise. The figures hold for runs with secret randomness."
                    .to_owned(),
            );
        }
        for cell in &self.summaries.cells {
            if let Some((seed, reason)) = cell.refusals.first_key_value() {
                let seeds = cell.refusals.len();
                let others = match seeds {
                    1 => String::new(),
                    _ => format!(" and {} more", seeds - 1),
                };
                let labels = cell.labels.join(", ");
                lines.push(format!(
                    "No figure for {labels} (seed {seed}{others}): {reason}."
                ));
            }
        }
        lines
    }

    /// Returns `table.csv`: one line per cell, shares as fractions of 1, the same on every machine.
    fn to_csv(&self) -> Result<Vec<u8>, csv::Error> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let names = self
            .sweep
            .dimensions
            .iter()
            .map(|dimension| dimension.name.as_str());
        let mut cells = self.summaries.cells.iter();
        let has_matrices = cells.any(|cell| cell.matrix_statement().is_some());
        let more = if has_matrices { &CSV_MATRICES[..] } else { &[] };
        let also: Vec<String> = (self.sweep.also.iter())
            .flat_map(|metric| {
                let name = metric.name();
                [
                    name.to_owned(),
                    format!("{name}_standard_error"),
                    format!("{name}_origin"),
                ]
            })
            .collect();
        let header = names.chain(CSV_HEADER).chain(more.iter().copied());
        let header = header.chain(also.iter().map(String::as_str));
        writer.write_record(header.chain(["refused"]))?;
        for cell in &self.summaries.cells {
            let mut fields = self.csv_fields(cell).to_vec();
            if has_matrices {
                fields.extend(csv_matrices(cell));
            }
            fields.extend(cell.also.iter().flat_map(|mean| {
                [
                    number(mean.map(|mean| mean.mean)),
                    number(mean.and_then(|mean| mean.standard_error)),
                    origin(*mean),
                ]
            }));
            fields.push(cell.refusals.values().next().cloned().unwrap_or_default());
            writer.write_record(cell.labels.iter().chain(&fields))?;
        }
        writer
            .into_inner()
            .map_err(|error| error.into_error().into())
    }

    /// Returns the origin of each figure of a cell, by the name of its metric.
    fn origins(&self, cell: &CellSummary) -> BTreeMap<&'static str, Provenance> {
        let metrics = [self.summaries.metric]
            .into_iter()
            .chain(self.sweep.also.iter().copied());
        let means = [cell.mean].into_iter().chain(cell.also.iter().copied());
        let pairs = metrics.zip(means);
        let origins = pairs.filter_map(|(metric, mean)| Some((metric.name(), mean?.origin)));
        origins.collect()
    }

    fn csv_fields(&self, cell: &CellSummary) -> [String; 12] {
        let statement = cell.statement();
        [
            self.summaries.metric.name().to_owned(),
            number(cell.mean.map(|mean| mean.mean)),
            number(cell.mean.and_then(|mean| mean.standard_error)),
            origin(cell.mean),
            cell.values.len().to_string(),
            number(statement.map(|s| s.epsilon)),
            number(statement.map(|s| s.delta.get())),
            statement.map_or("", |s| s.accountant.name()).to_owned(),
            statement.map_or_else(String::new, |s| s.is_upper_bound().to_string()),
            number(cell.sound_statement().map(|s| s.epsilon)),
            number(statement.map(|s| s.noise_multiplier)),
            number(statement.and_then(|s| s.noise_std)),
        ]
    }

    /// Returns one JSON document with all cells.
    #[must_use]
    pub fn to_json(&self, out: &Path) -> Value {
        let cells: Vec<Value> = (self.sweep.cells.iter().zip(&self.summaries.cells))
            .map(|(cell, summary)| {
                let statement = summary.statement();
                json!({
                    "labels": summary.labels,
                    "settings": cell.to_json(),
                    "values": summary.values.iter().map(|(seed, figure)| (seed, figure.value))
                        .collect::<BTreeMap<_, _>>(),
                    "mean": summary.mean.map(|mean| mean.mean),
                    "origin": self.origins(summary),
                    "standard_error": summary.mean.and_then(|mean| mean.standard_error),
                    "also": self.sweep.also.iter().zip(&summary.also)
                        .map(|(metric, mean)| (metric.name(), mean.map(|mean| mean.mean)))
                        .collect::<BTreeMap<_, _>>(),
                    "n": summary.values.len(),
                    "epsilon": statement.map(|s| s.epsilon).filter(|epsilon| epsilon.is_finite()),
                    "delta": statement.map(|s| s.delta),
                    "matrix_epsilon": summary.matrix_statement().map(|s| s.epsilon),
                    "noise_multiplier": statement.map(|s| s.noise_multiplier),
                    "noise_std": statement.and_then(|s| s.noise_std),
                    "privacy": summary.privacy,
                    "refusals": summary.refusals,
                    "seconds": summary.seconds,
                })
            })
            .collect();
        let names = self
            .sweep
            .dimensions
            .iter()
            .map(|dimension| &dimension.name);
        json!({
            "name": self.sweep.name,
            "metric": self.summaries.metric,
            "seeds": self.sweep.seeds,
            "dimensions": names.collect::<Vec<_>>(),
            "chosen": self.choice.map(Choice::to_json),
            "devices": self.summaries.devices,
            "command": self.command,
            "out": out,
            "cells": cells,
        })
    }
}

/// Returns a number of a table, or nothing.
fn number(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

fn origin(mean: Option<Mean>) -> String {
    mean.map_or("", |mean| mean.origin.name()).to_owned()
}

fn csv_matrices(cell: &CellSummary) -> [String; 4] {
    let matrices = cell.matrix_statement();
    [
        number(matrices.map(|s| s.epsilon)),
        matrices.map_or_else(String::new, |s| s.is_upper_bound().to_string()),
        number(matrices.map(|s| s.delta.get())),
        number(matrices.map(|s| s.noise_multiplier)),
    ]
}

const CSV_HEADER: [&str; 12] = [
    "metric",
    "mean",
    "standard_error",
    "origin",
    "n",
    "epsilon",
    "delta",
    "accountant",
    "is_upper_bound",
    "epsilon_upper",
    "noise_multiplier",
    "noise_std",
];

/// Only if devices send correlation matrices.
const CSV_MATRICES: [&str; 4] = [
    "matrix_epsilon",
    "matrix_is_upper_bound",
    "matrix_delta",
    "matrix_noise_multiplier",
];

/// Returns the meaning of the protection, for all cells at once.
fn meaning(summaries: &Summaries) -> Vec<String> {
    let statements = || summaries.cells.iter().filter_map(CellSummary::statement);
    let Some(first) = statements().next() else {
        return Vec::new();
    };
    let each = |words: fn(&PrivacyStatement) -> String| {
        let mut all: Vec<String> = Vec::new();
        for found in statements().map(words) {
            if !all.contains(&found) {
                all.push(found);
            }
        }
        all.join(" or ")
    };
    let mut lines = vec![format!(
        "Unit of privacy: one {}; adjacency: {}; trust: {}; sampling: {}; delta = {}.",
        match first.unit {
            PrivacyUnit::Device => "device",
            PrivacyUnit::Example => "example",
        },
        each(|s| s.adjacency.name().to_owned()),
        each(|s| s.trust.to_string()),
        each(sampling),
        each(|s| format!("{:.3e}", s.delta.get())),
    )];
    if statements().any(PrivacyStatement::is_without_proof) {
        lines.push(
            "No epsilon here is an upper bound: something was released that it does not cover, as \
             the notes below say."
                .to_owned(),
        );
    } else if statements().any(|statement| !statement.is_upper_bound()) {
        lines.push(
            "\"epsilon\" is the named accountant's figure. Where it is not proved, the column \
             \"upper bound\" has the epsilon that is proved for the same noise."
                .to_owned(),
        );
    } else {
        lines.push(match stated_conditions(statements()) {
            None => "Every epsilon is a proved upper bound.".to_owned(),
            Some(stated) => format!("Every epsilon is a proved upper bound if {stated}."),
        });
    }
    let cells = || {
        summaries
            .cells
            .iter()
            .filter(|cell| cell.statement().is_some())
    };
    let mut known: Vec<&String> = Vec::new();
    for note in cells().flat_map(|cell| &cell.notes) {
        if known.contains(&note) {
            continue;
        }
        known.push(note);
        if cells().all(|cell| cell.notes.contains(note)) {
            lines.push(note.clone());
        } else {
            lines.push(format!("In some cells: {note}"));
        }
    }
    lines
}

/// Returns the conditions of proved statements in a few words, without the seeds, which differ
/// between runs.
fn stated_conditions<'a>(statements: impl Iterator<Item = &'a PrivacyStatement>) -> Option<String> {
    let stated = statements.flat_map(|statement| statement.conditions().iter());
    let stated = stated.map(|condition| match condition {
        Condition::KnownSeed { .. } => "the seeds are secret".to_owned(),
        other => other.in_brief(),
    });
    let mut stated: Vec<String> = stated.collect();
    stated.sort();
    stated.dedup();
    (!stated.is_empty()).then(|| stated.join(" and "))
}

fn sampling(statement: &PrivacyStatement) -> String {
    let devices = statement.devices;
    let rounds = statement.rounds;
    match statement.sampling_rate {
        Some(rate) => format!(
            "{} at rate {rate} of {devices} devices over {rounds} rounds",
            statement.sampling
        ),
        None => format!(
            "{} of {devices} devices over {rounds} rounds",
            statement.sampling
        ),
    }
}

#[cfg(test)]
mod tests;
