//! The key, the record and the new ledger of one device, and the options for the limits in the
//! record, such as participations.

use std::collections::BTreeSet;
use std::path::Path;

use smolfed_core::crypto::Key;
use smolfed_core::crypto::kdf::Kdf;
use smolfed_core::ledger::{Budget, Limits, MaxJump, Separation};
use smolfed_core::mask::MaskRoot;
use smolfed_core::provision::{self, ProvisionError};
use smolfed_core::session::{Policy, QuestionPolicy, STEPS_PER_EPOCH};
use smolfed_core::stream::Root;
use smolfed_core::{Identity, NoiseMultiplier};
use zeroize::Zeroizing;

use super::answers::AnswerArgs;
use super::noise::{device_noise, rounded_down};
use super::raw::Raw;
use super::record::record;
use crate::cli::CliError;
use smolfed_data::{DataFolders, Federation};
use smolfed_engine::config::Override;
use smolfed_engine::experiment::Experiment;
use smolfed_fleet::device::flash::SIZE;
use smolfed_fleet::device::image::new_ledger;
use smolfed_fleet::keys::file::Secret;
use smolfed_fleet::source::tuning::fine_tuning;
use smolfed_release::entropy::secret;

/// Contents of the records of devices.
#[derive(Clone, Debug, clap::Args)]
pub(in crate::cli) struct DeviceArgs {
    /// Include each device's share of the experiment's data, for tests and demonstrations.
    #[arg(long)]
    with_data: bool,
    /// Write records for firmware that computes features itself.
    ///
    /// A record then names the features that the experiment computes, and with --with-data it
    /// contains pixels from 0 to 255.
    #[arg(long)]
    raw: bool,
    /// Allow each device at most N participations in its lifetime.
    ///
    /// By default, N is the experiment's number of rounds plus its number of answers or, with
    /// correlated noise, its number of participations.
    #[arg(
        long,
        value_name = "N",
        visible_alias = "participations",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    budget: Option<u32>,
    /// Keep a device's participations at least N rounds of the fleet apart.
    ///
    /// With 1, the device may take part in every round, and with 342, in at most one of any 342
    /// consecutive rounds. The default is 1 or, with correlated noise, the experiment's separation,
    /// which is also the minimum.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    separation: Option<u32>,
    /// Accept rounds up to N rounds ahead of the device's ledger.
    ///
    /// The limit prevents one message from using up the round numbers of the device. The default is
    /// 65536, or less for budgets above 65535.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_jump: Option<u32>,
    /// Let the devices greet the coordinator under changing pseudonyms.
    ///
    /// Someone who observes the connection then does not learn their numbers.
    #[arg(long)]
    hide_number: bool,
    /// Keep the secrets of the devices in secure elements.
    ///
    /// You then write the content of device-K.element into the element of device K. The record
    /// contains neither the key nor the root of the device.
    #[arg(long)]
    pub(in crate::cli) element: bool,
    #[command(flatten)]
    answers: AnswerArgs,
    /// Set a key of the experiment, for example data.devices=200 (repeatable).
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(in crate::cli) overrides: Vec<Override>,
}

/// What one device is given.
pub(in crate::cli) struct Issued {
    /// Its number.
    pub(in crate::cli) device: u32,
    /// Its key, which the coordinator gets as well.
    pub(in crate::cli) key: Secret,
    /// Its record, which has its limits and, unless an element has them, the key and the root of
    /// its random streams.
    pub(in crate::cli) record: Zeroizing<Vec<u8>>,
    /// A new ledger.
    pub(in crate::cli) ledger: [u8; SIZE],
    /// What its secure element gets, if it has one: root and first chain key.
    pub(in crate::cli) element: Option<Zeroizing<[u8; 64]>>,
    /// What its masks derive from: for the keys of helpers.
    masks: MaskRoot,
}

