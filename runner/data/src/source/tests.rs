//! Tests of valid and broken files of every kind, and of the real sets if they are available.

use std::fs;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::TempDir;

use super::*;
use crate::dataset::{DeviceBuffer, TaskKind};
use crate::error::ContentError;
use crate::real_data;
use crate::table::{Columns, TableFormat};

fn reason(error: &DataError) -> &ContentError {
    match error {
        DataError::Content { reason, .. } => reason,
        other => panic!("{other}"),
    }
}

fn idx_file(code: u8, dimensions: &[u32], values: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, code, dimensions.len() as u8];
    dimensions
        .iter()
        .for_each(|dimension| bytes.extend(dimension.to_be_bytes()));
    bytes.extend(values);
    bytes
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// Creates a folder with these files.
fn folder(files: &[(&str, Vec<u8>)]) -> (TempDir, DataFolders) {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    let folders = DataFolders::new(vec![folder.path().to_path_buf()]);
    (folder, folders)
}

fn idx_config() -> ArraysConfig {
    ArraysConfig {
        format: ArrayFormat::Idx,
        task: TaskKind::Classification,
        path: "x".into(),
        label_path: "y".into(),
        device_path: None,
        test: None,
        maximum: None,
        classes: None,
    }
}

/// Returns three images of 1 × 2 pixels with labels 0, 2, 1.
fn small() -> [(&'static str, Vec<u8>); 2] {
    [
        ("x", idx_file(8, &[3, 1, 2], &[0, 1, 2, 3, 4, 5])),
        ("y", gzip(&idx_file(8, &[3], &[0, 2, 1]))),
    ]
}

fn load_small(config: ArraysConfig, more: &[(&str, Vec<u8>)]) -> Result<Loaded, DataError> {
    let files = [&small()[..], more].concat();
    let (_kept, folders) = folder(&files);
    load(&StoredSet::Arrays(config), &folders)
}

#[test]
fn idx_files_make_a_data_set() {
    let loaded = load_small(idx_config(), &[]).unwrap();
    let data = loaded.data;
    assert_eq!(
        (data.len(), data.axes(), data.maximum()),
        (3, &[1, 2][..], Some(255.0))
    );
    assert_eq!(data.class_count(), Some(3));
    assert!(data.row(2).eq([4.0, 5.0]));
    assert_eq!(loaded.test_rows, 0);
}

#[test]
fn idx_test_part_comes_last() {
    let config = ArraysConfig {
        test: Some(("tx".into(), "ty".into())),
        ..idx_config()
    };
    let test = [
        ("tx", idx_file(8, &[2, 1, 2], &[8, 8, 9, 9])),
        ("ty", idx_file(8, &[2], &[4, 1])),
    ];
    let loaded = load_small(config, &test).unwrap();
    // No training row has the label 4: its row is left out, and the model has no such class.
    assert_eq!((loaded.data.len(), loaded.test_rows), (4, 1));
    assert_eq!(loaded.data.class_count(), Some(3));
    assert!(loaded.data.row(3).eq([9.0, 9.0]));
    let [remark] = &loaded.remarks[..] else {
        panic!("one remark")
    };
    assert!(remark.contains("1 test rows were left out") && remark.contains("`4`"));
}

#[test]
fn idx_test_part_of_another_width_is_refused() {
    let config = ArraysConfig {
        test: Some(("tx".into(), "ty".into())),
        ..idx_config()
    };
    let test = [
        ("tx", idx_file(8, &[1, 3], &[9, 9, 9])),
        ("ty", idx_file(8, &[1], &[4])),
    ];
    let error = load_small(config, &test).unwrap_err();
    let expected = DatasetError::FeatureCount {
        expected: 2,
        found: 3,
    };
    assert!(
        matches!(reason(&error), ContentError::Dataset(found) if *found == expected),
        "{error}"
    );
}

#[test]
fn idx_devices_are_the_numbers_that_occur() {
    let config = ArraysConfig {
        device_path: Some("d".into()),
        ..idx_config()
    };
    let loaded = load_small(config.clone(), &[("d", idx_file(8, &[3], &[7, 2, 7]))]).unwrap();
    let groups = loaded.data.groups().unwrap();
    assert_eq!(
        (groups.names(), groups.device_of_row()),
        (&["2".into(), "7".into()][..], &[1, 0, 1][..])
    );
    let error = load_small(config, &[("d", idx_file(8, &[2], &[7, 2]))]).unwrap_err();
    assert!(
        matches!(
            error,
            DataError::Count {
                found: 2,
                expected: 3,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn idx_features_need_two_dimensions() {
    let (_kept, folders) = folder(&[
        ("x", idx_file(8, &[3], &[1, 2, 3])),
        ("y", idx_file(8, &[3], &[0, 1, 0])),
    ]);
    let error = load(&StoredSet::Arrays(idx_config()), &folders).unwrap_err();
    assert!(
        matches!(
            reason(&error),
            ContentError::Array(ArrayError::Dimensions { .. })
        ),
        "{error}"
    );
}

#[test]
fn labels_must_match_the_samples_and_the_classes() {
    let [images, _] = small();
    let (_kept, folders) = folder(&[images, ("y", idx_file(8, &[2], &[0, 1]))]);
    let error = load(&StoredSet::Arrays(idx_config()), &folders).unwrap_err();
    assert!(
        matches!(
            error,
            DataError::Count {
                found: 2,
                expected: 3,
                ..
            }
        ),
        "{error}"
    );
    let config = ArraysConfig {
        classes: Some(Classes::numbered(2)),
        ..idx_config()
    };
    let error = load_small(config, &[]).unwrap_err().to_string();
    assert!(
        error.contains("row 1 has label 2") && error.contains("from 0 to 1"),
        "{error}"
    );
}

#[test]
fn errors_name_the_file() {
    let (kept, folders) = folder(&[("x", vec![1, 2, 3]), ("y", Vec::new())]);
    let error = load(&StoredSet::Arrays(idx_config()), &folders).unwrap_err();
    let path = kept.path().join("x").display().to_string();
    assert!(error.to_string().starts_with(&path), "{error}");
    let gone = load(
        &StoredSet::Mnist {
            path: "mnist".into(),
        },
        &folders,
    )
    .unwrap_err();
    assert!(matches!(gone, DataError::NotFound { .. }), "{gone}");
}

#[test]
fn folder_in_place_of_a_file_cannot_be_read() {
    let (kept, folders) = folder(&[]);
    fs::create_dir(kept.path().join("x")).unwrap();
    let error = load(&StoredSet::Arrays(idx_config()), &folders).unwrap_err();
    assert!(matches!(error, DataError::Read { .. }), "{error}");
}

#[test]
fn broken_gzip_names_the_file() {
    let mut packed = gzip(&idx_file(8, &[3, 2], &[0; 6]));
    packed.truncate(packed.len() - 5);
    let (_kept, folders) = folder(&[("x", packed)]);
    let error = load(&StoredSet::Arrays(idx_config()), &folders).unwrap_err();
    assert!(
        matches!(reason(&error), ContentError::Archive(_)),
        "{error}"
    );
}

fn csv_config(test_path: Option<&str>) -> StoredSet {
    let columns = Columns {
        label: "y".into(),
        ..Columns::default()
    };
    StoredSet::Table(TableConfig {
        format: TableFormat::Csv,
        path: "a.csv".into(),
        test_path: test_path.map(Into::into),
        columns,
        recordings: None,
        axes: Vec::new(),
        maximum: None,
    })
}

#[test]
fn csv_with_a_test_part() {
    let (_kept, folders) = folder(&[
        ("a.csv", gzip(b"a,y\n1,no\n2,yes\n")),
        ("b.csv", b"a,y\n3,no\n".to_vec()),
        ("c.csv", b"b,y\n3,no\n".to_vec()),
    ]);
    let loaded = load(&csv_config(Some("b.csv")), &folders).unwrap();
    assert_eq!(
        (loaded.data.features().to_vec(), loaded.test_rows),
        (vec![1.0, 2.0, 3.0], 1)
    );
    let error = load(&csv_config(Some("c.csv")), &folders).unwrap_err();
    assert!(matches!(reason(&error), ContentError::Table(_)), "{error}");
    assert!(error.to_string().contains("c.csv"), "{error}");
}

#[test]
fn csv_with_wrong_axes_is_refused() {
    let (_kept, folders) = folder(&[("a.csv", b"a,y\n1,no\n2,yes\n".to_vec())]);
    let StoredSet::Table(config) = csv_config(None) else {
        unreachable!()
    };
    let error = load(
        &StoredSet::Table(TableConfig {
            axes: vec![2, 2],
            ..config
        }),
        &folders,
    );
    assert!(matches!(
        reason(&error.unwrap_err()),
        ContentError::Dataset(DatasetError::Axes { .. })
    ));
}

fn zip(members: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = ::zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, content) in members {
        writer
            .start_file(*name, ::zip::write::SimpleFileOptions::default())
            .unwrap();
        writer.write_all(content.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn leaf_text(device: &str, label: u8) -> String {
    format!(
        "{{\"users\": [\"{device}\"], \"num_samples\": [1], \
         \"user_data\": {{\"{device}\": {{\"x\": [[1, 2]], \"y\": [{label}]}}}}}}"
    )
}

fn leaf_config(test_path: Option<&str>) -> StoredSet {
    StoredSet::Leaf(LeafConfig {
        path: "a.zip".into(),
        test_path: test_path.map(Into::into),
        task: TaskKind::Classification,
        classes: None,
        axes: vec![2],
        maximum: Some(1.0),
    })
}

#[test]
fn leaf_joins_all_files_of_an_archive_and_the_test_part() {
    let (_kept, folders) = folder(&[
        (
            "a.zip",
            zip(&[
                ("2.json", &leaf_text("b", 1)),
                ("1.json", &leaf_text("a", 0)),
            ]),
        ),
        (
            "t.json",
            zip(&[
                ("1.json", &leaf_text("a", 3)),
                ("2.json", &leaf_text("b", 0)),
            ]),
        ),
        ("broken.json", b"{".to_vec()),
    ]);
    let loaded = load(&leaf_config(Some("t.json")), &folders).unwrap();
    assert_eq!((loaded.data.len(), loaded.test_rows), (3, 1));
    assert_eq!(loaded.data.groups().unwrap().names(), ["a", "b"]);
    assert_eq!(loaded.data.groups().unwrap().device_of_row(), [0, 1, 1]);
    // No training row has the label 3.
    assert_eq!(loaded.data.class_count(), Some(2));
    assert!(loaded.remarks[0].contains("`3`"));
    let error = load(&leaf_config(Some("broken.json")), &folders).unwrap_err();
    assert!(matches!(reason(&error), ContentError::Leaf(_)), "{error}");
}

#[test]
fn zip_with_several_tables_is_refused() {
    let (_kept, folders) = folder(&[("a.csv", zip(&[("a.csv", "a,y"), ("b.csv", "a,y")]))]);
    let error = load(&csv_config(None), &folders).unwrap_err();
    assert!(
        matches!(error, DataError::SeveralMembers { found: 2, .. }),
        "{error}"
    );
}

#[test]
fn mnist_is_read_whole() {
    let Some(folders) = real_data::folders("mnist") else {
        return;
    };
    let loaded = load(
        &StoredSet::Mnist {
            path: "mnist".into(),
        },
        &folders,
    )
    .unwrap();
    assert_eq!((loaded.data.len(), loaded.test_rows), (70_000, 10_000));
    assert_eq!(loaded.data.axes(), [28, 28]);
    let train = &loaded.data.features().to_vec()[..60_000 * 784];
    let mean = train.iter().map(|&pixel| f64::from(pixel)).sum::<f64>() / train.len() as f64;
    assert!((mean - 33.3184).abs() < 1e-4, "{mean}");
    let mut buffer = DeviceBuffer::default();
    assert_eq!(
        loaded.data.view(&[0, 1, 2, 60_000], &mut buffer).label(3),
        7
    );
}

#[test]
fn femnist_is_the_same_as_leaf_and_as_idx() {
    let Some(folders) = real_data::folders("femnist") else {
        return;
    };
    let idx = load(
        &StoredSet::Femnist {
            path: "femnist".into(),
        },
        &folders,
    )
    .unwrap()
    .data;
    let config = LeafConfig {
        path: "femnist/femnist-206-writers-leaf.json.zip".into(),
        test_path: None,
        task: TaskKind::Classification,
        classes: Some(Classes::numbered(62)),
        axes: vec![28, 28],
        maximum: Some(1.0),
    };
    let leaf = load(&StoredSet::Leaf(config), &folders).unwrap().data;
    assert_eq!(
        (idx.len(), idx.class_count(), idx.axes()),
        (6237, Some(62), &[28, 28][..])
    );
    assert_eq!(
        (idx.names().classes.len(), idx.names().classes[43].as_str()),
        (62, "h")
    );
    assert!(leaf.targets() == idx.targets());
    let (of_leaf, of_idx) = (leaf.groups().unwrap(), idx.groups().unwrap());
    assert_eq!(of_leaf.device_of_row(), of_idx.device_of_row());
    assert_eq!((of_leaf.names().len(), of_idx.names().len()), (206, 206));
    let furthest = leaf
        .features()
        .to_vec()
        .into_iter()
        .zip(idx.features().to_vec());
    let furthest = furthest
        .map(|(a, b)| (a - b / 255.0).abs())
        .fold(0.0, f32::max);
    assert!(furthest < 1e-6, "{furthest}");
}

#[test]
fn cifar_10_is_read_with_its_test_part() {
    let Some(folders) = real_data::folders("cifar10_subset") else {
        return;
    };
    let path = "cifar10_subset".into();
    let loaded = load(&StoredSet::Cifar10 { path }, &folders).unwrap();
    assert_eq!((loaded.data.len(), loaded.test_rows), (7500, 1500));
    let pixels = |channel: usize| {
        let rows = 0..6000;
        let sum = rows.flat_map(|row| loaded.data.row(row).skip(channel * 1024).take(1024));
        sum.map(f64::from).sum::<f64>() / (6000.0 * 1024.0 * 255.0)
    };
    // The means in the README of the subset.
    for (channel, mean) in [0.4916, 0.4809, 0.4445].into_iter().enumerate() {
        assert!((pixels(channel) - mean).abs() < 1e-4, "{channel}");
    }
    assert_eq!(loaded.data.names().classes[9], "truck");
}
