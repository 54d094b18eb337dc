//! Tests of valid files, and of every error.

use proptest::prelude::*;

use super::*;
use crate::dataset::DatasetError;

const GOOD: &str = r#"{"users": ["b", "a"], "num_samples": [2, 1], "hierarchies": [],
    "user_data": {"a": {"x": [[5, 6]], "y": [2]},
                  "b": {"y": [0, 1.0], "x": [[1, 2], [3, 4.5]]}}}"#;

fn error(text: &str) -> LeafError {
    parse(text.as_bytes()).unwrap_err()
}

fn one_device(samples: &str) -> String {
    format!(r#"{{"users": ["a"], "num_samples": [2], "user_data": {{"a": {samples}}}}}"#)
}

#[test]
fn devices_come_in_the_order_of_users() {
    let leaf = parse(GOOD.as_bytes()).unwrap();
    let data = leaf
        .into_dataset(TaskKind::Classification, None, usize::MAX)
        .unwrap();
    assert_eq!(data.features().to_vec(), [1.0, 2.0, 3.0, 4.5, 5.0, 6.0]);
    assert!(
        data.targets()
            == &Targets::Classes {
                labels: vec![0, 1, 2],
                class_count: 3
            }
    );
    assert_eq!(data.groups().unwrap().names(), ["b", "a"]);
    assert_eq!(data.groups().unwrap().device_of_row(), [0, 0, 1]);
}

#[test]
fn regression_keeps_the_numbers() {
    let leaf = parse(GOOD.as_bytes()).unwrap();
    let data = leaf
        .into_dataset(TaskKind::Regression, None, usize::MAX)
        .unwrap();
    assert!(data.targets() == &Targets::Values(vec![0.0, 1.0, 2.0]));
}

#[test]
fn second_file_joins_devices_of_one_name() {
    let mut leaf = parse(GOOD.as_bytes()).unwrap();
    let more = one_device(r#"{"x": [[0, 0], [0, 0]], "y": [1, 1]}"#);
    leaf.append(parse(more.as_bytes()).unwrap()).unwrap();
    let data = leaf
        .into_dataset(TaskKind::Classification, None, usize::MAX)
        .unwrap();
    assert_eq!(data.groups().unwrap().device_of_row(), [0, 0, 1, 1, 1]);
    let mut leaf = parse(GOOD.as_bytes()).unwrap();
    let wide = parse(one_device(r#"{"x": [[0], [0]], "y": [1, 1]}"#).as_bytes()).unwrap();
    let refused = leaf.append(wide).unwrap_err();
    assert!(matches!(
        refused,
        LeafError::Ragged {
            expected: 2,
            found: 1,
            ..
        }
    ));
}

#[test]
fn broken_json_is_refused() {
    for text in [
        "",
        "{",
        "[]",
        "{}",
        &GOOD[..GOOD.len() - 1],
        &GOOD.replace("4.5", "NaN"),
    ] {
        assert!(matches!(error(text), LeafError::Json(_)), "{text}");
    }
    assert!(matches!(
        error(&one_device(r#"{"x": ["text"], "y": [1]}"#)),
        LeafError::Json(_)
    ));
}

#[test]
fn counts_must_agree() {
    let text = GOOD.replace("[2, 1]", "[2]");
    assert_eq!(
        error(&text),
        LeafError::CountsLength {
            expected: 2,
            found: 1
        }
    );
    let text = GOOD.replace("[2, 1]", "[3, 1]");
    assert!(matches!(
        error(&text),
        LeafError::SampleCounts {
            x: 2,
            y: 2,
            declared: 3,
            ..
        }
    ));
    let text = one_device(r#"{"x": [[1], [2]], "y": [1]}"#);
    assert!(matches!(
        error(&text),
        LeafError::SampleCounts {
            x: 2,
            y: 1,
            declared: 2,
            ..
        }
    ));
}

#[test]
fn users_and_data_must_agree() {
    let text = GOOD.replace(r#"["b", "a"]"#, r#"["b", "c"]"#);
    assert_eq!(error(&text), LeafError::NoData { device: "c".into() });
    let text = GOOD
        .replace(r#"["b", "a"]"#, r#"["b"]"#)
        .replace("[2, 1]", "[2]");
    assert_eq!(error(&text), LeafError::NotListed { device: "a".into() });
    let text = GOOD.replace(r#"["b", "a"]"#, r#"["b", "b"]"#);
    assert_eq!(
        error(&text),
        LeafError::DuplicateDevice { device: "b".into() }
    );
    let text = GOOD.replace(r#""a": {"#, r#""b": {"#);
    assert_eq!(
        error(&text),
        LeafError::DuplicateDevice { device: "b".into() }
    );
}

#[test]
fn empty_device_is_named() {
    let text = one_device(r#"{"x": [], "y": []}"#).replace("[2]", "[0]");
    assert_eq!(error(&text), LeafError::EmptyDevice { device: "a".into() });
}

#[test]
fn ragged_sample_is_named() {
    let text = one_device(r#"{"x": [[1, 2], [3]], "y": [0, 1]}"#);
    let expected = LeafError::Ragged {
        device: "a".into(),
        sample: 1,
        expected: 2,
        found: 1,
    };
    assert_eq!(error(&text), expected);
}

#[test]
fn labels_must_be_whole_numbers() {
    for label in ["0.5", "-1", "65536", "1e300"] {
        let text = one_device(&format!(r#"{{"x": [[1], [2]], "y": [0, {label}]}}"#));
        let refused = parse(text.as_bytes()).unwrap().into_dataset(
            TaskKind::Classification,
            None,
            usize::MAX,
        );
        assert!(
            matches!(refused, Err(LeafError::Label { sample: 1, .. })),
            "{label}"
        );
    }
}

#[test]
fn content_that_cannot_be_learned_is_refused() {
    let one = one_device(r#"{"x": [[1], [2]], "y": [3, 3]}"#);
    let refused =
        parse(one.as_bytes())
            .unwrap()
            .into_dataset(TaskKind::Classification, None, usize::MAX);
    assert!(matches!(
        refused,
        Err(LeafError::Content(DatasetError::OneClass { .. }))
    ));
    let none = r#"{"users": [], "num_samples": [], "user_data": {}}"#;
    let refused =
        parse(none.as_bytes())
            .unwrap()
            .into_dataset(TaskKind::Classification, None, usize::MAX);
    assert!(matches!(
        refused,
        Err(LeafError::Content(DatasetError::NoSamples))
    ));
    let wide = one_device(r#"{"x": [[], []], "y": [0, 1]}"#);
    let refused =
        parse(wide.as_bytes())
            .unwrap()
            .into_dataset(TaskKind::Classification, None, usize::MAX);
    assert!(matches!(
        refused,
        Err(LeafError::Content(DatasetError::NoFeatures))
    ));
}

proptest! {
    /// A valid file with one changed byte is read or refused, without a panic.
    #[test]
    fn damaged_files_do_not_panic(position in 0usize..200, byte: u8) {
        let mut damaged = GOOD.as_bytes().to_vec();
        let position = position % damaged.len();
        damaged[position] = byte;
        if let Ok(leaf) = parse(&damaged) {
            let _ = leaf.into_dataset(TaskKind::Classification, None, usize::MAX);
        }
    }
}
