//! Where the devices and the randomness of a run come from, and what distinguishes it from other
//! runs of the same experiment.

use smolfed_accounting::TrustModel;

/// Where the devices and the randomness of a run come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// All devices are simulated, everything follows from the experiment's seed.
    #[default]
    Simulation,
    /// The same, with the cohorts and drop-outs of a record.
    Replay {
        /// Names the record.
        id: String,
    },
    /// Some devices, or all, are real.
    Fleet {
        /// Distinguishes the run from others of the same experiment: what devices will send is not
        /// known beforehand.
        id: String,
        /// The seed of the coordinator's randomness; `None` if that is secret and new.
        seed: Option<u64>,
        /// The seed of the devices' own randomness, if they were provisioned with one.
        device_seed: Option<u64>,
        /// Devices that are simulated.
        simulated: u32,
        /// Whether a round ends when a share of its cohort has answered.
        has_quorum: bool,
    },
}

impl Origin {
    /// What follows the fingerprint in the run's name.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        match self {
            Self::Simulation => None,
            Self::Replay { id } | Self::Fleet { id, .. } => Some(id),
        }
    }

    /// The seed that the noise follows from, if somebody can know it.
    #[must_use]
    pub const fn seed(&self, of_experiment: u64) -> Option<u64> {
        match self {
            Self::Simulation | Self::Replay { .. } => Some(of_experiment),
            Self::Fleet { seed, .. } => *seed,
        }
    }

    /// Notes of the privacy statement about it.
    #[must_use]
    pub fn notes(&self, seed: u64, trust: TrustModel) -> Vec<String> {
        let is_local = trust == TrustModel::Local;
        let is_masked = matches!(trust, TrustModel::Distributed(_));
        let simulation = format!(
            "This was a simulation with the known seed {seed}: anyone who knows the seed can \
             subtract the noise. The statement holds for a run with secret randomness."
        );
        match self {
            Self::Simulation => vec![simulation],
            Self::Replay { .. } => vec![
                simulation,
                "The cohorts and the devices that did not answer were taken from a record, not \
                 drawn anew."
                    .to_owned(),
            ],
            Self::Fleet {
                seed,
                device_seed,
                simulated,
                has_quorum,
                ..
            } => {
                let mut notes = vec![match is_local {
                    true => of_devices(*device_seed),
                    false => of_coordinator(*seed),
                }];
                if is_masked {
                    notes.push(of_masks(*device_seed));
                } else if !is_local {
                    notes.push(
                        "Updates were sent without noise and encrypted: against anyone with access \
                         to the connections, the statement holds as long as the keys of the \
                         devices and of the coordinator are secret."
                            .to_owned(),
                    );
                }
                if *simulated > 0 {
                    notes.push(of_simulated(*simulated, is_masked));
                }
                notes.push(
                    "Devices that did not answer count as zero updates: neither the denominator \
                     nor the accounting depends on them."
                        .to_owned(),
                );
                if !is_local {
                    notes.push(
                        "The statement assumes that whether and when a device answers does not \
                         depend on the data of other devices."
                            .to_owned(),
                    );
                }
                if *has_quorum && !is_local {
                    notes.push(
                        "Rounds ended when a share of the cohort had answered: a device that \
                         answers early displaces another one, which moves a sum by no more than \
                         replacing a device does."
                            .to_owned(),
                    );
                }
                notes.push(
                    "The statement does not cover which devices were drawn and which answered: \
                     keep participation.jsonl, devices.json and the log secret, and with Poisson \
                     or block-cyclic sampling also the cohort sizes in metrics.jsonl and the \
                     report. Anyone who observes the traffic learns it as well."
                        .to_owned(),
                );
                notes
            }
        }
    }
}

fn of_devices(seed: Option<u64>) -> String {
    match seed {
        Some(seed) => format!(
            "The noise of the real devices is derived from the known seed {seed}: anyone who knows \
             the seed can subtract it."
        ),
        None => {
            "Each real device draws its noise from its own secret, which never leaves it; this \
                 relies on its firmware."
                .to_owned()
        }
    }
}

/// What the secrecy of masks rests on, in a fleet.
fn of_masks(seed: Option<u64>) -> String {
    match seed {
        Some(seed) => format!(
            "The masks of the real devices and the noise of the helpers are derived from the known \
             seed {seed}: anyone who knows the seed reads every masked update."
        ),
        None => "The mask keys of the real devices and of the helpers were made by whoever \
                 provisioned them, who is trusted to have kept none."
            .to_owned(),
    }
}

fn of_simulated(simulated: u32, is_masked: bool) -> String {
    match is_masked {
        true => format!(
            "{simulated} of the devices were simulated by the coordinator: their updates have no \
             masks, count for the minimum cohort of no helper, and add no anonymity."
        ),
        false => format!(
            "{simulated} of the devices were simulated by the coordinator and add no anonymity."
        ),
    }
}

fn of_coordinator(seed: Option<u64>) -> String {
    match seed {
        Some(seed) => format!(
            "The coordinator's randomness came from the known seed {seed}: anyone who knows the \
             seed can subtract the noise."
        ),
        None => "The coordinator's randomness came from the operating system and was not kept."
            .to_owned(),
    }
}
