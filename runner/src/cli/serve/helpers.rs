//! The helpers of a run that is served (`--helper`): one address for each link, and the error if
//! their numbers differ.

use std::collections::BTreeMap;
use std::sync::Arc;

use smolfed_core::crypto::Key;

use crate::cli::CliError;
use crate::cli::operation::Watch;
use smolfed_engine::experiment::Experiment;
use smolfed_fleet::helpers::{HelperSettings, RemoteHelpers};
use smolfed_fleet::keys::FleetKeys;
use smolfed_fleet::service::Service;
use smolfed_fleet::transport::Address;
use smolfed_release::masked::Helpers;

/// The links to the helpers, for each of which there must be an address.
pub(super) fn links(
    experiment: &Experiment,
    keys: &FleetKeys,
    given: &[Address],
) -> Result<BTreeMap<u8, Key>, CliError> {
    let (links, given) = (keys.links().len(), given.len());
    let policy = experiment.helper_policy(1);
    let count = policy.map_or(0, |policy| usize::from(policy.helpers));
    let sentence = if count == 0 && given > 0 {
        "`--helper`: the experiment has no helpers, which need `privacy.trust` = \"distributed\""
            .to_owned()
    } else if count != links && count > 0 {
        format!(
            "the experiment has {count} helpers, and {} has the links of {links}: provision the \
             fleet for this experiment",
            keys.path().display()
        )
    } else if count != given {
        format!(
            "the experiment has {count} helpers, and {given} are given: `--helper ADDRESS` for \
             each, in the order of their numbers"
        )
    } else {
        return Ok(keys.links().clone());
    };
    Err(CliError::Usage(sentence))
}

/// The helpers of the experiment with these links, in processes elsewhere, if it has helpers.
/// Nothing is connected yet.
pub(super) fn begin(
    experiment: &Experiment,
    settings: &HelperSettings,
    links: BTreeMap<u8, Key>,
    watch: &Watch,
    service: &Arc<Service>,
) -> Result<Option<Box<dyn Helpers>>, CliError> {
    let Some(policy) = experiment.helper_policy(1) else {
        return Ok(None);
    };
    let stopping = Arc::clone(watch.signals.stopping());
    let service = Arc::clone(service);
    let helpers = RemoteHelpers::new(settings, links.into_iter(), policy, stopping, service);
    Ok(Some(Box::new(helpers.map_err(CliError::Stopped)?)))
}
