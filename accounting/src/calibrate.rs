//! Calibration: the noise, the rounds or the cohort for a target ε.
//!
//! ε falls with the noise and grows with the rounds and the cohort, so each is found by a
//! bracketing root finder. The result never exceeds the target. The ε of the noise is within
//! [`TOLERANCE`] below it.

mod search;

pub use search::TOLERANCE;

use crate::accountant::{Accountant, AccountingError, Estimate};
use crate::event::{PrivacyEvent, Sampling};
use crate::params::{Delta, Epsilon, NoiseMultiplier, ParamError, SamplingRate};
use crate::selection::{Selection, Trials};
use crate::theorem::{Orders, Theorem, TheoremSetting};
use search::{MAX_NOISE, MAX_ROUNDS, MIN_NOISE, Start, largest, min_noise};

/// The reason why no setting meets the target.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CalibrationError {
    /// The accountant gives no estimate.
    #[error(transparent)]
    Accounting(#[from] AccountingError),
    /// Earlier events, or the fixed part of the plan, exceed the target.
    #[error("no {what} keeps epsilon at or below {target}: even {best} gives {epsilon:.6}")]
    OutOfReach {
        /// The searched quantity.
        what: &'static str,
        /// The target ε.
        target: f64,
        /// The most private tested setting.
        best: String,
        /// Its ε.
        epsilon: f64,
    },
    /// The sampling scheme has no cohort size to choose.
    #[error("`{sampling}` sampling has no cohort to choose: use uniform or poisson")]
    NoCohort {
        /// The scheme's name.
        sampling: &'static str,
    },
    /// A tested number is out of range.
    #[error(transparent)]
    Param(#[from] ParamError),
}

/// A setting, and its ε including earlier events.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibrated<T> {
    /// The setting.
    pub value: T,
    /// Its estimate, at most the target.
    pub estimate: Estimate,
}

/// A target ε, the planned event and the earlier events.
#[derive(Debug, Clone, Copy)]
pub struct CalibrationProblem<'a> {
    /// The accountant.
    pub accountant: Accountant,
    /// The planned event. The search replaces one of its numbers.
    pub event: PrivacyEvent,
    /// Earlier events that count against the same target.
    pub spent: &'a [PrivacyEvent],
    /// The target ε.
    pub target: Epsilon,
    /// δ of the guarantee.
    pub delta: Delta,
}

