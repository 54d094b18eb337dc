//! Guarantees for rounds that are chosen, or runs that are stopped, depending on earlier releases.
//!
//! The figures of [`pld`](crate::pld) and of the other accountants are for a schedule fixed
//! beforehand. The messages of the devices may depend on the data, but the number of rounds, their
//! noise and their sampling may not. Otherwise:
//!
//! * **A run stopped early** is covered by the figure of its whole plan: omitting the rest of a
//!   fixed schedule is post-processing of all of it. The rounds so far have no separate figure if
//!   stopping may depend on the data.
//! * **A filter** ([`RenyiFilter`]) has a budget fixed beforehand, and admits any round that fits,
//!   however it was chosen: Feldman, Zrnic 2021 (arXiv:2008.11193). The budget is a Rényi
//!   divergence of one order α, which is fixed beforehand as well: the order with the smallest ε
//!   after the run would depend on the releases.
//! * **An odometer** ([`Odometer`]) needs no budget. For a round of divergence ρ(α) and any past,
//!   E[e^((α-1)ℓ)] ≤ e^((α-1)ρ) under P, ℓ its privacy loss. So with L and R the sums of losses and
//!   of divergences so far, e^((α-1)(L - R)) is a non-negative supermartingale, and by Ville's
//!   inequality `L ≤ R + ln(1/δ)/(α-1)` holds after all rounds at once except with probability δ.
//!   Several orders share δ. So at any stopping round, the loss is at most the ε that the odometer
//!   shows there, with probability 1 - δ (Rogers, Roth, Ullman, Vadhan 2016, arXiv:1605.08294;
//!   Whitehouse, Ramdas, Rogers, Wu 2023, arXiv:2203.05481).
//!
//! ```
//! use smolfed_accounting::{
//!     Accountant, Delta, Mechanism, NoiseMultiplier, PrivacyEvent, RenyiFilter, Sampling,
//! };
//!
//! let mechanism = Mechanism::Gaussian { noise_multiplier: NoiseMultiplier::new(8.0)? };
//! let plan = PrivacyEvent::new(mechanism, Sampling::full(100)?, 20);
//! let mut filter = RenyiFilter::of_plan(&[plan], Delta::new(1e-5)?)?;
//! // Fewer rounds than planned, then one with less noise: the budget is still that of the plan.
//! filter.charge(&plan.with_count(12))?;
//! filter.charge(&plan.with_count(1).with_noise_multiplier(NoiseMultiplier::new(3.0)?))?;
//! assert!(!filter.admits(&plan.with_count(8))?);
//! assert!(filter.epsilon() >= Accountant::Pld.epsilon(&[plan], Delta::new(1e-5)?)?.epsilon);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::accountant::{AccountingError, same_guarantee};
use crate::event::{Exposure, PrivacyEvent};
use crate::params::{Delta, Epsilon};
use crate::rdp::{Conversion, composed_rdp, rdp_epsilon};

/// The orders of an odometer. Each has an equal share of δ.
const ORDERS: [f64; 16] = [
    1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 11.0, 15.0, 20.0, 28.0, 40.0, 64.0, 128.0,
];
/// Candidate orders of a filter: uniform sampling has no fractional ones.
const FILTER_ORDERS: [f64; 24] = [
    1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0, 14.0, 16.0, 20.0,
    24.0, 32.0, 40.0, 48.0, 64.0, 96.0, 128.0,
];

/// The reason why a filter does not admit a round.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FilterError {
    /// The round would exceed the budget.
    #[error(
        "the budget of the Rényi filter is {budget:.6} at order {order}: {spent:.6} is spent and \
         this would add {asked:.6}"
    )]
    OverBudget {
        /// The order.
        order: f64,
        /// The budget.
        budget: f64,
        /// The divergence admitted before.
        spent: f64,
        /// The divergence of the round.
        asked: f64,
    },
    /// The round has another unit or adversary than earlier ones.
    #[error(transparent)]
    Accounting(#[from] AccountingError),
    /// No order has a budget for the target.
    #[error(
        "no Rényi filter keeps epsilon at or below {target} at delta = {delta:e}: at its orders, \
         epsilon without any release is {least:.4}"
    )]
    OutOfReach {
        /// The target ε.
        target: f64,
        /// δ.
        delta: f64,
        /// ε of a budget of 0.
        least: f64,
    },
}

/// A budget for rounds that are chosen adaptively.
#[derive(Debug, Clone)]
pub struct RenyiFilter {
    order: f64,
    budget: f64,
    spent: f64,
    delta: Delta,
    /// The first admitted event: all others must have the same guarantee.
    first: Option<PrivacyEvent>,
}

impl RenyiFilter {
    /// Creates the filter with the cost of `plan` as its budget, at the order with the smallest ε.
    ///
    /// # Errors
    /// [`FilterError::Accounting`] for a plan of events whose guarantees cannot be added.
    pub fn of_plan(plan: &[PrivacyEvent], delta: Delta) -> Result<Self, FilterError> {
        same_guarantee(plan)?;
        let exposures = exposures(plan);
        let found = rdp_epsilon(&exposures, delta, Conversion::Improved);
        // Without a release, and without noise, all orders are equally good.
        let order = if found.order.is_finite() {
            found.order
        } else {
            2.0
        };
        Ok(Self {
            order,
            budget: composed_rdp(&exposures, order),
            spent: 0.0,
            delta,
            first: None,
        })
    }

