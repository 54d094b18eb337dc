//! Baselines of figures, and the words of the statement in full.

use super::*;

/// Returns the figures of a regression on its test samples.
fn of_values() -> FinalAssessment {
    serde_json::from_str(
        r#"{
            "part": "test", "is_simulation_only": false, "rows": 10, "loss": 0.2, "rmse": 1.5,
            "mae": 1.1, "r2": 0.78125, "rmse_of_mean": 3.25
        }"#,
    )
    .unwrap()
}

fn regression() -> ReportInput {
    let mut input = complete(3);
    for record in &mut input.records {
        let values = Evaluation {
            loss: 0.2,
            accuracy: None,
            rmse: Some(1.5),
        };
        record.test = Some(values);
        record.simulation_only.validation = None;
    }
    input.devices = None;
    input.assessment = Some(of_values());
    input
}

#[test]
fn curves_of_quality_have_the_figure_of_a_constant_prediction() {
    let html = page(&complete(3));
    for words in [">constant</text>", ">40.00 %</text>"] {
        assert_eq!(html.matches(words).count(), 1, "{words}");
    }
    assert!(html.contains("Dotted: the model that predicts always the most frequent class."));
    let html = page(&regression());
    assert!(html.contains(">3.25</text>") && html.contains("predicts always the mean."));
    // Without an assessment, or without a curve for its samples, there is none.
    let mut input = complete(3);
    input
        .records
        .iter_mut()
        .for_each(|record| record.test = None);
    assert!(!page(&input).contains(">constant</text>"));
    input = complete(3);
    input.assessment = None;
    assert!(!page(&input).contains(">constant</text>"));
}

#[test]
fn the_card_of_a_regression_has_r2() {
    let mut input = regression();
    assert!(page(&input).contains("after round 3, R² 0.7812, loss 0.2"));
    // It belongs to the final model, not to an earlier round.
    input.records[2].test = None;
    let html = page(&input);
    assert!(html.contains("after round 2, loss 0.2"));
}

#[test]
fn conditions_are_sentences_with_their_keys_as_code() {
    let mut input = complete(3);
    let open = input.statements[0].clone();
    input.statements = vec![open.with_note(Condition::InitialModel)];
    let html = page(&input);
    let row = html.split(">conditions</th>").nth(1).unwrap();
    let cell = row.split("</td>").next().unwrap();
    assert!(cell.contains("<code>model.init</code>"), "{cell}");
    assert!(!cell.contains("effect") && !cell.contains('`'), "{cell}");
}

#[test]
fn accountants_of_one_subject_need_no_column_for_it() {
    let mut input = complete(3);
    input.statements.push(statement(1.4, 3));
    assert!(page(&input).contains("figures accountants"));
    input.statements[1].subject = Subject::CorrelationMatrices;
    let html = page(&input);
    assert!(!html.contains("figures accountants") && html.contains("correlation matrices</th>"));
}
