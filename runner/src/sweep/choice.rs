//! Settings that are chosen by validation and not shown: for each combination of the others, the one
//! with the best mean over the seeds.
//!
//! Looking at validation figures costs privacy that no ε here covers; public data of the same kind, or a
//! part of the budget, would have to pay for it.

use serde_json::{Value, json};

use super::SweepError;
use super::file::Sweep;
use super::grid::{Cell, Dimension};
use super::metric::Metric;
use super::results::Results;
use super::summary::{Mean, Summaries};

/// What was chosen for each combination of the settings that are shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The keys that were chosen.
    pub keys: Vec<String>,
    /// By which figure.
    pub by: Metric,
    /// The labels of the shown settings, those of the chosen ones, and the figure.
    pub picks: Vec<(Vec<String>, Vec<String>, Mean)>,
}

impl Choice {
    /// The picks, each with its settings by key.
    pub(super) fn to_json(&self) -> Value {
        let pick = |(shown, chosen, mean): &(Vec<String>, Vec<String>, Mean)| json!({ "labels": shown, "chosen": chosen, "mean": mean.mean });
        json!({
            "keys": self.keys,
            "by": self.by,
            "picks": self.picks.iter().map(pick).collect::<Vec<_>>(),
        })
    }
}

/// The sweep and its cells with the chosen keys gone; `None` if none are to be chosen.
///
/// # Errors
/// [`SweepError::Metric`] if a combination has no run with the figure to choose by.
pub fn choose(
    sweep: &Sweep,
    results: &Results,
    summaries: &Summaries,
) -> Result<Option<(Sweep, Summaries, Choice)>, SweepError> {
    let Some(by) = sweep.choose_by else {
        return Ok(None);
    };
    let (chosen, shown): (Vec<usize>, Vec<usize>) =
        (0..sweep.dimensions.len()).partition(|index| sweep.choose.contains(index));
    let project = |cell: &Cell, places: &[usize]| -> Vec<usize> {
        places.iter().map(|place| cell.levels[*place]).collect()
    };
    let label = |cell: &Cell, places: &[usize]| -> Vec<String> {
        let level = |place: &usize| &sweep.dimensions[*place].levels[cell.levels[*place]];
        places
            .iter()
            .map(|place| level(place).label.clone())
            .collect()
    };
    let figure = |cell: &Cell| {
        let runs = sweep
            .seeds
            .iter()
            .filter_map(|seed| results.get(cell, *seed));
        let values: Vec<f64> = runs.filter_map(|run| run.figure(by)).collect();
        Mean::new(&values)
    };
    let is_better = |new: Mean, old: Mean| match by.is_error() {
        true => new.mean < old.mean,
        false => new.mean > old.mean,
    };

    let dimensions: Vec<Dimension> = shown.iter().map(|i| sweep.dimensions[*i].clone()).collect();
    let mut reduced = sweep.clone();
    reduced.dimensions = dimensions;
    reduced.cells.clear();
    reduced.choose.clear();
    reduced.choose_by = None;
    let mut kept = Summaries {
        cells: Vec::new(),
        ..summaries.clone()
    };
    let keys = chosen
        .iter()
        .map(|i| sweep.dimensions[*i].name.clone())
        .collect();
    let mut choice = Choice {
        keys,
        by,
        picks: Vec::new(),
    };
    let mut seen: Vec<Vec<usize>> = Vec::new();
    for cell in &sweep.cells {
        let levels = project(cell, &shown);
        if seen.contains(&levels) {
            continue;
        }
        let rivals = || {
            let all = sweep.cells.iter().zip(&summaries.cells);
            all.filter(|(rival, _)| project(rival, &shown) == levels)
        };
        // The first among equals.
        let best = rivals().fold(None, |best, (rival, summary)| match (best, figure(rival)) {
            (Some((_, _, old)), Some(new)) if !is_better(new, old) => best,
            (_, Some(new)) => Some((rival, summary, new)),
            (best, None) => best,
        });
        // Where nothing can run, all rivals say the same.
        let Some((rival, summary, mean)) = best.or_else(|| {
            let (rival, summary) = rivals().next()?;
            Some((
                rival,
                summary,
                Mean {
                    mean: f64::NAN,
                    standard_error: None,
                },
            ))
        }) else {
            continue;
        };
        if !mean.mean.is_nan() {
            choice
                .picks
                .push((label(rival, &shown), label(rival, &chosen), mean));
        } else if summary.mean.is_some() {
            return Err(SweepError::Metric {
                metric: by,
                known: "no such figure; is there a validation part?".to_owned(),
            });
        }
        let mut summary = summary.clone();
        summary.labels = label(rival, &shown);
        kept.cells.push(summary);
        reduced.cells.push(Cell {
            levels: levels.clone(),
            settings: rival.settings.clone(),
        });
        seen.push(levels);
    }
    Ok(Some((reduced, kept, choice)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::fixture::{record, sweep};

    /// The best of each row by the figure, the first among equals, and a table without the rest.
    #[test]
    fn the_best_of_each_is_kept() {
        let sweep = sweep(
            "[sweep]\nseeds = 2\nchoose = [\"train.epochs\"]\nchoose_by = \"test_accuracy\"\n\
             [sweep.grid]\n\"train.clip\" = [\"final\", \"every-step\"]\n\"train.epochs\" = [1, 2, 3]",
        );
        let folder = tempfile::tempdir().unwrap();
        let mut results = Results::fresh(folder.path());
        for (cell, accuracy) in [0.2, 0.7, 0.7, 0.9, 0.1, 0.3].into_iter().enumerate() {
            for seed in [5, 6] {
                results.add(record(&sweep, cell, seed, accuracy)).unwrap();
            }
        }
        let summaries = Summaries::new(&sweep, &results, &[]).unwrap();
        let (reduced, kept, choice) = choose(&sweep, &results, &summaries).unwrap().unwrap();
        assert_eq!(reduced.dimensions.len(), 1);
        let means: Vec<f64> = kept
            .cells
            .iter()
            .map(|cell| cell.mean.unwrap().mean)
            .collect();
        assert_eq!(means, [0.7, 0.9]);
        let picks: Vec<_> = choice
            .picks
            .iter()
            .map(|(a, b, _)| (&a[0][..], &b[0][..]))
            .collect();
        assert_eq!(picks, [("final", "2"), ("every-step", "1")]);
        assert_eq!(
            (reduced.layout.rows, reduced.layout.columns),
            (Some(0), None)
        );
    }
}
