//! Inputs for building a method: the tables of the experiment file, the number of rounds, and the
//! seed.

use smolfed_accounting::Sampling;
use smolfed_core::personal::Effort;

use crate::arithmetic::Local;
use crate::check::ExperimentError;
use crate::tables::contrast::ContrastConfig;
use crate::tables::model::{LayerConfig, ModelConfig};
use crate::tables::personalise::PersonaliseConfig;
use crate::tables::simulation::SimulationConfig;
use crate::tables::train::TrainConfig;
use crate::task::{LayersError, Task, TaskError};
use smolfed_data::config::{DataConfig, SourceConfig};
use smolfed_data::federation::Federation;
use smolfed_data::scale::Scale;
use smolfed_release::ledger::Spent;
use smolfed_release::origin::Origin;
use smolfed_release::plan::PrivacyKeys;

/// The tables of an experiment, and their context.
#[derive(Clone, Copy)]
pub struct Setup<'a> {
    /// The method's name in files.
    pub name: &'static str,
    /// Number of rounds T.
    pub rounds: u32,
    /// Seed of the initial model, and of a simulation's other streams unless they are secret.
    pub seed: u64,
    /// `[data]`.
    pub data: &'a DataConfig,
    /// `[model]`.
    pub model: &'a ModelConfig,
    /// `[train]`.
    pub train: &'a TrainConfig,
    /// `[personalise]`.
    pub personalise: &'a PersonaliseConfig,
    /// `[contrast]`.
    pub contrast: &'a ContrastConfig,
    /// Whether the noise is given by `privacy.noise_multiplier`.
    pub has_noise_multiplier: bool,
    /// `[privacy]`, parsed.
    pub keys: PrivacyKeys,
    /// `[simulation]`.
    pub simulation: &'a SimulationConfig,
    /// The devices.
    pub federation: &'a Federation,
    /// Drawing and accounting of cohorts.
    pub sampling: Sampling,
    /// Earlier expenses of other runs.
    pub spent: &'a Spent,
    /// Origin of devices and randomness.
    pub origin: &'a Origin,
}

impl Setup<'_> {
    /// Returns the share of the rounds in which a device takes part, on average or at most.
    #[must_use]
    pub fn participation_rate(&self) -> f64 {
        match self.sampling {
            Sampling::Unsampled {
                max_participations, ..
            } => (f64::from(max_participations) / f64::from(self.rounds)).min(1.0),
            sampling => sampling.expected_cohort() / f64::from(sampling.device_count()),
        }
    }

    /// Returns the model that predicts the labels or values of the data.
    ///
    /// # Errors
    /// [`TaskError`] if it does not fit them.
    pub fn task(&self) -> Result<Task, TaskError> {
        let federation = self.federation;
        let (axes, features) = (federation.axes(), federation.feature_count());
        let task = Task::new(self.model, &axes, features, federation.class_count())?;
        match (self.model.layers.first(), self.data.symbol_count()) {
            (Some(LayerConfig::Embedding { vocabulary, .. }), None) => {
                self.check_symbols(*vocabulary)?;
            }
            (Some(&LayerConfig::Embedding { vocabulary, .. }), Some(symbols)) => {
                if vocabulary < symbols {
                    return Err(LayersError::Vocabulary {
                        vocabulary,
                        symbols,
                    }
                    .into());
                }
            }
            (_, Some(symbols)) => return Err(LayersError::SymbolsAsNumbers { symbols }.into()),
            (_, None) => {}
        }
        Ok(task)
    }

    /// Refuses features that are not symbols before the first round. Otherwise the failure of a
    /// round would depend on its participants.
    fn check_symbols(&self, vocabulary: u16) -> Result<(), LayersError> {
        if let SourceConfig::Stored(stored) = &self.data.source
            && stored.scale != Scale::None
        {
            return Err(LayersError::ScaledSymbols);
        }
        match self.federation.other_than_symbols(vocabulary) {
            None => Ok(()),
            Some(found) => Err(LayersError::Symbol {
                found: found.to_string(),
                vocabulary,
            }),
        }
    }

    /// Returns the arithmetic of devices that train `task` for `effort` in a round.
    /// `is_pulled` says whether another model pulls theirs.
    ///
    /// # Errors
    /// [`ExperimentError`] if the arithmetic does not support the model or the training.
    pub fn arithmetic(
        &self,
        task: &Task,
        effort: Effort,
        is_pulled: bool,
    ) -> Result<Local, ExperimentError> {
        Local::new(
            self.simulation,
            self.train,
            self.federation,
            task,
            effort,
            is_pulled,
        )
    }
}
