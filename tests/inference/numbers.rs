//! Numbers mean the same everywhere: in training, predictions and exports, with other spellings,
//! with signs, and from another format.

use std::ffi::OsStr;
use std::fmt::Write;
use std::path::Path;

use super::exports::python;
use crate::program::{Outcome, Place};

/// Trains on 120 rows of 12 devices. `keys` are the keys of `[data]` besides the file.
fn train(place: &Place, out: &str, source: &str, keys: &str) {
    let text = format!(
        "method = \"dp-fed\"\nrounds = 5\n[data]\nsource = \"{source}\"\n{keys}\n\
         [cohort]\nsampling = \"full\"\n[train]\nlearning_rate = 0.2\n\
         [privacy]\nnoise_multiplier = 0.01\nclip_norm = 1.0\n"
    );
    place.write("experiment.toml", text);
    let call = format!("run -q experiment.toml --out {out}");
    place.smolfed(&call).success();
}

/// Labels that depend only on a category.
const OF_CODE: [(&str, &str); 4] = [("1", "low"), ("2", "mid"), ("3", "high"), ("007", "mid")];

/// Returns the prediction of every row.
fn predictions(outcome: &Outcome) -> Vec<String> {
    let lines = outcome.stdout.lines().skip(1);
    let prediction = |line: &str| line.split(',').nth(1).unwrap().to_owned();
    lines.map(prediction).collect()
}

/// Runs the first NumPy example of docs/inference.md, in a place with its `rows.py`.
fn example(place: &Place, python: &OsStr) -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/inference.md");
    let page = std::fs::read_to_string(page).unwrap();
    let examples = page.split("```python\n").skip(1);
    let examples: Vec<&str> = examples
        .filter_map(|text| text.split("```").next())
        .collect();
    let find = |words: &str| *examples.iter().find(|text| text.contains(words)).unwrap();
    place.write("rows.py", find("# rows.py"));
    let output = place
        .command(python)
        .args(["-c", find("np.load(\"model.npz\")")])
        .output();
    let printed = Outcome::of(output.unwrap(), "the example").success().stdout;
    printed.lines().map(str::to_owned).collect()
}

#[test]
fn categories_that_are_equal_numbers_are_the_same_in_exports() {
    let place = Place::new();
    let mut table = "who,size,code,label\n".to_owned();
    for row in 0..120 {
        let (code, label) = OF_CODE[row % 4];
        let _ = writeln!(table, "d{},{},{code},{label}", row % 12, row % 7);
    }
    place.write("train.csv", table);
    let keys = "path = \"train.csv\"\nlabel = \"label\"\ndevice_column = \"who\"\ntest = 0\n\
                classes = [\"low\", \"mid\", \"high\"]\n\
                categories.code = [\"1\", \"2\", \"3\", \"007\"]";
    train(&place, "codes", "csv", keys);
    // Spellings of equal numbers, non-numeric codes, and an unknown code.
    let cells = [
        "1", "1.0", "+2", "2.00", "3.", "3", "007", "7", "07.0", "1E0", "3e+00",
    ];
    let mut new = "size,code\n".to_owned();
    cells.iter().for_each(|cell| new += &format!("3,{cell}\n"));
    place.write("new.csv", new);
    let found = place.smolfed("predict codes --data new.csv").success();
    let found = predictions(&found);
    for (equal, label) in [(0..2, "low"), (2..4, "mid"), (4..6, "high"), (6..7, "mid")] {
        assert!(
            found[equal.clone()].iter().all(|of| of == label),
            "{equal:?} {found:?}"
        );
    }
    // 7 and 07.0 are not 007: both are unknown, like 1E0.
    assert!(found[7..10].iter().all(|of| *of == found[7]), "{found:?}");
    assert_eq!(found[10], "high");
    place
        .smolfed("export codes --format npz --out model.npz")
        .success();
    if let Some(python) = python() {
        assert_eq!(example(&place, &python), found);
    }
}

#[test]
fn predictions_remark_on_signs() {
    let place = Place::new();
    let table = |price: &dyn Fn(usize) -> String| {
        let mut text = "price,label\n".to_owned();
        for row in 0..120 {
            let label = if row % 50 > 25 { "dear" } else { "cheap" };
            let _ = writeln!(text, "{},{label}", price(row % 50));
        }
        text
    };
    place.write("train.csv", table(&|price| price.to_string()));
    let keys = "path = \"train.csv\"\nlabel = \"label\"\ndevices = 12\ntest = 0\n\
                classes = [\"cheap\", \"dear\"]";
    train(&place, "prices", "csv", keys);
    place.write("plain.csv", table(&|price| price.to_string()));
    place.write("signs.csv", table(&|price| format!("${price}")));
    let plain = place.smolfed("predict prices --data plain.csv").success();
    let signs = place.smolfed("predict prices --data signs.csv").success();
    assert_eq!(signs.stdout, plain.stdout);
    assert!(plain.stderr.is_empty(), "{plain}");
    let remark = "120 numbers were read without a currency sign: `$0` (line 2) as 0";
    assert!(signs.stderr.contains(remark), "{signs}");
}

/// Returns an array of 64-bit floats.
fn npy(shape: &str, values: &[f64]) -> Vec<u8> {
    let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n");
    let length = u16::try_from(header.len()).unwrap();
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend(length.to_le_bytes());
    file.extend(header.into_bytes());
    file.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    file
}

/// Milliseconds since the epoch. `f32` steps by 131,072, and only finer digits separate classes.
#[test]
fn arrays_keep_the_digits_of_large_numbers() {
    let place = Place::new();
    let rows: Vec<(f64, f64)> = (0..120)
        .map(|row| {
            (
                1.7e12 + f64::from(row % 60),
                f64::from(u8::from(row % 60 > 29)),
            )
        })
        .collect();
    let epochs: Vec<f64> = rows.iter().flat_map(|row| [row.0, 1.0]).collect();
    let labels: Vec<f64> = rows.iter().map(|row| row.1).collect();
    place.write("x.npy", npy("(120, 2)", &epochs));
    place.write("y.npy", npy("(120,)", &labels));
    let mut table = "epoch,one,label\n".to_owned();
    for (epoch, label) in &rows {
        let _ = writeln!(table, "{epoch:.0},1,{label:.0}");
    }
    place.write("x.csv", table);
    let more = "devices = 12\ntest = 0\nclasses = 2\nscale = \"standardise-features\"";
    let arrays = format!("path = \"x.npy\"\nlabel_path = \"y.npy\"\n{more}");
    train(&place, "arrays", "npy", &arrays);
    let table = format!("path = \"x.csv\"\nlabel = \"label\"\n{more}");
    train(&place, "table", "csv", &table);
    let of_arrays = place.smolfed("predict arrays --data x.npy").success();
    let of_table = place.smolfed("predict table --data x.csv").success();
    assert_eq!(of_arrays.stdout, of_table.stdout);
    let expected = labels.iter().map(|label| format!("{label:.0}"));
    let found = predictions(&of_arrays).into_iter().zip(expected);
    let right = found.filter(|(found, expected)| found == expected).count();
    assert!(right > 110, "{right} of 120");
}
