//! Rounds in figures: the columns and rows of the report's table of rounds ("The curves in
//! figures"), and its section "Devices left out" with the reasons.

use std::collections::BTreeMap;

use super::input::{Audience, ReportInput};
use super::page::{BADGE, Column, details, paragraph, section, table};
use smolfed_engine::evaluation::samples::Evaluation;
use smolfed_engine::round::RoundRecord;
use smolfed_release::number::{fixed, grouped, significant, upper};
use smolfed_release::provenance::Provenance;

/// Maximum number of rows in the table of rounds.
const MAX_ROWS: usize = 25;

/// Returns the table of rounds, evenly thinned, to be opened on demand.
pub(super) fn table_of(input: &ReportInput) -> String {
    let count = input.records.len();
    let every = count.div_ceil(MAX_ROWS).max(1);
    // Counted from the last round, which always has a row.
    let is_kept = |index: usize| (count - 1 - index).is_multiple_of(every);
    let kept = input
        .records
        .iter()
        .enumerate()
        .filter(|(index, _)| is_kept(*index));
    let columns = columns(input);
    let rows: Vec<Vec<String>> = kept
        .map(|(_, record)| columns.iter().map(|column| (column.cell)(record)).collect())
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let heads: Vec<String> = columns
        .iter()
        .map(|column| format!("{}{}", column.head, column.origin.mark()))
        .collect();
    let head: Vec<(&str, Column)> = heads.iter().map(|head| (&**head, Column::Number)).collect();
    let worst = columns.iter().map(|column| column.origin).max();
    let meaning = worst
        .and_then(Provenance::meaning)
        .map_or(String::new(), |meaning| {
            paragraph(&format!(
                "{meaning}. All figures of all rounds are in metrics.jsonl."
            ))
        });
    details(
        "The curves in figures",
        &(table("rounds", &head, &rows) + &meaning),
    )
}

/// A column of the table of rounds.
struct RoundColumn {
    head: &'static str,
    origin: Provenance,
    cell: fn(&RoundRecord) -> String,
}

/// Returns the columns of the table. For the public, only the publishable ones.
fn columns(input: &ReportInput) -> Vec<RoundColumn> {
    fn number(value: Option<f64>) -> String {
        value.map_or("–".to_owned(), |value| significant(value, 4))
    }
    let sizes = input.size_origin();
    let private = Provenance::SimulationOnly;
    let column = |head, origin, cell| RoundColumn { head, origin, cell };
    let mut columns = vec![
        column("round", Provenance::Public, |x| {
            grouped(u64::from(x.round) + 1)
        }),
        column("cohort", sizes, |x| grouped(x.cohort as u64)),
        column("ε spent", Provenance::Public, |x| {
            upper(x.epsilon.unwrap_or(f64::INFINITY), 4)
        }),
        column("test", input.test_origin(), |x| quality(x.test)),
        column("validation", private, |x| {
            quality(x.simulation_only.validation)
        }),
        column("training loss", private, |x| {
            number(x.simulation_only.train_loss)
        }),
        column("median norm", private, |x| {
            number(x.simulation_only.update_norm.map(|norm| norm.median))
        }),
    ];
    if input.records.iter().any(|record| record.wasted.is_some()) {
        columns.push(column("updates by age", sizes, ages));
        columns.push(column("wasted", sizes, |x| {
            x.wasted
                .map_or("–".to_owned(), |count| grouped(u64::from(count)))
        }));
    }
    columns.retain(|column| input.audience == Audience::Owner || column.origin.is_public());
    columns
}

/// Returns the updates of a window by the age of their model, youngest first.
fn ages(record: &RoundRecord) -> String {
    let counts = record.ages.iter().map(|count| grouped(u64::from(*count)));
    match record.ages.is_empty() {
        true => "–".to_owned(),
        false => counts.collect::<Vec<_>>().join(" / "),
    }
}

fn quality(evaluation: Option<Evaluation>) -> String {
    match evaluation {
        None => "–".to_owned(),
        Some(evaluation) => match (evaluation.accuracy, evaluation.rmse) {
            (Some(accuracy), _) => format!("{} %", fixed(100.0 * accuracy, 2)),
            (None, Some(rmse)) => significant(rmse, 4),
            (None, None) => significant(evaluation.loss, 4),
        },
    }
}

/// Lists selected devices without a contribution, by reason.
pub(super) fn left_out(input: &ReportInput) -> String {
    let mut reasons: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for record in &input.records {
        for (reason, count) in &record.simulation_only.left_out {
            let (devices, rounds) = reasons.entry(reason).or_default();
            *devices += count;
            *rounds += 1;
        }
    }
    let heading = "Devices left out";
    if reasons.is_empty() {
        return section(heading, &paragraph("None: every drawn device trained."));
    }
    let rows: Vec<Vec<String>> = reasons
        .into_iter()
        .map(|(reason, (devices, rounds))| {
            vec![
                reason.to_owned(),
                grouped(devices as u64),
                grouped(rounds as u64),
            ]
        })
        .collect();
    let head = [
        ("reason", Column::Words),
        ("times", Column::Number),
        ("in rounds", Column::Number),
    ];
    let content = format!(
        "<p>A drawn device that was left out counts as an update of zero: it changes neither the \
         average&#39;s denominator nor the accounting. {BADGE}</p>\n{}",
        table("reasons", &head, &rows)
    );
    section(heading, &content)
}
