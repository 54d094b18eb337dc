//! Conditions of an experiment's ε besides its numbers: a known seed, an initial model file, values
//! read in the preparation, earlier runs, a divisor that reveals the size of a secret cohort. They
//! follow from the configuration and the preparation of the data, never from a result.

use smolfed_accounting::event::{PrivacyUnit, TrustModel};

use crate::config::Config;
use crate::data_conditions::of_data;
use crate::method::MethodName;
use crate::method::contract::Method;
use crate::tables::cohort::Denominator;
use smolfed_data::federation::Federation;
use smolfed_release::condition::{Condition, Conditions};
use smolfed_release::ledger::Spent;
use smolfed_release::origin::Origin;

/// Returns the conditions of the updates, of the preparation before them and of earlier runs.
/// Devices add noise to second messages under any trust model.
pub(super) fn conditions(
    config: &Config,
    federation: &Federation,
    spent: &Spent,
    origin: &Origin,
    method: &dyn Method,
) -> Conditions {
    let size = reveals_cohort_size(config).then_some(Condition::RealisedCohort);
    let mut found: Conditions = size.into_iter().collect();
    found.extend(of_data(federation));
    found.extend(of_initial_model(config));
    let has_noise = method.has_noise_on_second_messages();
    let of_second = has_noise.then_some(TrustModel::Local);
    for trust in [config.privacy.trust].into_iter().chain(of_second) {
        found.extend(origin.conditions(config.run_seed(), trust));
    }
    found.extend(spent.conditions(PrivacyUnit::Device));
    found
}

/// Returns the condition of the initial model file, whose training rows are unknown.
fn of_initial_model(config: &Config) -> Option<Condition> {
    config.model.init.as_ref()?;
    let has_statement = config.model.init_has_statement && config.method == MethodName::Ask;
    Some(match config.model.init_is_public {
        true => Condition::Confirmed {
            key: "model.init".to_owned(),
        },
        false if has_statement => Condition::ModelOfRun,
        false => Condition::InitialModel,
    })
}

/// Returns whether the divisor is the size of a secret cohort.
fn reveals_cohort_size(config: &Config) -> bool {
    config.has_secret_cohorts() && config.cohort.denominator == Denominator::Realised
}
