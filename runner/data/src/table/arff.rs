//! ARFF, the attribute-relation file format of Weka and OpenML: attributes that declare their type
//! or categories, then comma-separated rows.
//!
//! Source: <https://waikato.github.io/weka-wiki/formats_and_processing/arff_stable/>. Comments
//! begin with `%`. Declared categories are public: such a column has one feature for each, unless
//! all are numbers or yes and no. Sparse rows are not supported.

use std::borrow::Cow;
use std::io::Cursor;

use csv::{Reader, ReaderBuilder, StringRecord, Trim};

use super::error::TableError;
use super::rows::Rows;
use crate::column::Encoding;
use crate::column::cell::truth;
use crate::column::place::Place;

/// A file of this format.
pub(super) struct Arff {
    header: StringRecord,
    encodings: Vec<Encoding>,
    /// The rows, without lines that begin with `%`.
    reader: Reader<Cursor<String>>,
    /// The line in the file of each line of the rows.
    lines: Vec<u32>,
    encoding: &'static str,
}

/// Returns whether a text begins like a file of this format.
pub(super) fn is_begun_by(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with('%'));
    let word = first.and_then(|line| line.split_whitespace().next());
    word.is_some_and(|word| word.eq_ignore_ascii_case("@relation"))
}

/// Reads the declarations.
pub(super) fn read(text: Cow<'_, str>, encoding: &'static str) -> Result<Arff, TableError> {
    let mut header = StringRecord::new();
    let mut encodings = Vec::new();
    let mut lines = (1..).zip(text.lines());
    loop {
        let Some((number, line)) = lines.next() else {
            return Err(TableError::Other("there is no line @data".into()));
        };
        let refuse = |what: &str| TableError::Format {
            place: Place::Line(number),
            what: what.to_owned(),
        };
        let line = line.trim();
        let (keyword, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match keyword.to_ascii_lowercase().as_str() {
            "" | "@relation" => {}
            comment if comment.starts_with('%') => {}
            "@attribute" => {
                let (name, kind) = attribute(rest)
                    .ok_or_else(|| refuse("an attribute needs a name and a type"))?;
                header.push_field(name);
                encodings.push(encoding_of(kind));
            }
            "@data" => break,
            _ => {
                return Err(refuse(
                    "is none of @relation, @attribute, @data and % comments",
                ));
            }
        }
    }
    let is_row = |(_, line): &(u32, &str)| !line.trim().is_empty() && !line.starts_with('%');
    let (lines, rows): (Vec<u32>, Vec<&str>) = lines.filter(is_row).unzip();
    let mark = mark(rows.iter().copied());
    let rows: Vec<String> = rows.into_iter().map(|row| tight(row, mark)).collect();
    let reader = quoting(mark).from_reader(Cursor::new(rows.join("\n")));
    Ok(Arff {
        header,
        encodings,
        reader,
        lines,
        encoding,
    })
}

impl Rows for Arff {
    fn header(&self) -> &StringRecord {
        &self.header
    }

    fn next(&mut self, cells: &mut StringRecord) -> Result<Option<Place>, TableError> {
        if !self.reader.read_record(cells).map_err(TableError::of_csv)? {
            return Ok(None);
        }
        let row = cells.position().map_or(1, csv::Position::line) as usize;
        let line = self.lines.get(row.saturating_sub(1)).copied().unwrap_or(0);
        let place = Place::Line(line);
        if cells.get(0).is_some_and(|cell| cell.starts_with('{')) {
            let what = "is a sparse row, which is not supported: write all values".to_owned();
            return Err(TableError::Format { place, what });
        }
        Ok(Some(place))
    }

    fn usual_encoding(&self, column: usize) -> Encoding {
        self.encodings.get(column).cloned().unwrap_or_default()
    }

    fn layout(&self) -> String {
        format!("{} text in the format ARFF", self.encoding)
    }
}

/// Returns the quotation mark of rows or categories: the first that occurs.
fn mark<'a>(mut lines: impl Iterator<Item = &'a str>) -> u8 {
    let mark = lines.find_map(|line| line.bytes().find(|byte| matches!(byte, b'\'' | b'"')));
    mark.unwrap_or(b'\'')
}

