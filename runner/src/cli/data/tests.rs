//! The command from its arguments to its text.

use clap::Parser;

use super::*;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    args: Args,
}

fn call(arguments: &[&str]) -> Result<String, DataCommandError> {
    let command = Command::try_parse_from([&["data"], arguments].concat()).unwrap();
    let mut out = Vec::new();
    run(&command.args, &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

/// The message of a call that must fail.
fn refused(arguments: &[&str]) -> String {
    call(arguments).unwrap_err().to_string()
}

/// A folder with a small table, and the path of the table.
fn table() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    std::fs::write(&path, "who,x,y\na,1,no\na,?,yes\nb,3,no\nb,4,yes\n").unwrap();
    (folder, path.display().to_string())
}

#[test]
fn list_names_every_set() {
    let text = call(&["list"]).unwrap();
    let json: serde_json::Value =
        serde_json::from_str(&call(&["list", "--json"]).unwrap()).unwrap();
    for (at, set) in KNOWN_SETS.iter().enumerate() {
        assert!(
            text.contains(set.name) && text.contains(set.cite),
            "{}",
            set.name
        );
        assert_eq!(json[at]["name"], set.name);
    }
}

#[test]
fn missing_sets_are_listed_with_what_they_need() {
    let mut out = Vec::new();
    list(false, &DataFolders::new(Vec::new()), &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(
        text.contains("not found: needs school/school.csv.gz"),
        "{text}"
    );
}

#[test]
fn digits_are_shown_with_a_picture_and_a_table() {
    let text = call(&["inspect", "digits"]).unwrap();
    for part in [
        "1797",
        "64 (8 x 8), from 0 to 16, 3 constant",
        "0 178, 1 182",
        "@@",
        "[data]",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // Gradients are proposed, and are shown once they are asked for.
    assert!(!text.contains("fixed features"), "{text}");
    let tables = text.split_once("[data]\n").unwrap().1;
    let (data, features) = tables.split_once("[features]\n").unwrap();
    let data: smolfed_data::DataConfig = toml::from_str(data).unwrap();
    data.with_features(&toml::from_str(features).unwrap())
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let drawing = folder.path().join("digit.svg");
    let (svg, pooled) = (drawing.to_str().unwrap(), "features.kind=pool");
    let call_with = |more: &[&str]| call(&[&["inspect", "digits"], more].concat());
    let set = ["--set", pooled, "--set", "features.cell=4", "--svg", svg];
    let text = call_with(&set).unwrap();
    let words = "4 fixed features of each sample: pool of cells of 4 × 4 pixels";
    assert!(text.contains(words), "{text}");
    assert!(
        std::fs::read_to_string(&drawing)
            .unwrap()
            .ends_with("</svg>\n")
    );
    let error = call_with(&["--svg", svg]).unwrap_err().to_string();
    assert!(error.contains("features.kind=gradients"), "{error}");
}

#[test]
fn overrides_reach_every_key() {
    let text = call(&[
        "inspect",
        "digits",
        "--set",
        "partition=dirichlet",
        "--set",
        "data.alpha=0.2",
        "--set",
        "devices=20",
        "--seed",
        "3",
    ])
    .unwrap();
    assert!(
        text.contains("partition = \"dirichlet\"") && text.contains("alpha = 0.2"),
        "{text}"
    );
    assert!(text.contains("20, with "), "{text}");
}

#[test]
fn json_is_one_document() {
    let text = call(&["inspect", "synthetic", "--set", "kind=windows", "--json"]).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["axes"], serde_json::json!([3, 64]));
    assert_eq!(json["config"]["kind"], "windows");
    assert_eq!(json["targets"]["classes"].as_array().unwrap().len(), 10);
}

#[test]
fn own_table_needs_only_its_label() {
    let (_kept, path) = table();
    let message = refused(&["inspect", &path, "--set", "label=z"]);
    assert!(message.contains("no column `z`"), "{message}");
    assert!(
        message.contains("the columns are `who`, `x`, `y`"),
        "{message}"
    );
    let found = call(&["inspect", &path, "--set", "device_column=who"]).unwrap();
    for words in ["yes or no", "1 to 4", "label"] {
        assert!(found.contains(words), "{found}");
    }
    let text = call(&[
        "inspect",
        &path,
        "--set",
        "label=y",
        "--set",
        "device_column=who",
        "--set",
        "test=0",
    ])
    .unwrap();
    assert!(
        text.contains("1 values in 1 features") && text.contains("2, each with 2"),
        "{text}"
    );
    let dealt = call(&[
        "inspect",
        &path,
        "--set",
        "label=y",
        "--set",
        "ignore=[\"who\"]",
        "--set",
        "test=0",
        "--set",
        "devices=4",
    ]);
    assert!(dealt.unwrap().contains("4, each with 1"));
}

#[test]
fn experiments_are_read_with_their_folder_and_seed() {
    let (folder, _) = table();
    let path = folder.path().join("run.toml");
    let text = "seed = 7\nrounds = 3\n[data]\nsource = \"csv\"\npath = \"a.csv\"\nlabel = \"y\"\n\
                device_column = \"who\"\ntest = 0\n";
    std::fs::write(&path, text).unwrap();
    assert!(
        call(&["inspect", path.to_str().unwrap()])
            .unwrap()
            .contains("2, each with 2")
    );
    std::fs::write(&path, "rounds = 3\n").unwrap();
    assert!(refused(&["inspect", path.to_str().unwrap()]).contains("[data]"));
    std::fs::write(&path, "rounds = \n").unwrap();
    assert!(refused(&["inspect", path.to_str().unwrap()]).contains("run.toml"));
}

#[test]
fn files_are_told_apart_by_their_content() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let leaf = r#"{"users": ["a", "b"], "num_samples": [1, 1],
        "user_data": {"a": {"x": [[1]], "y": [0]}, "b": {"x": [[2]], "y": [1]}}}"#;
    std::fs::write(path("leaf"), leaf).unwrap();
    assert!(
        call(&["inspect", &path("leaf")])
            .unwrap()
            .contains("source = \"leaf\"")
    );
    let images = [&[0, 0, 8, 2, 0, 0, 0, 4, 0, 0, 0, 1][..], &[1, 2, 3, 4]].concat();
    std::fs::write(path("t-images-idx3"), images).unwrap();
    assert!(refused(&["inspect", &path("t-images-idx3")]).contains("data.label_path"));
    std::fs::write(path("t-labels-idx1"), [0, 0, 8, 1, 0, 0, 0, 4, 0, 1, 0, 1]).unwrap();
    let text = call(&[
        "inspect",
        &path("t-images-idx3"),
        "--set",
        "devices=1",
        "--set",
        "test=0",
    ])
    .unwrap();
    assert!(
        text.contains("source = \"idx\"") && text.contains("1, each with 4"),
        "{text}"
    );
    std::fs::write(path("broken.gz"), [0x1f, 0x8b, 8]).unwrap();
    assert!(refused(&["inspect", &path("broken.gz")]).contains("truncated"));
}

