//! What a format is.

use std::path::Path;

use crate::runs::output::OutputFile;
use crate::runs::selection::Selected;

/// A format that other programs read.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// What to write; the path is the absolute one of the output.
    pub files: fn(&[Selected], &Path) -> Vec<OutputFile>,
}
