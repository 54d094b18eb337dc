//! The report of a run, `report.html`: one self-contained page that reads without a script, a
//! network or an explanation, in light, dark and print.
//!
//! [`render`] is a pure function of what the run directory holds: the same run gives the same page.
//! Figures that read private data without noise are marked "simulation only". Plots come from
//! [`plot`], which sweeps and trade-off curves share.

mod accounts;
mod curves;
mod devices;
mod frequencies;
mod headline;
pub mod html;
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

use std::path::PathBuf;

pub use membership::roc_plot;

use crate::audit::membership::Attack;
use crate::config::Config;
use crate::personal::DeviceReport;
use crate::privacy::statement::PrivacyStatement;
use crate::representation::Picture;
use crate::rounds::{RoundRecord, Spectrum};
use crate::run_dir::{ModelFile, RunDir, RunDirError};

/// What a report is made of. Only the configuration must be there.
#[derive(Clone, Debug)]
pub struct ReportInput {
    /// The complete configuration.
    pub config: Config,
    /// One record a round, in order.
    pub records: Vec<RoundRecord>,
    /// The privacy statements, the run's accountant first; empty before the run ends or stops.
    pub statements: Vec<PrivacyStatement>,
    /// Spectra of the last round, if it was reached.
    pub spectrum: Option<Spectrum>,
    /// The model, if it was written.
    pub model: Option<ModelFile>,
    /// Figures of each device's models, after the last round.
    pub devices: Option<DeviceReport>,
    /// The attack on membership, of this model or of several, if examples were kept back for it.
    pub membership: Vec<Attack>,
    /// What representations look like, if the run trained an encoder without labels.
    pub representation: Option<Picture>,
}

impl ReportInput {
    /// Reads a run directory; what a broken run has not written yet is absent.
    ///
    /// # Errors
    /// [`RunDirError`] if a file is damaged or cannot be read.
    pub fn read(dir: &RunDir) -> Result<Self, RunDirError> {
        Ok(Self {
            config: dir.config()?,
            records: dir.records()?,
            statements: if_there(dir.privacy())?.unwrap_or_default(),
            spectrum: if_there(dir.diagnostics())?,
            model: if_there(dir.model())?,
            devices: if_there(dir.device_figures())?,
            membership: if_there(dir.membership())?.unwrap_or_default(),
            representation: if_there(dir.representation())?,
        })
    }
}

/// Writes or rewrites the report of a run directory; returns its path.
///
/// # Errors
/// [`RunDirError`] if the run cannot be read or the report cannot be written.
pub fn write(dir: &RunDir) -> Result<PathBuf, RunDirError> {
    dir.write_report(&render(&ReportInput::read(dir)?))
}

/// The page. All text from outside is escaped; nothing is fetched when it is read.
#[must_use]
pub fn render(input: &ReportInput) -> String {
    let updates = page::grid(&curves::updates(input));
    let attack = membership::figure_of(input)
        .map(|figure| page::section("What the model gives away", &page::grid(&[figure])));
    let content = [
        headline::headline(input),
        curves::learning(input),
        representation::section_of(input),
        devices::section_of(input),
        rounds::table_of(input),
        accounts::section_of(input),
        page::section(
            "What devices sent",
            &if updates.is_empty() {
                page::paragraph("No device sent an update.")
            } else {
                updates
            },
        ),
        attack.unwrap_or_default(),
        frequencies::section_of(input),
        weights::section_of(input),
        rounds::left_out(input),
        repeat::section_of(input),
        format!(
            "<footer><p>{} {}</p></footer>\n",
            page::BADGE,
            html::escape(page::BADGE_MEANING)
        ),
    ];
    page::document(&input.config.name, &content.concat())
}

/// `None` for a file that is not there.
fn if_there<T>(read: Result<T, RunDirError>) -> Result<Option<T>, RunDirError> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(RunDirError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
