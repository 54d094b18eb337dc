//! Tests of the results of an inspection.

use super::*;

fn inspect(text: &str, folders: &DataFolders) -> Inspection {
    Inspection::new(&toml::from_str(text).unwrap(), folders, 1).unwrap()
}

#[test]
fn digits_are_described_before_scaling() {
    let found = inspect(
        "source = \"digits\"\ndevices = 100",
        &DataFolders::new(Vec::new()),
    );
    assert_eq!((found.facts.samples, found.facts.feature_count), (1797, 64));
    assert_eq!(
        (found.facts.axes, found.facts.feature_range),
        (vec![8, 8], [0.0, 16.0])
    );
    // Three pixels of the border are always blank.
    assert_eq!(found.facts.constant_features, 3);
    assert_eq!(
        found.devices,
        DeviceSizes {
            devices: 100,
            min: 14,
            median: 14,
            max: 14
        }
    );
    assert_eq!((found.validation, found.test), (0, 359));
    let TargetFacts::Classes(classes) = found.facts.targets else {
        unreachable!()
    };
    assert_eq!(
        classes[9],
        ClassSize {
            class: "9".into(),
            samples: 180
        }
    );
    assert_eq!(
        (
            found.facts.example.features.len(),
            found.facts.example.target
        ),
        (64, "0".into())
    );
}

#[test]
fn tables_show_missing_values_and_devices() {
    let folder = tempfile::tempdir().unwrap();
    let rows = "who,x,z,y\na,1,2,0.5\na,?,2,1.5\na,3,2,2.5\nb,4,2,4.5\nb,7,2,1\nc,7,?,2\n";
    std::fs::write(folder.path().join("a.csv"), rows).unwrap();
    let folders = DataFolders::new(vec![folder.path().to_path_buf()]);
    let text = "source = \"csv\"\npath = \"a.csv\"\nlabel = \"y\"\ndevice_column = \"who\"\n\
                task = \"regression\"\ntest = 0";
    let found = inspect(text, &folders);
    let gap = |feature: &str| MissingValues {
        feature: feature.into(),
        count: 1,
    };
    assert_eq!(found.facts.missing, [gap("x"), gap("z")]);
    assert_eq!(
        (found.facts.feature_range, found.facts.constant_features),
        ([1.0, 7.0], 1)
    );
    assert_eq!(
        found.devices,
        DeviceSizes {
            devices: 3,
            min: 1,
            median: 2,
            max: 3
        }
    );
    assert_eq!(
        found.facts.targets,
        TargetFacts::Values {
            min: 0.5,
            max: 4.5,
            mean: 2.0
        }
    );
}

#[test]
fn endless_federations_are_not_counted_one_by_one() {
    let text = "source = \"synthetic\"\ndevices = 4294967295\ntest = 100\nvalidation = 1";
    let found = inspect(text, &DataFolders::new(Vec::new()));
    assert_eq!(found.facts.samples, 4_294_967_295 * 50 + 101);
    assert_eq!(found.devices.max, 50);
    assert!(
        serde_json::to_string(&found)
            .unwrap()
            .contains("\"devices\":4294967295")
    );
}
