//! The files of the helpers of a fleet with masked updates (for each helper, keys apart from those
//! of the coordinator, and a ledger), and the options for their limits.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use smolfed_core::ledger::Limits;

use super::issue::Issued;
use super::output::Output;
use crate::cli::CliError;
use smolfed_engine::experiment::Experiment;
use smolfed_fleet::helper::file::HelperFile;
use smolfed_fleet::helper::ledger::HelperLedger;
use smolfed_fleet::helper::store::ledger_path;
use smolfed_fleet::keys::file::{KeyDigest, Secret};
use smolfed_release::entropy::secret;

/// Devices on a list, at least, unless the federation is smaller.
const DEFAULT_MIN_COHORT: u32 = 2;

/// Requirements of helpers, in addition to those of the experiment.
#[derive(Debug, Default, clap::Args)]
pub(in crate::cli) struct HelperArgs {
    /// Require at least N devices in each sum of a helper [default: 2].
    ///
    /// Each helper can require more.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    min_cohort: Option<u32>,
    /// Let each helper answer in at most N rounds [default: the experiment's].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    helper_rounds: Option<u32>,
}

/// The files of all helpers. Empty without masked updates.
pub(in crate::cli) struct HelperFiles {
    files: Vec<HelperFile>,
}

impl HelperFiles {
    /// Files without devices. `links` are those of an earlier provisioning, `devices` how many
    /// there will be.
    pub(in crate::cli) fn new(
        args: &HelperArgs,
        experiment: &Experiment,
        limits: &Limits,
        seed: Option<u64>,
        links: &BTreeMap<u8, Secret>,
        devices: usize,
    ) -> Result<Self, CliError> {
        let default = DEFAULT_MIN_COHORT.min(u32::try_from(devices).unwrap_or(u32::MAX));
        let min_cohort = args.min_cohort.unwrap_or(default);
        if min_cohort as usize > devices && args.min_cohort.is_some() {
            return Err(CliError::Usage(format!(
                "`--min-cohort {min_cohort}`: there are {devices} devices, so no round would be \
                 answered"
            )));
        }
        let Some(mut policy) = experiment.helper_policy(min_cohort) else {
            return match (args.min_cohort, args.helper_rounds) {
                (None, None) => Ok(Self { files: Vec::new() }),
                _ => Err(CliError::Usage(
                    "`--min-cohort` and `--helper-rounds` are for helpers, which need \
                     `privacy.trust` = \"distributed\""
                        .to_owned(),
                )),
            };
        };
        policy.max_rounds = args.helper_rounds.unwrap_or(policy.max_rounds);
        policy.participations = limits.budget.0;
        policy.separation = limits.separation.0;
        let file = |helper: u8| {
            let link = match links.get(&helper) {
                Some(link) => link.clone(),
                None => secret().map_err(|error| CliError::Stopped(error.to_string()))?,
            };
            Ok(HelperFile {
                helper,
                link,
                noise_seed: seed,
                policy: policy.clone(),
                keys: BTreeMap::new(),
                revoked: BTreeSet::new(),
            })
        };
        let files = (0..policy.helpers)
            .map(file)
            .collect::<Result<_, CliError>>()?;
        Ok(Self { files })
    }

    /// How many helpers there are.
    pub(in crate::cli) const fn count(&self) -> usize {
        self.files.len()
    }

    /// The key of the link to each helper, for the coordinator.
    pub(in crate::cli) fn links(&self) -> BTreeMap<u8, Secret> {
        let files = self.files.iter();
        files.map(|file| (file.helper, file.link.clone())).collect()
    }

    /// Adds the mask keys of a device.
    pub(in crate::cli) fn add(&mut self, issued: &Issued) {
        for file in &mut self.files {
            file.keys
                .insert(issued.device, issued.mask_key(file.helper));
        }
    }

    /// The names of the files in a folder, for so many helpers.
    pub(in crate::cli) fn paths(helpers: u8, folder: &Path) -> impl Iterator<Item = PathBuf> {
        let file = |helper| folder.join(format!("helper-{helper}.toml"));
        (0..helpers).map(file)
    }

    /// Writes the files, and a new ledger for each, if these are new helpers.
    pub(in crate::cli) fn write(
        &self,
        output: &mut Output<'_>,
        folder: &Path,
        are_new: bool,
    ) -> Result<(), CliError> {
        // At most 8.
        let paths = Self::paths(self.files.len() as u8, folder);
        for (file, path) in self.files.iter().zip(paths) {
            output.write_beside(&path, file.to_toml().as_bytes())?;
            if are_new {
                let keys = file.keys.iter();
                let digests = keys.map(|(device, key)| (*device, KeyDigest::of(key)));
                output.write_beside(&ledger_path(&path), &HelperLedger::begin(digests))?;
            }
        }
        Ok(())
    }
}
