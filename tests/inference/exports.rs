//! Exported models agree with `smolfed predict`: C headers, compiled with all warnings as errors,
//! and ONNX and NPZ files read in Python, like the example of docs/inference.md.
//!
//! `SMOLFED_PYTHON` is a Python with numpy and onnxruntime. `./test` creates one if possible.

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{CLASSES, KINDS, PAIRS, VALUES, rows, run};
use crate::program::{Outcome, Place};

/// Returns models of all kinds: name, `[data]`, settings, and the name of the exported part.
fn models() -> Vec<(&'static str, String, &'static str, &'static str)> {
    let bounds = "{ min = [4, 0, -40, 0], max = [6, 2e6, 40, 10] }";
    let kinds = |more: &str| format!("{KINDS}{more}");
    vec![
        ("softmax", kinds(""), "", ""),
        (
            "bounded",
            kinds(&format!("scale = {bounds}\nmissing = 0")),
            "",
            "",
        ),
        (
            "private",
            kinds(&format!("scale = \"private\"\nbounds = {bounds}")),
            "",
            "",
        ),
        ("plain", kinds("scale = \"none\"\nmissing = 0"), "", ""),
        (
            "logistic",
            PAIRS.to_owned(),
            "--set model.kind=logistic",
            "",
        ),
        (
            "linear",
            format!("{VALUES}target_scale = \"standardise\""),
            "",
            "",
        ),
        ("tanh", kinds(""), "--set model.hidden=5", ""),
        (
            "relu",
            kinds(""),
            "--set model.hidden=5 --set model.activation=relu",
            "",
        ),
        (
            "head",
            kinds(""),
            "--set method=dpfedmtl --set model.hidden=4",
            "--device 3",
        ),
        ("offset", kinds(""), "--set method=pp-sgd", "--device 3"),
        (
            "encoder",
            kinds(""),
            "--set method=fedavg-sc --set contrast.width=3",
            "",
        ),
        (
            "deep-encoder",
            kinds(""),
            "--set method=fedsc --set contrast.width=3 --set model.hidden=6",
            "",
        ),
    ]
}

/// Trains all models, exports each to `NAME.h`, `NAME.onnx` and `NAME.npz`, and writes the output
/// of `smolfed predict` for `test.csv` to `NAME.csv`.
fn exported() -> Place {
    let place = Place::new();
    for (name, data, settings, device) in models() {
        let is_encoder = name.ends_with("encoder");
        let settings = match is_encoder {
            // Representations are tiny after a few rounds.
            true => format!("{settings} --set train.learning_rate=0.5"),
            false => settings.to_owned(),
        };
        run(&place, name, &data, &settings);
        let predict = format!("predict {name} {device} --data test.csv --out {name}.csv");
        place.smolfed(&predict).success();
        for (format, ending) in [("c-header", "h"), ("onnx", "onnx"), ("npz", "npz")] {
            let out = format!("--format {format} --out {name}.{ending}");
            place
                .smolfed(&format!("export {name} {device} {out}"))
                .success();
        }
    }
    place
}

/// Returns the numbers of a line after its first `skip` cells.
fn numbers(line: &str, skip: usize) -> Vec<f64> {
    line.split(',')
        .skip(skip)
        .map(|cell| cell.trim().parse().unwrap())
        .collect()
}

/// Reads rows of features from standard input, and prints the model's output.
const PROGRAM: &str = r#"
#include "MODEL"
#include <stdio.h>
int main(void)
{
    float features[SMOLFED_FEATURES];
    for (;;) {
        for (size_t i = 0; i < SMOLFED_FEATURES; i++) {
            if (scanf("%f", &features[i]) != 1) {
                return 0;
            }
        }
#if defined SMOLFED_CLASSES
        float numbers[SMOLFED_CLASSES];
        const int best = smolfed_predict(features, numbers);
        if (best != smolfed_predict(features, NULL)) {
            return 1;
        }
        const size_t count = SMOLFED_CLASSES;
        printf("%s", smolfed_class_names[best]);
#elif defined REPRESENTATION
        float numbers[SMOLFED_OUTPUTS];
        smolfed_predict(features, numbers);
        const size_t count = SMOLFED_OUTPUTS;
#else
        float numbers[1];
        numbers[0] = smolfed_predict(features);
        const size_t count = 1;
#endif
        for (size_t k = 0; k < count; k++) {
            printf("\t%.9g", (double)numbers[k]);
        }
        printf("\n");
    }
}
"#;

/// Returns the features of the test rows, as text for the program.
pub(super) fn features() -> String {
    let cell = |gap: Option<f64>| gap.map_or("nan".to_owned(), |gap| gap.to_string());
    let row = |row: super::Row| format!("{} {} {} 7\n", row.small, row.large, cell(row.gap));
    rows(2).map(row).collect()
}

/// Returns the compiled header's output for the rows, by line.
fn compiled(place: &Place, name: &str, rows: &str) -> String {
    let more: &[&str] = match name.ends_with("encoder") {
        true => &["-DREPRESENTATION"],
        false => &[],
    };
    compiled_with(place, name, PROGRAM, more, rows)
}

