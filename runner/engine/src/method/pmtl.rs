//! PMTL: a personal model on each device, pulled to a shared one (Hu, Wu, Smith 2023,
//! arXiv:2108.12978, Algorithm 1).

use smolfed_core::params::Penalty;
use smolfed_core::personal::{Personal as OnDevice, PmtlUpdate, difference};

use super::contract::{Method, MethodProperties};
use super::personal::{Learned, Personal, PersonalModel, Personalised};
use super::setup::Setup;
use super::supervised::lambda;
use crate::check::ExperimentError;
use crate::tables::personalise::PmtlUpdateName;

#[derive(Debug)]
struct Pmtl {
    update: PmtlUpdate,
    pull: Penalty,
}

/// Builds `pmtl`.
pub(super) fn build(setup: &Setup<'_>) -> Result<Box<dyn Method>, ExperimentError> {
    let update = match setup.personalise.update.unwrap_or_default() {
        PmtlUpdateName::FromGlobal => PmtlUpdate::FromGlobal,
        PmtlUpdateName::AsPrinted => PmtlUpdate::AsPrinted,
        PmtlUpdateName::MeanOverAll => PmtlUpdate::MeanOverAll,
    };
    let pmtl = Pmtl {
        update,
        pull: lambda(setup)?,
    };
    let properties = MethodProperties {
        averages_over_all: update == PmtlUpdate::MeanOverAll,
        ..MethodProperties::new(setup.task()?)
    };
    Ok(Box::new(Personalised::new(setup, properties, pmtl)?))
}

impl Personal for Pmtl {
    fn model(&self) -> PersonalModel {
        PersonalModel {
            pull: Some(self.pull),
            on_device: Some(OnDevice::Model {
                pull: self.pull,
                from_previous: self.update != PmtlUpdate::FromGlobal,
            }),
            ..PersonalModel::default()
        }
    }

    fn conclude(&self, learned: Learned<'_>, update: &mut [f32]) -> Vec<f32> {
        let from = match self.update {
            PmtlUpdate::FromGlobal => learned.shared,
            PmtlUpdate::AsPrinted | PmtlUpdate::MeanOverAll => learned.start,
        };
        difference(&learned.local, from, update);
        learned.local
    }
}