/// Removes the spaces between a comma and a quotation mark, which the reader would treat as part of
/// the cell.
fn tight(line: &str, mark: u8) -> String {
    let mark = char::from(mark);
    let mut parts = line.split(mark);
    let mut tight = parts.next().unwrap_or_default().trim_end().to_owned();
    for (index, part) in parts.enumerate() {
        tight.push(mark);
        // Inside quotation marks, all characters count.
        tight += if index % 2 == 0 { part } else { part.trim() };
    }
    tight
}

fn quoting(mark: u8) -> ReaderBuilder {
    let mut builder = ReaderBuilder::new();
    builder
        .has_headers(false)
        .flexible(true)
        .trim(Trim::All)
        .quote(mark)
        .escape(Some(b'\\'));
    builder
}

/// Returns the name, optionally in quotation marks, and the type of an attribute.
fn attribute(text: &str) -> Option<(&str, &str)> {
    let text = text.trim();
    let (name, kind) = match text.chars().next()? {
        mark @ ('\'' | '"') => text[1..].split_once(mark)?,
        _ => text
            .split_once(|c: char| c.is_whitespace() || c == '{')
            .map(|(name, _)| text.split_at(name.len()))?,
    };
    let kind = kind.trim();
    (!kind.is_empty()).then_some((name, kind))
}

/// Returns the encoding of a column whose type is `kind`.
fn encoding_of(kind: &str) -> Encoding {
    let listed = kind
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'));
    let Some(listed) = listed else {
        return Encoding::Number;
    };
    let mark = mark([listed].into_iter());
    let listed = tight(listed, mark);
    let mut reader = quoting(mark).from_reader(listed.as_bytes());
    let record = reader
        .records()
        .next()
        .and_then(Result::ok)
        .unwrap_or_default();
    let is_number = |category: &str| category.parse::<f32>().is_ok() || truth(category).is_some();
    match record.iter().all(is_number) {
        true => Encoding::Number,
        false => Encoding::Categories(record.iter().map(str::to_owned).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEATHER: &str = concat!(
        "% a comment\n@RELATION weather\n\n",
        "@ATTRIBUTE outlook {sunny, 'over cast'}\n",
        "@ATTRIBUTE 'the temperature' REAL\n",
        "@attribute windy{TRUE, FALSE}\n@attribute level {1,2}\n\n",
        "@DATA\nsunny,85,FALSE,1\n% another\n'over cast', ?,TRUE,2\n",
    );

    #[test]
    fn declared_categories_are_encoded() {
        let mut rows = read(WEATHER.into(), "UTF-8").unwrap();
        let names: Vec<&str> = rows.header().iter().collect();
        assert_eq!(names, ["outlook", "the temperature", "windy", "level"]);
        let expected = ["sunny", "over cast"].map(str::to_owned).to_vec();
        assert_eq!(rows.usual_encoding(0), Encoding::Categories(expected));
        for column in [1, 2, 3] {
            assert_eq!(rows.usual_encoding(column), Encoding::Number);
        }
        let mut cells = StringRecord::new();
        assert_eq!(rows.next(&mut cells).unwrap(), Some(Place::Line(10)));
        assert_eq!(rows.next(&mut cells).unwrap(), Some(Place::Line(12)));
        assert_eq!(cells, vec!["over cast", "?", "TRUE", "2"]);
        assert_eq!(rows.next(&mut cells).unwrap(), None);
    }

    #[test]
    fn malformed_files_are_refused_with_the_line() {
        let message = |text: &str| {
            let mut rows =
                read(text.to_owned().into(), "UTF-8").map_err(|error| error.to_string())?;
            let next = rows.next(&mut StringRecord::new());
            next.map(|_| ()).map_err(|error| error.to_string())
        };
        for (text, words) in [
            ("a,b\n1,2\n", "line 1: is none of"),
            ("@relation x\n@attribute a\n", "line 2: an attribute needs"),
            ("@relation x\n@attribute a real\n", "@data"),
            (
                "@attribute a real\n@data\n{0 1}\n",
                "line 3: is a sparse row",
            ),
        ] {
            let error = message(text).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }
}
