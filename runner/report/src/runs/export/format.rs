//! The definition of a format of exported runs: its name, its description, and the files to write.

use std::path::Path;

use crate::runs::output::OutputFile;
use crate::runs::selection::Selected;

/// A format for other programs.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// Its name on the command line.
    pub name: &'static str,
    /// A one-line description.
    pub about: &'static str,
    /// Returns the files to write. The path is the absolute path of the output.
    pub files: fn(&[Selected], &Path) -> Vec<OutputFile>,
}