/// Returns the output for the rows of a program with the header `NAME.h`.
pub(super) fn compiled_with(
    place: &Place,
    name: &str,
    program: &str,
    more: &[&str],
    rows: &str,
) -> String {
    let header = format!("{name}.h");
    place.write(&format!("{name}.c"), program.replace("MODEL", &header));
    let mut compiler = place.command("cc");
    compiler.args(more);
    let output = compiler
        .args([
            "-std=c99",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-pedantic",
            "-O1",
        ])
        .args([
            format!("{name}.c"),
            "-o".to_owned(),
            format!("{name}.exe"),
            "-lm".to_owned(),
        ])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{name}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut child = place
        .command(place.path(format!("{name}.exe")))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(rows.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{name}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns whether there is a C compiler. CI requires one.
pub(super) fn has_compiler() -> bool {
    let found = Command::new("cc").arg("--version").output().is_ok();
    if !found {
        assert!(std::env::var_os("CI").is_none(), "no C compiler");
        println!("skipped: there is no C compiler");
    }
    found
}

/// Returns a Python with the packages, or prints that there is none.
pub(super) fn python() -> Option<OsString> {
    let python = std::env::var_os("SMOLFED_PYTHON");
    if python.is_none() {
        assert!(
            std::env::var_os("CI").is_none(),
            "no Python with numpy and onnxruntime"
        );
        println!("skipped: SMOLFED_PYTHON names no Python with numpy and onnxruntime");
    }
    python
}

#[test]
fn exports_agree_with_predictions() {
    let place = exported();
    let mut shared = None;
    if has_compiler() {
        for (name, ..) in models() {
            agree(&place, name, &features());
        }
        shared = Some(shared_layer(&place));
    }
    let Some(python) = python() else { return };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let script = folder.join("inference/exports.py");
    let names = models().into_iter().map(|(name, ..)| name).chain(shared);
    let output = place
        .command(&python)
        .arg(script)
        .args(names)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");

    run_examples(&place, &python, folder);
}

/// Runs the examples of the documentation unchanged.
fn run_examples(place: &Place, python: &OsString, folder: &Path) {
    for (from, to) in [
        ("softmax.npz", "model.npz"),
        ("softmax.onnx", "model.onnx"),
        ("test.csv", "new.csv"),
    ] {
        std::fs::copy(place.path(from), place.path(to)).unwrap();
    }
    let page = std::fs::read_to_string(folder.join("../docs/inference.md")).unwrap();
    let examples = page.split("```python\n").skip(1);
    let examples = examples.filter_map(|text| text.split("```").next());
    // One is a function, called by exports.py, and another is the file of the others.
    let (rows, examples): (Vec<&str>, Vec<&str>) = examples
        .filter(|text| !text.starts_with("def "))
        .partition(|text| text.starts_with("# rows.py"));
    assert_eq!((rows.len(), examples.len()), (1, 2));
    place.write("rows.py", rows[0]);
    let predictions = std::fs::read_to_string(place.path("softmax.csv")).unwrap();
    for example in examples {
        let output = place.command(python).args(["-c", example]).output();
        let printed = Outcome::of(output.unwrap(), example).success().stdout;
        for (found, line) in printed.lines().zip(predictions.lines().skip(1)) {
            assert!(CLASSES.contains(&found), "{found}");
            assert!(
                line.replace("\"\"", "\"").contains(found),
                "{found}: {line}"
            );
        }
        assert_eq!(printed.lines().count(), 144);
    }
}

/// Exports the shared layer below personal heads. `smolfed predict` has no equivalent, so the
/// header's output is written as the expected one.
fn shared_layer(place: &Place) -> &'static str {
    let name = "shared-encoder";
    for (format, ending) in [("c-header", "h"), ("onnx", "onnx"), ("npz", "npz")] {
        let export = format!("export head --format {format} --out {name}.{ending}");
        place.smolfed(&export).success();
    }
    let mut table = "row,output_0,output_1,output_2,output_3\n".to_owned();
    for line in compiled(place, name, &features()).lines() {
        let units = line
            .trim()
            .split('\t')
            .map(|unit| unit.parse::<f64>().unwrap());
        assert!(units.clone().all(|unit| unit.abs() <= 1.0), "{line}");
        assert_eq!(units.count(), 4);
        table += &format!("0,{}\n", line.trim().replace('\t', ","));
    }
    place.write(&format!("{name}.csv"), table);
    name
}

/// Asserts that the compiled header and `smolfed predict` agree on each row.
#[track_caller]
pub(super) fn agree(place: &Place, name: &str, rows: &str) {
    let printed = compiled(place, name, rows);
    let predictions = std::fs::read_to_string(place.path(format!("{name}.csv"))).unwrap();
    let rows: Vec<&str> = predictions.lines().skip(1).collect();
    assert_eq!(printed.lines().count(), rows.len(), "{name}");
    for (found, expected) in printed.lines().zip(rows) {
        let (class, found) = found.split_once('\t').unwrap();
        let found: Vec<f64> = found.split('\t').map(|x| x.parse().unwrap()).collect();
        // Names may contain commas, and the numbers are last.
        let cells = expected.split(',').count();
        let expected_numbers = numbers(expected, cells - found.len());
        for (a, b) in found.iter().zip(expected_numbers) {
            assert!((a - b).abs() <= 2e-5 * b.abs().max(1.0), "{name}: {a} {b}");
        }
        assert!(
            expected.replace("\"\"", "\"").contains(class),
            "{name}: {class} {expected}"
        );
    }
}