impl Issued {
    /// The device, if its secrets are in an element.
    pub(in crate::cli) fn in_element(&self) -> BTreeSet<u32> {
        self.element.iter().map(|_| self.device).collect()
    }

    /// What the device shares with this helper.
    pub(in crate::cli) fn mask_key(&self, helper: u8) -> Secret {
        Zeroizing::new(*self.masks.helper(helper).secret())
    }
}

/// Gives devices their secrets.
pub(in crate::cli) struct Issuer<'a> {
    experiment: &'a Experiment,
    data: Option<&'a Federation>,
    /// What takes the place of the data for firmware that computes features.
    raw: Option<Raw>,
    policy: Policy,
    questions: QuestionPolicy,
    seed: Option<u64>,
    element: bool,
}

impl<'a> Issuer<'a> {
    /// For the devices of an experiment. A `seed` is for their random streams.
    pub(in crate::cli) fn new(
        args: &DeviceArgs,
        (experiment, federation): (&'a Experiment, &'a Federation),
        file: Option<&Path>,
        seed: Option<u64>,
    ) -> Result<Self, CliError> {
        let folders = DataFolders::of_experiment(file);
        let raw = || Raw::new(experiment, federation, &folders, args.with_data);
        Ok(Self {
            experiment,
            data: (args.with_data && !args.raw).then_some(federation),
            raw: args.raw.then(raw).transpose()?,
            policy: policy(args, experiment)?,
            questions: args.answers.of_experiment(experiment)?,
            seed,
            element: args.element,
        })
    }

    /// How often, how far apart and how far ahead a device takes part.
    pub(in crate::cli) const fn limits(&self) -> &Limits {
        &self.policy.limits
    }

    /// New secrets from the operating system.
    pub(in crate::cli) fn issue(&self, device: u32) -> Result<Issued, CliError> {
        let random = || secret().map_err(|error| CliError::Stopped(error.to_string()));
        let key = random()?;
        let secret = random()?;
        let root = match self.seed {
            Some(seed) => Root::from_seed(seed),
            None => Root::from_secret(*secret),
        };
        let nonce = random()?.first_chunk().copied().unwrap_or_default();
        let kdf = match self.element {
            true => Kdf::HkdfSha256,
            false => Kdf::HChaCha20,
        };
        let masks = MaskRoot::with_kdf(&root, device, kdf);
        let identity = Identity { device, root };
        let mut first = Key::from_secret(*key);
        let task = self.experiment.task();
        let record = match &self.raw {
            Some(raw) => raw.record(&identity, &first, &self.policy, task),
            None => record(&identity, &first, &self.policy, task, self.data)
                .map_err(|error| CliError::Usage(format!("device {device}: {error}"))),
        };
        let mut record = record.map(Zeroizing::new)?;
        self.allow_questions(&mut record)
            .map_err(|error| CliError::Stopped(format!("device {device}: {error}")))?;
        let element = self.element.then(|| {
            let mut bytes = Zeroizing::new([0; 64]);
            let (root, chain) = bytes.split_at_mut(32);
            root.copy_from_slice(&*secret);
            chain.copy_from_slice(&*key);
            bytes
        });
        if element.is_some() {
            first = provision::leave_to_element(&mut record)
                .map_err(|error| CliError::Stopped(format!("device {device}: {error}")))?;
        }
        let ledger = new_ledger(nonce, first).map_err(|error| {
            CliError::Stopped(format!("the ledger of device {device}: {error}"))
        })?;
        Ok(Issued {
            device,
            key,
            record,
            ledger,
            element,
            masks,
        })
    }
}

impl Issuer<'_> {
    /// Writes which questions a device answers into its record.
    fn allow_questions(&self, record: &mut Zeroizing<Vec<u8>>) -> Result<(), ProvisionError> {
        if self.questions == QuestionPolicy::NONE {
            return Ok(());
        }
        // Not in its place: what a vector leaves behind when it grows is not wiped.
        let mut page = Zeroizing::new(vec![0; record.len() + provision::QUESTION_BYTES]);
        page.iter_mut()
            .zip(record.iter())
            .for_each(|(to, byte)| *to = *byte);
        provision::allow_questions(&mut page, &self.questions)?;
        *record = page;
        Ok(())
    }
}

