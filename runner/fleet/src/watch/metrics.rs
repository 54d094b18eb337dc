//! `/metrics`: the figures in the format of Prometheus. docs/monitoring.md describes each.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::monitor::answers::LatestAnswer;
use crate::monitor::{Attendance, Figures, HelperFigures};
use smolfed_engine::round::WindowTally;

/// Content type of [`text`].
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

type Number = Gauge<f64, AtomicU64>;

/// A reason. Reasons are a few dozen sentences of this program, and never come from a device.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Reason {
    reason: String,
}

/// A gauge and not an `info`, which the older text format lacks.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Build {
    version: String,
}

/// A question, named as in the experiment.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Asked {
    question: String,
}

/// A figure of the answer to a question.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Figure {
    question: String,
    estimate: String,
}

/// Age of a model at its update, in windows.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Age {
    age: u64,
}

/// Returns the figures in Prometheus's text format.
#[must_use]
pub fn text(figures: &Figures) -> String {
    let mut metrics = Registry::with_prefix("smolfed");
    let build = Family::<Build, Gauge>::default();
    let version = env!("CARGO_PKG_VERSION").to_owned();
    build.get_or_create(&Build { version }).set(1);
    metrics.register("build_info", "The version of the program", build);
    of_run(&mut metrics, figures);
    of_answers(&mut metrics, &figures.answers);
    if let Some(helpers) = &figures.helpers {
        of_helpers(&mut metrics, helpers);
    }
    if let Some(attendance) = &figures.attendance {
        of_attendance(&mut metrics, attendance);
    }
    encoded(&metrics)
}

/// Returns the text of a registry. In OpenMetrics, the registry's format, `HELP` and `TYPE` of a
/// counter have its name without `_total`. `promtool check metrics` and other readers of the older
/// format expect the name of the samples.
pub(crate) fn encoded(metrics: &Registry) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = encode(&mut text, metrics);
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let counters: BTreeSet<&str> = types.filter_map(|x| x.strip_suffix(" counter")).collect();
    let of_counter = |line: &str| {
        let (word, rest) = line.strip_prefix("# ")?.split_once(' ')?;
        let (name, rest) = rest.split_once(' ')?;
        let is_it = counters.contains(name);
        is_it.then(|| format!("# {word} {name}_total {rest}"))
    };
    let lines = text.lines().filter(|line| *line != "# EOF");
    let lines = lines.map(|line| of_counter(line).unwrap_or_else(|| line.to_owned()) + "\n");
    lines.collect()
}

#[rustfmt::skip]
fn of_run(metrics: &mut Registry, figures: &Figures) {
    let latest = figures.latest;
    let [stopping, paused] = ["stopping", "paused"].map(|state| {
        f64::from(u8::from(figures.state == state))
    });
    let is_bound = figures.epsilon_is_upper_bound.map(|is_bound| f64::from(u8::from(is_bound)));
    let (accuracy, rmse) = (latest.and_then(|x| x.accuracy), latest.and_then(|x| x.rmse));
    for (name, help, value) in [
        ("rounds_planned", "Rounds of the run", Some(figures.rounds.into())),
        ("rounds_done", "Completed rounds", Some(figures.done.into())),
        ("rounds_burned", "Rounds without a result", Some(figures.burned.into())),
        ("stopping", "1 once the run was asked to stop", Some(stopping)),
        ("paused", "1 while too few devices are connected for a round", Some(paused)),
        ("epsilon_spent", "Epsilon after the last round", figures.epsilon),
        ("epsilon_planned", "Epsilon after all rounds", figures.epsilon_planned),
        ("epsilon_is_upper_bound", "1 if the statement's epsilon is an upper bound", is_bound),
        ("epsilon_limit", "Epsilon that no round may exceed", figures.epsilon_limit),
        ("delta", "Delta of every epsilon", figures.delta),
        ("test_accuracy", "Accuracy on public test samples", accuracy),
        ("test_rmse", "Root mean squared error on public test samples", rmse),
        ("devices", "Devices with keys", Some(figures.devices as f64)),
        ("devices_connected", "Devices with a session", Some(figures.connected as f64)),
        ("devices_needed", "Minimum number of devices for a round", Some(figures.needed.into())),
    ] {
        gauge(metrics, name, help, value);
    }
    for (name, help, value) in [
        ("pauses", "Number of times the run waited for devices", figures.pauses),
        ("second_sessions", "Sessions that replaced an open one", figures.second_sessions),
        ("session_conflicts", "Alternating sessions of one device", figures.session_conflicts),
    ] {
        counter(metrics, name, help, value);
    }
    let unattributed = figures.unattributed.iter();
    let unattributed = unattributed.map(|(reason, count)| (reason, u64::from(*count)));
    by_reason(metrics, "stranger_frames_refused", "Refused frames of strangers", unattributed);
}

