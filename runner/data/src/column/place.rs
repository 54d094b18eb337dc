//! The position of a row in its file, for messages: the number of its line or, in a file without
//! lines, of its row.

use std::fmt;

/// The position of a row in its file, counted from 1. It is below 2³², as files are bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line of text. The header is line 1.
    Line(u32),
    /// A row of a file without lines.
    Row(u32),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {line}"),
            Self::Row(row) => write!(f, "row {row}"),
        }
    }
}
