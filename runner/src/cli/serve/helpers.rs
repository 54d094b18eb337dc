//! The helpers of a run that is served.

use std::collections::BTreeMap;
use std::sync::Arc;

use smolfed_core::crypto::Key;

use crate::cli::CliError;
use crate::fleet::helpers::{Elsewhere, HelperSettings};
use crate::fleet::keys::FleetKeys;
use crate::fleet::service::Service;
use crate::fleet::transport::Address;
use crate::fleet::watch::stopping::Stopping;
use crate::release::masked::{HelperPolicy, Helpers};

/// Whether there is an address for each helper, and a link.
pub(super) fn check(
    policy: Option<&HelperPolicy>,
    keys: &FleetKeys,
    given: &[Address],
) -> Result<(), CliError> {
    let (links, given) = (keys.links().len(), given.len());
    let count = policy.map_or(0, |policy| usize::from(policy.helpers));
    let sentence = if count == 0 && given > 0 {
        "`--helper`: the experiment has no helpers; `privacy.trust` = \"distributed\" has"
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
        return Ok(());
    };
    Err(CliError::Usage(sentence))
}

/// The helpers with these links, in processes elsewhere. Nothing is connected yet.
pub(super) fn begin(
    settings: &HelperSettings,
    links: BTreeMap<u8, Key>,
    policy: HelperPolicy,
    (stopping, service): (&Arc<Stopping>, &Arc<Service>),
) -> Result<Box<dyn Helpers>, CliError> {
    let (stopping, service) = (Arc::clone(stopping), Arc::clone(service));
    let helpers = Elsewhere::new(settings, links.into_iter(), policy, stopping, service);
    Ok(Box::new(helpers.map_err(CliError::Stopped)?))
}