/// Adds the newest answer to each question. Open ends and unknown estimates have no sample. The
/// last of several questions with the same name is shown.
fn of_answers(metrics: &mut Registry, answers: &[LatestAnswer]) {
    if answers.is_empty() {
        return;
    }
    let of_figures: [Family<Figure, Number>; 3] = Default::default();
    let [rounds, drifted, answered]: [Family<Asked, Number>; 3] = Default::default();
    for LatestAnswer {
        round,
        drifted: is_drifted,
        answer,
    } in answers
    {
        let question = || Asked {
            question: escaped(&answer.name),
        };
        rounds.get_or_create(&question()).set(f64::from(*round));
        let has_drifted = f64::from(u8::from(*is_drifted));
        drifted.get_or_create(&question()).set(has_drifted);
        if let Some(devices) = answer.answered.value {
            answered.get_or_create(&question()).set(devices);
        }
        for estimate in &answer.estimates {
            let [low, high] = estimate.interval;
            for (family, value) in of_figures.iter().zip([estimate.value, low, high]) {
                let label = Figure {
                    question: escaped(&answer.name),
                    estimate: escaped(&estimate.name),
                };
                if let Some(value) = value {
                    family.get_or_create(&label).set(value);
                }
            }
        }
    }
    let [value, low, high] = of_figures;
    for (name, help, family) in [
        (
            "answer",
            "The newest answer to a question, with noise",
            value,
        ),
        ("answer_low", "The lower end of its interval", low),
        ("answer_high", "The upper end of its interval", high),
    ] {
        metrics.register(name, help, family);
    }
    for (name, help, family) in [
        (
            "answer_round",
            "The round of the newest answer, from 0",
            rounds,
        ),
        (
            "answer_devices",
            "Devices that answered, with noise",
            answered,
        ),
        (
            "answer_drifted",
            "1 if it is worse than an earlier one by its interval",
            drifted,
        ),
    ] {
        metrics.register(name, help, family);
    }
}

/// Escapes text for a label value, which the registry writes unchanged.
fn escaped(text: &str) -> String {
    let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
    quoted.replace('\n', "\\n")
}

#[rustfmt::skip]
fn of_attendance(metrics: &mut Registry, attendance: &Attendance) {
    let Attendance {
        current, last, total, rounds_without_updates, windows, updates_per_second, refused,
    } = attendance;
    for (name, help, value) in [
        ("updates_expected", "Drawn real devices", total.drawn),
        ("updates_received", "Received updates", total.answered),
        ("rounds_without_updates", "Rounds that no real device answered", *rounds_without_updates),
    ] {
        counter(metrics, name, help, value);
    }
    let awaited = current.as_ref().map(|current| current.awaited as f64);
    for (name, help, value) in [
        ("round_awaited", "Devices that the round waits for", awaited),
        ("round_seconds", "Duration of the last round", last.as_ref().map(|last| last.seconds)),
        ("updates_per_second", "Updates per second in the last round", *updates_per_second),
    ] {
        gauge(metrics, name, help, value);
    }
    for (name, help, counts) in [
        ("updates_missing", "Drawn devices that did not answer", &total.missing),
        ("device_frames_refused", "Refused frames in the names of devices", refused),
    ] {
        by_reason(metrics, name, help, counts.iter().map(|(reason, count)| (reason, *count)));
    }
    if let Some(windows) = windows {
        of_windows(metrics, &windows.total);
    }
}

/// Adds the counts of all windows of time.
fn of_windows(metrics: &mut Registry, total: &WindowTally) {
    let family = Family::<Age, Counter>::default();
    for (age, count) in (0..).zip(&total.ages) {
        family.get_or_create(&Age { age }).inc_by(*count);
    }
    let help = "Updates by the age of their model in windows";
    metrics.register("updates_by_age", help, family);
    let help = "Participations without an update that counts";
    counter(metrics, "wasted_participations", help, total.wasted);
}

#[rustfmt::skip]
fn of_helpers(metrics: &mut Registry, helpers: &HelperFigures) {
    for (name, help, value) in [
        ("helpers", "Helpers of the federation", helpers.count),
        ("helpers_connected", "Helpers that answered when they were last asked", helpers.connected),
    ] {
        gauge(metrics, name, help, Some(value as f64));
    }
    let lost = helpers.lost.iter().map(|(reason, count)| (reason, *count));
    by_reason(metrics, "helper_rounds_lost", "Rounds without the answer of a helper", lost);
}

/// Adds a number, if there is one.
pub fn gauge(metrics: &mut Registry, name: &str, help: &str, value: Option<f64>) {
    if let Some(value) = value {
        let gauge = Number::default();
        gauge.set(value);
        metrics.register(name, help, gauge);
    }
}

/// Adds a number that only grows.
pub fn counter(metrics: &mut Registry, name: &str, help: &str, value: u64) {
    let counter: Counter = Counter::default();
    counter.inc_by(value);
    metrics.register(name, help, counter);
}

/// Adds a counter for each reason.
pub fn by_reason<'a>(
    metrics: &mut Registry,
    name: &str,
    help: &str,
    counts: impl Iterator<Item = (&'a String, u64)>,
) {
    let family = Family::<Reason, Counter>::default();
    for (reason, count) in counts {
        let reason = reason.clone();
        family.get_or_create(&Reason { reason }).inc_by(count);
    }
    metrics.register(name, help, family);
}
