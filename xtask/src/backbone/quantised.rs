//! The network in 8-bit integers, as computed by `firmware-example/src/backbone.rs`, written as its
//! weights.
//!
//! Scales follow TensorFlow Lite's post-training quantisation. A weight scale is the largest
//! magnitude of an output channel over 127. An activation scale is the largest value on the public
//! digits over the number of available steps.

use std::error::Error;
use std::fmt::Write as _;

use super::digits::Digit;
use super::frozen::{CHANNELS, HIDDEN, SIDE};
use super::network::{Block, Network};

/// Value of one pixel unit: pixels are integers already.
const PIXEL: f64 = 1.0 / 16.0;

/// Largest magnitude of a bias for which 32 bits are enough for all sums.
const MAX_BIAS: f64 = 16_777_216.0;

/// Representation of values in `i8`.
struct Format {
    /// Value of one unit.
    scale: f64,
    zero: i8,
}

/// Beginning of the file.
const BEGIN: &str = "\
//! The weights of the backbone, as `cargo xtask backbone train` writes them: trained on the rows 1,
//! 3, 5 .. of the built-in digits (E. Alpaydin and C. Kaynak 1998, \"Optical Recognition of
//! Handwritten Digits\", UCI Machine Learning Repository, <https://doi.org/10.24432/C50P49>, CC BY
//! 4.0).

use super::convolution::{Convolution, Output};
";

/// Returns the weights file, before rustfmt.
pub fn source(network: &Network, digits: &[Digit]) -> Result<String, Box<dyn Error>> {
    let [first, second] = network.0.as_slice() else {
        return Err("the network has other layers".into());
    };
    let pixel = |pixel: &i8| vec![f64::from(*pixel) * PIXEL];
    let images = digits.iter().map(|digit| digit.pixels.iter().map(pixel));
    let images: Vec<Vec<Vec<f64>>> = images.map(Iterator::collect).collect();
    let hidden = apply(first, &images, SIDE);
    let features = apply(second, &hidden, SIDE / 2);

    let pixels = Format {
        scale: PIXEL,
        zero: 0,
    };
    let middle = Format {
        scale: largest(&hidden) / 255.0,
        zero: -128,
    };
    // The head has no zero point: the features begin at 0, and half of the integers remain.
    let last = Format {
        scale: largest(&features) / 127.0,
        zero: 0,
    };
    let mut text = BEGIN.to_owned();
    text += "\n/// From pixels to the first channels.\n";
    text += &format!("pub static FIRST: Convolution<{SIDE}, 1, {HIDDEN}> = ");
    block(&mut text, first, &pixels, &middle)?;
    text += "\n/// From the first channels to the features.\n";
    let half = SIDE / 2;
    text += &format!("pub static SECOND: Convolution<{half}, {HIDDEN}, {CHANNELS}> = ");
    block(&mut text, second, &middle, &last)?;
    Ok(text)
}

fn apply(block: &Block, images: &[Vec<Vec<f64>>], side: usize) -> Vec<Vec<Vec<f64>>> {
    images
        .iter()
        .map(|image| block.apply(image, side))
        .collect()
}

fn largest(images: &[Vec<Vec<f64>>]) -> f64 {
    let values = images.iter().flatten().flatten();
    values.copied().fold(0.0, f64::max)
}

/// Writes a layer.
fn block(
    text: &mut String,
    block: &Block,
    input: &Format,
    output: &Format,
) -> Result<(), Box<dyn Error>> {
    let (mut kernels, mut outputs) = (String::new(), String::new());
    for (number, bias) in block.biases.iter().enumerate() {
        let kernel = block.kernel(number);
        let weights = kernel.iter().flatten();
        let scale = weights.map(|w| w.abs()).fold(0.0, f64::max) / 127.0;
        let rounded = |w: &f64| (w / scale).round() as i8;
        let kernel = kernel.map(|inputs| inputs.iter().map(rounded).collect::<Vec<_>>());
        let bias = (bias / (input.scale * scale)).round();
        if scale == 0.0 || bias.abs() >= MAX_BIAS {
            return Err(format!("channel {number} does not fit: its bias is {bias}").into());
        }
        let (mantissa, shift) = multiplier(input.scale * scale / output.scale)?;
        write!(kernels, "{kernel:?},")?;
        write!(
            outputs,
            "Output {{ bias: {bias}, mantissa: {mantissa}, shift: {shift} }},"
        )?;
    }
    writeln!(
        text,
        "Convolution {{ kernels: [{kernels}], outputs: [{outputs}], input_zero: {}, \
         output_zero: {} }};",
        input.zero, output.zero
    )?;
    Ok(())
}

/// Returns m in units of 2⁻³¹ and n with `ratio` = m · 2⁻ⁿ and 1/2 ≤ m < 1.
fn multiplier(ratio: f64) -> Result<(i32, u8), Box<dyn Error>> {
    let mut shift = 0;
    let mut mantissa = ratio;
    while mantissa > 0.0 && mantissa < 0.5 {
        mantissa *= 2.0;
        shift += 1;
    }
    let units = (mantissa * 2_147_483_648.0).round();
    if !(0.5..1.0).contains(&mantissa) || units >= 2_147_483_648.0 || shift > 30 {
        return Err(format!("the multiplier {ratio} is not between 2^-31 and 1").into());
    }
    Ok((units as i32, shift))
}
