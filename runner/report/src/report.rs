//! The report of a run, `report.html`: one self-contained page that needs no script, network or
//! explanation, in light, dark and print.
//!
//! [`render`] is a pure function of the run directory: the same run gives the same page. Each
//! figure has its origin, and figures from private data without noise are marked "simulation only".
//! A page for the public has none of them ([`ReportInput::for_public`]). Plots come from [`plot`],
//! which sweeps and trade-off curves share.

mod accounts;
mod answers;
mod assessment;
mod class_table;
pub mod comparison;
mod correlated;
mod curves;
mod devices;
mod experts;
mod frequencies;
mod headline;
pub mod html;
mod input;
#[cfg(test)]
mod markup;
mod membership;
mod page;
pub mod plot;
mod png;
mod repeat;
mod representation;
mod rounds;
mod weights;
mod windows;

use std::path::{Path, PathBuf};

use smolfed_engine::run::directory::RunDir;
use smolfed_engine::run_files::error::{RunDirError, write_atomically};

pub use input::{Audience, ReportInput};
pub use membership::roc_plot;

/// Writes a report of a run for an audience into a file.
///
/// # Errors
/// [`RunDirError`] if the run cannot be read or the file cannot be written.
pub fn write_to(dir: &RunDir, audience: Audience, path: &Path) -> Result<(), RunDirError> {
    let input = ReportInput::read(dir)?;
    let input = match audience {
        Audience::Owner => input,
        Audience::Public => input.for_public(),
    };
    write_atomically(path, render(&input).as_bytes())
}

/// Writes or rewrites the report of a run directory. Returns its path.
///
/// # Errors
/// [`RunDirError`] if the run cannot be read or the report cannot be written.
pub fn write(dir: &RunDir) -> Result<PathBuf, RunDirError> {
    dir.write_report(&render(&ReportInput::read(dir)?))
}

/// Returns the page. External text is escaped, and reading the page fetches nothing.
#[must_use]
pub fn render(input: &ReportInput) -> String {
    let is_public = input.audience == Audience::Public;
    let updates = page::grid(&curves::updates(input));
    let attack = membership::figure_of(input)
        .map(|figure| page::section("Information leakage", &page::grid(&[figure])));
    let of_owner = |section: String| if is_public { String::new() } else { section };
    let content = [
        headline::headline(input),
        curves::learning(input),
        representation::section_of(input),
        devices::section_of(input),
        assessment::section_of(input),
        answers::section_of(input),
        windows::section_of(input),
        rounds::table_of(input),
        accounts::section_of(input),
        of_owner(page::section(
            "Updates of devices",
            &if updates.is_empty() {
                page::paragraph("No device sent an update.")
            } else {
                updates
            },
        )),
        attack.unwrap_or_default(),
        frequencies::section_of(input),
        weights::section_of(input),
        of_owner(rounds::left_out(input)),
        of_owner(repeat::section_of(input)),
        page::footer(input.audience),
    ];
    page::document(&input.config.name, &content.concat())
}

#[cfg(test)]
mod tests;
