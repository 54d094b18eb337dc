//! Exports of runs for other programs.
//!
//! A format is a file of this folder that returns the files to write, and an entry in [`FORMATS`].

mod csv;
mod format;
mod mlflow;
mod tensorboard;

pub use format::Format;

/// All formats, in the order of the help.
pub const FORMATS: [Format; 3] = [csv::FORMAT, tensorboard::FORMAT, mlflow::FORMAT];

/// Returns the format of this name.
#[must_use]
pub fn format_named(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}

#[cfg(test)]
pub(super) mod fixture;
