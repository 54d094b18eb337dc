//! The sources under attack, each with the code of ordinary runs: simulated devices in one process,
//! and on several ranks. Other crates may add more.

use crate::audit::canaries::Canaries;
use crate::audit::error::TargetError;
use crate::experiment::Experiment;
use crate::source::Source;
use crate::source::ranks::{Ranks, follow};
use crate::source::simulated::Simulated;
use smolfed_data::federation::Federation;
use smolfed_release::communicator::threads;

/// Number of ranks, which are threads of this process.
const RANKS: usize = 3;

/// The rounds of a run, given a source.
pub type Rounds<'a> = dyn FnMut(&mut dyn Source) -> Result<(), TargetError> + 'a;

/// A kind of source to audit.
pub trait AuditedSource: std::fmt::Debug + Sync {
    /// Returns the approximate run time, relative to simulated devices in one process. An audit
    /// makes that many times fewer runs by default.
    fn slowness(&self) -> u32;

    /// Returns whether it can run this experiment.
    fn fits(&self, _: &Experiment) -> bool {
        true
    }

    /// Makes a source for one run of this experiment and runs the rounds with it. The experiment
    /// has the seed of all randomness and the method of the canaries.
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

/// Simulated devices in one process.
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

/// Simulated devices on several ranks.
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
                // The caller's threads may all be waiting for this rank.
                let threads = rayon::ThreadPoolBuilder::new().num_threads(1).build();
                if let Ok(threads) = threads {
                    // Rank 0 notices a failed rank, and fails.
                    let _ = threads.install(|| follow(experiment, federation, ranks));
                }
            },
        )
    }
}
