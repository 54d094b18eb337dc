//! Tables that are read, and every way in which one can be wrong.

use proptest::prelude::*;

use super::*;

fn columns(task: TaskKind) -> Columns {
    Columns {
        classes: None,
        label: "y".into(),
        device: Some("who".into()),
        ignore: vec!["id".into()],
        task,
    }
}

fn read(text: &str) -> Result<Table, CsvError> {
    parse(text.as_bytes(), &columns(TaskKind::Classification))
}

const GOOD: &str = "id,who,a,b,y\n1,10,0.5,?,yes\n2,9,1e1,-3,no\n3,10,,4,yes\n";

#[test]
fn columns_become_features_labels_and_devices() {
    let data = read(GOOD).unwrap().into_dataset().unwrap();
    assert_eq!(data.features().to_vec(), [0.5, 0.0, 10.0, -3.0, 0.0, 4.0]);
    assert_eq!(data.missing(), [1, 4]);
    assert_eq!(data.names().features, ["a", "b"]);
    assert_eq!(data.names().classes, ["no", "yes"]);
    let expected = Targets::Classes {
        labels: vec![1, 0, 1],
        class_count: 2,
    };
    assert!(data.targets() == &expected);
    let groups = data.groups().unwrap();
    assert_eq!(groups.names(), ["9", "10"]);
    assert_eq!(groups.device_of_row(), [1, 0, 1]);
}

