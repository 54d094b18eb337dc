//! The limit on ε (privacy budget) during a run: no round starts that would exceed it, and the
//! message names the round and its ε.

use smolfed_accounting::{Accountant, AccountingError, Delta, PrivacyEvent};

use smolfed_release::number::upper;
use smolfed_release::plan::PrivacyPlan;

/// Maximum number of rounds at which a run computes ε.
const MILESTONES: u32 = 64;

/// Why a round may not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BudgetError {
    /// The next round would cost more than the budget.
    #[error(
        "round {round} would raise epsilon to {}, above the limit of {budget} (at delta = {}, by \
         `{accountant}`): the run stops before it",
        upper(*epsilon, 5),
        upper(delta.get(), 4)
    )]
    OverBudget {
        /// The round.
        round: u32,
        /// ε after it.
        epsilon: f64,
        /// The limit.
        budget: f64,
        /// δ of both.
        delta: Delta,
        /// The accountant.
        accountant: Accountant,
    },
    /// The accountant has no figure.
    #[error(transparent)]
    Accounting(#[from] AccountingError),
}

/// Expenses of the rounds of a run.
pub struct Budget {
    privacy: PrivacyPlan,
    /// T.
    rounds: u32,
    /// Last computed ε, after this number of rounds.
    known: Option<(u32, f64)>,
}

impl Budget {
    /// Creates the budget of a run of `rounds` rounds. `repeated` are the events charged once more.
    #[must_use]
    pub fn new(privacy: &PrivacyPlan, rounds: u32, repeated: &[PrivacyEvent]) -> Self {
        Self {
            privacy: privacy.with_repeated(repeated),
            rounds,
            known: None,
        }
    }

    /// Returns ε after `round`, which may start.
    ///
    /// # Errors
    /// [`BudgetError`]: the round must not start.
    pub fn before(&mut self, round: u32) -> Result<f64, BudgetError> {
        let epsilon = self.epsilon_after(round + 1)?;
        let privacy = &self.privacy;
        match privacy.budget.filter(|budget| epsilon > budget.get()) {
            None => Ok(epsilon),
            Some(budget) => Err(BudgetError::OverBudget {
                round,
                epsilon,
                budget: budget.get(),
                delta: privacy.delta,
                accountant: privacy.accountant,
            }),
        }
    }

    /// Returns ε after `rounds` rounds. It is exact in short runs. In long ones it is the value of
    /// the next of at most 64 milestones, which is no less, so accounting does not slow the rounds
    /// down.
    ///
    /// # Errors
    /// [`AccountingError`] if the accountant has no figure.
    pub fn epsilon_after(&mut self, rounds: u32) -> Result<f64, AccountingError> {
        let step = self.rounds.div_ceil(MILESTONES).max(1);
        let milestone = rounds.div_ceil(step).saturating_mul(step).min(self.rounds);
        let epsilon = match self.known {
            Some((at, epsilon)) if at == milestone => epsilon,
            _ => self.privacy.estimate(u64::from(milestone))?.epsilon,
        };
        self.known = Some((milestone, epsilon));
        let budget = self.privacy.budget;
        if budget.is_some_and(|budget| epsilon > budget.get()) {
            // The next milestone is too far, but this round may not be.
            return Ok(self.privacy.estimate(u64::from(rounds))?.epsilon);
        }
        Ok(epsilon)
    }
}

#[cfg(test)]
mod tests {
    use smolfed_accounting::event::{Mechanism, Sampling};
    use smolfed_accounting::params::{Epsilon, NoiseMultiplier, SamplingRate};

    use super::*;

    fn plan() -> PrivacyPlan {
        let sampling = Sampling::poisson(1_000, SamplingRate::new(0.05).unwrap()).unwrap();
        let noise_multiplier = NoiseMultiplier::new(1.0).unwrap();
        let event = PrivacyEvent::new(Mechanism::Gaussian { noise_multiplier }, sampling, 1);
        let delta = Delta::new(1e-5).unwrap();
        PrivacyPlan::new(event, delta, Some(Accountant::Rdp), Vec::new())
    }

    fn epsilon(rounds: u32) -> f64 {
        plan().estimate(u64::from(rounds)).unwrap().epsilon
    }

    /// The exact expense stays within the limit, also between two milestones.
    #[test]
    fn rounds_begin_up_to_the_limit_and_none_beyond_it() {
        for (rounds, within) in [(8, 5), (640, 10), (640, 15)] {
            let mut plan = plan();
            plan.budget = Some(Epsilon::new(epsilon(within)).unwrap());
            let mut budget = Budget::new(&plan, rounds, &[]);
            for round in 0..within {
                assert!(budget.before(round).is_ok(), "{round} of {within}");
            }
            let beyond = budget.before(within);
            assert!(
                matches!(beyond, Err(BudgetError::OverBudget { round, .. }) if round == within),
                "{beyond:?}"
            );
        }
    }

    #[test]
    fn long_runs_state_the_epsilon_of_the_next_milestone_that_is_within_the_limit() {
        let mut plan = plan();
        plan.budget = Some(Epsilon::new(epsilon(20)).unwrap());
        let mut budget = Budget::new(&plan, 640, &[]);
        for (rounds, stated) in [(1, 10), (10, 10), (11, 20), (20, 20), (21, 21), (30, 30)] {
            assert_eq!(budget.epsilon_after(rounds).unwrap(), epsilon(stated));
        }
    }
}
