//! Tests of the errors of a data set, and of its views.

use super::*;

fn two_rows() -> Dataset {
    let targets = Targets::classes(&[0, 1], 2).unwrap();
    Dataset::new(vec![1.0, 2.0, 3.0, 4.0], 2, targets).unwrap()
}

#[test]
fn rows_and_views_show_the_same_features() {
    let data = two_rows();
    assert!(data.row(1).eq([3.0, 4.0]));
    let rows = [1, 0, 1];
    let view = data.shared_view(&rows).unwrap();
    assert_eq!(view.len(), 3);
    assert_eq!(view.features(0), [3.0, 4.0]);
    assert_eq!((view.label(0), view.label(1), view.label(2)), (1, 0, 1));
    assert!(data.shared_view(&[]).unwrap().is_empty());
}

#[test]
fn values_are_read_as_labels_and_numbers() {
    let data = Dataset::new(vec![1.0], 1, Targets::Values(vec![2.5])).unwrap();
    let view = data.shared_view(&[0]).unwrap();
    assert_eq!((view.value(0), view.label(0)), (2.5, 0));
    assert!(two_rows().shared_view(&[1]).unwrap().value(0) > 0.5);
    assert_eq!(data.class_count(), None);
}

#[test]
fn nothing_is_no_data_set() {
    let none = Targets::Values(Vec::new());
    assert_eq!(
        Dataset::new(Vec::<f32>::new(), 3, none).unwrap_err(),
        DatasetError::NoSamples
    );
    let one = Targets::Values(vec![1.0]);
    assert_eq!(
        Dataset::new(Vec::<f32>::new(), 0, one).unwrap_err(),
        DatasetError::NoFeatures
    );
}

#[test]
fn lengths_must_agree() {
    let targets = Targets::Values(vec![0.0; 3]);
    let error = Dataset::new(vec![0.0; 4], 2, targets).unwrap_err();
    assert_eq!(
        error,
        DatasetError::Length {
            part: "feature rows",
            expected: 3,
            found: 2
        }
    );
    let groups = Groups::new(vec![0], vec!["a".into()]).unwrap();
    let error = two_rows().with_groups(groups).unwrap_err();
    assert_eq!(
        error,
        DatasetError::Length {
            part: "devices",
            expected: 2,
            found: 1
        }
    );
}

#[test]
fn features_and_targets_must_be_finite() {
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let targets = Targets::Values(vec![0.0; 2]);
        let error = Dataset::new(vec![0.0, 0.0, 0.0, value], 2, targets).unwrap_err();
        assert!(matches!(
            error,
            DatasetError::FeatureNotFinite {
                row: 1,
                feature: 1,
                ..
            }
        ));
        let targets = Targets::Values(vec![0.0, value]);
        let error = Dataset::new(vec![0.0; 2], 1, targets).unwrap_err();
        assert!(matches!(
            error,
            DatasetError::TargetNotFinite { row: 1, .. }
        ));
    }
}

#[test]
fn labels_must_be_classes_and_differ() {
    let error = Targets::classes(&[0, 2], 2).unwrap_err();
    assert_eq!(
        error,
        DatasetError::Label {
            row: 1,
            label: 2,
            class_count: 2
        }
    );
    assert!(error.to_string().contains("from 0 to 1"), "{error}");
    let error = Targets::classes(&[0, 70_000], 1 << 16).unwrap_err();
    assert!(matches!(error, DatasetError::Label { label: 70_000, .. }));
    let error = Targets::classes(&[3, 3], 5).unwrap_err();
    assert_eq!(error, DatasetError::OneClass { label: "3".into() });
    let error = Targets::classes(&[0], 70_000).unwrap_err();
    assert_eq!(error, DatasetError::TooManyClasses { found: 70_000 });
}

#[test]
fn axes_must_multiply_to_the_features() {
    assert_eq!(two_rows().with_axes(vec![1, 2]).unwrap().axes(), [1, 2]);
    for axes in [vec![2, 2], vec![0], vec![usize::MAX, 2]] {
        assert!(matches!(
            two_rows().with_axes(axes),
            Err(DatasetError::Axes { .. })
        ));
    }
}

#[test]
fn groups_must_have_names() {
    let error = Groups::new(vec![0, 1], vec!["a".into()]).unwrap_err();
    assert!(matches!(
        error,
        DatasetError::Label {
            row: 1,
            label: 1,
            class_count: 1
        }
    ));
}

#[test]
fn debug_prints_no_values() {
    let data = Dataset::new(vec![41.5], 1, Targets::Values(vec![42.5])).unwrap();
    let text = format!("{data:?} {:?}", data.shared_view(&[0]));
    assert!(!text.contains("41") && !text.contains("42"), "{text}");
}

#[test]
fn rows_of_the_last_class_are_left_out_with_all_that_belongs_to_them() {
    let targets = Targets::classes(&[0, 2, 1, 2, 0], 3).unwrap();
    let groups = Groups::new(vec![0, 0, 1, 1, 1], vec!["a".into(), "b".into()]).unwrap();
    let data = Dataset::new((0..10).map(|x| x as f32).collect::<Vec<_>>(), 2, targets).unwrap();
    let data = data
        .with_missing(vec![1, 2, 5, 8])
        .with_groups(groups)
        .unwrap();
    let (data, dropped) = data
        .with_axes(vec![1, 2])
        .unwrap()
        .without_last_class()
        .unwrap();
    assert_eq!(dropped, [1, 3]);
    assert_eq!(data.features().to_vec(), [0.0, 1.0, 4.0, 5.0, 8.0, 9.0]);
    assert!(data.targets() == &Targets::classes(&[0, 1, 0], 2).unwrap());
    assert_eq!(data.missing(), [1, 3, 4]);
    assert_eq!(data.groups().unwrap().device_of_row(), [0, 1, 1]);
    assert_eq!(data.axes(), [1, 2]);
}
