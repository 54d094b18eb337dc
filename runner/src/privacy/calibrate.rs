//! Calibration: the noise, the rounds or the cohort for a target ε.
//!
//! ε falls with the noise and grows with the rounds and the cohort, so each is found by a
//! bracketing root finder. The result never exceeds the target, and noise is found to within
//! [`TOLERANCE`] below it.

use super::accountant::{Accountant, AccountingError, Estimate};
use super::event::{PrivacyEvent, Sampling};
use super::params::{Delta, Epsilon, NoiseMultiplier, ParamError, SamplingRate};
use super::theorem::{Orders, Theorem, TheoremSetting};

/// How far below the target ε may end, relative to it.
pub const TOLERANCE: f64 = 1e-4;
/// Noise multipliers outside are not searched: below, no accountant promises anything of use;
/// above, float figures lose their meaning.
const NOISE_RANGE: (f64, f64) = (1e-3, 1e7);
/// Rounds above are not searched.
const MOST_ROUNDS: u64 = 1_000_000_000;
/// Steps of the root finder; bisection alone would need 60 for every digit.
const STEPS: u32 = 100;

/// Why no setting meets the target.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CalibrationError {
    /// The accountant has no figure.
    #[error(transparent)]
    Accounting(#[from] AccountingError),
    /// What is already spent, or the fixed part of the plan, exceeds the target.
    #[error("no {what} keeps epsilon at or below {target}: even {best} gives {epsilon:.6}")]
    OutOfReach {
        /// What was searched for.
        what: &'static str,
        /// The target ε.
        target: f64,
        /// The most private setting that was tried.
        best: String,
        /// Its ε.
        epsilon: f64,
    },
    /// A cohort is searched for in a scheme that has none.
    #[error("`{sampling}` sampling has no cohort to choose: use uniform or poisson")]
    NoCohort {
        /// The scheme's name.
        sampling: &'static str,
    },
    /// A number on the way was impossible.
    #[error(transparent)]
    Param(#[from] ParamError),
}

/// A setting and the ε that it costs together with what was spent before.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibrated<T> {
    /// The setting.
    pub value: T,
    /// Its estimate, at most the target.
    pub estimate: Estimate,
}

/// What is to be spent, by which books.
#[derive(Debug, Clone, Copy)]
pub struct Plan<'a> {
    /// Who counts.
    pub accountant: Accountant,
    /// What is planned; the searched number in it is replaced.
    pub event: PrivacyEvent,
    /// What was spent before and counts against the same target.
    pub spent: &'a [PrivacyEvent],
    /// The target ε.
    pub target: Epsilon,
    /// δ.
    pub delta: Delta,
}

