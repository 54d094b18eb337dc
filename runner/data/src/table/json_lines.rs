//! JSON lines (.jsonl, .ndjson): one JSON object per line, whose keys are the columns.
//!
//! Columns are ordered by the first occurrence of their keys. A key missing from a line, or `null`,
//! is a missing cell. Lists and objects in an object are refused. Source: <https://jsonlines.org/>.

use std::collections::{HashMap, HashSet};
use std::fmt;

use csv::StringRecord;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

use super::error::TableError;
use super::rows::Rows;
use crate::column::place::Place;

/// A file of this format.
pub(super) struct JsonLines {
    text: String,
    header: StringRecord,
    /// The column of each key.
    columns: HashMap<String, usize>,
    /// Numbers of bytes and lines read so far.
    at: usize,
    line: u32,
    encoding: &'static str,
}

/// The keys and values of an object, in order.
struct Object(Vec<(String, Cell)>);

/// A value as a cell.
struct Cell(String);

/// Returns whether a file begins with a line that is a complete object of values.
pub(super) fn is_begun_by(bytes: &[u8]) -> bool {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let bytes = bytes.trim_ascii_start();
    let line = bytes.split(|byte| *byte == b'\n').next();
    bytes.starts_with(b"{")
        && line.is_some_and(|line| serde_json::from_slice::<Object>(line).is_ok())
}

/// Collects the keys of all lines.
pub(super) fn read(text: String, encoding: &'static str) -> Result<JsonLines, TableError> {
    let mut header = StringRecord::new();
    let mut columns = HashMap::new();
    for (line, number) in text.lines().zip(1..) {
        for (key, _) in object(line, number)?
            .into_iter()
            .flat_map(|object| object.0)
        {
            if !columns.contains_key(&key) {
                header.push_field(&key);
                columns.insert(key, columns.len());
            }
        }
    }
    Ok(JsonLines {
        text,
        header,
        columns,
        at: 0,
        line: 0,
        encoding,
    })
}

/// Returns the object in a line. `None` for an empty one.
fn object(line: &str, number: u32) -> Result<Option<Object>, TableError> {
    if line.trim().is_empty() {
        return Ok(None);
    }
    let object = serde_json::from_str(line).map_err(|_| TableError::Format {
        place: Place::Line(number),
        what: "is not a JSON object of numbers, texts, true, false and null, each key once: write \
               one such object on each line"
            .to_owned(),
    })?;
    Ok(Some(object))
}

impl Rows for JsonLines {
    fn header(&self) -> &StringRecord {
        &self.header
    }

    fn next(&mut self, cells: &mut StringRecord) -> Result<Option<Place>, TableError> {
        while let Some(line) = self.text[self.at..].split_inclusive('\n').next() {
            self.at += line.len();
            self.line += 1;
            let Some(object) = object(line, self.line)? else {
                continue;
            };
            let mut row = vec![String::new(); self.header.len()];
            for (key, Cell(cell)) in object.0 {
                // All keys have a column.
                row[self.columns[&key]] = cell;
            }
            *cells = StringRecord::from(row);
            return Ok(Some(Place::Line(self.line)));
        }
        Ok(None)
    }

    fn layout(&self) -> String {
        format!("{} text, JSON lines", self.encoding)
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;

        impl<'de> Visitor<'de> for Keys {
            type Value = Object;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of values")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
                let mut entries: Vec<(String, Cell)> = Vec::new();
                let mut keys = HashSet::new();
                while let Some((key, cell)) = map.next_entry::<String, Cell>()? {
                    if !keys.insert(key.clone()) {
                        return Err(A::Error::custom("a key twice"));
                    }
                    entries.push((key, cell));
                }
                Ok(Object(entries))
            }
        }

        deserializer.deserialize_map(Keys)
    }
}

impl<'de> Deserialize<'de> for Cell {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Value;

        impl Visitor<'_> for Value {
            type Value = Cell;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, a text, true, false or null")
            }

            fn visit_bool<E: Error>(self, value: bool) -> Result<Cell, E> {
                Ok(Cell(value.to_string()))
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<Cell, E> {
                Ok(Cell(value.to_string()))
            }

            fn visit_u64<E: Error>(self, value: u64) -> Result<Cell, E> {
                Ok(Cell(value.to_string()))
            }

            fn visit_f64<E: Error>(self, value: f64) -> Result<Cell, E> {
                Ok(Cell(value.to_string()))
            }

            fn visit_str<E: Error>(self, value: &str) -> Result<Cell, E> {
                Ok(Cell(value.trim().to_owned()))
            }

            fn visit_unit<E: Error>(self) -> Result<Cell, E> {
                Ok(Cell(String::new()))
            }
        }

        deserializer.deserialize_any(Value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Result<Vec<(Place, Vec<String>)>, TableError> {
        let mut rows = read(text.to_owned(), "UTF-8")?;
        let (mut cells, mut found) = (StringRecord::new(), Vec::new());
        while let Some(place) = rows.next(&mut cells)? {
            found.push((place, cells.iter().map(str::to_owned).collect()));
        }
        Ok(found)
    }

    #[test]
    fn objects_become_rows_of_the_keys_in_their_order() {
        let text = "{\"y\": \" a\", \"x\": 1.50}\n\n{\"x\": -2, \"t\": true, \"y\": null}\r\n";
        let header = read(text.to_owned(), "UTF-8").unwrap().header;
        assert_eq!(header, StringRecord::from(vec!["y", "x", "t"]));
        let row = |line, cells: [&str; 3]| (Place::Line(line), cells.map(str::to_owned).to_vec());
        let expected = [row(1, ["a", "1.5", ""]), row(3, ["", "-2", "true"])];
        assert_eq!(rows(text).unwrap(), expected);
        assert!(rows("").unwrap().is_empty());
    }

    #[test]
    fn other_lines_are_refused_by_their_number() {
        for line in [
            "[1, 2]",
            "{\"x\": [1]}",
            "{\"x\": 1",
            "x",
            "{\"x\": 1, \"x\": 2}",
        ] {
            let error = rows(&format!("{{\"x\": 1}}\n{line}\n")).unwrap_err();
            assert!(
                error
                    .to_string()
                    .starts_with("line 2: is not a JSON object"),
                "{error}"
            );
        }
    }

    #[test]
    fn the_first_line_says_whether_a_file_is_one() {
        for text in ["{\"x\": 1}", " {\"x\": 1}\n{", "\u{feff}{\"x\": 1}\r\n"] {
            assert!(is_begun_by(text.as_bytes()), "{text}");
        }
        for text in ["", "x,y\n", "{\n", "{\"users\": [\"a\"]}", "[{\"x\": 1}]"] {
            assert!(!is_begun_by(text.as_bytes()), "{text}");
        }
    }
}