#[test]
fn regression_reads_numbers() {
    let text = "who,id,a,y\n1,1,2,0.5\n1,2,3,-1\n";
    let table = parse(text.as_bytes(), &columns(TaskKind::Regression)).unwrap();
    assert!(table.into_dataset().unwrap().targets() == &Targets::Values(vec![0.5, -1.0]));
    let text = "who,id,a,y\n1,1,2,low\n";
    let error = parse(text.as_bytes(), &columns(TaskKind::Regression)).unwrap_err();
    assert!(
        matches!(error, CsvError::NotNumber { line: 2, .. }),
        "{error}"
    );
    let text = "who,id,a,y\n1,1,2,\n";
    let error = parse(text.as_bytes(), &columns(TaskKind::Regression)).unwrap_err();
    assert!(
        matches!(
            error,
            CsvError::Empty {
                line: 2,
                what: "target",
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn windows_line_ends_spaces_and_quotes_are_fine() {
    let data = read("id,who, a,y\r\n1, 2,\"3\" ,\"n,o\"\r\n1,2,4,yes\r\n").unwrap();
    let data = data.into_dataset().unwrap();
    assert_eq!(data.names().classes, ["n,o", "yes"]);
    assert_eq!(data.features().to_vec(), [3.0, 4.0]);
}

#[test]
fn empty_file_has_no_header() {
    for text in ["", "\n", ",,\n"] {
        assert_eq!(read(text).unwrap_err(), CsvError::NoHeader, "{text:?}");
    }
}

#[test]
fn header_without_rows_is_no_data_set() {
    let table = read("id,who,a,y\n").unwrap();
    assert_eq!(table.into_dataset().unwrap_err(), DatasetError::NoSamples);
}

#[test]
fn table_without_features_is_no_data_set() {
    let table = read("id,who,y\n1,1,a\n1,1,b\n").unwrap();
    assert_eq!(table.into_dataset().unwrap_err(), DatasetError::NoFeatures);
}

#[test]
fn duplicate_column_is_refused() {
    let error = read("id,who,a,a,y\n").unwrap_err();
    assert_eq!(error, CsvError::DuplicateColumn { column: "a".into() });
}

#[test]
fn unknown_column_is_refused_with_the_known_ones() {
    let error = read("id,who,a,label\n").unwrap_err();
    assert!(
        matches!(&error, CsvError::NoColumn { key: "label", .. }),
        "{error}"
    );
    assert!(error.to_string().contains("`who`"), "{error}");
    let error = read("who,a,y\n").unwrap_err();
    assert!(
        matches!(&error, CsvError::NoColumn { key: "ignore", .. }),
        "{error}"
    );
    let error = read("id,a,y\n").unwrap_err();
    assert!(
        matches!(
            &error,
            CsvError::NoColumn {
                key: "device_column",
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn column_with_two_meanings_is_refused() {
    let mut columns = columns(TaskKind::Classification);
    columns.ignore.push("y".into());
    let error = parse(GOOD.as_bytes(), &columns).unwrap_err();
    assert_eq!(error, CsvError::ColumnTwice { column: "y".into() });
}

#[test]
fn ragged_line_is_named() {
    for row in ["1,2,3", "1,2,3,4,5,6"] {
        let error = read(&format!("id,who,a,b,y\n1,2,3,4,5\n{row}\n")).unwrap_err();
        let found = row.split(',').count() as u64;
        assert_eq!(
            error,
            CsvError::Ragged {
                line: 3,
                expected: 5,
                found
            }
        );
    }
}

#[test]
fn text_and_non_finite_features_are_named() {
    let error = read("id,who,a,y\n1,2,3,no\n1,2,tall,no\n").unwrap_err();
    let expected = CsvError::NotNumber {
        line: 3,
        column: "a".into(),
        cell: "tall".into(),
    };
    assert_eq!(error, expected);
    for cell in ["nan", "inf", "-Infinity", "1e39"] {
        let error = read(&format!("id,who,a,y\n1,2,{cell},no\n")).unwrap_err();
        assert!(
            matches!(error, CsvError::NotFinite { line: 2, .. }),
            "{cell}: {error}"
        );
    }
}

#[test]
fn missing_label_or_device_is_refused() {
    let error = read("id,who,a,y\n1,2,3,?\n").unwrap_err();
    assert!(
        matches!(
            error,
            CsvError::Empty {
                line: 2,
                what: "label",
                ..
            }
        ),
        "{error}"
    );
    let error = read("id,who,a,y\n1,,3,a\n").unwrap_err();
    assert!(
        matches!(
            error,
            CsvError::Empty {
                line: 2,
                what: "device",
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn one_class_is_named() {
    let error = read("id,who,a,y\n1,2,3,yes\n")
        .unwrap()
        .into_dataset()
        .unwrap_err();
    assert_eq!(
        error,
        DatasetError::OneClass {
            label: "yes".into()
        }
    );
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    let error = parse(
        b"id,who,a,y\n1,2,\xff,x\n",
        &columns(TaskKind::Classification),
    );
    assert_eq!(error.unwrap_err(), CsvError::NotText { line: 2 });
}

#[test]
fn test_part_shares_classes_and_devices() {
    let mut table = read(GOOD).unwrap();
    table
        .append(read("id,who,a,b,y\n1,8,?,2,maybe\n").unwrap())
        .unwrap();
    assert_eq!(table.row_count(), 4);
    let data = table.into_dataset().unwrap();
    assert_eq!(data.missing(), [1, 4, 6]);
    assert_eq!(data.names().classes, ["maybe", "no", "yes"]);
    assert_eq!(data.groups().unwrap().device_of_row(), [2, 1, 2, 0]);
}

#[test]
fn test_part_with_another_header_is_refused() {
    for header in ["id,who,b,a,y", "id,who,a,y", "id,who,a,b,c,y"] {
        let other = read(&format!("{header}\n")).unwrap();
        let error = read(GOOD).unwrap().append(other).unwrap_err();
        assert!(matches!(error, CsvError::OtherHeader { .. }), "{error}");
    }
}

proptest! {
    /// Any text is read or refused, and what is read has whole rows.
    #[test]
    fn any_text_is_read_or_refused(body in "[a-z0-9,.?\n\"-]{0,80}") {
        if let Ok(table) = read(&format!("id,who,a,y\n{body}")) {
            prop_assert_eq!(table.features.len(), table.row_count);
        }
    }
}
