//! Delimited text (CSV, TSV): a header line, then one row per line, quoted as in RFC 4180.
//!
//! The separator is the one of comma, semicolon, tab and `|` that splits the first lines into equal
//! numbers of cells. If there are several, it is the one with the most cells.

use std::io::Cursor;

use csv::{Reader, ReaderBuilder, StringRecord, Trim};

use super::error::TableError;
use super::quotes;
use super::rows::Rows;
use crate::column::place::Place;

/// The separators, the most common first.
const SEPARATORS: [(u8, &str); 4] = [
    (b',', "commas"),
    (b';', "semicolons"),
    (b'\t', "tabs"),
    (b'|', "vertical bars"),
];

/// Number of rows that are split to find the separator.
const SAMPLE_ROWS: usize = 20;

/// Delimited text.
pub(super) struct Delimited {
    reader: Reader<Cursor<String>>,
    header: StringRecord,
    separator: (u8, &'static str),
    encoding: &'static str,
    lines: Lines,
}

/// Reads the header. A first line `sep=;`, which Excel writes, names the separator.
pub(super) fn read(text: String, encoding: &'static str) -> Result<Delimited, TableError> {
    let (text, separator) = match named_separator(&text) {
        // The line stays, so that lines keep their numbers, but is empty.
        Some((separator, length)) => (text[length..].to_owned(), separator),
        None => {
            let separator = separator(&text);
            (text, separator)
        }
    };
    quotes::check(&text, separator.0)?;
    let mut reader = reader(separator.0).from_reader(Cursor::new(text));
    let header = reader.headers().map_err(TableError::of_csv)?.clone();
    Ok(Delimited {
        reader,
        header,
        separator,
        encoding,
        lines: Lines::default(),
    })
}

impl Rows for Delimited {
    fn header(&self) -> &StringRecord {
        &self.header
    }

    fn next(&mut self, cells: &mut StringRecord) -> Result<Option<Place>, TableError> {
        if !self.reader.read_record(cells).map_err(TableError::of_csv)? {
            return Ok(None);
        }
        let start = cells.position().map_or(0, csv::Position::byte);
        let text = self.reader.get_ref().get_ref().as_bytes();
        Ok(Some(Place::Line(self.lines.at(text, start))))
    }

    fn layout(&self) -> String {
        format!("{} text, separated by {}", self.encoding, self.separator.1)
    }

    fn has_decimal_commas(&self) -> bool {
        self.separator.0 != b','
    }
}

fn reader(separator: u8) -> ReaderBuilder {
    let mut builder = ReaderBuilder::new();
    // Rows of another length are refused in the common code of all formats.
    builder.delimiter(separator).trim(Trim::All).flexible(true);
    builder
}

/// Returns the separator named by a first line `sep=X`, and the length of that line without its
/// end.
fn named_separator(text: &str) -> Option<((u8, &'static str), usize)> {
    let line = text.lines().next()?;
    let (key, value) = line.trim_matches('"').split_once('=')?;
    let is_named = |candidate: &&(u8, &str)| value.as_bytes() == [candidate.0];
    let separator = SEPARATORS.iter().find(is_named)?;
    let is_key = key.trim().eq_ignore_ascii_case("sep");
    is_key.then_some((*separator, line.len()))
}

fn separator(text: &str) -> (u8, &'static str) {
    // Returns whether all rows have equal numbers of cells, and this number.
    let cut = |separator: u8| {
        let mut reader = reader(separator).from_reader(text.as_bytes());
        let cells = reader.headers().map_or(0, StringRecord::len);
        let mut rows = reader.records().take(SAMPLE_ROWS);
        let is_even = rows.all(|row| row.is_ok_and(|row| row.len() == cells));
        (cells > 1 && is_even, cells)
    };
    let mut best = SEPARATORS[0];
    let mut found = cut(best.0);
    for candidate in &SEPARATORS[1..] {
        let score = cut(candidate.0);
        if score > found {
            (best, found) = (*candidate, score);
        }
    }
    best
}

/// Counts lines up to ascending places. With CR LF line ends, the reader's own count is that of the
/// previous line end.
#[derive(Default)]
struct Lines {
    counted: usize,
    line_ends: u32,
}

impl Lines {
    /// Returns the line of the first character from `start` on that does not end a line.
    fn at(&mut self, text: &[u8], start: u64) -> u32 {
        let rest = text.get(start as usize..).unwrap_or_default();
        let ends = rest.iter().take_while(|byte| matches!(byte, b'\r' | b'\n'));
        let end = (start as usize + ends.count()).min(text.len());
        let passed = text.get(self.counted..end).unwrap_or_default();
        self.line_ends += passed.iter().filter(|byte| **byte == b'\n').count() as u32;
        self.counted = end;
        self.line_ends + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> &'static str {
        separator(text).1
    }

    #[test]
    fn separators_are_recognised() {
        assert_eq!(cut("a,b\n1,2\n"), "commas");
        assert_eq!(cut("a;b\n1,5;2,5\n"), "semicolons");
        assert_eq!(cut("a;b;c\n1,5;2,5;x,y\n"), "semicolons");
        assert_eq!(cut("a\tb\n1,5\t2\n"), "tabs");
        assert_eq!(cut("a|b\n1|2\n"), "vertical bars");
        assert_eq!(cut("a,b\n\"x;y;z\",2\n"), "commas");
        // One column. A ragged file keeps the separator of its header.
        assert_eq!(cut("a\n1\n"), "commas");
        assert_eq!(cut("a,b,c\n1,2\n"), "commas");
        assert_eq!(cut("a;b;c\n1;2\n"), "semicolons");
        assert_eq!(cut(""), "commas");
    }

    #[test]
    fn a_separator_that_is_named_is_no_header() {
        for (text, name) in [
            ("sep=;\na;b\n1;2,5\n", "semicolons"),
            ("SEP=,\r\na,b\r\n1,2\r\n", "commas"),
            ("\"sep=\t\"\na\tb\n1\t2,5\n", "tabs"),
            ("sep=|\na|b;c;d\n1|2\n", "vertical bars"),
        ] {
            let mut rows = read(text.into(), "UTF-8").unwrap();
            assert_eq!(rows.separator.1, name);
            assert_eq!(&rows.header[0], "a", "{text:?}");
            let place = rows.next(&mut StringRecord::new()).unwrap();
            assert_eq!(place, Some(Place::Line(3)), "{text:?}");
        }
        let rows = read("sep=x,b\n1,2\n".into(), "UTF-8").unwrap();
        assert_eq!(&rows.header[0], "sep=x");
    }

    #[test]
    fn lines_are_counted_however_they_end() {
        for (text, lines) in [
            ("a,b\n1,2\n3,4\n", [2, 3]),
            ("a,b\r\n1,2\r\n3,4\r\n", [2, 3]),
            ("a,b\r\n\r\n1,2\r\n\r\n\r\n3,4", [3, 6]),
            ("a,b\n\"1\n\",2\n3,4\n", [2, 4]),
        ] {
            let mut rows = read(text.into(), "UTF-8").unwrap();
            let mut cells = StringRecord::new();
            for line in lines {
                let place = rows.next(&mut cells).unwrap();
                assert_eq!(place, Some(Place::Line(line)), "{text:?}");
            }
            assert_eq!(rows.next(&mut cells).unwrap(), None);
        }
    }
}
