//! Where the devices and the randomness of a run come from, and what tells it from others of the same
//! experiment.

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
        /// Tells the run from others of the same experiment: what devices send is not known before.
        id: String,
        /// The seed of the coordinator's randomness; `None` if that is secret and new.
        seed: Option<u64>,
        /// The seed of the devices' own randomness, if they were provisioned with one.
        device_seed: Option<u64>,
        /// Devices that are simulated.
        simulated: u32,
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

    /// What a reader of the privacy statement must know about it.
    pub(super) fn notes(&self, seed: u64, is_local: bool) -> Vec<String> {
        let simulation = format!(
            "This was a simulation with the known seed {seed}: who knows the seed can subtract the \
             noise. The statement holds for a run with secret randomness."
        );
        match self {
            Self::Simulation => vec![simulation],
            Self::Replay { .. } => vec![
                simulation,
                "The cohorts and the devices that did not answer are those of a record, not drawn \
                 anew."
                    .to_owned(),
            ],
            Self::Fleet {
                seed,
                device_seed,
                simulated,
                ..
            } => {
                let mut notes = vec![match is_local {
                    true => of_devices(*device_seed),
                    false => of_coordinator(*seed),
                }];
                if !is_local {
                    notes.push(
                        "Updates crossed the lines without noise: the statement holds against those \
                         who saw them only if the lines were encrypted or locked away."
                            .to_owned(),
                    );
                }
                if *simulated > 0 {
                    notes.push(format!(
                        "{simulated} of the devices were simulated by the coordinator and hide nobody."
                    ));
                }
                notes.push(
                    "Who was drawn and who answered is not covered: keep participation.jsonl, \
                     devices.json and the log secret, and with Poisson sampling the sizes of cohorts \
                     in metrics.jsonl and the report. Whoever watches the lines sees it from the \
                     traffic."
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
            "The real devices' noise follows from the known seed {seed}: who knows the seed can \
             subtract it."
        ),
        None => {
            "Each real device adds its noise from a secret of its own, which never leaves it; that \
                 it does is what its firmware answers for."
                .to_owned()
        }
    }
}

fn of_coordinator(seed: Option<u64>) -> String {
    match seed {
        Some(seed) => format!(
            "The coordinator's randomness came from the known seed {seed}: who knows the seed can \
             subtract the noise."
        ),
        None => "The coordinator's randomness came from the operating system and was not kept."
            .to_owned(),
    }
}
