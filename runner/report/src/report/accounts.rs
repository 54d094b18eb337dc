//! The report's section "Privacy accounting": ε over rounds, the figure of every accountant, and
//! every field of the privacy statement with its meaning.

use serde_json::Value;

use super::correlated;
use super::curves;
use super::input::ReportInput;
use super::page::{Column, Figure, details, grid, paragraph, section, table};
use smolfed_release::number::{grouped, lower, significant, upper};
use smolfed_release::provenance::Provenance;
use smolfed_release::statement::{PrivacyStatement, Subject};

/// Fields of a statement in reading order, with their meaning. Other fields follow under their own
/// names.
const FIELDS: [(&str, &str); 27] = [
    ("subject", "about"),
    ("epsilon", "ε"),
    ("delta", "δ"),
    ("accountant", "accountant"),
    ("kind", "kind of figure"),
    ("is_upper_bound", "proved"),
    ("epsilon_low", "the true ε is at least"),
    ("epsilon_replace_one", "ε if a device's data are replaced"),
    ("epsilon_outsiders", "ε against outsiders"),
    ("epsilon_planned", "ε of all planned rounds"),
    ("planned_is_upper_bound", "planned ε proved"),
    ("unit", "protects"),
    ("adjacency", "neighbouring federations"),
    ("trust", "trust model"),
    ("sampling", "sampling"),
    ("sampling_rate", "sampling rate τ"),
    ("devices", "devices N"),
    ("max_participations", "maximum participations of a device"),
    (
        "staleness",
        "windows after its model's in which an update counts",
    ),
    ("rounds", "rounds T"),
    ("rounds_planned", "planned rounds"),
    ("releases_per_round", "releases of a device in a round"),
    ("clip_norm", "clip norm L"),
    ("noise_multiplier", "noise multiplier z = ν / L"),
    ("noise_std", "noise std ν on the sum"),
    ("advantage", "advantage of an attack"),
    ("hit_rate_at_1_percent", "hit rate at 1 % false alarms"),
];

/// Returns the section.
pub(super) fn section_of(input: &ReportInput) -> String {
    let mut cards: Vec<String> = curves::epsilon(input).into_iter().collect();
    cards.extend(correlated::figures_of(input));
    if !input.statements.is_empty() {
        cards.push(figures(&input.statements));
    }
    let mut content = if cards.is_empty() {
        paragraph("No finite epsilon holds for any round: there is no curve to show.")
    } else {
        grid(&cards)
    };
    for (index, statement) in input.statements.iter().enumerate() {
        let accountant = statement.accountant.name();
        let summary = match (index, statement.subject) {
            (0, _) => format!("The statement in full ({accountant})"),
            (_, Subject::Updates | Subject::Answers) => format!("The statement by {accountant}"),
            (_, Subject::CorrelationMatrices) => {
                format!("Correlation matrices, in full ({accountant})")
            }
        };
        let fields = fields(statement);
        // The run's own statement is open. The others are for comparison.
        content.push_str(&match index {
            0 => format!("<h3>{}</h3>\n{fields}", super::html::escape(&summary)),
            _ => details(&summary, &(paragraph(&statement.in_words()) + &fields)),
        });
    }
    section("Privacy accounting", &content)
}

