use super::*;

fn config(length: u32, stride: u32) -> TextConfig {
    TextConfig {
        path: PathBuf::new(),
        text_column: "line".into(),
        device_columns: vec!["play".into(), "role".into()],
        length,
        stride,
        min_samples: 1,
        alphabet: Alphabet::new(Some("\nabcd"), false).unwrap(),
    }
}

const LINES: &str = "play\trole\tline\nx\tB\tabcd\nx\tA\tdcba\nx\tB\tbb\ny\tA\ta\n";

/// Returns the samples of each device, decoded, each with its next character.
fn samples(text: &str, config: &TextConfig) -> (Vec<(String, Vec<String>)>, usize) {
    let (data, left_out) = parse(text.as_bytes(), config).unwrap();
    let groups = data.groups().unwrap();
    let Targets::Classes { labels, .. } = data.targets() else {
        unreachable!()
    };
    let mut devices: Vec<(String, Vec<String>)> = Vec::new();
    let names = groups.names();
    devices.extend(names.iter().map(|name| (name.clone(), Vec::new())));
    for (row, device) in groups.device_of_row().iter().enumerate() {
        let mut symbols: Vec<f32> = data.row(row).collect();
        symbols.push(f32::from(labels[row]));
        devices[*device as usize]
            .1
            .push(config.alphabet.decode(&symbols));
    }
    (devices, left_out)
}

#[test]
fn windows_follow_each_other_in_the_text_of_a_device() {
    let (devices, left_out) = samples(LINES, &config(2, 2));
    let expected = [
        ("x / A".to_owned(), vec!["dcb".to_owned()]),
        // "abcd", a line end, "bb".
        (
            "x / B".to_owned(),
            ["abc", "cd\n", "\nbb"].map(str::to_owned).to_vec(),
        ),
    ];
    assert_eq!(devices, expected);
    assert_eq!(left_out, 1);
    let (devices, _) = samples(LINES, &config(3, 1));
    assert_eq!(devices[1].1, ["abcd", "bcd\n", "cd\nb", "d\nbb"]);
}

#[test]
fn symbols_are_bytes_and_classes_have_names() {
    let (data, _) = parse(LINES.as_bytes(), &config(2, 2)).unwrap();
    assert!(data.features().numbers().is_none());
    assert_eq!(data.class_count(), Some(5));
    assert_eq!(data.names().classes, ["newline", "a", "b", "c", "d"]);
}

#[test]
fn texts_of_nobody_are_one() {
    let mut nobody = config(6, 1);
    nobody.device_columns.clear();
    let (data, left_out) = parse(b"line\nabc\ndab\n", &nobody).unwrap();
    assert_eq!((data.len(), left_out), (1, 0));
    assert!(data.groups().is_none());
}

#[test]
fn devices_with_few_samples_are_left_out() {
    let mut many = config(2, 2);
    many.min_samples = 3;
    assert_eq!(samples(LINES, &many).1, 2);
    many.min_samples = 4;
    let error = parse(LINES.as_bytes(), &many).unwrap_err().to_string();
    assert!(
        error.contains("has 7 characters, but 4 samples of a device need 9"),
        "{error}"
    );
}

#[test]
fn what_is_no_text_is_refused() {
    for (text, words) in [
        ("play\trole\tline\n", "has no text"),
        (
            "play\trole\tline\nx\tA\tab\u{e9}\n",
            "line 2, column `line`: the character 'é' (U+00E9)",
        ),
        (
            "play\trole\tline\nx\tA\tab\nx\tA\t\n",
            "line 3, column `line`: is empty",
        ),
        (
            "play\trole\tline\nx\t\tab\n",
            "line 2, column `role`: is empty",
        ),
        (
            "play\trole\twords\nx\tA\tab\n",
            "has no column `line` (key `data.text_column`)",
        ),
        (
            "role\tline\nA\tab\n",
            "has no column `play` (key `data.device_columns`)",
        ),
        (
            "play\trole\tline\nx\tA\tab\n",
            "has 2 characters, but 1 sample of a device need 4",
        ),
        ("", "is empty"),
    ] {
        let error = parse(text.as_bytes(), &config(3, 3))
            .unwrap_err()
            .to_string();
        assert!(error.contains(words), "{text:?}: {error}");
    }
}
