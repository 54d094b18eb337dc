//! `cargo xtask backbone train`: trains the frozen backbone of `firmware-example/` on one half of
//! the built-in digits, and writes its weights. `check` compares them with the existing weights.
//!
//! `cargo xtask backbone data FOLDER`: writes the other half, as pixels and as the backbone's
//! features, for experiments and provisioning records.

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

mod digits;
mod network;
mod quantised;

#[path = "../../firmware-example/src/backbone.rs"]
mod frozen;

use digits::{Digit, Half};
use network::Network;

use crate::federation::{smolfed, succeed};
use crate::toolchain::root;

/// Experiment for training the network with a temporary head.
const EXPERIMENT: &str = include_str!("backbone/training.toml");

/// Output file, relative to the repository root.
const WEIGHTS: &str = "firmware-example/src/backbone/weights.rs";

pub fn train() -> Result<(), Box<dyn Error>> {
    let path = root().join(WEIGHTS);
    std::fs::write(&path, trained()?)?;
    succeed(
        Command::new("rustfmt")
            .args(["--edition", "2024"])
            .arg(path),
    )
}

/// Trains again, and checks that the result equals the numbers in the repository.
pub fn check() -> Result<(), Box<dyn Error>> {
    // Spaces and line breaks come from rustfmt.
    let numbers = |text: &str| -> Vec<String> {
        let parts = text.split(|c: char| !(c.is_ascii_digit() || c == '-'));
        parts
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect()
    };
    if numbers(&std::fs::read_to_string(root().join(WEIGHTS))?) == numbers(&trained()?) {
        Ok(())
    } else {
        Err(format!("{WEIGHTS} has other weights than cargo xtask backbone train writes").into())
    }
}

/// Returns the weights file, before rustfmt. `SMOLFED_BIN` is the path of a built program.
fn trained() -> Result<String, Box<dyn Error>> {
    let smolfed = match std::env::var_os("SMOLFED_BIN") {
        Some(path) => path.into(),
        None => smolfed(None)?,
    };
    let digits = digits::read(Half::Public)?;
    let dir = tempfile::tempdir()?;
    let dir = dir.path();
    std::fs::write(dir.join("digits.csv"), table("p", &digits, Digit::pixels))?;
    std::fs::write(dir.join("training.toml"), EXPERIMENT)?;
    let mut run = Command::new(smolfed);
    run.current_dir(dir).args(["run", "training.toml", "--out"]);
    succeed(run.arg("run").stdout(Stdio::null()))?;
    let network = Network::read(&dir.join("run/model.safetensors"))?;
    quantised::source(&network, &digits)
}

pub fn data(folder: &Path) -> Result<(), Box<dyn Error>> {
    let digits = digits::read(Half::Devices)?;
    std::fs::create_dir_all(folder)?;
    std::fs::write(
        folder.join("pixels.csv"),
        table("p", &digits, Digit::pixels),
    )?;
    std::fs::write(folder.join("features.csv"), table("f", &digits, features))?;
    // As images, for image features.
    let side = frozen::SIDE as u32;
    let count = digits.len() as u32;
    let pixels = digits.iter().flat_map(Digit::pixels);
    let pixels = pixels.map(i8::cast_unsigned).collect();
    let classes = digits.iter().map(|digit| digit.class).collect();
    std::fs::write(folder.join("images.idx"), idx(&[count, side, side], pixels))?;
    std::fs::write(folder.join("classes.idx"), idx(&[count], classes))?;
    Ok(())
}

/// Returns an array of bytes in the MNIST format.
fn idx(axes: &[u32], bytes: Vec<u8>) -> Vec<u8> {
    let mut file = vec![0, 0, 8, axes.len() as u8];
    file.extend(axes.iter().flat_map(|length| length.to_be_bytes()));
    file.extend(bytes);
    file
}

fn features(digit: &Digit) -> Vec<i8> {
    let mut features = vec![0; frozen::FEATURES];
    frozen::features_into(&digit.pixels, &mut features);
    features
}

/// Returns a table with a row for each digit: numbered columns with this name, and the class.
fn table(name: &str, digits: &[Digit], values: impl Fn(&Digit) -> Vec<i8>) -> String {
    let mut text = String::new();
    for number in 0..digits.first().map_or(0, |digit| values(digit).len()) {
        let _ = write!(text, "{name}{number},");
    }
    text += "digit\n";
    for digit in digits {
        for value in values(digit) {
            let _ = write!(text, "{value},");
        }
        let _ = writeln!(text, "{}", digit.class);
    }
    text
}
