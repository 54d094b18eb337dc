//! Texts as input of a trained model: the last characters of each text, or all of its samples.

use super::Windows;
use super::alphabet::Alphabet;
use super::append;
use super::error::TextError;
use crate::table::TableFormat;
use crate::table::reader::Reader;

/// The column of texts that a model reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextColumn {
    /// Its name.
    pub column: String,
    /// The characters.
    pub alphabet: Alphabet,
}

/// Samples of texts, as bytes.
#[derive(Default)]
pub struct Pieces {
    /// Symbols, sample after sample.
    pub symbols: Vec<u8>,
    /// The character after each sample, if requested.
    pub next: Vec<u8>,
    /// The name of each text, if a column of names was given.
    pub names: Vec<String>,
}

impl TextColumn {
    /// Returns the last `length` characters of each text of an unpacked table, for which the model
    /// predicts the next one. `id` is a column with the names of the texts.
    ///
    /// # Errors
    /// [`TextError`] for a text that is shorter, or has a character without a symbol.
    pub fn ends(&self, bytes: &[u8], length: usize, id: Option<&str>) -> Result<Pieces, TextError> {
        self.read(
            bytes,
            id,
            |text, pieces| {
                let start = text.len().checked_sub(length).ok_or(text.len())?;
                pieces.symbols.extend_from_slice(&text[start..]);
                Ok(())
            },
            length,
        )
    }

    /// Returns all samples of each text separately, one after the other, with the character after
    /// each.
    ///
    /// # Errors
    /// [`TextError`] if no text has a sample, or a character has no symbol.
    pub fn samples(&self, bytes: &[u8], length: usize) -> Result<Pieces, TextError> {
        let windows = Windows {
            length,
            stride: length,
        };
        let mut longest = 0;
        let pieces = self.read(
            bytes,
            None,
            |text, pieces| {
                longest = longest.max(text.len());
                for (window, next) in windows.of_text(text) {
                    pieces.symbols.extend_from_slice(window);
                    pieces.next.push(next);
                }
                Ok(())
            },
            length,
        )?;
        match pieces.next.is_empty() {
            true => Err(TextError::NoSample {
                longest,
                needed: length + 1,
            }),
            false => Ok(pieces),
        }
    }

    /// Passes each text to `cut`, which may return that it is too short.
    fn read(
        &self,
        bytes: &[u8],
        id: Option<&str>,
        mut cut: impl FnMut(&[u8], &mut Pieces) -> Result<(), usize>,
        length: usize,
    ) -> Result<Pieces, TextError> {
        let mut rows = Reader::new(TableFormat::detect(bytes), bytes)?;
        let at = rows.place_of(&self.column, "data.text_column")?;
        let id = id.map(|id| rows.place_of(id, "--id")).transpose()?;
        let symbols = self.alphabet.symbols();
        let mut pieces = Pieces::default();
        let (mut text, mut count) = (Vec::new(), 0usize);
        while let Some((row, _)) = rows.next_row()? {
            text.clear();
            let cell = row.cell(at, "text")?;
            let place = row.place();
            append(&mut text, cell, &symbols).map_err(|character| TextError::Character {
                place,
                column: self.column.clone(),
                character,
            })?;
            cut(&text, &mut pieces).map_err(|found| TextError::Short {
                place,
                column: self.column.clone(),
                found,
                length,
            })?;
            if let Some(id) = id {
                pieces.names.push(row.text(id, "name")?.to_owned());
            }
            count += 1;
        }
        match count {
            0 => Err(TextError::NoText),
            _ => Ok(pieces),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column() -> TextColumn {
        TextColumn {
            column: "line".into(),
            alphabet: Alphabet::new(Some("abc"), false).unwrap(),
        }
    }

    #[test]
    fn the_end_of_each_text_is_read() {
        let pieces = column()
            .ends(b"id,line\nx,abc\ny,cab\n", 2, Some("id"))
            .unwrap();
        assert_eq!(pieces.symbols, [1, 2, 0, 1]);
        assert_eq!(pieces.names, ["x", "y"]);
        for (text, words) in [
            (&b"line\n"[..], "has no text"),
            (
                b"line\nab\na\n",
                "line 3, column `line`: has 1 character, but the model reads 2",
            ),
            (b"line\nad\n", "'d'"),
            (b"text\nab\n", "has no column `line`"),
        ] {
            let error = column().ends(text, 2, None).err().unwrap().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn samples_have_the_character_after_them() {
        let pieces = column().samples(b"line\nabcab\na\ncab\n", 2).unwrap();
        assert_eq!(pieces.symbols, [0, 1, 2, 0, 2, 0]);
        assert_eq!(pieces.next, [2, 1, 1]);
        let error = column().samples(b"line\nab\n", 2).err().unwrap();
        let (longest, needed) = (2, 3);
        assert_eq!(error, TextError::NoSample { longest, needed });
    }
}
