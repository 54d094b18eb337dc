//! What a report is made of: the contents of a run directory.

use smolfed_data::Federation;
use smolfed_engine::config::Config;
use smolfed_engine::evaluation::assessment::FinalAssessment;
use smolfed_engine::evaluation::devices::DeviceReport;
use smolfed_engine::experiment::Experiment;
use smolfed_engine::membership::Attack;
use smolfed_engine::representation::Picture;
use smolfed_engine::round::{RoundRecord, Spectrum};
use smolfed_engine::run::RunResult;
use smolfed_engine::run::directory::RunDir;
use smolfed_engine::run::directory::model_file::{InputLayout, ModelFile};
use smolfed_engine::run_files::error::{RunDirError, if_there};
use smolfed_release::statement::PrivacyStatement;

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
    /// All figures of the final model on held-out samples.
    pub assessment: Option<FinalAssessment>,
    /// The attack on membership, of this model or of several, if examples were held out for it.
    pub membership: Vec<Attack>,
    /// What representations look like, if the run trained an encoder without labels.
    pub representation: Option<Picture>,
}

impl ReportInput {
    /// Of a run that is in memory.
    #[must_use]
    pub fn of_result(experiment: &Experiment, federation: &Federation, result: &RunResult) -> Self {
        let task = experiment.task();
        let layout = InputLayout::new(experiment, federation);
        Self {
            config: experiment.config().clone(),
            records: result.records.clone(),
            statements: result.statements.clone(),
            spectrum: result.spectrum.clone(),
            // A method may share no model.
            model: ModelFile::of_model(task, &layout, &result.model).ok(),
            devices: result.devices.clone(),
            assessment: result.assessment.clone(),
            membership: Vec::new(),
            representation: None,
        }
    }

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
            assessment: if_there(dir.assessment())?,
            membership: if_there(dir.membership())?.unwrap_or_default(),
            representation: if_there(dir.representation())?,
        })
    }
}