/// Returns a table with one row per accountant.
fn figures(statements: &[PrivacyStatement]) -> String {
    let subject = statements.first().map(|statement| statement.subject);
    let has_subjects = statements.iter().any(|of| Some(of.subject) != subject);
    let mut rows: Vec<Vec<String>> = statements
        .iter()
        .map(|statement| {
            vec![
                statement.subject.words().to_owned(),
                statement.accountant.name().to_owned(),
                upper(statement.epsilon, 5),
                statement
                    .epsilon_low
                    .map_or("–".to_owned(), |low| lower(low, 5)),
                significant(statement.delta.get(), 3),
                statement.worth().to_owned(),
            ]
        })
        .collect();
    let mut head = vec![
        ("of", Column::Words),
        ("accountant", Column::Words),
        ("ε", Column::Number),
        ("at least", Column::Number),
        ("δ", Column::Number),
        ("kind", Column::Words),
    ];
    // A single subject needs no column.
    if !has_subjects {
        head.remove(0);
        rows.iter_mut().for_each(|row| drop(row.remove(0)));
    }
    let figure = Figure {
        title: "The figure of every accountant",
        caption: "Each figure is the ε of all rounds together at its δ. Only a proved upper bound \
                  is a guarantee; the others are shown for comparison with papers. Figures about \
                  different subjects must not be added.",
        origin: Provenance::Public,
        caption_beside: false,
    };
    let class = if has_subjects {
        "figures"
    } else {
        "figures accountants"
    };
    figure.around(&table(class, &head, &rows))
}

/// Returns a table with one row per field of `privacy.json`, so that none is forgotten.
fn fields(statement: &PrivacyStatement) -> String {
    let Ok(Value::Object(mut fields)) = serde_json::to_value(statement) else {
        return String::new();
    };
    let mut rows = Vec::new();
    for (key, name) in FIELDS {
        if let Some(value) = fields.remove(key) {
            let words = match key {
                "adjacency" if statement.compares_with_zeros() => {
                    "add-remove: one device sends its updates or zeros".to_owned()
                }
                "advantage" | "hit_rate_at_1_percent" if statement.is_upper_bound() => {
                    format!("at most {}", words(key, &value))
                }
                "advantage" | "hit_rate_at_1_percent" => {
                    format!("about {}, no bound", words(key, &value))
                }
                _ => words(key, &value),
            };
            rows.push(vec![name.to_owned(), words, key.to_owned()]);
        }
    }
    for (key, value) in &fields {
        rows.push(vec![key.replace('_', " "), words(key, value), key.clone()]);
    }
    let head = [
        ("field", Column::Words),
        ("value", Column::Prose),
        ("in privacy.json", Column::Words),
    ];
    table("fields", &head, &rows)
}

/// Returns a value for readers.
fn words(key: &str, value: &Value) -> String {
    match value {
        Value::Null => "∞".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::String(text) => meaning(text),
        Value::Number(number) => match (number.as_u64(), number.as_f64()) {
            (Some(whole), _) => grouped(whole),
            // Rounded to the safe side of the claim.
            (None, Some(number)) => match key {
                "epsilon"
                | "epsilon_replace_one"
                | "epsilon_outsiders"
                | "epsilon_planned"
                | "advantage"
                | "hit_rate_at_1_percent" => upper(number, 6),
                "epsilon_low" => lower(number, 6),
                _ => significant(number, 6),
            },
            (None, None) => number.to_string(),
        },
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(conditions) if key == "conditions" => {
            let texts = conditions.iter().map(|of| match of.get("text") {
                Some(Value::String(text)) => text.clone(),
                _ => words("condition", of),
            });
            texts.collect::<Vec<_>>().join("; ")
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| words(key, item)).collect();
            items.join(" ")
        }
        Value::Object(fields) => {
            let parts = fields.iter().map(|(key, value)| match value {
                Value::Object(_) => format!("{key}: {}", words(key, value)),
                _ => format!("{key} {}", words(key, value)),
            });
            parts.collect::<Vec<_>>().join(", ")
        }
    }
}

/// Explains the words of the statement that need it.
fn meaning(word: &str) -> String {
    let meaning = match word {
        "add-remove" => "one device takes part or not",
        "replace-one" => "the protected unit is replaced by any other of its kind",
        "device" => "everything that one device holds",
        "example" => "one example of one device",
        "central" => "the server adds the noise and keeps updates and cohorts to itself",
        "local" => "each device adds the full noise to its own update",
        "uniform" => "a fixed number of devices, without replacement",
        "poisson" => "each device independently, with the same probability",
        "full" => "every device in every round",
        "unsampled" => "no random choice is claimed",
        _ => return word.to_owned(),
    };
    format!("{word}: {meaning}")
}
