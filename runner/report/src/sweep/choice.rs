//! Settings chosen by validation and not shown: for each combination of the others, the one with
//! the best mean over the seeds.
//!
//! Looking at validation figures costs privacy not covered by any ε here, unless they are from
//! public data of the same kind. `private.rs` has a choice that ε covers.

use serde_json::{Value, json};

use super::SweepError;
use super::file::Sweep;
use super::grid::Cell;
use super::metric::Metric;
use super::results::Results;
use super::summary::{CellSummary, Mean, Summaries};
use smolfed_release::condition::Condition;
use smolfed_release::provenance::Figure;

/// The choice for each combination of the shown settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The chosen keys.
    pub keys: Vec<String>,
    /// The deciding figure.
    pub by: Metric,
    /// One for each combination.
    pub picks: Vec<Pick>,
}

/// The best settings of one combination.
#[derive(Clone, Debug, PartialEq)]
pub struct Pick {
    /// The labels of the shown settings.
    pub shown: Vec<String>,
    /// The labels of the chosen settings.
    pub chosen: Vec<String>,
    /// The figure that decided.
    pub figure: Mean,
}

impl Choice {
    /// Returns the picks, each with its settings by key.
    pub(super) fn to_json(&self) -> Value {
        let pick = |Pick {
                        shown,
                        chosen,
                        figure,
                    }: &Pick| {
            let (mean, origin) = (figure.mean, figure.origin);
            json!({ "labels": shown, "chosen": chosen, "mean": mean, "origin": origin })
        };
        json!({
            "keys": self.keys,
            "by": self.by,
            "picks": self.picks.iter().map(pick).collect::<Vec<_>>(),
        })
    }
}

/// A sweep and its cells without the chosen keys.
#[derive(Clone, Debug)]
pub struct Reduced {
    /// The sweep over the shown settings.
    pub sweep: Sweep,
    /// Its cells.
    pub summaries: Summaries,
    /// The choice for each.
    pub choice: Choice,
}

/// Returns the sweep and its cells without the chosen keys. `None` if there is nothing to choose.
///
/// # Errors
/// [`SweepError::Metric`] if a combination has no run with the deciding figure.
pub fn choose(
    sweep: &Sweep,
    results: &Results,
    summaries: &Summaries,
) -> Result<Option<Reduced>, SweepError> {
    let Some(by) = sweep.choose_by else {
        return Ok(None);
    };
    let (chosen, shown): (Vec<usize>, Vec<usize>) =
        (0..sweep.dimensions.len()).partition(|index| sweep.choose.contains(index));
    let dimension = |index: &usize| &sweep.dimensions[*index];
    let mut reduced = sweep.clone();
    reduced.dimensions = shown.iter().map(dimension).cloned().collect();
    reduced.cells.clear();
    reduced.choose.clear();
    reduced.choose_by = None;
    let mut kept = summaries.clone();
    kept.cells.clear();
    let mut choice = Choice {
        keys: chosen.iter().map(|i| dimension(i).name.clone()).collect(),
        by,
        picks: Vec::new(),
    };
    for cell in &sweep.cells {
        let levels = levels(cell, &shown);
        if reduced.cells.iter().any(|known| known.levels == levels) {
            continue;
        }
        let rivals: Vec<Rival<'_>> = (sweep.cells.iter().zip(&summaries.cells))
            .filter(|(rival, _)| self::levels(rival, &shown) == levels)
            .map(|(cell, summary)| Rival {
                cell,
                summary,
                figure: figure(sweep, results, cell, by),
            })
            .collect();
        // If none can run, all rivals have the same reason.
        let Some(rival) = best(&rivals, by).or(rivals.first()) else {
            continue;
        };
        let labels = labels(sweep, rival.cell, &shown);
        match rival.figure {
            Some(figure) => choice.picks.push(Pick {
                shown: labels.clone(),
                chosen: self::labels(sweep, rival.cell, &chosen),
                figure,
            }),
            None if rival.summary.mean.is_some() => {
                return Err(SweepError::Metric {
                    metric: by,
                    known: "no such figure; is there a validation part?".to_owned(),
                });
            }
            None => {}
        }
        kept.cells.push(CellSummary {
            labels,
            ..rival.summary.clone()
        });
        reduced.cells.push(Cell {
            levels,
            settings: rival.cell.settings.clone(),
        });
    }
    // A choice by figures of public samples costs nothing.
    if choice
        .picks
        .iter()
        .any(|pick| !pick.figure.origin.is_public())
    {
        kept.state(&Condition::ChosenOnRows { figure: by.title() });
    }
    Ok(Some(Reduced {
        sweep: reduced,
        summaries: kept,
        choice,
    }))
}

