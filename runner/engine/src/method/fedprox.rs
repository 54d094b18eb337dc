//! FedProx: federated averaging in which each device is pulled back to the shared model (Li et al.
//! 2020, arXiv:1812.06127, equation 2).

use super::contract::Method;
use super::fedavg::Averaging;
use super::setup::Setup;
use super::supervised::lambda;
use crate::check::ExperimentError;
use crate::combinations::Setting;

/// Builds `fedprox`.
pub(super) fn build(setup: &Setup<'_>) -> Result<Box<dyn Method>, ExperimentError> {
    let averaging = Averaging::new(setup, Some(lambda(setup)?))?;
    Ok(Box::new(averaging.declaring(Setting::OwnProximal)))
}
