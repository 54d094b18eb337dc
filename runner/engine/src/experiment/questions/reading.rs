//! Reads the keys of `[[questions]]`, by kind.

use smolfed_core::fixed_point::FeatureFormat;
use smolfed_core::question::{Bins, Dimensions, Edges, Features, Question, QuestionError};

use crate::check::ExperimentError;
use crate::tables::question::{QuestionConfig, QuestionKind};

/// Default bound: losses above it count as this value.
const DEFAULT_LOSS_BOUND: f64 = 5.0;

/// Returns the default name of a question.
pub(super) fn name(table: &QuestionConfig) -> String {
    let kind = table.kind.name();
    match (table.kind, table.feature) {
        (QuestionKind::Histogram | QuestionKind::Presence, None) => format!("{kind} of labels"),
        (_, None) => kind.to_owned(),
        (_, Some(feature)) => format!("{kind} of feature {feature}"),
    }
}

/// Returns the question to devices.
///
/// # Errors
/// [`ExperimentError`] for the first invalid key.
pub(super) fn question(
    table: &QuestionConfig,
    of: &Dimensions,
) -> Result<Question, ExperimentError> {
    unused_keys(table)?;
    let question = match table.kind {
        QuestionKind::Evaluate => Question::Evaluate {
            bound: table.loss_bound.unwrap_or(DEFAULT_LOSS_BOUND) as f32,
        },
        QuestionKind::Confusion => Question::Confusion,
        QuestionKind::Histogram => Question::Histogram(bins(table, of)?),
        QuestionKind::Presence => Question::Presence(bins(table, of)?),
        QuestionKind::Moments => Question::Moments(features(table, of)?),
        QuestionKind::Count => Question::Count,
    };
    question
        .check(of)
        .map_err(|error| refused(table, of, error))?;
    Ok(question)
}

/// Refuses keys of other kinds.
fn unused_keys(table: &QuestionConfig) -> Result<(), ExperimentError> {
    use QuestionKind::{Evaluate, Histogram, Moments, Presence};
    let kind = table.kind;
    let is_binned = matches!(kind, Histogram | Presence);
    for (key, is_there, is_used) in [
        (
            "questions.loss_bound",
            table.loss_bound.is_some(),
            kind == Evaluate,
        ),
        (
            "questions.feature",
            table.feature.is_some(),
            is_binned || kind == Moments,
        ),
        ("questions.edges", table.edges.is_some(), is_binned),
        ("questions.bounds", table.bounds.is_some(), kind == Moments),
    ] {
        if is_there && !is_used {
            let expected = format!("left out of a question of kind \"{}\"", kind.name());
            return Err(range(key, "given", expected));
        }
    }
    Ok(())
}

/// Returns the bins for counting samples. Classes need no edges, everything else does.
fn bins(table: &QuestionConfig, of: &Dimensions) -> Result<Bins, ExperimentError> {
    let edges = match &table.edges {
        None if table.feature.is_none() && of.classes > 0 => return Ok(Bins::Classes),
        None => {
            return Err(ExperimentError::Missing {
                key: "questions.edges",
                purpose: "they separate the bins in which values are counted",
            });
        }
        Some(edges) => edges,
    };
    let narrow: Vec<f32> = edges.iter().map(|edge| *edge as f32).collect();
    let edges = Edges::new(&narrow).map_err(|error| refused(table, of, error))?;
    Ok(match table.feature {
        None => Bins::Target(edges),
        Some(feature) => Bins::Feature(feature, edges),
    })
}

/// Returns the features for moments, and their bounds.
fn features(table: &QuestionConfig, of: &Dimensions) -> Result<Features, ExperimentError> {
    let Some([lower, upper]) = table.bounds else {
        return Err(ExperimentError::Missing {
            key: "questions.bounds",
            purpose: "features are clipped to them, so that one device moves the sum by a known \
                      amount",
        });
    };
    let (first, count) = match table.feature {
        Some(feature) => (feature, 1),
        None => (0, u16::try_from(of.features).unwrap_or(u16::MAX)),
    };
    let features = Features::new(first, count, lower as f32, upper as f32);
    features.map_err(|error| refused(table, of, error))
}

/// Refuses bounds and edges of features that devices with integers cannot store, because they store
/// features beyond the range of the format as its ends. No feature would be at or above an edge
/// above the highest feature, or below an edge at the lowest one.
///
/// # Errors
/// [`ExperimentError`] for the first such key.
pub(super) fn check_format(
    table: &QuestionConfig,
    format: FeatureFormat,
) -> Result<(), ExperimentError> {
    let (lowest, highest) = format.range();
    let edges = table.edges.as_deref();
    let edges = edges.filter(|_| table.feature.is_some());
    let bounds = table.bounds.as_ref().map(|bounds| &bounds[..]);
    for (key, values, is_edge) in [
        ("questions.bounds", bounds, false),
        ("questions.edges", edges, true),
    ] {
        let values = values.unwrap_or_default();
        // Devices receive `f32`.
        let is_beyond = |value: &f64| match *value as f32 {
            x if is_edge && x <= lowest => true,
            x => !(lowest..=highest).contains(&x),
        };
        if values.iter().any(is_beyond) {
            let accepted = match is_edge {
                true => format!("above {lowest} and at most {highest}"),
                false => format!("from {lowest} to {highest}"),
            };
            let expected = format!(
                "{accepted}, the range of features in `simulation.integer`: scale the features \
                 (`data.scale`)"
            );
            return Err(range(key, &format!("{values:?}"), expected));
        }
    }
    Ok(())
}

/// Converts an error of a question into an error about its key.
fn refused(table: &QuestionConfig, of: &Dimensions, error: QuestionError) -> ExperimentError {
    let last = of.features.saturating_sub(1);
    let (key, value, expected) = match error {
        QuestionError::Edges => (
            "questions.edges",
            format!("{:?}", table.edges.as_deref().unwrap_or_default()),
            "1 to 16 increasing finite numbers".to_owned(),
        ),
        QuestionError::Bounds => (
            "questions.bounds",
            format!("{:?}", table.bounds.unwrap_or_default()),
            "a lower bound and a larger upper one, both finite".to_owned(),
        ),
        QuestionError::LossBound => (
            "questions.loss_bound",
            table.loss_bound.unwrap_or_default().to_string(),
            "finite and above 0".to_owned(),
        ),
        QuestionError::Feature => (
            "questions.feature",
            table.feature.unwrap_or_default().to_string(),
            format!("from 0 to {last}, the number of a feature"),
        ),
        QuestionError::NoClasses | QuestionError::NoValues => (
            "questions.kind",
            format!("\"{}\"", table.kind.name()),
            format!("another one: {error}"),
        ),
    };
    range(key, &value, expected)
}

/// Returns an error about a value out of range.
pub(super) fn range(key: &'static str, value: &str, expected: String) -> ExperimentError {
    let value = value.to_owned();
    ExperimentError::Range {
        key,
        value,
        expected,
    }
}