/// A cell among cells that differ only in the chosen settings.
struct Rival<'a> {
    cell: &'a Cell,
    summary: &'a CellSummary,
    figure: Option<Mean>,
}

/// Returns the first one with the best figure.
fn best<'a, 'b>(rivals: &'b [Rival<'a>], by: Metric) -> Option<&'b Rival<'a>> {
    let is_better = |new: Mean, old: Mean| match by.is_error() {
        true => new.mean < old.mean,
        false => new.mean > old.mean,
    };
    let mut best: Option<(&Rival<'_>, Mean)> = None;
    for rival in rivals {
        if let Some(figure) = rival.figure
            && best.is_none_or(|(_, old)| is_better(figure, old))
        {
            best = Some((rival, figure));
        }
    }
    best.map(|(rival, _)| rival)
}

/// Returns the mean over the seeds of the runs of a cell.
fn figure(sweep: &Sweep, results: &Results, cell: &Cell, by: Metric) -> Option<Mean> {
    let seeds = sweep.seeds.iter();
    let runs = seeds.filter_map(|seed| results.get(cell, *seed));
    Mean::new(
        &runs
            .filter_map(|run| run.figure(by))
            .collect::<Vec<Figure>>(),
    )
}

fn levels(cell: &Cell, dimensions: &[usize]) -> Vec<usize> {
    dimensions.iter().map(|index| cell.levels[*index]).collect()
}

fn labels(sweep: &Sweep, cell: &Cell, dimensions: &[usize]) -> Vec<String> {
    let level = |index: &usize| &sweep.dimensions[*index].levels[cell.levels[*index]];
    dimensions
        .iter()
        .map(|index| level(index).label.clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::fixture::{record, sweep};

    /// The best of each row by the figure, the first of equal ones, and a table without the others.
    #[test]
    fn the_best_of_each_is_kept() {
        let sweep = sweep(
            "[sweep]\nseeds = 2\nchoose = [\"train.epochs\"]\nchoose_by = \"test_accuracy\"\n\
             [sweep.grid]\n\"train.clip\" = [\"final\", \"every-step\"]\n\
             \"train.epochs\" = [1, 2, 3]",
        );
        let folder = tempfile::tempdir().unwrap();
        let mut results = Results::fresh(folder.path());
        for (cell, accuracy) in [0.2, 0.7, 0.7, 0.9, 0.1, 0.3].into_iter().enumerate() {
            for seed in [5, 6] {
                results.add(record(&sweep, cell, seed, accuracy)).unwrap();
            }
        }
        let summaries = Summaries::new(&sweep, &results, &[]).unwrap();
        let reduced = choose(&sweep, &results, &summaries).unwrap().unwrap();
        assert_eq!(reduced.sweep.dimensions.len(), 1);
        let means: Vec<f64> = reduced
            .summaries
            .cells
            .iter()
            .map(|cell| cell.mean.unwrap().mean)
            .collect();
        assert_eq!(means, [0.7, 0.9]);
        let picks: Vec<_> = reduced
            .choice
            .picks
            .iter()
            .map(|pick| (&pick.shown[0][..], &pick.chosen[0][..]))
            .collect();
        assert_eq!(picks, [("final", "2"), ("every-step", "1")]);
        assert_eq!(
            (reduced.sweep.layout.rows, reduced.sweep.layout.columns),
            (Some(0), None)
        );
    }
}
