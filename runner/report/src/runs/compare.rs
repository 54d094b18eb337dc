//! Several runs side by side (`smolfed runs compare`): the last and the best value of each figure,
//! their curves, and the differences in their settings.

use serde_json::{Map, Value, json};

use super::error::RunsError;
use super::figures::{self, AGES, EPSILON, Quality, Round, SECONDS, WASTED, names};
use super::record::Run;
use super::selection::Selected;
use super::settings::{self, Difference, Settings};
use super::spent::{self, Notes};
use crate::report::comparison::{self, Panel};
use crate::report::plot::{Point, Series, Tone};
use crate::windows::{ages_in_words, wasted_in_words};
use smolfed_engine::round::WindowTally;
use smolfed_release::number::{significant, upper};
use smolfed_release::provenance::Provenance;

/// Maximum number of curves on one plot that colours and dashes distinguish.
const MAX_CURVES: usize = 12;
/// Number of solid curves among them.
const MAX_COLOURS: usize = 6;

/// Several runs side by side.
#[derive(Clone, Copy, Debug)]
pub struct Comparison<'a> {
    runs: &'a [Selected],
}

/// The rows of a table. The first one is its head.
pub type Rows = Vec<Vec<String>>;

impl<'a> Comparison<'a> {
    /// Returns a comparison of these runs.
    #[must_use]
    pub const fn new(runs: &'a [Selected]) -> Self {
        Self { runs }
    }

    /// Returns the figures, each with its last and its best value, and the lines below.
    #[must_use]
    pub fn figures(&self) -> (Rows, Vec<String>) {
        let mut notes = Notes::default();
        let delta = |run: &Run| {
            let first = run.statements.first();
            first.map_or("–".to_owned(), |s| upper(s.delta.get(), 4))
        };
        let mut rows = vec![
            self.head("figure"),
            self.row("method", |run| run.config.method.name().to_owned()),
            self.row("state", |run| run.state.name().to_owned()),
            self.row("rounds", |run| {
                format!("{}/{}", run.rounds.len(), run.config.rounds)
            }),
            self.row("epsilon", |run| spent::words(run, &mut notes)),
            self.row("delta", delta),
            self.row(&self.marked(SECONDS), |run| significant(run.seconds(), 3)),
        ];
        rows.extend(self.windows());
        let mut worst = self.origin(SECONDS);
        for name in self.judging() {
            let shown = |run: &Run, value: Option<(u32, f64)>| {
                let quality = Quality::of(name, &run.rounds);
                let words = quality.zip(value).map(|(q, (_, value))| q.words(value));
                words.unwrap_or_else(|| "–".to_owned())
            };
            let last = |run: &Run| shown(run, figures::last(name, &run.rounds));
            worst = worst.max(self.origin(name));
            let name_with_mark = self.marked(name);
            rows.push(self.row(&name_with_mark, last));
            rows.push(self.row(&format!("{name_with_mark}, best"), |run| {
                let best = best(name, &run.rounds);
                let after = best.map_or(String::new(), |(done, _)| format!(" (round {done})"));
                shown(run, best) + &after
            }));
        }
        let meaning = worst.meaning().map(str::to_owned).into_iter();
        (rows, meaning.chain(notes.lines()).collect())
    }

    /// Returns the configuration keys that differ, with a column for each run.
    #[must_use]
    pub fn differences(&self) -> Rows {
        let mut rows = vec![self.head("key")];
        for (key, values) in self.different() {
            let words = values
                .iter()
                .map(|v| v.map_or("–".to_owned(), settings::words));
            rows.push(std::iter::once(key.to_owned()).chain(words).collect());
        }
        rows
    }

