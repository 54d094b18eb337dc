//! The report's section about the final model on held-out samples: its figures next to a constant
//! prediction's, and its confusions of classes.

use super::class_table::{ClassCell, MAX_CLASSES, MAX_CONFUSIONS, class_table};
use super::input::ReportInput;
use super::page::{Column, Figure, grid, section, table};
use smolfed_engine::evaluation::assessment::{ClassFigures, FinalAssessment};
use smolfed_release::number::{fixed, grouped};
use smolfed_release::provenance::Provenance;

/// Returns the section, which is empty for an unfinished run, or without a shared model.
pub(super) fn section_of(input: &ReportInput) -> String {
    let Some(assessment) = &input.assessment else {
        return String::new();
    };
    let names = input.model.as_ref().map(|model| &*model.class_names);
    let mut cards = vec![figures(assessment)];
    if let Some(classes) = &assessment.figures.classes {
        cards.push(confusion(assessment, classes, names.unwrap_or_default()));
    }
    let heading = format!("The final model on {} samples", assessment.part.name());
    section(&heading, &grid(&cards))
}

fn figures(assessment: &FinalAssessment) -> String {
    let rows = assessment.figures.in_words().into_iter();
    let rows: Vec<_> = rows
        .map(|(name, value)| vec![name.to_owned(), value])
        .collect();
    let head = [("figure", Column::Words), ("value", Column::Number)];
    let caption = match (&assessment.figures.values, &assessment.figures.classes) {
        (Some(_), _) => {
            "R² is the share of the variance that is explained. It is below 0 for a model that is \
             worse than always predicting the mean of these samples."
        }
        (None, Some(_)) => {
            "Macro F1 is the unweighted mean of the F1 scores of all classes, so rare classes \
             count as much as frequent ones."
        }
        (None, None) => "",
    };
    let caption = format!("{} samples. {caption}", grouped(assessment.figures.rows));
    let figure = Figure {
        title: "The figures",
        caption: &caption,
        origin: Provenance::of_samples(assessment.is_simulation_only),
        caption_beside: false,
    };
    figure.around(&table("figures", &head, &rows))
}

fn confusion(assessment: &FinalAssessment, classes: &ClassFigures, names: &[String]) -> String {
    let name = |class: usize| names.get(class).cloned().unwrap_or(class.to_string());
    let is_whole = classes.confusion.len() <= MAX_CLASSES;
    let (title, caption, content) = match is_whole {
        true => (
            "Confusion matrix",
            "Rows are true classes, and columns are predicted ones. The diagonal is correct. \
             Darker cells have a larger share of the class.",
            matrix(classes, name),
        ),
        false => (
            "Most frequent confusions",
            "The most frequent wrong predictions.",
            most_frequent(classes, name),
        ),
    };
    let figure = Figure {
        title,
        caption,
        origin: Provenance::of_samples(assessment.is_simulation_only),
        caption_beside: false,
    };
    figure.around(&content)
}

fn matrix(classes: &ClassFigures, name: impl Fn(usize) -> String) -> String {
    let rows = classes.confusion.iter();
    let rows = rows.map(|row| {
        let all: u64 = row.iter().sum();
        let cell = |count: &u64| ClassCell {
            share: *count as f64 / all.max(1) as f64,
            text: grouped(*count),
            title: None,
        };
        row.iter().map(cell).collect()
    });
    class_table(&rows.collect::<Vec<_>>(), name)
}

fn most_frequent(classes: &ClassFigures, name: impl Fn(usize) -> String) -> String {
    let confusions = classes.confusions();
    let rows: Vec<_> = confusions
        .iter()
        .take(MAX_CONFUSIONS)
        .map(|(class, predicted, count)| {
            let all: u64 = classes.confusion[*class].iter().sum();
            let share = 100.0 * *count as f64 / all as f64;
            vec![
                name(*class),
                name(*predicted),
                grouped(*count),
                format!("{} %", fixed(share, 1)),
            ]
        })
        .collect();
    let head = [
        ("class", Column::Words),
        ("predicted as", Column::Words),
        ("samples", Column::Number),
        ("of the class", Column::Number),
    ];
    table("figures", &head, &rows)
}