    /// Creates the filter with the largest number of rounds like `typical` within `target`. It may
    /// also admit other rounds.
    ///
    /// # Errors
    /// [`FilterError::OutOfReach`] if δ is too small for the target.
    pub fn for_epsilon(
        target: Epsilon,
        delta: Delta,
        typical: &PrivacyEvent,
    ) -> Result<Self, FilterError> {
        let round = exposures(&[typical.with_count(1)]);
        let budget = |order: f64| target.get() - Conversion::Improved.epsilon(0.0, order, delta);
        let share = |order: f64| budget(order) / composed_rdp(&round, order);
        let orders = FILTER_ORDERS
            .into_iter()
            .filter(|order| budget(*order) > 0.0);
        let best = orders.max_by(|a, b| share(*a).total_cmp(&share(*b)));
        let Some(order) = best else {
            let least = FILTER_ORDERS.map(|order| target.get() - budget(order));
            return Err(FilterError::OutOfReach {
                target: target.get(),
                delta: delta.get(),
                least: least.into_iter().fold(f64::INFINITY, f64::min),
            });
        };
        Ok(Self {
            order,
            // Rounded down, so that ε is at most the target.
            budget: (budget(order) - 4e-12 * target.get()).max(0.0),
            spent: 0.0,
            delta,
            first: None,
        })
    }

    /// Returns ε of everything that the filter admits, now or later. It is fixed beforehand, and
    /// proved for any adaptive choice of rounds.
    #[must_use]
    pub fn epsilon(&self) -> f64 {
        let epsilon = Conversion::Improved.epsilon(self.budget, self.order, self.delta);
        epsilon.max(0.0) * (1.0 + 1e-12)
    }

    /// Returns the Rényi order of the budget and of the spent divergence.
    #[must_use]
    pub const fn order(&self) -> f64 {
        self.order
    }

    /// Returns the budget, a Rényi divergence.
    #[must_use]
    pub const fn budget(&self) -> f64 {
        self.budget
    }

    /// Returns the admitted divergence so far.
    #[must_use]
    pub const fn spent(&self) -> f64 {
        self.spent
    }

    /// Returns whether `event` fits into the rest of the budget.
    ///
    /// # Errors
    /// [`FilterError::Accounting`] for an event whose guarantee cannot be added to the others.
    pub fn admits(&self, event: &PrivacyEvent) -> Result<bool, FilterError> {
        Ok(self.spent + self.cost(event)? <= self.budget)
    }

    /// Admits `event`. Call it before the release.
    ///
    /// # Errors
    /// [`FilterError::OverBudget`] if it does not fit. Nothing is admitted then.
    /// [`FilterError::Accounting`] as for [`Self::admits`].
    pub fn charge(&mut self, event: &PrivacyEvent) -> Result<(), FilterError> {
        let asked = self.cost(event)?;
        let total = self.spent + asked;
        // Also false for NaN.
        let fits = total <= self.budget;
        if !fits {
            return Err(FilterError::OverBudget {
                order: self.order,
                budget: self.budget,
                spent: self.spent,
                asked,
            });
        }
        self.spent = total;
        self.first = Some(self.first.unwrap_or(*event));
        Ok(())
    }

    fn cost(&self, event: &PrivacyEvent) -> Result<f64, FilterError> {
        if let Some(first) = self.first {
            same_guarantee(&[first, *event])?;
            if event.devices_per_user != first.devices_per_user {
                return Err(AccountingError::MixedUnit.into());
            }
        }
        Ok(composed_rdp(&[event.exposure()], self.order))
    }
}

/// The reading of an odometer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Odometer {
    /// An upper bound on the privacy loss so far, except with probability δ. Infinite without
    /// noise.
    pub epsilon: f64,
    /// The Rényi order of the bound.
    pub order: f64,
}

impl Odometer {
    /// Returns the reading after `events`. Each event may have been chosen, and the last one
    /// decided on, depending on all earlier ones.
    ///
    /// # Errors
    /// [`AccountingError`] for events whose guarantees cannot be added.
    pub fn read(events: &[PrivacyEvent], delta: Delta) -> Result<Self, AccountingError> {
        same_guarantee(events)?;
        let exposures = exposures(events);
        if exposures.iter().all(|exposure| exposure.count() == 0) {
            return Ok(Self {
                epsilon: 0.0,
                order: f64::INFINITY,
            });
        }
        let ln_share = (ORDERS.len() as f64).ln() - delta.get().ln();
        let reading = |order: f64| Self {
            epsilon: (composed_rdp(&exposures, order) + ln_share / (order - 1.0)) * (1.0 + 1e-12),
            order,
        };
        let none = Self {
            epsilon: f64::INFINITY,
            order: f64::INFINITY,
        };
        let least = |best: Self, next: Self| match next.epsilon < best.epsilon {
            true => next,
            false => best,
        };
        Ok(ORDERS.into_iter().map(reading).fold(none, least))
    }
}

fn exposures(events: &[PrivacyEvent]) -> Vec<Exposure> {
    let events = PrivacyEvent::about_same_users(events);
    events.iter().map(PrivacyEvent::exposure).collect()
}

#[cfg(test)]
mod tests;
