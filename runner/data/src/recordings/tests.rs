//! Tests of windows of a few rows, and of their features.

use smolfed_core::window::{Feature, Measure, Recipe};

use super::*;

/// Returns rows of two channels, t and −t at time t.
fn rows(labels: &[u32], devices: &[u32]) -> Dataset {
    let features = (0..labels.len()).flat_map(|t| [t as f32, -(t as f32)]);
    let features: Vec<f32> = features.collect();
    let targets = Targets::Classes {
        labels: labels.iter().map(|label| *label as u16).collect(),
        class_count: 2,
    };
    let names = vec!["0".into(), "1".into()];
    let groups = Groups::new(devices.to_vec(), names).unwrap();
    let names = Names {
        features: vec!["x".into(), "y".into()],
        ..Names::default()
    };
    let data = Dataset::new(features, 2, targets).unwrap();
    data.with_names(names).with_groups(groups).unwrap()
}

fn recordings(window: u32, every: u32) -> Recordings {
    Recordings {
        window,
        step: window,
        every,
        features: None,
    }
}

fn features(length: usize, counts: Option<Vec<f64>>) -> WindowFeatures {
    let listed = [Feature::Mean, Feature::Maximum, Feature::ZeroCrossings];
    let recipe = Recipe::new(length, &listed, &[1, 3], Measure::Amplitude).unwrap();
    WindowFeatures::new(recipe, counts)
}

#[test]
fn channels_come_first_and_rows_are_thinned() {
    let data = rows(&[0, 0, 0, 0, 1, 1, 1, 1, 1], &[0, 0, 0, 0, 1, 1, 1, 1, 1]);
    let cut = recordings(4, 2).windows(&data, &[], 0).unwrap();
    let windows = cut.data;
    assert_eq!((windows.len(), cut.test), (2, 0));
    assert_eq!(cut.left_out, 1);
    assert_eq!(windows.axes(), [2, 1, 2]);
    assert_eq!(
        windows.features().to_vec(),
        [0.0, 2.0, 0.0, -2.0, 4.0, 6.0, -4.0, -6.0]
    );
    assert_eq!(windows.names().features, ["x_0", "x_1", "y_0", "y_1"]);
    assert_eq!(windows.groups().unwrap().device_of_row(), [0, 1]);
    let all = recordings(4, 1).windows(&data, &[], 0).unwrap().data;
    assert!(all.row(0).eq([0.0, 1.0, 2.0, 3.0, 0.0, -1.0, -2.0, -3.0]));
}

#[test]
fn a_window_lies_in_one_recording_device_class_and_part() {
    let starts = |labels: &[u32], devices: &[u32], series: &[u32], test| {
        let data = rows(labels, devices);
        let cut = recordings(2, 1).windows(&data, series, test).unwrap();
        let (windows, in_test) = (cut.data, cut.test);
        let first = |row| windows.row(row).next().unwrap() as usize;
        ((0..windows.len()).map(first).collect::<Vec<_>>(), in_test)
    };
    assert_eq!(
        starts(&[0, 0, 0, 1, 1, 1], &[0; 6], &[], 0),
        (vec![0, 3], 0)
    );
    assert_eq!(
        starts(&[0, 1, 1, 1, 1], &[0, 0, 0, 1, 1], &[], 0),
        (vec![1, 3], 0)
    );
    let series = [5, 5, 5, 2, 2, 2];
    assert_eq!(starts(&[0; 6], &[0; 6], &series, 0), (vec![0, 3], 0));
    assert_eq!(starts(&[0; 6], &[0; 6], &[], 3), (vec![0, 3], 1));
}

#[test]
fn rows_in_no_window_are_counted() {
    let data = rows(&[0; 10], &[0; 10]);
    // 10 rows: 3 + 3 + 3. Overlapping windows at 0, 2, 4 and 6 reach row 8. Windows 4 apart leave
    // gaps.
    for (step, expected) in [(3, 1), (2, 1), (4, 4), (1, 0)] {
        let cut = Recordings {
            step,
            ..recordings(3, 1)
        };
        assert_eq!(
            cut.windows(&data, &[], 0).unwrap().left_out,
            expected,
            "{step}"
        );
    }
    assert!(crate::remark::Remark::of_windows(0, 10, 3).is_none());
    let remark = crate::remark::Remark::of_windows(1, 10, 3)
        .unwrap()
        .to_string();
    assert!(remark.starts_with("1 of 10 rows were left out"), "{remark}");
}

#[test]
fn missing_values_move_with_their_windows() {
    let data = rows(&[0, 0, 0, 0, 0, 1], &[0; 6]).with_missing(vec![1, 4, 9]);
    let windows = recordings(2, 1).windows(&data, &[], 0).unwrap().data;
    // In rows 0 to 3: the second channel of row 0 and the first of row 2.
    assert_eq!(windows.missing(), [2, 4]);
}

