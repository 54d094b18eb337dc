//! Tests of valid tables, and of every error.

use proptest::prelude::*;

use super::*;
use crate::classes::{ClassList, ClassName};
use crate::dataset::TaskKind;

fn columns(task: TaskKind) -> Columns {
    Columns {
        label: "y".into(),
        device: Some("who".into()),
        ignore: vec!["id".into()],
        task: Some(task),
        ..Columns::default()
    }
}

fn of_text(text: &str, columns: &Columns) -> Result<Table, TableError> {
    parse(TableFormat::Csv, text.as_bytes(), columns)
}

fn read(text: &str) -> Result<Table, TableError> {
    of_text(text, &columns(TaskKind::Classification))
}

/// Returns whether an error is about a cell of this line, for this reason.
fn is_cell(error: &TableError, line: u32, expected: &CellError) -> bool {
    let here = Place::Line(line);
    matches!(error, TableError::Cell { place, reason, .. } if *place == here && reason == expected)
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
    let table = of_text(text, &columns(TaskKind::Regression)).unwrap();
    assert!(table.into_dataset().unwrap().targets() == &Targets::Values(vec![0.5, -1.0]));
    let text = "who,id,a,y\n1,1,2,low\n";
    let error = of_text(text, &columns(TaskKind::Regression)).unwrap_err();
    assert!(is_cell(&error, 2, &CellError::TargetNotNumber), "{error}");
    let text = "who,id,a,y\n1,1,2,\n";
    let error = of_text(text, &columns(TaskKind::Regression)).unwrap_err();
    assert!(
        matches!(
            error,
            TableError::Empty {
                place: Place::Line(2),
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
        assert_eq!(read(text).unwrap_err(), TableError::NoHeader, "{text:?}");
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
    assert_eq!(error, TableError::DuplicateColumn { column: "a".into() });
}

#[test]
fn unknown_column_is_refused_with_the_known_ones() {
    let error = read("id,who,a,label\n").unwrap_err();
    assert!(
        matches!(
            &error,
            TableError::NoColumn {
                key: "data.label",
                ..
            }
        ),
        "{error}"
    );
    assert!(error.to_string().contains("`who`"), "{error}");
    let error = read("who,a,y\n").unwrap_err();
    assert!(
        matches!(
            &error,
            TableError::NoColumn {
                key: "data.ignore",
                ..
            }
        ),
        "{error}"
    );
    let error = read("id,a,y\n").unwrap_err();
    assert!(
        matches!(
            &error,
            TableError::NoColumn {
                key: "data.device_column",
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
    let error = of_text(GOOD, &columns).unwrap_err();
    assert_eq!(error, TableError::ColumnTwice { column: "y".into() });
}

#[test]
fn ragged_line_is_named() {
    for row in ["1,2,3", "1,2,3,4,5,6"] {
        let error = read(&format!("id,who,a,b,y\n1,2,3,4,5\n{row}\n")).unwrap_err();
        let found = row.split(',').count();
        assert_eq!(
            error,
            TableError::Ragged {
                place: Place::Line(3),
                expected: 5,
                found,
                advice: "",
            }
        );
    }
}

#[test]
fn text_and_non_finite_features_are_named() {
    let error = read("id,who,a,y\n1,2,3,no\n1,2,tall,no\n").unwrap_err();
    assert!(is_cell(&error, 3, &CellError::NotNumber), "{error}");
    for words in [
        "line 3, column `a`: `tall`",
        "`categories.a = [\"tall\", ..]`",
        "data.ignore",
    ] {
        assert!(error.to_string().contains(words), "{error}");
    }
    for cell in ["inf", "-Infinity", "1e39"] {
        let error = read(&format!("id,who,a,y\n1,2,{cell},no\n")).unwrap_err();
        assert!(is_cell(&error, 2, &CellError::NotFinite), "{cell}: {error}");
    }
}

#[test]
fn missing_label_or_device_is_refused() {
    let error = read("id,who,a,y\n1,2,3,?\n").unwrap_err();
    assert!(
        matches!(
            error,
            TableError::Empty {
                place: Place::Line(2),
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
            TableError::Empty {
                place: Place::Line(2),
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
    let columns = columns(TaskKind::Classification);
    let error = parse(TableFormat::Csv, b"id,who,a,y\n1,2,\0,x\n", &columns).unwrap_err();
    assert!(matches!(error, TableError::Binary { .. }), "{error}");
}

#[test]
fn tables_are_read_as_they_are() {
    let expected = read("id,who,a,b,y\n1,w,1.5,,x\n2,w,-2,1,z\n").unwrap();
    let expected = expected.into_dataset().unwrap();
    let semicolons = "id;who;a;b;y\r\n1;w;1,5;N/A;x\r\n2;w;-2;True;z\r\n";
    let utf_16 = |text: &str| -> Vec<u8> {
        let units = "\u{feff}".encode_utf16().chain(text.encode_utf16());
        units.flat_map(u16::to_le_bytes).collect()
    };
    for bytes in [
        semicolons.as_bytes().to_vec(),
        format!("\u{feff}{semicolons}").into_bytes(),
        utf_16(&semicolons.replace(';', "\t")),
        semicolons.replace(';', "|").into_bytes(),
        b",id,who,a,b,y,\n0,1,w,1.5,nan,x,\n1,2,w,-2,yes,z,\n".to_vec(),
    ] {
        let table = parse(TableFormat::Csv, &bytes, &columns(TaskKind::Classification));
        assert!(
            table.unwrap().into_dataset().unwrap() == expected,
            "{bytes:?}"
        );
    }
}

#[test]
fn columns_without_a_name_are_left_out() {
    let table = read(",id,who,a,y,Unnamed: 3\n0,1,w,7,x,\n1,2,w,8,z,\n").unwrap();
    assert_eq!(table.unnamed(), [0, 5]);
    assert_eq!(table.into_dataset().unwrap().names().features, ["a"]);
}

#[test]
fn line_of_numbers_is_no_header() {
    assert_eq!(
        read("1,2,3\n4,5,6\n").unwrap_err(),
        TableError::NamesMissing
    );
}

#[test]
fn encoded_columns_become_several_features() {
    let mut columns = columns(TaskKind::Regression);
    let colours = Encoding::Categories(vec!["red".into(), "blue".into()]);
    columns.encodings.insert("colour".into(), colours);
    let parts = vec![TimePart::Weekday];
    columns.encodings.insert("at".into(), Encoding::Time(parts));
    let text = "id,who,colour,x,at,y\n1,w,blue,5,2026-11-22,1\n2,w,,?,NA,2\n";
    let data = of_text(text, &columns).unwrap().into_dataset().unwrap();
    let names = ["colour=red", "colour=blue", "x", "at:weekday"];
    assert_eq!(data.names().features, names);
    assert_eq!(
        data.features().to_vec(),
        [0.0, 1.0, 5.0, 6.0, 0.0, 0.0, 0.0, 0.0]
    );
    assert_eq!(data.missing(), [6, 7]);
    for (from, to, words) in [
        (
            "blue",
            "green",
            "`green` is not among the categories of `data.categories.colour`",
        ),
        ("2026-11-22", "22.11.", "as `data.times.at` expects"),
        (
            "colour",
            "color",
            "no column `colour` (key `data.categories`)",
        ),
    ] {
        let error = of_text(&text.replace(from, to), &columns).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn dates_are_refused_with_what_to_type() {
    let error = read("id,who,got at,y\n1,2,2024-03-04 10:15,no\n").unwrap_err();
    assert!(is_cell(&error, 2, &CellError::IsTime), "{error}");
    let words = "`times.\"got at\" = [\"hour\", \"weekday\"]`";
    assert!(error.to_string().contains(words), "{error}");
}

#[test]
fn numbers_are_not_classes_unless_that_is_said() {
    let rows = |label: fn(u32) -> String| -> String {
        let rows = (0..30).map(|row| format!("{row},w,1,{}\n", label(row)));
        format!("id,who,a,y\n{}", rows.collect::<String>())
    };
    let classes = Columns {
        task: None,
        ..columns(TaskKind::Classification)
    };
    let many = rows(|row| row.to_string());
    let fractions = rows(|row| format!("{}.5", row % 2));
    for (text, words) in [(&many, "30 different numbers"), (&fractions, "such as 0.5")] {
        let error = of_text(text, &classes).unwrap_err().to_string();
        assert!(
            error.contains(words) && error.contains("\"regression\""),
            "{error}"
        );
        assert!(of_text(text, &columns(TaskKind::Classification)).is_ok());
    }
    assert!(of_text(&rows(|row| format!("{}.0", row % 20)), &classes).is_ok());
    assert!(of_text(&rows(|row| format!("c{row}")), &classes).is_ok());
}

fn more(table: &Table, text: &str) -> Result<Table, TableError> {
    let columns = columns(TaskKind::Classification);
    table.parse_more(TableFormat::Csv, text.as_bytes(), &columns)
}

#[test]
fn test_part_shares_classes_and_devices() {
    let mut table = read(GOOD).unwrap();
    // Columns are found by name, `id` may be absent, and the additional one is left out.
    let test = "y,b,more,who,a\nno,2,x,8,?\nmaybe,3,x,9,5\nyes,4,x,10.0,6\n";
    let test = more(&table, test).unwrap();
    let remarks = test.remarks("test.csv").join("\n");
    assert!(
        remarks.contains("test.csv: columns") && remarks.contains("`more`"),
        "{remarks}"
    );
    assert_eq!(table.append(test), ["maybe"]);
    assert_eq!(table.row_count(), 6);
    let data = table.into_dataset().unwrap();
    assert_eq!(data.missing(), [1, 4, 6]);
    assert_eq!(data.names().classes, ["no", "yes"]);
    assert_eq!(data.groups().unwrap().device_of_row(), [2, 1, 2, 0, 1, 2]);
    // The row of another class gets one additional class, the last.
    assert_eq!(data.class_count(), Some(3));
    let (data, left_out) = data.without_last_class().unwrap();
    assert_eq!((data.class_count(), left_out), (Some(2), vec![4]));
    assert_eq!(data.features().to_vec()[6..], [0.0, 2.0, 6.0, 4.0]);
}

#[test]
fn test_part_without_a_column_is_refused_with_its_name() {
    let error = more(&read(GOOD).unwrap(), "id,who,b,y\n").unwrap_err();
    assert!(
        matches!(error, TableError::MissingColumns { .. }),
        "{error}"
    );
    assert!(error.to_string().contains("has no column `a`"), "{error}");
}

#[test]
fn equal_numbers_are_one_class_and_one_device() {
    let rows = "1,3,1,0\n1,3.0,2,0.0\n1,4,3,1\n1,4,4,1.0\n1,3,5,-0.0\n";
    let data = read(&format!("id,who,a,y\n{rows}")).unwrap();
    let data = data.into_dataset().unwrap();
    assert_eq!(data.names().classes, ["0", "1"]);
    let labels = Targets::classes(&[0, 0, 1, 1, 0], 2).unwrap();
    assert!(data.targets() == &labels);
    assert_eq!(data.groups().unwrap().names(), ["3", "4"]);
    // Listed classes are also found by their numbers.
    let list = ClassList::Names(["0.0", "1.0"].map(|x| ClassName::Text(x.into())).to_vec());
    let known = Columns {
        classes: Some(Classes {
            list,
            ..Classes::numbered(2)
        }),
        ..columns(TaskKind::Classification)
    };
    let data = of_text(&format!("id,who,a,y\n{rows}"), &known).unwrap();
    assert!(data.into_dataset().unwrap().targets() == &labels);
}

#[test]
fn an_open_quote_is_refused_and_a_line_break_in_a_name_remarked() {
    for row in ["\"1,w,1,no\n", "1,w,1,\"no\n", "1,w,1,\"no\n2,w,2,\"yes\n"] {
        let error = read(&format!("id,who,a,y\n1,w,1,yes\n{row}3,w,3,yes\n"));
        let expected = TableError::OpenQuote {
            place: Place::Line(3),
        };
        assert_eq!(error.unwrap_err(), expected, "{row:?}");
    }
    let table = read("id,who,a,y\n1,w,1,\"no\n2,w,2,yes\"\n3,w,3,yes\n").unwrap();
    let remarks = table.remarks("a.csv").join("\n");
    assert!(remarks.contains("class in column `y` has a line break after `no`"));
}

#[test]
fn numbers_with_signs_are_read_and_remarked() {
    let table = read("id,who,a,b,y\n1,w,$5,45%,no\n1,w,\"1,234.5\",5,yes\n").unwrap();
    let remarks = table.remarks("a.csv").join("\n");
    for words in [
        "1 number was read without a currency sign: `$5` (line 2) as 5",
        "a percent sign: `45%`",
        "thousands separators: `1,234.5` (line 3) as 1234.5",
    ] {
        assert!(remarks.contains(words), "{remarks}");
    }
    let data = table.into_dataset().unwrap();
    assert_eq!(data.features().to_vec(), [5.0, 45.0, 1234.5, 5.0]);
}

#[test]
fn dates_in_an_unknown_order_are_refused_with_the_remedy() {
    let mut times = columns(TaskKind::Classification);
    let parts = vec![TimePart::Hour];
    times.encodings.insert("a".into(), Encoding::Time(parts));
    for columns in [columns(TaskKind::Classification), times] {
        let error = of_text("id,who,a,y\n1,w,31/12/2024 10:15,no\n", &columns).unwrap_err();
        assert!(is_cell(&error, 2, &CellError::DayOrMonth), "{error}");
        assert!(error.to_string().contains("2024-12-31 10:15:30"), "{error}");
    }
}

proptest! {
    /// Any text is read or refused, and accepted rows are complete.
    #[test]
    fn any_text_is_read_or_refused(body in "[a-z0-9,.?\n\"-]{0,80}") {
        if let Ok(table) = read(&format!("id,who,a,y\n{body}")) {
            prop_assert_eq!(table.values.features.len(), table.row_count);
        }
    }
}
