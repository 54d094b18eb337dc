//! Every metric is documented, and alerts and the dashboard use only existing metrics.

use std::collections::BTreeSet;
use std::path::Path;

use crate::helper::service::Tally as Answers;
use crate::helper::watch;
use crate::helper_link::message::HelperState;
use crate::monitor::answers::LatestAnswer;
use crate::monitor::windows::WindowFigures;
use crate::monitor::{Attendance, Figures, HelperFigures, InProgress, Point, Tally};
use crate::watch::metrics;
use smolfed_engine::question::{Answer, Estimate};
use smolfed_engine::round::WindowTally;
use smolfed_engine::tables::question::QuestionKind;

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns a reason with a count. A family without one is not written.
fn reasons<T: From<u8>>() -> std::collections::BTreeMap<String, T> {
    [("a reason".to_owned(), 1.into())].into()
}

/// Returns an answer with all parts of an estimate.
fn answer(name: &str) -> LatestAnswer {
    let estimate = |name: &str| Estimate {
        name: name.to_owned(),
        value: Some(0.5),
        interval: [Some(0.25), Some(0.75)],
    };
    LatestAnswer {
        round: 4,
        drifted: true,
        answer: Answer {
            question: 0,
            kind: QuestionKind::Evaluate,
            name: name.to_owned(),
            confidence: 0.99,
            answered: estimate("answered"),
            estimates: vec![estimate("accuracy"), estimate("loss")],
        },
    }
}