#[test]
fn windows_overlap_by_their_step() {
    let data = rows(&[0, 0, 0, 0, 0, 0, 1, 1, 1, 1], &[0; 10]);
    for (step, starts) in [(1, &[0, 1, 2, 6][..]), (2, &[0, 2, 6]), (3, &[0, 6])] {
        let recordings = Recordings {
            step,
            ..recordings(4, 1)
        };
        let windows = recordings.windows(&data, &[], 0).unwrap().data;
        let first = |row| windows.row(row).next().unwrap() as usize;
        let found: Vec<_> = (0..windows.len()).map(first).collect();
        assert_eq!(found, starts, "{step}");
    }
}

#[test]
fn features_are_those_of_the_core() {
    let data = rows(&[0; 8], &[0; 8]);
    let recordings = Recordings {
        features: Some(features(4, None)),
        ..recordings(8, 2)
    };
    let windows = recordings.windows(&data, &[], 0).unwrap().data;
    assert_eq!(windows.axes(), [2, 1, 4]);
    let names = ["mean", "maximum", "zero_crossings", "band_0"];
    let names = ["x", "y"].map(|channel| names.map(|name| format!("{channel}_{name}")));
    assert_eq!(windows.names().features, names.as_flattened());
    let channels = windows.names().columns.iter();
    assert!(channels.map(|column| column.name.as_str()).eq(["x", "y"]));
    // For 0, 2, 4 and 6: the deviations from 3 have |X₁|² = 32 and |X₂|² = 16, and their energies
    // are 2 · 32 / 16 and 16 / 16.
    let band = 5f32.sqrt();
    assert_eq!(
        windows.features().to_vec(),
        [3.0, 6.0, 0.25, band, -3.0, 0.0, 0.25, band]
    );
}

#[test]
fn counts_are_rounded_and_their_features_whole() {
    let data = rows(&[0; 4], &[0; 4]);
    let computed = |counts: &[f64]| {
        let recordings = Recordings {
            features: Some(features(4, Some(counts.to_vec()))),
            ..recordings(4, 1)
        };
        let windows = recordings.windows(&data, &[], 0)?.data;
        Ok::<_, RecordingsError>(windows.features().to_vec())
    };
    // 0, 2, 5 and 7 counts, as halves round away from 0, and −0 to −300, saturated.
    assert_eq!(computed(&[2.4, 1e4]).unwrap()[..3], [4.0, 7.0, 1.0]);
    assert_eq!(computed(&[1.0, 100.0]).unwrap()[4..7], [-150.0, 0.0, 1.0]);
    assert_eq!(computed(&[1e5]).unwrap()[..2], [24_575.0, 32_767.0]);
    let error = computed(&[1.0, 2.0, 3.0]).unwrap_err();
    let (found, channels) = (3, 2);
    let expected = WindowFeaturesError::Counts { found, channels };
    assert_eq!(error, RecordingsError::Features(expected));
}

#[test]
fn features_need_all_values() {
    let recordings = Recordings {
        features: Some(features(4, None)),
        ..recordings(4, 1)
    };
    let data = rows(&[0; 4], &[0; 4]).with_missing(vec![5]);
    let error = recordings.windows(&data, &[], 0).unwrap_err();
    assert!(
        error.to_string().contains("row 3: `y` is missing"),
        "{error}"
    );
    let labels = Targets::Classes {
        labels: vec![0; 4],
        class_count: 2,
    };
    let large = Dataset::new(vec![1e30, 0.0, 0.0, 0.0], 1, labels).unwrap();
    let recordings = Recordings {
        features: Some(WindowFeatures::new(
            Recipe::new(4, &[Feature::Energy], &[], Measure::Energy).unwrap(),
            None,
        )),
        ..recordings
    };
    let error = recordings.windows(&large, &[], 0).unwrap_err();
    assert!(error.to_string().contains("row 1: a sample"), "{error}");
}

#[test]
fn rows_that_fill_no_window_are_refused() {
    let data = rows(&[0, 0, 0, 1, 1], &[0; 5]);
    let error = recordings(4, 1).windows(&data, &[], 0).unwrap_err();
    let (longest, window) = (3, 4);
    assert_eq!(error, RecordingsError::TooShort { longest, window });
    let error = recordings(3, 1).windows(&data, &[], 2).unwrap_err();
    assert_eq!(error, RecordingsError::NoTest { window: 3 });
    let targets = Targets::Values(vec![0.0; 4]);
    let data = Dataset::new(vec![0.0; 4], 1, targets).unwrap();
    let error = recordings(2, 1).windows(&data, &[], 0).unwrap_err();
    assert_eq!(error, RecordingsError::NoClasses);
}
