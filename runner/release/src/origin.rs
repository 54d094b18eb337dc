//! The origin of a run's devices and randomness, which also distinguishes the run from other runs
//! of the same experiment.

use smolfed_accounting::TrustModel;

use crate::condition::{Condition, Randomness};

/// The origin of a run's devices and randomness.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// All devices are simulated. All randomness follows from the experiment's seed.
    #[default]
    Simulation,
    /// A simulation with the recorded cohorts and drop-outs of another run.
    Replay {
        /// The name of the record.
        id: String,
    },
    /// Some or all devices are real.
    Fleet {
        /// Distinguishes the run from other runs of the same experiment: the updates of devices are
        /// not known beforehand.
        id: String,
        /// The seed of the coordinator's randomness. `None` if it is secret and new.
        seed: Option<u64>,
        /// The seed of the devices' own randomness, if they were provisioned with one.
        device_seed: Option<u64>,
        /// Number of simulated devices.
        simulated: u32,
        /// Whether a round ends when a share of its cohort has answered.
        has_quorum: bool,
    },
}

impl Origin {
    /// Returns whether all devices are simulated.
    #[must_use]
    pub const fn is_simulation(&self) -> bool {
        match self {
            Self::Simulation | Self::Replay { .. } => true,
            Self::Fleet { .. } => false,
        }
    }

    /// Returns the suffix of the fingerprint in the run's name.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        match self {
            Self::Simulation => None,
            Self::Replay { id } | Self::Fleet { id, .. } => Some(id),
        }
    }

    /// Returns the seed of the noise, if somebody can know it. For a simulation it is the seed of
    /// its experiment.
    #[must_use]
    pub const fn seed(&self, of_experiment: Option<u64>) -> Option<u64> {
        match self {
            Self::Simulation | Self::Replay { .. } => of_experiment,
            Self::Fleet { seed, .. } => *seed,
        }
    }

    /// Returns conditions for the seeds that somebody can know. `seed` is the seed of the
    /// experiment. `None` if it is secret.
    pub fn conditions(
        &self,
        seed: Option<u64>,
        trust: TrustModel,
    ) -> impl Iterator<Item = Condition> + use<> {
        let seeds = match (self, trust) {
            (Self::Simulation | Self::Replay { .. }, _) => {
                [seed.map(|seed| (Randomness::Simulation, seed)), None]
            }
            // The coordinator draws the noise of the devices that it simulates.
            (
                Self::Fleet {
                    seed,
                    device_seed,
                    simulated,
                    ..
                },
                TrustModel::Local,
            ) => {
                let of_simulated = seed.filter(|_| *simulated > 0);
                [
                    device_seed.map(|seed| (Randomness::Devices, seed)),
                    of_simulated.map(|seed| (Randomness::Coordinator, seed)),
                ]
            }
            (
                Self::Fleet {
                    seed, device_seed, ..
                },
                trust,
            ) => {
                let is_masked = matches!(trust, TrustModel::Distributed(_));
                let of_masks = device_seed.filter(|_| is_masked);
                [
                    seed.map(|seed| (Randomness::Coordinator, seed)),
                    of_masks.map(|seed| (Randomness::Masks, seed)),
                ]
            }
        };
        let known = seeds.into_iter().flatten();
        known.map(|(of, seed)| Condition::KnownSeed { seed, of })
    }

    /// Returns the notes of the privacy statement about the origin. `seed` is the seed of the
    /// experiment, or `None` if it is secret. With `sends_matrices`, devices add noise to
    /// correlation matrices under any trust model.
    #[must_use]
    pub fn notes(&self, seed: Option<u64>, trust: TrustModel, sends_matrices: bool) -> Vec<String> {
        let is_local = trust == TrustModel::Local;
        let is_masked = matches!(trust, TrustModel::Distributed(_));
        let simulation = seed.is_none().then(|| OF_SIMULATION.to_owned());
        match self {
            Self::Simulation => simulation.into_iter().collect(),
            Self::Replay { .. } => {
                let record = "The cohorts and the devices that did not answer were taken from a \
                              record, not drawn again.";
                simulation.into_iter().chain([record.to_owned()]).collect()
            }
            Self::Fleet {
                seed,
                device_seed,
                simulated,
                has_quorum,
                ..
            } => {
                let is_by_coordinator = !is_local || *simulated > 0;
                let secrets = [
                    (is_local && device_seed.is_none()).then_some(OF_DEVICES),
                    (sends_matrices && device_seed.is_none()).then_some(OF_MATRICES),
                    (is_by_coordinator && seed.is_none()).then_some(OF_COORDINATOR),
                    (is_masked && device_seed.is_none()).then_some(OF_MASKS),
                ];
                let secrets = secrets.into_iter().flatten();
                let mut notes: Vec<String> = secrets.map(str::to_owned).collect();
                if !is_local && !is_masked {
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
                notes.push(OF_PRESENCE.to_owned());
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
                     keep participation.jsonl, answers.jsonl, devices.json and the log secret, and \
                     with Poisson or block-cyclic sampling also the cohort sizes in metrics.jsonl \
                     and the report. Anyone who observes the traffic learns it as well."
                        .to_owned(),
                );
                notes
            }
        }
    }
}

const OF_DEVICES: &str = "Each real device draws its noise from its own secret, which never \
    leaves it; this relies on its firmware.";

const OF_MATRICES: &str = "Each real device draws the noise of its correlation matrices from its \
    own secret, which never leaves it; this relies on its firmware.";

const OF_COORDINATOR: &str = "The coordinator's randomness came from the operating system and was \
    not kept.";

const OF_PRESENCE: &str = "A round begins once the previous one has ended and enough devices are \
    connected. The statement does not cover when rounds begin or when devices are connected. It \
    assumes that connections depend neither on data nor on who was drawn.";

const OF_SIMULATION: &str = "This was a simulation. Its cohorts and its noise came from the \
    operating system's randomness, which was not kept.";

/// The assumption behind the secrecy of masks in a fleet.
const OF_MASKS: &str = "The mask keys of the real devices and of the helpers were made by the \
    party that provisioned them, which is trusted to have kept none.";

fn of_simulated(simulated: u32, is_masked: bool) -> String {
    match is_masked {
        true => format!(
            "{simulated} of the devices were simulated by the coordinator: their updates have no \
             masks, do not count towards a helper's minimum cohort, and add no anonymity."
        ),
        false => format!(
            "{simulated} of the devices were simulated by the coordinator and add no anonymity."
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Devices draw the noise under local trust, and the coordinator that of those it simulates.
    #[test]
    fn local_noise_depends_on_the_seeds_of_all_who_draw_it() {
        let found = |simulated| {
            let fleet = Origin::Fleet {
                id: "a".to_owned(),
                seed: Some(7),
                device_seed: Some(9),
                simulated,
                has_quorum: false,
            };
            let found = fleet.conditions(None, TrustModel::Local);
            found.collect::<Vec<_>>()
        };
        let seed = |of, seed| Condition::KnownSeed { seed, of };
        let (devices, simulated) = (
            seed(Randomness::Devices, 9),
            seed(Randomness::Coordinator, 7),
        );
        let both = [devices, simulated];
        assert_eq!(found(0), both[..1]);
        assert_eq!(found(3), both);
    }
}
