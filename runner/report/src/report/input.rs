//! The input of a report: the contents of a run directory.

use serde::{Deserialize, Serialize};
use smolfed_data::Federation;
use smolfed_engine::config::Config;
use smolfed_engine::evaluation::assessment::FinalAssessment;
use smolfed_engine::evaluation::devices::DeviceReport;
use smolfed_engine::experiment::Experiment;
use smolfed_engine::membership::Attack;
use smolfed_engine::representation::Picture;
use smolfed_engine::round::{RoundRecord, SimulationOnly, Spectrum, origin_of};
use smolfed_engine::run::RunResult;
use smolfed_engine::run::directory::RunDir;
use smolfed_engine::run::directory::model_file::{InputLayout, ModelFile};
use smolfed_engine::run_files::error::{RunDirError, if_there};
use smolfed_release::provenance::Provenance;
use smolfed_release::statement::{PrivacyStatement, Subject};

/// The input of a report. Only the configuration is required. Its serialised form is for programs
/// that keep a result in a separate file, which only the same version can read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReportInput {
    /// The complete configuration.
    #[serde(with = "as_toml")]
    pub config: Config,
    /// One record per round, in order.
    pub records: Vec<RoundRecord>,
    /// The privacy statements, the run's accountant first. Empty before the run ends or stops.
    pub statements: Vec<PrivacyStatement>,
    /// Spectra of the last round, if it was reached.
    pub spectrum: Option<Spectrum>,
    /// The model, if it was written.
    pub model: Option<ModelFile>,
    /// Figures of each device's models after the last round.
    pub devices: Option<DeviceReport>,
    /// All figures of the final model on held-out samples.
    pub assessment: Option<FinalAssessment>,
    /// The attack on membership, of this model or of several, if examples were held out for it.
    pub membership: Vec<Attack>,
    /// A picture of the representations, if the run trained an encoder without labels.
    pub representation: Option<Picture>,
    /// Audience of the page.
    pub audience: Audience,
}

/// Audience of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Audience {
    /// The owner of the simulated devices' data, or the operator of the fleet.
    #[default]
    Owner,
    /// Anybody. The page has only figures that ε covers.
    Public,
}

impl ReportInput {
    /// Removes everything that no ε covers: facts known only to a simulation, the sizes of secret
    /// cohorts, times and, unless ε bounds everything released, the model with all its
    /// figures.
    #[must_use]
    pub fn for_public(self) -> Self {
        let is_bound = |statement: &PrivacyStatement| {
            let is_bound = statement.is_upper_bound() || statement.is_bound_of_schedule();
            statement.subject == Subject::Updates && statement.epsilon.is_finite() && is_bound
        };
        let is_covered = self.statements.iter().any(is_bound);
        let hides_sizes = !self.size_origin().is_public();
        let records = self.records.into_iter().map(|record| RoundRecord {
            simulation_only: SimulationOnly::default(),
            test: record
                .test
                .filter(|_| is_covered && test_origin(&record).is_public()),
            experts: if is_covered {
                record.experts
            } else {
                Vec::new()
            },
            kept: if is_covered { record.kept } else { Vec::new() },
            answers: if is_covered {
                record.answers
            } else {
                Vec::new()
            },
            cohort: if hides_sizes { 0 } else { record.cohort },
            ages: if hides_sizes { Vec::new() } else { record.ages },
            wasted: record.wasted.filter(|_| !hides_sizes),
            seconds: 0.0,
            ..record
        });
        let assessment = self.assessment.filter(|found| !found.is_simulation_only);
        let spectrum = self.spectrum.map(|spectrum| Spectrum {
            clean: None,
            ..spectrum
        });
        Self {
            records: records.collect(),
            spectrum: spectrum.filter(|_| is_covered),
            model: self.model.filter(|_| is_covered),
            devices: None,
            assessment: assessment.filter(|_| is_covered),
            membership: Vec::new(),
            representation: None,
            audience: Audience::Public,
            config: self.config,
            statements: self.statements,
        }
    }

    /// Returns the origin of the cohort sizes.
    pub(super) fn size_origin(&self) -> Provenance {
        let is_secret = |record: &RoundRecord| {
            let origin = record.origin.get("cohort");
            origin.is_some_and(|origin| !origin.is_public())
        };
        let is_secret = self.config.has_secret_cohorts() || self.records.iter().any(is_secret);
        Provenance::of_sizes(is_secret)
    }

    /// Returns the origin of the figures on test samples.
    pub(super) fn test_origin(&self) -> Provenance {
        let tested = self.records.iter().filter(|record| record.test.is_some());
        tested.map(test_origin).max().unwrap_or(Provenance::Public)
    }

    /// Returns the input of a run in memory.
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
            audience: Audience::Owner,
        }
    }

    /// Reads a run directory. Files that a broken run has not written are absent.
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
            audience: Audience::Owner,
        })
    }
}

fn test_origin(record: &RoundRecord) -> Provenance {
    let of_samples = Provenance::of_samples(record.test_is_simulation_only);
    origin_of("test", &record.origin).max(of_samples)
}

/// A configuration as the text of its file.
mod as_toml {
    use serde::de::Error as _;
    use serde::ser::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use smolfed_engine::config::Config;

    pub(super) fn serialize<S: Serializer>(
        config: &Config,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let text = config.to_toml().map_err(S::Error::custom)?;
        text.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Config, D::Error> {
        let text = String::deserialize(deserializer)?;
        Config::parse(&text, "the experiment of the result", &[]).map_err(D::Error::custom)
    }
}
