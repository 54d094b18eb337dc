//! The output of `smolfed account` and `smolfed plan`: the table of accountants, its meaning, ε
//! over rounds, and trade-off curves.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::cli::CliError;
use crate::cli::text::{aligned, wrapped};
use smolfed_accounting::accountant::{Accountant, AccountingError, Estimate};
use smolfed_accounting::adaptive::Odometer;
use smolfed_accounting::comparison::Comparison;
use smolfed_accounting::event::PrivacyEvent;
use smolfed_accounting::params::ClipNorm;
use smolfed_accounting::trade_off::TradeOff;
use smolfed_release::condition::{Conditions, Effect};
use smolfed_release::number::{lower, upper};
use smolfed_release::statement::{PrivacyStatement, replace_one};
use smolfed_report::report::plot::{Plot, Point, Scale, Series, stacked_file};

/// False-positive rates of the terminal's table.
const FALSE_POSITIVE_RATES: [f64; 5] = [0.001, 0.01, 0.05, 0.1, 0.25];
/// Points of a drawn trade-off curve.
const CURVE_POINTS: u32 = 200;
/// Places at which ε over rounds is computed.
const ROUND_POINTS: u64 = 20;

/// The best figure and what follows from it.
pub(super) struct Document {
    statement: PrivacyStatement,
    trade_off: TradeOff,
    /// ε under replace-one of events accounted under add-remove.
    replace_one: Option<f64>,
    /// ε after this many rounds. Empty for events of several kinds.
    over_rounds: Vec<(u64, f64)>,
    answers: Vec<Value>,
    /// Notes on figures that are no bounds.
    notes: Vec<String>,
    /// Of a ledger: what is proved if its rounds were not planned beforehand.
    adaptive: Option<Adaptive>,
    /// More figures, drawn above the trade-off curve.
    figures: Vec<Plot>,
}

/// What a ledger costs if runs, or rounds, were decided on in view of earlier ones.
pub(super) struct Adaptive {
    /// Runs in the ledger.
    pub(super) runs: usize,
    /// The reading of an odometer.
    pub(super) odometer: Odometer,
}

impl Document {
    /// Of the figures of several accountants for `events`.
    ///
    /// # Errors
    /// The reason of the first of them, if none has a figure.
    pub(super) fn new(
        comparison: &Comparison<Estimate, AccountingError>,
        events: &[PrivacyEvent],
        clip_norm: Option<ClipNorm>,
    ) -> Result<Self, CliError> {
        let best = comparison.best();
        let made = best.and_then(|best| {
            let statement = PrivacyStatement::new(best, events, clip_norm)?;
            Some((best, statement))
        });
        let Some((best, statement)) = made else {
            let reason = comparison.refused().next();
            return Err(CliError::Usage(reason.map_or_else(
                || "nothing was released".to_owned(),
                |(_, error)| error.to_string(),
            )));
        };
        let notes = comparison.found().filter(|(_, e)| !e.is_upper_bound());
        let notes = notes.flat_map(|(_, estimate)| {
            let accountant = estimate.accountant;
            let notes = estimate.notes.iter();
            notes.map(move |note| format!("{accountant}: {note}"))
        });
        Ok(Self {
            trade_off: TradeOff::of_events(best, events),
            replace_one: replace_one(events, best.delta),
            over_rounds: over_rounds(best.accountant, events, best),
            answers: comparison.answers.iter().map(answer_json).collect(),
            notes: notes.collect(),
            statement,
            adaptive: None,
            figures: Vec::new(),
        })
    }

    /// The same for the rounds of a ledger, under its conditions.
    pub(super) fn of_ledger(mut self, adaptive: Adaptive, conditions: Conditions) -> Self {
        let conditions = conditions.iter().cloned();
        self.statement = conditions.fold(self.statement, PrivacyStatement::with_note);
        if !self.statement.is_upper_bound() {
            let flags = self.answers.iter_mut();
            for flag in flags.filter_map(|answer| answer.get_mut("is_upper_bound")) {
                *flag = json!(false);
            }
        }
        Self {
            adaptive: Some(adaptive),
            ..self
        }
    }

