//! What a method with personal models does on a device, settled before the run.

use smolfed_core::params::Penalty;
use smolfed_core::personal::{Effort, PmtlUpdate};

/// What a method keeps on a device and what it sends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PersonalKind {
    /// A whole model, pulled to the shared one (Hu, Wu, Smith 2023, Algorithm 1).
    Pmtl(PmtlUpdate),
    /// An offset to the shared model (Bietti et al. 2022).
    PpSgd {
        /// How far it moves for each step of the shared model.
        ratio: f32,
    },
    /// The last parameters of the model, on top of shared ones (Wu, Chen, Wang 2020).
    Split {
        /// Whether clipping and noise are done in each local step, as the paper has it.
        each_step: bool,
    },
    /// A whole model; nothing is sent.
    Local,
}

/// Fine-tuning on each device, after training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FineTune {
    /// The loss alone.
    Plain,
    /// Pulled to the shared model.
    MeanRegularised(Penalty),
    /// Pulled to its predictions.
    SymmetrisedKl(Penalty),
    /// Pulled to it along what matters to it.
    Ewc(Penalty),
}

/// How devices of an experiment keep models of their own.
#[derive(Clone, Copy, Debug)]
pub struct PersonalPlan {
    /// The method.
    pub kind: PersonalKind,
    /// How long a device trains in a round.
    pub effort: Effort,
    /// λ of the pull to the shared model.
    pub pull: Penalty,
    /// Parameters that are shared; they come first.
    pub shared: usize,
    /// Parameters of the model.
    pub parameters: usize,
}

impl PersonalPlan {
    /// Values that a device keeps between rounds.
    #[must_use]
    pub const fn state_length(&self) -> usize {
        match self.kind {
            PersonalKind::Split { .. } => self.parameters - self.shared,
            PersonalKind::Pmtl(_) | PersonalKind::PpSgd { .. } | PersonalKind::Local => {
                self.parameters
            }
        }
    }

    /// The model of a device with this state: what it predicts with. `initial` is the model before
    /// the first round. A device that was never selected has what it would start from.
    #[must_use]
    pub fn own_model(&self, shared: &[f32], initial: &[f32], state: Option<&[f32]>) -> Vec<f32> {
        match (self.kind, state) {
            (PersonalKind::Pmtl(_) | PersonalKind::Local, Some(own)) => own.to_vec(),
            (PersonalKind::PpSgd { .. }, Some(offset)) => {
                shared.iter().zip(offset).map(|(w, o)| w + o).collect()
            }
            (PersonalKind::Pmtl(_) | PersonalKind::PpSgd { .. }, None) => shared.to_vec(),
            (PersonalKind::Local, None) => initial.to_vec(),
            (PersonalKind::Split { .. }, own) => {
                let start = initial.get(self.shared..).unwrap_or_default();
                [shared, own.unwrap_or(start)].concat()
            }
        }
    }

    /// Whether the shared parameters are a model by themselves.
    #[must_use]
    pub const fn shares_a_model(&self) -> bool {
        match self.kind {
            PersonalKind::Pmtl(_) | PersonalKind::PpSgd { .. } => true,
            PersonalKind::Split { .. } => self.shared == self.parameters,
            PersonalKind::Local => false,
        }
    }
}