impl CalibrationProblem<'_> {
    fn estimate(&self, event: PrivacyEvent) -> Result<Estimate, CalibrationError> {
        let mut events = self.spent.to_vec();
        events.push(event);
        Ok(self.accountant.epsilon(&events, self.delta)?)
    }

    /// Returns ε for a step of the search: infinite if the accountant refuses (a theorem without
    /// enough noise).
    fn epsilon(&self, event: PrivacyEvent) -> f64 {
        let mut events = self.spent.to_vec();
        events.push(event);
        let found = self.accountant.quick_epsilon(&events, self.delta);
        found.unwrap_or(f64::INFINITY)
    }

    /// Returns the same problem under a faster accountant whose ε is never below. If it has a
    /// solution, the search starts there.
    fn rough(&self) -> Option<Self> {
        let accountant = self.accountant.rough()?;
        Some(Self {
            accountant,
            ..*self
        })
    }

    fn meets(&self, epsilon: f64) -> bool {
        epsilon <= self.target.get()
    }

    /// Returns at most 0 if the target is met. It is nearly linear in the logarithm of the searched
    /// number.
    fn gap(&self, epsilon: f64) -> f64 {
        if self.meets(epsilon) {
            (epsilon / self.target.get()).ln().min(0.0)
        } else {
            (epsilon / self.target.get()).ln().max(f64::MIN_POSITIVE)
        }
    }

    fn out_of_reach(
        &self,
        what: &'static str,
        best: String,
        event: PrivacyEvent,
    ) -> CalibrationError {
        match self.estimate(event) {
            Err(error) => error,
            Ok(Estimate { epsilon, .. }) => CalibrationError::OutOfReach {
                what,
                target: self.target.get(),
                best,
                epsilon,
            },
        }
    }

    /// Returns the smallest noise multiplier whose ε is within [`TOLERANCE`] below the target.
    ///
    /// An infinite target needs no noise. Theorems 1 and 2 are solved by their own search over λ.
    ///
    /// # Errors
    /// [`CalibrationError::OutOfReach`] if no noise helps. [`CalibrationError::Accounting`] if the
    /// accountant refuses the event, or a theorem is infeasible.
    pub fn noise_multiplier(&self) -> Result<Calibrated<NoiseMultiplier>, CalibrationError> {
        let with = |value: f64| {
            Ok::<_, ParamError>(
                self.event
                    .with_noise_multiplier(NoiseMultiplier::new(value)?),
            )
        };
        let value = if self.target.get().is_infinite() {
            0.0
        } else if let Some(setting) = self.theorem() {
            let noise = setting.min_noise(self.target, Orders::Real);
            noise.map_err(AccountingError::from)?.noise_multiplier.get()
        } else {
            let rough = self
                .rough()
                .and_then(|problem| problem.noise_multiplier().ok());
            let start = match rough {
                Some(found) => Start::Near(found.value.get()),
                None if self.meets(self.epsilon(with(MAX_NOISE)?)) => Start::Anywhere,
                None => {
                    let best = format!("noise multiplier {MAX_NOISE:e}");
                    return Err(self.out_of_reach("noise multiplier", best, with(MAX_NOISE)?));
                }
            };
            let quick = |value: f64| with(value).map_or(f64::INFINITY, |e| self.epsilon(e));
            let found = min_noise(self.target.get(), start, quick);
            let full = |value: f64| {
                let estimate = with(value).map(|event| self.estimate(event));
                estimate.map_or(f64::INFINITY, |e| e.map_or(f64::INFINITY, |e| e.epsilon))
            };
            // If the estimate refines the first ε, it is smaller.
            if full(found) < self.target.get() * (1.0 - TOLERANCE) && found > MIN_NOISE {
                min_noise(self.target.get(), Start::Near(found), full)
            } else {
                found
            }
        };
        let event = with(value)?;
        Ok(Calibrated {
            value: NoiseMultiplier::new(value)?,
            estimate: self.estimate(event)?,
        })
    }

    /// Returns the smallest noise multiplier for the best of a random number of trials. Each trial
    /// releases the planned event and `spent`: the ε of [`Selection`]. The accountant is not used.
    ///
    /// # Errors
    /// [`CalibrationError::OutOfReach`] if no noise helps. [`CalibrationError::Accounting`] for
    /// events whose guarantees cannot be added.
    pub fn noise_multiplier_of_trials(
        &self,
        trials: Trials,
    ) -> Result<Calibrated<NoiseMultiplier>, CalibrationError> {
        let estimate = |value: f64| -> Result<Estimate, CalibrationError> {
            let noise_multiplier = NoiseMultiplier::new(value)?;
            let mut trial = self.spent.to_vec();
            trial.push(self.event.with_noise_multiplier(noise_multiplier));
            Ok(Selection { trials, trial }.estimate(self.delta)?)
        };
        let best = estimate(MAX_NOISE)?;
        if !self.meets(best.epsilon) {
            return Err(CalibrationError::OutOfReach {
                what: "noise multiplier of the trials",
                target: self.target.get(),
                best: format!("noise multiplier {MAX_NOISE:e}"),
                epsilon: best.epsilon,
            });
        }
        let value = min_noise(self.target.get(), Start::Anywhere, |value| {
            estimate(value).map_or(f64::INFINITY, |estimate| estimate.epsilon)
        });
        Ok(Calibrated {
            value: NoiseMultiplier::new(value)?,
            estimate: estimate(value)?,
        })
    }

    fn theorem(&self) -> Option<TheoremSetting> {
        let theorem = match self.accountant {
            Accountant::Theorem1 => Theorem::One,
            Accountant::Theorem2 => Theorem::Two,
            _ => return None,
        };
        let fits = matches!(
            (theorem, self.event.sampling),
            (Theorem::One, Sampling::Uniform { .. }) | (Theorem::Two, Sampling::Poisson { .. })
        );
        let rate = SamplingRate::new(self.event.sampling.sampling_rate()?).ok()?;
        (fits && self.spent.is_empty()).then_some(TheoremSetting {
            theorem,
            sampling_rate: rate,
            rounds: self.event.count,
            delta: self.delta,
        })
    }

    /// Returns the largest number of rounds that keeps ε at or below the target, at most 10⁹.
    ///
    /// # Errors
    /// [`CalibrationError::OutOfReach`] if not even one round fits.
    pub fn rounds(&self) -> Result<Calibrated<u64>, CalibrationError> {
        let start = self.rough().and_then(|problem| problem.rounds().ok());
        let start = start.map_or(1, |found| found.value);
        let gap = |count: u64| self.gap(self.epsilon(self.event.with_count(count)));
        let Some(count) = largest(start, MAX_ROUNDS, gap).or_else(|| largest(1, start, gap)) else {
            let best = "one round".to_owned();
            return Err(self.out_of_reach("number of rounds", best, self.event.with_count(1)));
        };
        Ok(Calibrated {
            value: count,
            estimate: self.estimate(self.event.with_count(count))?,
        })
    }

    /// Returns the largest cohort (its expected size, for Poisson sampling) that keeps ε at or
    /// below the target with the noise of the plan.
    ///
    /// # Errors
    /// [`CalibrationError::OutOfReach`] if not even a cohort of one fits.
    /// [`CalibrationError::NoCohort`] for schemes that draw none.
    pub fn cohort(&self) -> Result<Calibrated<Sampling>, CalibrationError> {
        let device_count = self.event.sampling.device_count();
        let with = |cohort_size: u64| {
            let cohort_size = u32::try_from(cohort_size).unwrap_or(device_count);
            let sampling = match self.event.sampling {
                Sampling::Uniform { .. } => Sampling::uniform(device_count, cohort_size)?,
                Sampling::Poisson { .. } => {
                    let rate = f64::from(cohort_size) / f64::from(device_count);
                    Sampling::poisson(device_count, SamplingRate::new(rate)?)?
                }
                other => {
                    return Err(CalibrationError::NoCohort {
                        sampling: other.name(),
                    });
                }
            };
            Ok(PrivacyEvent {
                sampling,
                ..self.event
            })
        };
        let smallest = with(1)?;
        let start = self.rough().and_then(|problem| problem.cohort().ok());
        let start = start.and_then(|found| found.value.sampling_rate());
        let start = start.map_or(1, |rate| (rate * f64::from(device_count)).round() as u64);
        let last = u64::from(device_count);
        let gap = |size: u64| with(size).map_or(f64::INFINITY, |e| self.gap(self.epsilon(e)));
        let Some(size) = largest(start, last, gap).or_else(|| largest(1, start, gap)) else {
            return Err(self.out_of_reach("cohort", "a cohort of one".to_owned(), smallest));
        };
        let event = with(size)?;
        Ok(Calibrated {
            value: event.sampling,
            estimate: self.estimate(event)?,
        })
    }
}

#[cfg(test)]
mod tests;
