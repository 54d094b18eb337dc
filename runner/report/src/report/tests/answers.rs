use super::*;
use crate::answers::tests::answer;
use smolfed_engine::question::Answer;
use smolfed_engine::tables::question::QuestionKind;

/// Returns an answer about three classes, with distinct cells.
fn confusion() -> Answer {
    let names: Vec<String> = (0..16).map(|index| format!("figure {index}")).collect();
    let figures = names.iter().enumerate().map(|(index, name)| {
        let value = index as f64 / 100.0;
        (name.as_str(), value, value / 2.0, 2.0 * value)
    });
    let figures: Vec<_> = figures.collect();
    answer(2, QuestionKind::Confusion, "which", &figures)
}

/// Returns a run with an answer of every kind. The names of questions are untrusted.
fn asked() -> ReportInput {
    let mut input = complete(10);
    let evaluated = |accuracy: f64| {
        let accuracy = ("accuracy", accuracy, accuracy - 0.05, accuracy + 0.05);
        let figures = [accuracy, ("loss", 0.7, 0.6, 0.8)];
        answer(0, QuestionKind::Evaluate, "good <b>?", &figures)
    };
    let bins = [
        ("class 0", 0.25, 0.125, 0.5),
        ("class 9 & more", 0.75, 0.5, 0.875),
    ];
    let moments = [("mean of feature 2", 3.25, -1.5, 8.0)];
    input.records[4].answers = vec![evaluated(0.5)];
    input.records[9].answers = vec![
        evaluated(0.8125),
        answer(1, QuestionKind::Histogram, "labels", &bins),
        confusion(),
        answer(3, QuestionKind::Moments, "scale", &moments),
        answer(4, QuestionKind::Presence, "seen", &bins),
        answer(
            5,
            QuestionKind::Count,
            "count",
            &[("devices", 97.6, 80.0, 115.0)],
        ),
    ];
    input
}

fn section_of(input: &ReportInput) -> String {
    let html = page(input);
    let start = html.find("<h2>Answers</h2>").expect("the section");
    let end = html[start..].find("</section>").expect("its end");
    html[start..start + end].to_owned()
}

#[test]
fn answers_have_curves_and_figures_with_intervals() {
    let html = section_of(&asked());
    for expected in [
        "covers the released noise and the spread over devices",
        "<h3>good &lt;b&gt;?: accuracy</h3>",
        "<h3>good &lt;b&gt;?: loss</h3>",
        "class=\"band blue\"",
        "<th scope=\"row\">good &lt;b&gt;?</th><td>accuracy</td><td class=\"number\">81.2 %</td>\
         <td>from 76.2 % to 86.2 %</td><td class=\"number\">99 %</td>\
         <td class=\"number\">98 (from 80 to 115)</td><td class=\"number\">10</td>",
        // The largest share represents the answer.
        "<td>class 9 &amp; more</td><td class=\"number\">75.0 %</td>",
        "<td class=\"number\">25.0 %</td><td>from 12.5 % to 50.0 %</td>",
        "mean of feature 2</th><td class=\"number\">3.25</td><td>from −1.5 to 8</td>",
        "<th scope=\"row\">count</th><td>devices</td><td class=\"number\">97.6</td>",
        "<table class=\"confusion\">",
        "title=\"from 7.5 % to 30.0 %\">15.0<",
    ] {
        assert!(html.contains(expected), "`{expected}` is missing: {html}");
    }
    assert!(!html.contains("<b>") && !html.contains(page::BADGE));
    // A question asked once has no curve.
    assert!(!html.contains("count: devices"));
}

#[test]
fn a_run_without_answers_has_no_section() {
    assert!(!page(&complete(3)).contains("<h2>Answers</h2>"));
}

/// Answers are released. Without a bound they are not simulation-only either, but no ε covers them.
#[test]
fn a_public_page_has_answers_where_epsilon_covers_them() {
    let mut input = asked();
    assert_eq!(section_of(&input.clone().for_public()), section_of(&input));
    input.statements = vec![statement(0.0, 10)];
    let html = page(&input.for_public());
    assert!(!html.contains("<h2>Answers</h2>") && !html.contains("81.2 %"));
}

/// A page reads files of other programs: figures that do not fit are not a table of classes.
#[test]
fn damaged_answers_are_shown_as_far_as_they_go() {
    let mut input = asked();
    let answers = &mut input.records[9].answers;
    answers[2].estimates.pop();
    answers[1].estimates[0].value = None;
    answers[1].estimates[0].interval = [None, Some(f64::NAN)];
    answers[3].estimates.clear();
    answers[5].answered.value = None;
    let html = section_of(&input);
    assert!(!html.contains("class=\"confusion\""));
    assert!(html.contains("<td class=\"number\">–</td>"), "{html}");
}

#[test]
fn many_classes_are_a_list_of_what_is_confused_most() {
    let classes = 30;
    let names = vec!["x"; (classes + 1) * (classes + 1)];
    let figures = names.iter().enumerate().map(|(index, name)| {
        // The last cell off the diagonal is the largest.
        (*name, index as f64 / 1e4, 0.0, 1.0)
    });
    let figures: Vec<_> = figures.collect();
    let mut input = asked();
    input.records[9].answers = vec![answer(2, QuestionKind::Confusion, "which", &figures)];
    let html = section_of(&input);
    assert!(
        html.contains("<th scope=\"row\">29</th><td>28</td>"),
        "{html}"
    );
    assert!(!html.contains("class=\"confusion\""));
}
