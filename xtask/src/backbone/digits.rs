//! The built-in digits (E. Alpaydin and C. Kaynak 1998, "Optical Recognition of Handwritten
//! Digits", UCI Machine Learning Repository, <https://doi.org/10.24432/C50P49>, CC BY 4.0), with
//! alternate rows in two halves.

use std::error::Error;
use std::fs::File;
use std::io::Read;

use flate2::read::GzDecoder;

use crate::toolchain::root;

/// Path of the digits, relative to the repository root.
const FILE: &str = "runner/data/assets/digits/optdigits_8x8.csv.gz";

/// An image and its class.
pub struct Digit {
    /// 64 pixels from 0 to 16, in row order.
    pub pixels: Vec<i8>,
    pub class: u8,
}

impl Digit {
    pub fn pixels(&self) -> Vec<i8> {
        self.pixels.clone()
    }
}

/// Owner of a digit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Half {
    /// Rows 1, 3, 5 .., used to train the backbone.
    Public,
    /// Rows 2, 4, 6 .., unseen by the backbone.
    Devices,
}

/// Reads the digits of a half, in their original order.
pub fn read(half: Half) -> Result<Vec<Digit>, Box<dyn Error>> {
    let mut text = String::new();
    GzDecoder::new(File::open(root().join(FILE))?).read_to_string(&mut text)?;
    let header = 1;
    let first = header + usize::from(half == Half::Devices);
    let rows = text.lines().skip(first).step_by(2);
    rows.map(digit).collect()
}

fn digit(row: &str) -> Result<Digit, Box<dyn Error>> {
    let (pixels, class) = row.rsplit_once(',').ok_or("a row of one cell")?;
    let pixels: Result<Vec<i8>, _> = pixels.split(',').map(str::parse).collect();
    Ok(Digit {
        pixels: pixels?,
        class: class.parse()?,
    })
}
