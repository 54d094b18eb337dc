//! The built-in digits (E. Alpaydin and C. Kaynak 1998, "Optical Recognition of Handwritten
//! Digits", UCI Machine Learning Repository, <https://doi.org/10.24432/C50P49>, CC BY 4.0), dealt
//! to two halves row by row.

use std::error::Error;
use std::fs::File;
use std::io::Read;

use flate2::read::GzDecoder;

use crate::toolchain::root;

/// From the root of the repository.
const FILE: &str = "runner/data/assets/digits/optdigits_8x8.csv.gz";

/// An image and what it shows.
pub struct Digit {
    /// 64 pixels from 0 to 16, row after row.
    pub pixels: Vec<i8>,
    pub class: u8,
}

impl Digit {
    pub fn pixels(&self) -> Vec<i8> {
        self.pixels.clone()
    }
}

/// Who has a digit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Half {
    /// Rows 1, 3, 5 ..: the backbone is trained on them.
    Public,
    /// Rows 2, 4, 6 ..: the backbone has not seen them.
    Devices,
}

/// The digits of a half, in the order of the set.
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
