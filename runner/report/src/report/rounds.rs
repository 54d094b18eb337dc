//! Rounds in figures: a table for those who cannot or do not want to read curves, and the devices
//! that were left out.

use std::collections::BTreeMap;

use super::input::ReportInput;
use super::page::{BADGE, Column, details, paragraph, section, table};
use smolfed_engine::evaluation::samples::Evaluation;
use smolfed_engine::round::RoundRecord;
use smolfed_release::number::{fixed, grouped, significant};

/// Most rows of the table of rounds.
const MAX_ROWS: usize = 25;

/// The table of rounds, evenly thinned, to be opened on demand.
pub(super) fn table_of(input: &ReportInput) -> String {
    let count = input.records.len();
    let every = count.div_ceil(MAX_ROWS).max(1);
    let rows: Vec<Vec<String>> = input
        .records
        .iter()
        .enumerate()
        // Counted from the end, which always has its row.
        .filter(|(index, _)| (count - 1 - index).is_multiple_of(every))
        .map(|(_, record)| row(record))
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let on_devices = input.records.iter().any(|x| x.test_is_simulation_only);
    let test = if on_devices { "test*" } else { "test" };
    let head = [
        ("round", Column::Number),
        ("cohort", Column::Number),
        ("ε spent", Column::Number),
        (test, Column::Number),
        ("validation*", Column::Number),
        ("training loss*", Column::Number),
        ("median norm*", Column::Number),
    ];
    let note = "* Simulation only. All figures of all rounds are in metrics.jsonl.";
    details(
        "The same in figures",
        &(table("rounds", &head, &rows) + &paragraph(note)),
    )
}

fn row(record: &RoundRecord) -> Vec<String> {
    let only = &record.simulation_only;
    let number = |value: Option<f64>| value.map_or("–".to_owned(), |value| significant(value, 4));
    vec![
        grouped(u64::from(record.round) + 1),
        grouped(record.cohort as u64),
        significant(record.epsilon.unwrap_or(f64::INFINITY), 4),
        quality(record.test),
        quality(only.validation),
        number(only.train_loss),
        number(only.update_norm.map(|norm| norm.median)),
    ]
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

/// Devices that were drawn and did not contribute, by reason.
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
        return section(
            heading,
            &paragraph("None: every device that was drawn trained."),
        );
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
        "<p>A device that was drawn and left out counts as an update of zero: it changes neither \
         the average&#39;s denominator nor the accounting. {BADGE}</p>\n{}",
        table("reasons", &head, &rows)
    );
    section(heading, &content)
}