    /// Returns one JSON document.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let runs = self.runs.iter().map(|Selected { label, run }| {
            let statement = run.statements.first();
            let figures = names(&run.rounds).into_iter().filter_map(|name| {
                let (rounds, last) = figures::last(name, &run.rounds)?;
                let origin = figures::origin(name, &run.rounds);
                let mut figure = json!({"final": last, "after_rounds": rounds, "origin": origin});
                if let Some((rounds, best)) = best(name, &run.rounds) {
                    figure["best"] = json!(best);
                    figure["best_after_rounds"] = json!(rounds);
                }
                Some((name.to_owned(), figure))
            });
            json!({
                "run": run.path,
                "label": label,
                "name": run.config.name,
                "method": run.config.method.name(),
                "rounds": run.rounds.len(),
                "rounds_planned": run.config.rounds,
                "state": run.state.name(),
                // Null if no finite ε holds.
                "epsilon": statement.map(|s| s.epsilon),
                "delta": statement.map(|s| s.delta),
                "privacy": run.statements,
                "seconds": run.seconds(),
                "figures": figures.collect::<Map<_, _>>(),
            })
        });
        let differences = self.different().into_iter();
        let differences = differences.map(|(key, values)| (key.to_owned(), json!(values)));
        json!({
            "runs": runs.collect::<Vec<_>>(),
            "differences": differences.collect::<Map<_, _>>(),
        })
    }

    /// Returns a page with the figures and the curves.
    ///
    /// # Errors
    /// [`RunsError::TooManyCurves`].
    pub fn to_html(&self) -> Result<String, RunsError> {
        if self.runs.len() > MAX_CURVES {
            return Err(RunsError::TooManyCurves {
                runs: self.runs.len(),
                max: MAX_CURVES,
            });
        }
        let (figures, notes) = self.figures();
        let panels = self.judging().into_iter().chain([EPSILON]);
        let panels = panels.map(|name| self.panel(name));
        let words = |run: &Run| run.statements.iter().map(|s| s.in_words()).collect();
        Ok(comparison::render(&comparison::Comparison {
            names: self.runs.iter().map(|of| of.label.clone()).collect(),
            figures,
            notes,
            differences: self.differences(),
            panels: panels.filter(|panel| !panel.series.is_empty()).collect(),
            statements: (self.runs.iter())
                .map(|of| (of.label.clone(), words(&of.run)))
                .collect(),
        }))
    }

    /// Returns the shares of updates by age, and of wasted participations, if any run has windows
    /// of time.
    fn windows(&self) -> Rows {
        let runs = self.runs.iter();
        let totals: Vec<_> = runs.map(|of| windows(&of.run.rounds)).collect();
        if totals.iter().all(Option::is_none) {
            return Rows::new();
        }
        type Words = fn(&WindowTally) -> String;
        let figures: [(&str, Words); 2] = [
            ("updates by age", ages_in_words),
            ("wasted participations", wasted_in_words),
        ];
        let rows = figures.into_iter().map(|(name, words)| {
            let cells = totals.iter().map(Option::as_ref);
            let cells = cells.map(|of| of.map_or("–".to_owned(), words));
            std::iter::once(name.to_owned()).chain(cells).collect()
        });
        rows.collect()
    }

    fn head(&self, first: &str) -> Vec<String> {
        let labels = self.runs.iter().map(|of| of.label.clone());
        std::iter::once(first.to_owned()).chain(labels).collect()
    }

    fn row(&self, name: &str, cell: impl FnMut(&Run) -> String) -> Vec<String> {
        let cells = self.runs.iter().map(|of| &of.run).map(cell);
        std::iter::once(name.to_owned()).chain(cells).collect()
    }

    /// Returns the figures that judge a model, in any run.
    fn judging(&self) -> Vec<&'a str> {
        let rounds = self.runs.iter().flat_map(|of| &of.run.rounds);
        let mut names = names(rounds);
        names.retain(|name| Quality::of(name, &[]).is_some());
        names
    }

    fn different(&self) -> Vec<Difference<'a>> {
        let settings: Vec<&Settings> = self.runs.iter().map(|of| &of.run.settings).collect();
        settings::differences(&settings)
    }

    /// Returns the most restrictive origin of a figure in all runs.
    fn origin(&self, name: &str) -> Provenance {
        let runs = self.runs.iter();
        let origins = runs.map(|of| figures::origin(name, &of.run.rounds));
        origins.max().unwrap_or(Provenance::Public)
    }

    /// Returns the name of a figure with its mark.
    fn marked(&self, name: &str) -> String {
        format!("{name}{}", self.origin(name).mark())
    }

    /// Returns a figure of all runs over rounds.
    fn panel(&self, name: &str) -> Panel {
        let all = || self.runs.iter().map(|of| of.run.rounds.as_slice());
        let quality = all().find_map(|rounds| Quality::of(name, rounds));
        let is_share = quality.is_some_and(|quality| quality.is_share);
        let series = self.runs.iter().enumerate().filter_map(|(index, of)| {
            let unit = if is_share { 100.0 } else { 1.0 };
            let values = of.run.rounds.iter().filter_map(|round| {
                let value = round.get(name).filter(|value| value.is_finite())?;
                Some((value, Point::new(f64::from(round.done()), unit * value)))
            });
            let (values, points): (Vec<f64>, Vec<Point>) = values.unzip();
            let last = *values.last()?;
            Some(Series {
                label: of.label.clone(),
                end: quality.map_or_else(|| upper(last, 4), |quality| quality.words(last)),
                points,
                tone: Tone::nth(index),
                dashed: index >= MAX_COLOURS,
            })
        });
        let series = series.collect();
        Panel {
            title: name.to_owned(),
            axis: format!("{name}{}", if is_share { ", %" } else { "" }),
            origin: self.origin(name),
            series,
        }
    }
}

/// Returns the totals of the windows among these rounds. `None` without any.
fn windows(rounds: &[Round]) -> Option<WindowTally> {
    WindowTally::total(rounds.iter().filter_map(|round| {
        // The values are counts.
        let wasted = round.get(WASTED)? as u64;
        let ages = (0..).map_while(|age| round.get(&format!("{AGES}.{age}")));
        let ages = ages.map(|count| count as u64).collect();
        Some(WindowTally { ages, wasted })
    }))
}

fn best(name: &str, rounds: &[Round]) -> Option<(u32, f64)> {
    Quality::of(name, rounds)?.best(name, rounds)
}

#[cfg(test)]
mod tests {
    use super::super::export::fixture::run;
    use super::*;

    const WINDOWS: [&str; 2] = [
        r#"{"round":0,"ages":[10,0],"wasted":0,"origin":{"ages":"public","wasted":"public"}}"#,
        r#"{"round":1,"ages":[5,5],"wasted":5,"origin":{"ages":"public","wasted":"public"}}"#,
    ];

    #[test]
    fn windows_have_rows_where_any_run_has_them() {
        let runs = [run("a", &WINDOWS), run("b", &[r#"{"round":0}"#])];
        let (rows, _) = Comparison::new(&runs).figures();
        for expected in [
            ["updates by age", "75 %, 25 %", "–"],
            ["wasted participations", "20.0 %", "–"],
        ] {
            assert!(rows.iter().any(|row| row == &expected), "{rows:?}");
        }
        let (rows, _) = Comparison::new(&runs[1..]).figures();
        assert!(
            rows.iter().all(|row| row[0] != "updates by age"),
            "{rows:?}"
        );
    }

    #[test]
    fn the_document_has_the_counts_of_the_last_window() {
        let document = Comparison::new(&[run("a", &WINDOWS)]).to_json();
        let figures = &document["runs"][0]["figures"];
        assert_eq!(figures["ages.1"]["final"], json!(5.0));
        assert_eq!(figures["wasted"]["origin"], json!("public"));
    }
}
