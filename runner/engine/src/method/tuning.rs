//! Fine-tuning of a device after training: local steps, plain or restrained by the shared model
//! (`FineTune`).

use smolfed_core::model::{Distilled, Parametric, log_probabilities};
use smolfed_core::params::Penalty;
use smolfed_core::personal::{Anchor, PersonalTraining, fisher_diagonal};
use smolfed_core::stream::Stream;
use smolfed_core::train::TrainError;
use smolfed_simd::{Kernels, Steps, distil};

use crate::arithmetic::steps::{StepBuffers, descend};
use crate::task::Task;
use smolfed_data::dataset::DatasetView;

/// Fine-tuning on each device, after training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FineTune {
    /// The loss alone.
    Plain,
    /// Pulled to the shared model.
    MeanRegularised(Penalty),
    /// Pulled to the shared model's predictions.
    SymmetrisedKl(Penalty),
    /// Pulled to the shared model along its important parameters.
    Ewc(Penalty),
}

/// Fine-tuning of one device.
pub(super) struct Tuning<'a> {
    pub task: &'a Task,
    /// The model that the objective stays close to.
    pub anchor: &'a [f32],
    pub objective: FineTune,
    pub settings: &'a PersonalTraining,
}

impl Tuning<'_> {
    /// Takes the steps on `model`.
    pub fn run(
        &self,
        samples: &DatasetView<'_>,
        model: &mut [f32],
        order: &mut Stream,
    ) -> Result<(), TrainError> {
        let mut buffers = StepBuffers::default();
        let mut importance = Vec::new();
        let strength = match (self.objective, self.task) {
            (FineTune::Plain, _) => Penalty::NONE,
            (FineTune::MeanRegularised(strength), _) => strength,
            (FineTune::Ewc(strength), Task::Softmax(softmax)) => {
                importance.resize(model.len(), 0.0);
                let mut scores = vec![0.0; softmax.output_count()];
                let samples = samples.classes();
                fisher_diagonal(softmax, self.anchor, &samples, &mut scores, &mut importance)?;
                strength
            }
            (FineTune::SymmetrisedKl(strength), Task::Softmax(softmax)) => {
                let rows: Vec<u32> = (0..samples.len() as u32).collect();
                let samples = samples.classes();
                let classes = softmax.output_count();
                let mut teacher = vec![0.0; rows.len() * classes];
                softmax.row_scores(self.anchor, &samples, &rows, &mut [], &mut teacher)?;
                teacher
                    .chunks_exact_mut(classes)
                    .for_each(log_probabilities);
                let distilled = Distilled::new(*softmax, &teacher, strength.get());
                let memory = buffers.memory_for(self.task, rows.len());
                distil(&distilled, &samples, model, self.settings, order, memory)?;
                return Ok(());
            }
            // Already refused in the experiment.
            (FineTune::Ewc(_) | FineTune::SymmetrisedKl(_), _) => return Ok(()),
        };
        let pull = Anchor {
            at: self.anchor,
            strength,
            importance: (!importance.is_empty()).then_some(&importance),
        };
        let steps = Steps {
            settings: self.settings,
            anchor: (strength.get() > 0.0).then_some(&pull),
            release: None,
        };
        let memory = buffers.memory_for(self.task, samples.len());
        descend(self.task, samples, model, steps, order, memory)?;
        Ok(())
    }
}