#[test]
fn answers_are_gauges_with_escaped_labels() {
    let name = "a \"b\" \\ c\nd";
    let mut figures = all_figures();
    figures.answers = vec![answer(name)];
    figures.answers[0].answer.estimates[1].value = None;
    figures.answers[0].answer.estimates[1].interval = [None, Some(0.75)];
    let text = metrics::text(&figures);
    let question = r#"question="a \"b\" \\ c\nd""#;
    for line in [
        format!(r#"smolfed_answer{{{question},estimate="accuracy"}} 0.5"#),
        format!(r#"smolfed_answer_low{{{question},estimate="accuracy"}} 0.25"#),
        format!(r#"smolfed_answer_high{{{question},estimate="loss"}} 0.75"#),
        format!("smolfed_answer_round{{{question}}} 4.0"),
        format!("smolfed_answer_devices{{{question}}} 0.5"),
        format!("smolfed_answer_drifted{{{question}}} 1.0"),
    ] {
        assert!(text.contains(&format!("\n{line}\n")), "{line}: {text}");
    }
    // Unknown values have no sample.
    let unknown = [
        format!(r#"smolfed_answer{{{question},estimate="loss"}}"#),
        format!(r#"smolfed_answer_low{{{question},estimate="loss"}}"#),
    ];
    assert!(unknown.iter().all(|line| !text.contains(line)), "{text}");
    figures.answers = Vec::new();
    assert!(!metrics::text(&figures).contains("smolfed_answer"));
}

#[test]
fn windows_are_counters_with_the_age_as_a_label() {
    let mut figures = all_figures();
    let text = metrics::text(&figures);
    for line in [
        "smolfed_updates_by_age_total{age=\"0\"} 7",
        "smolfed_updates_by_age_total{age=\"1\"} 2",
        "smolfed_wasted_participations_total 3",
    ] {
        assert!(text.contains(&format!("\n{line}\n")), "{line}: {text}");
    }
    // Other rounds have neither.
    figures.attendance.as_mut().unwrap().windows = None;
    let text = metrics::text(&figures);
    let of_windows = ["by_age", "wasted"];
    assert!(of_windows.iter().all(|name| !text.contains(name)), "{text}");
}

/// Returns figures without missing values.
fn all_figures() -> Figures {
    let tally = Tally {
        drawn: 1,
        answered: 1,
        missing: reasons(),
        seconds: 1.0,
    };
    let windows = WindowTally {
        ages: vec![7, 2],
        wasted: 3,
    };
    let epsilon = Some(1.0);
    Figures {
        run: "test".to_owned(),
        state: "running",
        pauses: 1,
        rounds: 1,
        done: 1,
        burned: 1,
        epsilon,
        epsilon_planned: epsilon,
        epsilon_is_upper_bound: Some(true),
        epsilon_limit: epsilon,
        delta: Some(1e-5),
        latest: Some(Point {
            round: 0,
            accuracy: Some(1.0),
            rmse: Some(1.0),
            epsilon,
        }),
        answers: vec![answer("evaluate")],
        devices: 1,
        connected: 1,
        needed: 1,
        second_sessions: 1,
        session_conflicts: 1,
        unattributed: reasons(),
        helpers: Some(HelperFigures {
            count: 1,
            connected: 1,
            lost: reasons(),
        }),
        attendance: Some(Attendance {
            current: Some(InProgress {
                seconds: 1.0,
                timeout: 1.0,
                drawn: 1,
                awaited: 1,
            }),
            last: Some(tally.clone()),
            total: tally,
            rounds_without_updates: 1,
            windows: Some(WindowFigures {
                last: windows.clone(),
                total: windows,
            }),
            updates_per_second: Some(1.0),
            refused: reasons(),
        }),
    }
}

/// Returns the metrics of a coordinator and of a helper.
fn text() -> String {
    let state = HelperState {
        last: Some(1),
        ..HelperState::default()
    };
    let answers = Answers {
        refused: reasons(),
        ..Answers::default()
    };
    metrics::text(&all_figures()) + &watch::text(&state, &answers, true)
}

/// Returns the names of all metrics.
fn exported() -> BTreeSet<String> {
    let text = text();
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    let names = samples.filter_map(|line| line.split([' ', '{']).next());
    names.map(str::to_owned).collect()
}

/// Returns the names in a text: `smolfed_` and the rest.
fn names(text: &str) -> BTreeSet<String> {
    let is_of_name = |c: char| c.is_ascii_lowercase() || c == '_';
    let starts = text.match_indices("smolfed_").map(|(at, _)| &text[at..]);
    let names = starts.map(|rest| rest.split(|c| !is_of_name(c)).next().unwrap_or(rest));
    names.map(str::to_owned).collect()
}

/// Returns the names in the tables of a page, in which `_b` after `smolfed_a` means `smolfed_b`.
fn documented(page: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for row in page.lines().filter(|row| row.starts_with("| `smolfed_")) {
        let cell = row.split('|').nth(1).unwrap_or_default();
        let quoted = cell.split('`').skip(1).step_by(2);
        let helper = "smolfed_helper_";
        let (mut is_first, mut prefix) = (true, "smolfed");
        for name in quoted.map(|name| name.split('{').next().unwrap_or(name)) {
            if is_first && name.starts_with(helper) {
                prefix = "smolfed_helper";
            }
            is_first = false;
            match name.starts_with('_') {
                true => names.insert(format!("{prefix}{name}")),
                false => names.insert(name.to_owned()),
            };
        }
    }
    names
}

#[test]
fn every_metric_is_documented_and_every_documented_metric_is_there() {
    assert_eq!(documented(&read("docs/monitoring.md")), exported());
}

/// Under the name of its samples, as `promtool check metrics` requires.
#[test]
fn every_metric_has_a_help_text_and_a_type() {
    let text = text();
    for name in exported() {
        for word in ["HELP", "TYPE"] {
            assert!(
                text.contains(&format!("# {word} {name} ")),
                "{name}: {text}"
            );
        }
    }
    assert!(!text.contains("# EOF"), "{text}");
}

#[test]
fn alerts_and_the_dashboard_ask_for_metrics_that_are_there() {
    let exported = exported();
    for (file, at_least) in [
        ("packaging/prometheus-rules.yml", 10),
        ("packaging/prometheus-rules-test.yml", 5),
        ("packaging/grafana-dashboard.json", 25),
    ] {
        let asked = names(&read(file));
        assert!(asked.len() >= at_least, "{file}: {asked:?}");
        let unknown: Vec<&String> = asked.difference(&exported).collect();
        assert!(unknown.is_empty(), "{file}: {unknown:?}");
    }
}

/// As in Grafana: panels do not overlap, and each has a query.
#[test]
fn the_dashboard_has_a_place_and_a_query_for_each_panel() {
    let dashboard = read("packaging/grafana-dashboard.json");
    let dashboard: serde_json::Value = serde_json::from_str(&dashboard).expect("JSON");
    let (mut cells, mut ids) = (BTreeSet::new(), BTreeSet::new());
    for panel in dashboard["panels"].as_array().expect("panels") {
        assert!(ids.insert(panel["id"].as_u64()), "{panel}");
        let [x, y, w, h] = ["x", "y", "w", "h"].map(|key| panel["gridPos"][key].as_u64().unwrap());
        assert!(x + w <= 24, "{panel}");
        for cell in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
            assert!(cells.insert(cell), "{} overlaps", panel["title"]);
        }
        if panel["type"] != "row" {
            let targets = panel["targets"].as_array().expect("targets");
            assert!(!targets.is_empty() && targets.iter().all(|x| x["expr"].is_string()));
            let describes = panel["description"]
                .as_str()
                .is_some_and(|text| text.len() > 20);
            assert!(describes, "{}", panel["title"]);
        }
    }
}
