//! Unclosed quotes of delimited text, which would make one cell of the rest of the file.
//!
//! The reader of cells is lenient: a quote that is open at the end of the file closes there, and a
//! quote that closes inside a cell is a character. Both are refused here with the line of the
//! quote.

use super::error::TableError;
use crate::column::place::Place;

/// The position of a scan in a cell.
#[derive(Clone, Copy, PartialEq)]
enum State {
    Start,
    Plain,
    Quoted,
    /// After a quote in a quoted cell: its end, or the first of two.
    AfterQuote,
}

/// Refuses a text with a quoted cell that does not end, or that has several lines and ends inside a
/// cell.
///
/// # Errors
/// [`TableError::OpenQuote`] with the line of the quote.
pub(super) fn check(text: &str, separator: u8) -> Result<(), TableError> {
    let mut state = State::Start;
    let (mut line, mut opened) = (1, 1);
    for &byte in text.as_bytes() {
        state = match (state, byte) {
            (State::Start, b'"') => {
                opened = line;
                State::Quoted
            }
            (State::Quoted, b'"') => State::AfterQuote,
            (State::AfterQuote, b'"') | (State::Quoted, _) => State::Quoted,
            (_, b'\r' | b'\n') => State::Start,
            (_, byte) if byte == separator => State::Start,
            (State::AfterQuote, b' ' | b'\t') => State::AfterQuote,
            (State::AfterQuote, _) if opened < line => return Err(open_quote(opened)),
            (State::Start | State::Plain | State::AfterQuote, _) => State::Plain,
        };
        line += u32::from(byte == b'\n');
    }
    match state {
        State::Quoted => Err(open_quote(opened)),
        _ => Ok(()),
    }
}

fn open_quote(line: u32) -> TableError {
    TableError::OpenQuote {
        place: Place::Line(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Option<u32> {
        match check(text, b',') {
            Ok(()) => None,
            Err(TableError::OpenQuote {
                place: Place::Line(line),
            }) => Some(line),
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn a_quote_that_is_never_closed_is_found_by_its_line() {
        for (text, expected) in [
            ("a,b\n1,\"x\n2,y\n", 2),
            ("a,b\r\n1,x\r\n2,\"y", 3),
            ("a,\"b\n1,x\n", 1),
            ("a,b\n\"1,x\n2,y\n3,\"z\"\n", 2),
            ("a,b\n\"1\n2\",x\n3,\"y\n", 4),
            // Two stray quotes would hide the lines between them.
            ("a,b\n1,\"x\n2,y\n3,\"z\n", 2),
        ] {
            assert_eq!(line(text), Some(expected), "{text:?}");
        }
    }

    #[test]
    fn closed_quotes_and_quotes_in_cells_are_fine() {
        for text in [
            "",
            "a,b\n\"1\",\"x,y\"\n",
            "a,b\n\"1\n2\" ,\"say \"\"no\"\"\"\n",
            "a,b\n5\",6\"\n",
            "a,b\n\"5\"x,6\n",
            "a,b\n1,\"\"\n",
            "a,b\n 1, \"x\n",
        ] {
            assert_eq!(line(text), None, "{text:?}");
        }
    }
}
