//! Texts as samples: windows of characters, each with the following character.
//!
//! A table has a text in each row, and columns that name its device. The texts of a device, in the
//! order of the file and separated by line ends, are one text. A sample is `length` characters of
//! it, and its class the next character. Characters are symbols of one byte ([`Alphabet`]). Windows
//! begin every `stride` characters.

mod alphabet;
mod error;
mod pieces;

use std::path::PathBuf;

use serde::Serialize;

use super::dataset::{Dataset, Features, Groups, Names, Targets};
use super::table::TableFormat;
use super::table::reader::Reader;
use super::vocabulary::Vocabulary;
use alphabet::Symbols;

pub use alphabet::Alphabet;
pub use error::TextError;
pub use pieces::{Pieces, TextColumn};

/// Maximum number of bytes of all windows.
const MAX_BYTES: usize = 1 << 32;

/// A table of texts, and the cutting of samples from them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TextConfig {
    /// The file.
    pub path: PathBuf,
    /// The column of the texts.
    pub text_column: String,
    /// The columns that together name the device of a text. Empty if texts have no device.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub device_columns: Vec<String>,
    /// Number of characters of a sample, at least 1.
    pub length: u32,
    /// Number of characters between the starts of two samples, at least 1.
    pub stride: u32,
    /// Minimum number of samples of a device, at least 1. Others are left out.
    #[serde(skip)]
    pub min_samples: u32,
    /// The characters.
    #[serde(flatten)]
    pub alphabet: Alphabet,
}

/// The texts of devices as symbols.
struct Texts {
    devices: Vocabulary,
    /// The text of each device, by its number in the vocabulary.
    symbols: Vec<Vec<u8>>,
}

/// Returns the samples of an unpacked table, device by device in the order of their names and in
/// the order of the text, and the number of devices left out because they have too few samples.
///
/// # Errors
/// [`TextError`] as for other tables, for a character outside the alphabet, and for texts that are
/// too short.
pub(super) fn parse(bytes: &[u8], config: &TextConfig) -> Result<(Dataset, usize), TextError> {
    let Texts { devices, symbols } = read(bytes, config)?;
    let (numbers, names) = devices.into_sorted();
    let windows = Windows::of(config);
    let mut of_rank = vec![&[][..]; names.len()];
    for (number, text) in numbers.iter().zip(&symbols) {
        of_rank[*number as usize] = text;
    }
    let is_kept = |text: &&[u8]| windows.count(text) >= config.min_samples as usize;
    let kept: Vec<(&[u8], String)> = of_rank
        .into_iter()
        .zip(names)
        .filter(|(text, _)| is_kept(text))
        .collect();
    let sample_count: usize = kept.iter().map(|(text, _)| windows.count(text)).sum();
    if sample_count == 0 {
        let longest = symbols.iter().map(Vec::len).max().unwrap_or(0);
        return Err(windows.too_short(longest, config));
    }
    match sample_count.checked_mul(windows.length) {
        Some(..=MAX_BYTES) => {}
        _ => return Err(TextError::TooManySamples { sample_count }),
    }
    let left_out = symbols.len() - kept.len();
    let mut features = Vec::with_capacity(sample_count * windows.length);
    let (mut labels, mut device_of_row) = (Vec::new(), Vec::new());
    for (device, (text, _)) in (0u32..).zip(&kept) {
        for (window, next) in windows.of_text(text) {
            features.extend_from_slice(window);
            labels.push(u16::from(next));
            device_of_row.push(device);
        }
    }
    let targets = Targets::Classes {
        labels,
        class_count: usize::from(config.alphabet.symbol_count()),
    };
    let names = Names {
        classes: config.alphabet.names(),
        ..Names::default()
    };
    let data = Dataset::new(Features::of_bytes(features), windows.length, targets)?;
    let data = data.with_names(names);
    if config.device_columns.is_empty() {
        return Ok((data, left_out));
    }
    let names = kept.into_iter().map(|(_, name)| name).collect();
    Ok((
        data.with_groups(Groups::new(device_of_row, names)?)?,
        left_out,
    ))
}

/// Reads the texts of all devices.
fn read(bytes: &[u8], config: &TextConfig) -> Result<Texts, TextError> {
    let mut rows = Reader::new(TableFormat::detect(bytes), bytes)?;
    let text_column = rows.place_of(&config.text_column, "data.text_column")?;
    let places = config.device_columns.iter();
    let places = places.map(|column| rows.place_of(column, "data.device_columns"));
    let places: Vec<usize> = places.collect::<Result<_, _>>()?;
    let symbols = config.alphabet.symbols();
    let mut texts = Texts {
        devices: Vocabulary::default(),
        symbols: Vec::new(),
    };
    let line_end = symbols.symbol('\n');
    let mut name = String::new();
    while let Some((row, _)) = rows.next_row()? {
        name.clear();
        for (at, place) in places.iter().enumerate() {
            name += if at == 0 { "" } else { " / " };
            name += row.text(*place, "device")?;
        }
        let text = row.cell(text_column, "text")?;
        let device = texts.device(&name);
        if let (false, Some(line_end)) = (device.is_empty(), line_end) {
            device.push(line_end);
        }
        append(device, text, &symbols).map_err(|character| TextError::Character {
            place: row.place(),
            column: config.text_column.clone(),
            character,
        })?;
    }
    match texts.symbols.is_empty() {
        true => Err(TextError::NoText),
        false => Ok(texts),
    }
}

impl Texts {
    /// Returns the text of the device with this name, empty for a new one.
    fn device(&mut self, name: &str) -> &mut Vec<u8> {
        let number = self.devices.number(name) as usize;
        if number == self.symbols.len() {
            self.devices.push(name);
            self.symbols.push(Vec::new());
        }
        &mut self.symbols[number]
    }
}

/// Appends the symbols of `text`, up to a character without a symbol.
fn append(to: &mut Vec<u8>, text: &str, symbols: &Symbols) -> Result<(), char> {
    for character in text.chars() {
        to.push(symbols.symbol(character).ok_or(character)?);
    }
    Ok(())
}

/// The cutting of samples from a text.
#[derive(Clone, Copy)]
struct Windows {
    length: usize,
    stride: usize,
}

impl Windows {
    const fn of(config: &TextConfig) -> Self {
        Self {
            length: config.length as usize,
            stride: config.stride as usize,
        }
    }

    /// Returns the number of samples of a text. Each needs a character after it.
    const fn count(self, text: &[u8]) -> usize {
        match text.len().checked_sub(self.length + 1) {
            Some(rest) => rest / self.stride + 1,
            None => 0,
        }
    }

    /// Iterates over the samples of a text, and the character after each.
    fn of_text(self, text: &[u8]) -> impl Iterator<Item = (&[u8], u8)> {
        let samples = text.windows(self.length + 1).step_by(self.stride);
        samples.filter_map(|sample| sample.split_last().map(|(next, window)| (window, *next)))
    }

    /// Returns the error that no text has enough samples. `longest` is the length of the longest.
    fn too_short(self, longest: usize, config: &TextConfig) -> TextError {
        let samples = config.min_samples as usize;
        TextError::TooShort {
            longest,
            samples,
            needed: (samples - 1) * self.stride + self.length + 1,
        }
    }
}

#[cfg(test)]
mod tests;