#[test]
fn bad_subjects_are_refused() {
    assert!(refused(&["inspect", "no-such-set"]).contains("digits, synthetic, mnist"));
    let folder = tempfile::tempdir().unwrap();
    assert!(refused(&["inspect", folder.path().to_str().unwrap()]).contains("MNIST"));
    assert!(refused(&["inspect", "no-such.toml"]).contains("cannot be read"));
    assert!(refused(&["inspect", "digits", "--set", "devices.x.y=1"]).contains("devices"));
    assert!(Command::try_parse_from(["data", "inspect", "digits", "--set", "devices"]).is_err());
    assert!(refused(&["inspect", "digits", "--set", "alpha=1"]).contains("data.alpha"));
    assert!(refused(&["inspect", "digits", "--set", "devices=5000"]).contains("5000 devices"));
}

/// An output that fails in one way.
struct Broken(io::ErrorKind);

impl Write for Broken {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(self.0.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn reader_that_leaves_is_no_failure_but_a_full_disk_is() {
    let args = Command::try_parse_from(["data", "list"]).unwrap().args;
    assert!(run(&args, &mut Broken(io::ErrorKind::BrokenPipe)).is_ok());
    let error = run(&args, &mut Broken(io::ErrorKind::StorageFull)).unwrap_err();
    assert!(!error.is_bad_input(), "{error}");
}