    /// The same with more sentences in its statement, and with more figures.
    pub(super) fn with(mut self, notes: Vec<String>, figures: Vec<Plot>) -> Self {
        self.statement.notes.extend(notes);
        Self { figures, ..self }
    }

    /// The whole as text, below a table that the command makes.
    pub(super) fn to_text(&self, table: &str, is_terminal: bool) -> String {
        let mut text = format!("{table}\n");
        for note in &self.notes {
            let _ = writeln!(text, "{}", wrapped(note, is_terminal));
        }
        let condition = match &self.adaptive {
            Some(_) => "If the schedule was fixed beforehand (runs, rounds, noise, sampling): ",
            None => "",
        };
        let statement = format!("{condition}{}", self.statement.in_words());
        let _ = writeln!(text, "\n{}", wrapped(&statement, is_terminal));
        if let Some(adaptive) = self.adaptive.as_ref().filter(|_| self.is_covered()) {
            let sentence = wrapped(&self.in_any_case(adaptive), is_terminal);
            let _ = writeln!(text, "\n{sentence}");
        }
        let is_said = self.statement.epsilon_replace_one.is_some();
        if let Some(epsilon) = self.replace_one.filter(|_| !is_said) {
            let unit = match self.statement.devices_per_user {
                Some(devices) => format!("user with up to {devices} devices"),
                None => "device".to_owned(),
            };
            let epsilon = match self.statement.is_upper_bound() {
                true => format!("at most {}", figure(epsilon)),
                false => format!("about {} (no bound)", figure(epsilon)),
            };
            let line = format!(
                "Under replace-one adjacency (the data of one {unit} are replaced by other data, \
                 as for uniform sampling), epsilon is {epsilon}."
            );
            let _ = writeln!(text, "{}", wrapped(&line, is_terminal));
        }
        let _ = write!(text, "\n{}", aligned(&self.trade_off_rows()));
        let rows = self.round_rows();
        if !rows.is_empty() {
            let _ = write!(text, "\n{}", aligned(&rows));
        }
        text
    }

    /// Whether the charges of a ledger cover all that was released.
    fn is_covered(&self) -> bool {
        !self.statement.is_without_proof()
    }

    /// What is proved without the condition.
    fn in_any_case(&self, adaptive: &Adaptive) -> String {
        let runs = match adaptive.runs {
            1 => "the run was stopped".to_owned(),
            runs => format!("any of the {runs} runs was started, configured or stopped"),
        };
        let delta = upper(self.statement.delta.get(), 4);
        let stated = self
            .statement
            .conditions()
            .in_brief(Effect::Stated, " and ");
        let stated = stated.map_or(String::new(), |stated| format!(" if {stated}"));
        format!(
            "If {runs} in view of earlier releases, epsilon = {} at delta = {delta} is proved (a \
             Rényi odometer){stated}. For a run that was stopped early, the figure of its whole \
             plan is proved as well.",
            figure(adaptive.odometer.epsilon)
        )
    }

    fn trade_off_rows(&self) -> Vec<Vec<String>> {
        let row = |title: &str, figure: &dyn Fn(f64) -> f64| {
            let cells = FALSE_POSITIVE_RATES
                .iter()
                .map(|rate| percent(figure(*rate)));
            [title.to_owned()].into_iter().chain(cells).collect()
        };
        let title = match self.statement.is_upper_bound() {
            true => "the true-positive rate is at most",
            false => "the true-positive rate is about (no bound)",
        };
        vec![
            row("At a false-positive rate of", &|rate| rate),
            row(title, &|rate| self.trade_off.true_positive_rate(rate)),
        ]
    }