impl Plan<'_> {
    fn estimate(&self, event: PrivacyEvent) -> Result<Estimate, CalibrationError> {
        let mut events = self.spent.to_vec();
        events.push(event);
        Ok(self.accountant.epsilon(&events, self.delta)?)
    }

    /// An estimate of a search step: where the accountant refuses (a theorem without enough noise)
    /// nothing can be promised.
    fn epsilon(&self, event: PrivacyEvent) -> f64 {
        let mut events = self.spent.to_vec();
        events.push(event);
        let found = self.accountant.quick_epsilon(&events, self.delta);
        found.unwrap_or(f64::INFINITY)
    }

    /// The same plan by quicker books whose figure is never below: where these have a solution the
    /// search starts from it. None if there are none.
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

    /// At most 0 where the target is met; a line in the logarithm of what is searched, nearly.
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

    /// The least noise multiplier whose ε is within [`TOLERANCE`] below the target.
    ///
    /// An infinite target needs no noise. Theorems 1 and 2 are solved by their own search over λ.
    ///
    /// # Errors
    /// [`CalibrationError::OutOfReach`] if no noise helps; [`CalibrationError::Accounting`] if the
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
            let noise = setting.least_noise(self.target, Orders::Real);
            noise.map_err(AccountingError::from)?.noise_multiplier.get()
        } else {
            let (least, most) = NOISE_RANGE;
            let rough = self.rough().and_then(|plan| plan.noise_multiplier().ok());
            let start = match rough {
                Some(found) => Start::Near(found.value.get()),
                None if self.meets(self.epsilon(with(most)?)) => Start::Anywhere,
                None => {
                    let best = format!("noise multiplier {most:e}");
                    return Err(self.out_of_reach("noise multiplier", best, with(most)?));
                }
            };
            let quick = |value: f64| with(value).map_or(f64::INFINITY, |e| self.epsilon(e));
            let found = least_noise(self.target.get(), (least, most), start, quick);
            let full = |value: f64| {
                let estimate = with(value).map(|event| self.estimate(event));
                estimate.map_or(f64::INFINITY, |e| e.map_or(f64::INFINITY, |e| e.epsilon))
            };
            // Where the estimate is refined after the first figure, it is less than that.
            if full(found) < self.target.get() * (1.0 - TOLERANCE) && found > least {
                least_noise(self.target.get(), (least, most), Start::Near(found), full)
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

    /// The largest number of rounds that keeps ε at or below the target; at most 10⁹.
    ///
    /// # Errors
    /// [`CalibrationError::OutOfReach`] if not even one round fits.
    pub fn rounds(&self) -> Result<Calibrated<u64>, CalibrationError> {
        let start = self.rough().and_then(|plan| plan.rounds().ok());
        let start = start.map_or(1, |found| found.value);
        let gap = |count: u64| self.gap(self.epsilon(self.event.with_count(count)));
        let Some(count) = largest(start, MOST_ROUNDS, gap).or_else(|| largest(1, start, gap))
        else {
            let best = "one round".to_owned();
            return Err(self.out_of_reach("number of rounds", best, self.event.with_count(1)));
        };
        Ok(Calibrated {
            value: count,
            estimate: self.estimate(self.event.with_count(count))?,
        })
    }

    /// The largest cohort (its expected size, for Poisson sampling) that keeps ε at or below the
    /// target with the noise of the plan.
    ///
    /// # Errors
    /// [`CalibrationError::OutOfReach`] if not even a cohort of one fits;
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
        let start = self.rough().and_then(|plan| plan.cohort().ok());
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

/// The largest integer in `first..=last` whose `gap` is at most 0, if that of the first is.
///
/// Doubles until the gap opens, then takes false positions and halves in turn.
fn largest(first: u64, last: u64, gap: impl Fn(u64) -> f64) -> Option<u64> {
    let mut low = (first, gap(first));
    if low.1 > 0.0 {
        return None;
    }
    let mut step = first.div_ceil(4).max(1);
    let mut high = loop {
        if low.0 == last {
            return Some(last);
        }
        let next = low.0.saturating_add(step).min(last);
        let found = gap(next);
        if found > 0.0 {
            break (next, found);
        }
        low = (next, found);
        step = step.saturating_mul(2);
    };
    let mut is_half = false;
    while high.0 - low.0 > 1 {
        let share = low.1 / (low.1 - high.1);
        let width = (high.0 - low.0) as f64;
        let middle = if is_half || !share.is_finite() {
            low.0.midpoint(high.0)
        } else {
            let ahead = (share * width) as u64;
            low.0 + ahead.clamp(1, high.0 - low.0 - 1)
        };
        is_half = !is_half;
        let found = gap(middle);
        if found <= 0.0 {
            low = (middle, found);
        } else {
            high = (middle, found);
        }
    }
    Some(low.0)
}

/// Where a search for noise begins.
#[derive(Clone, Copy)]
enum Start {
    /// At 1, by steps of two.
    Anywhere,
    /// At a value known to meet the target, not far above the least: by steps of a few percent.
    Near(f64),
}

/// The least noise in `range` with `target (1 - TOLERANCE) <= epsilon(noise) <= target`, given that
/// ε falls with the noise and that the upper end meets the target.
///
/// Works on logarithms, where ε is nearly a line: false position with the Illinois rule, and
/// bisection wherever an end is infinite or a step does not shrink the bracket.
fn least_noise(target: f64, range: (f64, f64), start: Start, epsilon: impl Fn(f64) -> f64) -> f64 {
    let gap = |noise: f64| (epsilon(noise) / target).ln();
    let wanted = (1.0 - 0.5 * TOLERANCE).ln();
    let (mut low, mut high) = bracket(range, start, &gap);
    if low.1 <= 0.0 {
        return low.0;
    }
    let mut weight = (1.0, 1.0);
    for step in 0..STEPS {
        let is_close = high.1 >= (1.0 - TOLERANCE).ln();
        if is_close || high.0 <= low.0 * (1.0 + 1e-14) {
            break;
        }
        let (left, right) = (low.0.ln(), high.0.ln());
        let (above, below) = (weight.0 * (low.1 - wanted), weight.1 * (high.1 - wanted));
        let slope_step = above / (above - below);
        let is_usable = slope_step.is_finite() && slope_step > 0.0 && slope_step < 1.0;
        let share = if is_usable && step % 8 != 7 {
            slope_step
        } else {
            0.5
        };
        let noise = (left + share * (right - left)).exp();
        let found = gap(noise);
        if found <= 0.0 {
            high = (noise, found);
            // Illinois: an end that stays loses half of its weight.
            weight = (weight.0 * 0.5, 1.0);
        } else {
            low = (noise, found);
            weight = (1.0, weight.1 * 0.5);
        }
    }
    high.0
}

/// Neighbouring points (noise, gap), by steps from the start: the gap is above 0 at the first and
/// not at the second, or the first is the end of the range.
fn bracket(range: (f64, f64), start: Start, gap: &impl Fn(f64) -> f64) -> ((f64, f64), (f64, f64)) {
    let at = |noise: f64| (noise, gap(noise));
    let (start, mut step) = match start {
        Start::Anywhere => (at(1.0), 2.0),
        Start::Near(noise) => (at(noise.clamp(range.0, range.1)), 1.08),
    };
    if start.1 > 0.0 {
        let mut low = start;
        loop {
            let high = at((step * low.0).min(range.1));
            if high.1 <= 0.0 || high.0 >= range.1 {
                return (low, high);
            }
            low = high;
            step = (step * step).min(2.0);
        }
    }
    let mut high = start;
    loop {
        let low = at((high.0 / step).max(range.0));
        if low.1 > 0.0 || low.0 <= range.0 {
            return (low, high);
        }
        high = low;
        step = (step * step).min(2.0);
    }
}

#[cfg(test)]
mod tests;