fn policy(args: &DeviceArgs, experiment: &Experiment) -> Result<Policy, CliError> {
    let privacy = experiment.privacy();
    let noise = match privacy.mechanism.is_local() {
        true => device_noise(&privacy.event().mechanism),
        false => NoiseMultiplier::NONE,
    };
    let policy = |limits| Policy {
        limits,
        min_noise_multiplier: noise,
        min_matrix_noise_multiplier: matrix_noise(experiment),
        max_epochs: max_epochs(experiment),
        hides_number: args.hide_number,
        helpers: experiment.release().masking.map_or(0, |x| x.helpers),
    };
    limits(args, experiment).map(policy)
}

/// The noise multiplier of correlation matrices, a millionth below that of the experiment: the
/// noise of a device is a fraction of integers near it.
fn matrix_noise(experiment: &Experiment) -> NoiseMultiplier {
    let message = experiment.method().second_message();
    let multiplier = message.map_or(0.0, |message| message.of_unit.multiplier().get());
    rounded_down(multiplier * (1.0 - 1e-6))
}

/// Maximum epochs of a round, raised where the experiment's steps or its fine-tuning need more.
fn max_epochs(experiment: &Experiment) -> u32 {
    let request = experiment.method().properties().personal_request();
    let steps = request.and_then(|request| request.steps);
    let in_epochs = steps.map_or(0, |steps| steps.get().div_ceil(STEPS_PER_EPOCH));
    let tuning = fine_tuning(experiment).map_or(0, |(_, epochs)| epochs);
    experiment.training().epochs.max(in_epochs).max(tuning)
}

/// How often, how far apart and how far ahead a device takes part.
fn limits(args: &DeviceArgs, experiment: &Experiment) -> Result<Limits, CliError> {
    let (participations, least) = match experiment.allowed() {
        // The ledger counts the versions that a device trains from, and the windows in which its
        // updates count are up to s closer together.
        Some(counted_on) => {
            let least = counted_on.separation() + experiment.staleness();
            (counted_on.participations(), least)
        }
        None => {
            // Fine-tuning is one more, and so is each answer.
            let tuning = u32::from(fine_tuning(experiment).is_some());
            let answers = args.answers.of_experiment(experiment)?.max_answers;
            let rounds = experiment.config().rounds.saturating_add(tuning);
            let rounds = rounds.saturating_add(answers);
            (rounds, Separation::NONE.0)
        }
    };
    let budget = args.budget.unwrap_or(participations);
    let separation = args.separation.unwrap_or(least);
    if separation < least {
        return Err(CliError::Usage(format!(
            "`--separation {separation}`: the experiment's ε assumes devices whose rounds are at \
             least {least} apart; leave it out, or give {least} or more"
        )));
    }
    // At most as far that the numbers outlast the budget, whatever rounds the device is invited to.
    let outlasting = (u32::MAX / budget.max(1)).saturating_sub(1).max(1);
    let max_jump = args
        .max_jump
        .unwrap_or_else(|| MaxJump::DEFAULT.0.min(outlasting));
    // The next round of a device is its separation less 1 ahead of its ledger.
    let nearest = separation - 1;
    if nearest > max_jump {
        return Err(CliError::Usage(format!(
            "`--separation {separation}`: a device that accepts rounds up to {max_jump} numbers \
             ahead would take part once; at most {} is possible with `--max-jump {max_jump}`",
            u64::from(max_jump) + 1
        )));
    }
    Ok(Limits {
        budget: Budget(budget),
        separation: Separation(separation),
        max_jump: MaxJump(max_jump),
    })
}