    fn round_rows(&self) -> Vec<Vec<String>> {
        let chosen: Vec<&(u64, f64)> = self
            .over_rounds
            .iter()
            .rev()
            .step_by(self.over_rounds.len().div_ceil(5).max(1))
            .collect();
        if chosen.len() < 2 {
            return Vec::new();
        }
        let row = |title: &str, cell: &dyn Fn(&(u64, f64)) -> String| {
            let cells = chosen.iter().rev().map(|point| cell(point));
            [title.to_owned()].into_iter().chain(cells).collect()
        };
        let title = match self.statement.is_upper_bound() {
            true => "epsilon is at most",
            false => "epsilon is about (no bound)",
        };
        vec![
            row("After rounds", &|(rounds, _)| rounds.to_string()),
            row(title, &|(_, epsilon)| upper(*epsilon, 4)),
        ]
    }

    /// The fields of the statement, the answers of all accountants, and the curves.
    pub(super) fn to_json(&self) -> Value {
        let mut value = json!(self.statement);
        if let Some(fields) = value.as_object_mut() {
            let curve = (0..=CURVE_POINTS).map(|index| self.best_attack(index));
            let curve: Vec<[f64; 2]> = curve.map(|point| [point.x, point.y]).collect();
            // What is not known is null.
            for key in ["clip_norm", "noise_std", "epsilon_low", "sampling_rate"] {
                fields.entry(key).or_insert(Value::Null);
            }
            fields.insert("accountants".to_owned(), json!(self.answers));
            if let Some(epsilon) = self.replace_one {
                fields.insert("epsilon_replace_one".to_owned(), json!(epsilon));
            }
            if let Some(Adaptive { runs, odometer }) = &self.adaptive {
                let epsilon = Some(odometer.epsilon).filter(|epsilon| epsilon.is_finite());
                fields.insert("schedule".to_owned(), json!("fixed-beforehand"));
                fields.insert("runs".to_owned(), json!(runs));
                let adaptive = json!({
                    "epsilon": epsilon,
                    "delta": self.statement.delta,
                    "accountant": "renyi-odometer",
                    "is_upper_bound": self.is_covered(),
                });
                fields.insert("adaptive".to_owned(), adaptive);
            }
            fields.insert("trade_off".to_owned(), json!(curve));
            fields.insert("epsilon_over_rounds".to_owned(), json!(self.over_rounds));
        }
        value
    }

    /// Type I and type II error of the best attack.
    fn best_attack(&self, index: u32) -> Point {
        let rate = f64::from(index) / f64::from(CURVE_POINTS);
        Point::new(rate, self.trade_off.false_negative_rate(rate))
    }

    /// Writes the curves into a file.
    pub(super) fn draw(&self, path: Option<&Path>) -> Result<(), CliError> {
        let Some(path) = path else {
            return Ok(());
        };
        let curve = |label: &str, points: Vec<Point>| Series {
            label: label.to_owned(),
            points,
            ..Series::default()
        };
        let of_attacks = match self.statement.is_upper_bound() {
            true => "No attack has a smaller false-negative rate at any false-positive rate than",
            false => "If it were proved, this would bound the false-negative rates of all attacks:",
        };
        let trade_off = Plot {
            title: "Trade-off of the best attack".to_owned(),
            description: format!(
                "{of_attacks} the curve below the line of random guessing. {}",
                self.statement.in_words()
            ),
            x_label: "false-positive rate (type I error)".to_owned(),
            y_label: "false-negative rate (type II error)".to_owned(),
            series: vec![
                Series {
                    dashed: true,
                    tone: smolfed_report::report::plot::Tone::Grey,
                    ..curve("guessing", vec![Point::new(0.0, 1.0), Point::new(1.0, 0.0)])
                },
                curve(
                    "best attack",
                    (0..=CURVE_POINTS)
                        .map(|index| self.best_attack(index))
                        .collect(),
                ),
            ],
            ..Plot::default()
        };
        let mut plots = self.figures.clone();
        plots.push(trade_off);
        if self.over_rounds.len() > 1 {
            let points = self.over_rounds.iter();
            let points = points.map(|(rounds, epsilon)| Point::new(*rounds as f64, *epsilon));
            plots.push(Plot {
                title: "Epsilon over rounds".to_owned(),
                description: format!("By `{}`.", self.statement.accountant),
                x_label: "rounds".to_owned(),
                y_label: "epsilon".to_owned(),
                x_scale: Scale::Whole,
                y_reach: vec![0.0],
                series: vec![curve(self.statement.accountant.name(), points.collect())],
                ..Plot::default()
            });
        }
        std::fs::write(path, stacked_file(&plots))
            .map_err(|error| CliError::Stopped(format!("cannot write {}: {error}", path.display())))
    }
}

