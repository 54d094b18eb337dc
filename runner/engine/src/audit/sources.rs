//! The sources that an audit attacks, each with the code that runs have: devices of a simulation in
//! one process, and on several ranks. Another crate may have more.

use crate::audit::canaries::Canaries;
use crate::audit::error::TargetError;
use crate::experiment::Experiment;
use crate::source::Source;
use crate::source::ranks::{Ranks, follow};
use crate::source::simulated::Simulated;
use smolfed_data::federation::Federation;
use smolfed_release::communicator::threads;

/// Ranks, which are threads of this process.
const RANKS: usize = 3;

/// The rounds of a run, which need a source.
pub type Rounds<'a> = dyn FnMut(&mut dyn Source) -> Result<(), TargetError> + 'a;

/// A kind of source that an audit attacks.
pub trait AuditedSource: std::fmt::Debug + Sync {
    /// How often a run with devices of a simulation takes place in the time of one with this
    /// source, about: an audit by default has so many fewer of them.
    fn slowness(&self) -> u32;

    /// Whether it can run this experiment.
    fn fits(&self, _: &Experiment) -> bool {
        true
    }

    /// Makes a source for one run of this experiment, whose seed is that of all randomness and
    /// whose method is that of the canaries, and has its rounds run with it.
    ///
    /// # Errors
    /// Those of the rounds.
    fn run(
        &self,
        experiment: &Experiment,
        canaries: &Canaries,
        federation: &Federation,
        rounds: &mut Rounds<'_>,
    ) -> Result<(), TargetError>;
}

/// Devices of a simulation in one process.
#[derive(Clone, Copy, Debug)]
pub struct SimulatedDevices;

impl AuditedSource for SimulatedDevices {
    fn slowness(&self) -> u32 {
        1
    }

    fn run(
        &self,
        _: &Experiment,
        _: &Canaries,
        federation: &Federation,
        rounds: &mut Rounds<'_>,
    ) -> Result<(), TargetError> {
        rounds(&mut Simulated(federation))
    }
}

/// Devices of a simulation on several ranks.
#[derive(Clone, Copy, Debug)]
pub struct RankedDevices;

impl AuditedSource for RankedDevices {
    fn slowness(&self) -> u32 {
        20
    }

    fn run(
        &self,
        experiment: &Experiment,
        _: &Canaries,
        federation: &Federation,
        rounds: &mut Rounds<'_>,
    ) -> Result<(), TargetError> {
        threads::lead(
            RANKS,
            |ranks| rounds(&mut Ranks::lead(federation, ranks)),
            |ranks| {
                // Those of the caller may all wait for this rank.
                let threads = rayon::ThreadPoolBuilder::new().num_threads(1).build();
                if let Ok(threads) = threads {
                    // Rank 0 notices a rank that has ended, and fails.
                    let _ = threads.install(|| follow(experiment, federation, ranks));
                }
            },
        )
    }
}