/// ε at up to [`ROUND_POINTS`] numbers of rounds, by one accountant.
fn over_rounds(
    accountant: Accountant,
    events: &[PrivacyEvent],
    last: &Estimate,
) -> Vec<(u64, f64)> {
    let [event] = events else {
        return Vec::new();
    };
    if event.is_one_release() {
        // Of which the first round costs as much as all.
        return Vec::new();
    }
    let mut points = Vec::new();
    let step = event.count.div_ceil(ROUND_POINTS).max(1);
    let mut rounds = event.count % step;
    while rounds < event.count {
        let found = accountant.epsilon(&[event.with_count(rounds)], last.delta);
        points.extend(found.map(|estimate| (rounds, estimate.epsilon)));
        rounds += step;
    }
    points.push((event.count, last.epsilon));
    points.retain(|(rounds, epsilon)| *rounds > 0 && epsilon.is_finite());
    points
}

/// The names of those who have no figure, in a line below the table.
pub(super) fn without_a_figure<T, E: std::fmt::Display>(comparison: &Comparison<T, E>) -> String {
    let names: Vec<&str> = comparison
        .refused()
        .map(|(accountant, _)| accountant.name())
        .collect();
    if names.is_empty() {
        return String::new();
    }
    format!(
        "\nNo result from: {} (--accountant NAME or --json gives the reason)\n",
        names.join(", ")
    )
}

/// The table of `smolfed account`.
///
/// No figure is a bound unless the events are all that was released, `is_all`.
pub(super) fn cost_table(
    comparison: &Comparison<Estimate, AccountingError>,
    is_all: bool,
) -> String {
    let head = ["accountant", "epsilon", "at least", "what it is", "time"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for (answer, estimate) in comparison.found() {
        rows.push(vec![
            estimate.accountant.to_string(),
            figure(estimate.epsilon),
            estimate
                .epsilon_low
                .map_or(String::new(), |low| lower(low, 5)),
            match is_all || !estimate.is_upper_bound() {
                true => estimate.kind.words().to_owned(),
                false => "no bound".to_owned(),
            },
            milliseconds(answer.elapsed),
        ]);
    }
    aligned(&rows) + &without_a_figure(comparison)
}

/// ε to five digits, never below itself.
pub(super) fn figure(epsilon: f64) -> String {
    if epsilon.is_infinite() {
        "infinite".to_owned()
    } else {
        upper(epsilon, 5)
    }
}

pub(super) fn milliseconds(elapsed: Duration) -> String {
    format!("{:.2} ms", 1e3 * elapsed.as_secs_f64())
}

/// A rate in percent, never below itself.
fn percent(rate: f64) -> String {
    let tenths = (rate * 1e3 - 1e-9).ceil().min(1e3);
    format!("{:.1} %", tenths / 10.0)
}

fn answer_json(
    answer: &smolfed_accounting::comparison::Answer<Estimate, AccountingError>,
) -> Value {
    let name = answer.accountant.name();
    match &answer.result {
        Ok(estimate) => json!({
            "accountant": name,
            "epsilon": Some(estimate.epsilon).filter(|epsilon| epsilon.is_finite()),
            "epsilon_low": estimate.epsilon_low,
            "kind": estimate.kind,
            "is_upper_bound": estimate.is_upper_bound(),
            "notes": estimate.notes,
            "seconds": answer.elapsed.as_secs_f64(),
        }),
        Err(error) => json!({ "accountant": name, "refused": error.to_string() }),
    }
}
