//! Noise and accounting of a run, settled before it starts.

mod matrices;

use smolfed_core::noise::DiscreteGaussian;

use super::{ExperimentError, Origin, contrast, personal};
use crate::config::{Config, Denominator, SamplingScheme, Trust};
use crate::contrast::Sharing;
use crate::personal::PersonalPlan;
use crate::privacy::accountant::{Accountant, AccountingError, Estimate};
use crate::privacy::calibrate::{CalibrationError, Plan};
use crate::privacy::event::{Mechanism, PrivacyEvent, PrivacyUnit, Sampling, TrustModel};
use crate::privacy::params::{ClipNorm, Delta, Epsilon, NoiseMultiplier, ParamError};
use crate::privacy::statement::PrivacyStatement;
use crate::simulate::Encoding;
use matrices::DeviceMatrices;

/// Noise and accounting of a run.
#[derive(Clone, Debug)]
pub struct PrivacyPlan {
    /// What one round really does; its `count` is 1.
    pub event: PrivacyEvent,
    /// δ.
    pub delta: Delta,
    /// Who counts.
    pub accountant: Accountant,
    /// ε that no round may exceed, what other runs spent before included.
    pub budget: Option<Epsilon>,
    /// What other runs on the same population had spent before this one.
    pub spent: Vec<PrivacyEvent>,
    /// The sampler of the noise, in steps of the grid; `None` for no noise.
    pub noise: Option<DiscreteGaussian>,
    /// Correlation matrices that a device sends in some rounds beside its updates.
    matrices: Option<DeviceMatrices>,
    clip_norm: Option<ClipNorm>,
    notes: Vec<String>,
}

/// What the rounds of an experiment release.
pub(super) struct Released<'a> {
    /// Who takes part.
    pub sampling: Sampling,
    /// How updates become integers.
    pub encoding: Encoding,
    /// What devices keep to themselves.
    pub personal: Option<PersonalPlan>,
    /// What their correlation matrices cost, if they send some, and when.
    pub matrices: Option<(&'a PrivacyPlan, &'a Sharing)>,
}

impl PrivacyPlan {
    pub(super) fn new(
        config: &Config,
        &Released {
            sampling,
            encoding,
            personal,
            matrices,
        }: &Released<'_>,
        spent: &[PrivacyEvent],
        origin: &Origin,
    ) -> Result<Self, ExperimentError> {
        let privacy = &config.privacy;
        let delta = privacy.delta.resolve(sampling.device_count());
        let delta = delta.map_err(refuse("privacy.delta", privacy.delta))?;
        let clip_norm = match privacy.clip_norm {
            None => None,
            Some(value) => Some(ClipNorm::new(value).map_err(refuse("privacy.clip_norm", value))?),
        };
        let event = PrivacyEvent {
            mechanism: mechanism(NoiseMultiplier::NONE, encoding),
            sampling,
            trust: match privacy.trust {
                Trust::Central => TrustModel::Central,
                Trust::Local => TrustModel::Local,
            },
            unit: PrivacyUnit::Device,
            count: 1,
            releases: personal::releases(config, personal.as_ref()),
        };
        let accountant = privacy
            .accountant
            .unwrap_or_else(|| Accountant::tightest_for(&[event]));
        let spent = of_unit(spent, PrivacyUnit::Device);
        let mut notes = notes(config, &spent, origin);
        notes.extend(personal::notes(config, personal.as_ref()));
        notes.extend(contrast::notes(config));
        let mut plan = Self {
            event,
            delta,
            accountant,
            budget: None,
            spent,
            noise: None,
            matrices: matrices
                .map(|(plan, sharing)| DeviceMatrices::new(plan, sharing, sampling, event.trust))
                .transpose()?,
            clip_norm,
            notes,
        };
        let noise_multiplier = plan.noise_multiplier(config)?;
        if event.releases == 0 {
            // Nothing is released: nothing needs noise.
            return Ok(plan);
        }
        let scale = personal::noise_scale(config, sampling)?;
        let noise_multiplier = NoiseMultiplier::new(noise_multiplier.get() * scale).map_err(
            refuse("privacy.noise_multiplier", noise_multiplier.get() * scale),
        )?;
        plan.event.mechanism = mechanism(noise_multiplier, encoding);
        if let Encoding::Clipped(grid) = encoding {
            plan.noise = grid_noise(noise_multiplier, grid.bits())?;
        }
        // The last round is the dearest: what the accountant refuses, it refuses before the start.
        plan.estimate(u64::from(config.rounds))
            .map_err(|reason| ExperimentError::Accounting {
                accountant: accountant.name(),
                reason,
            })?;
        Ok(plan)
    }

    /// The least z that keeps `count` rounds within a target ε, which becomes the budget.
    fn for_target(
        &mut self,
        target: Epsilon,
        count: u64,
    ) -> Result<NoiseMultiplier, CalibrationError> {
        if target.get().is_infinite() {
            return Ok(NoiseMultiplier::NONE);
        }
        self.budget = Some(target);
        let plan = Plan {
            accountant: self.accountant,
            event: self.event.with_count(count),
            spent: &self.before(count),
            target,
            delta: self.delta,
        };
        Ok(plan.noise_multiplier()?.value)
    }

    /// z from whichever key gives it; sets the budget.
    fn noise_multiplier(&mut self, config: &Config) -> Result<NoiseMultiplier, ExperimentError> {
        let privacy = &config.privacy;
        if let Some(value) = privacy.max_epsilon {
            let budget = Epsilon::new(value).map_err(refuse("privacy.max_epsilon", value))?;
            self.budget = Some(budget);
        }
        let contradiction = |first, second| {
            let advice = "say in one way how much noise there is";
            Err(ExperimentError::Contradiction {
                first,
                second,
                advice,
            })
        };
        match (privacy.epsilon, privacy.noise_multiplier, privacy.noise_std) {
            (None, None, None) => Ok(NoiseMultiplier::NONE),
            (Some(value), None, None) => self.calibrated(config, value),
            (None, Some(value), None) => {
                let multiplier = NoiseMultiplier::new(value)
                    .map_err(refuse("privacy.noise_multiplier", value))?;
                if value > 0.0 {
                    self.clip_norm_for_noise()?;
                }
                Ok(multiplier)
            }
            (None, None, Some(value)) => {
                NoiseMultiplier::from_noise_std(value, self.clip_norm_for_noise()?)
                    .map_err(refuse("privacy.noise_std", value))
            }
            (Some(_), Some(_), _) => contradiction("privacy.epsilon", "privacy.noise_multiplier"),
            (Some(_), None, Some(_)) => contradiction("privacy.epsilon", "privacy.noise_std"),
            (None, Some(_), Some(_)) => {
                contradiction("privacy.noise_multiplier", "privacy.noise_std")
            }
        }
    }

    /// The least z that keeps all rounds within a target ε, which becomes the budget.
    fn calibrated(
        &mut self,
        config: &Config,
        epsilon: f64,
    ) -> Result<NoiseMultiplier, ExperimentError> {
        if self.budget.is_some() {
            return Err(ExperimentError::Contradiction {
                first: "privacy.epsilon",
                second: "privacy.max_epsilon",
                advice: "a target is also the limit",
            });
        }
        let target = Epsilon::new(epsilon).map_err(refuse("privacy.epsilon", epsilon))?;
        if target.get().is_infinite() || self.event.releases == 0 {
            return Ok(NoiseMultiplier::NONE);
        }
        self.clip_norm_for_noise()?;
        let has_matrices = self.matrices.is_some();
        self.for_target(target, u64::from(config.rounds))
            .map_err(|reason| match has_matrices {
                true => ExperimentError::MatricesTooDear { epsilon, reason },
                false => ExperimentError::Calibration { epsilon, reason },
            })
    }

    fn clip_norm_for_noise(&self) -> Result<ClipNorm, ExperimentError> {
        self.clip_norm.ok_or(ExperimentError::Missing {
            key: "privacy.clip_norm",
            purpose: "noise protects nothing unless every update is clipped",
        })
    }

    /// z: noise std over clip norm.
    #[must_use]
    pub const fn multiplier(&self) -> NoiseMultiplier {
        self.event.mechanism.noise_multiplier()
    }

    /// Noise std ν on the sum (on each update with local trust), in units of the parameters.
    #[must_use]
    pub fn noise_std(&self) -> f64 {
        self.clip_norm
            .map_or(0.0, |clip_norm| self.multiplier().noise_std(clip_norm))
    }

    /// Whether devices add the noise themselves.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.event.trust == TrustModel::Local
    }

    /// What else the budget counts: other runs, and a device's matrices in so many rounds.
    fn before(&self, rounds: u64) -> Vec<PrivacyEvent> {
        let matrices = self.matrices.as_ref();
        let matrices = matrices.and_then(|matrices| matrices.events(rounds));
        self.spent.iter().copied().chain(matrices).collect()
    }

    /// What matrices cost a whole device in `round`, if some are sent in it.
    #[must_use]
    pub fn matrices_in(&self, round: u32) -> Option<PrivacyEvent> {
        self.matrices.as_ref()?.event_in(round)
    }

    /// Everything that the budget counts after `rounds` rounds; this run's event is the last.
    fn events(&self, rounds: u64) -> Vec<PrivacyEvent> {
        let own = self.event.with_count(rounds);
        self.before(rounds).into_iter().chain([own]).collect()
    }

    /// What `rounds` rounds cost by the accountant of this run, together with what was spent
    /// before.
    ///
    /// # Errors
    /// [`AccountingError`] if it has no figure; not for up to the planned number of rounds.
    pub fn estimate(&self, rounds: u64) -> Result<Estimate, AccountingError> {
        self.accountant.epsilon(&self.events(rounds), self.delta)
    }

    /// The statements for `rounds` rounds: the accountant's own and, if that is no upper bound, the
    /// sound one beside it.
    ///
    /// # Errors
    /// As [`Self::estimate`].
    pub fn statements(&self, rounds: u64) -> Result<Vec<PrivacyStatement>, AccountingError> {
        let events = self.events(rounds);
        let mut estimates = vec![self.estimate(rounds)?];
        if !estimates.iter().any(Estimate::is_upper_bound) {
            estimates.push(Accountant::tightest_for(&events).epsilon(&events, self.delta)?);
        }
        let statements = estimates
            .iter()
            .filter_map(|estimate| PrivacyStatement::new(estimate, &events, self.clip_norm));
        Ok(statements
            .map(|mut statement| {
                statement.notes.extend(self.notes.iter().cloned());
                statement
            })
            .collect())
    }
}

/// The events that protect this unit: those of the other kind are counted apart.
fn of_unit(events: &[PrivacyEvent], unit: PrivacyUnit) -> Vec<PrivacyEvent> {
    let of_unit = events.iter().filter(|event| event.unit == unit);
    of_unit.copied().collect()
}

/// An error that names the key and its value.
fn refuse(key: &'static str, value: impl ToString) -> impl FnOnce(ParamError) -> ExperimentError {
    let value = value.to_string();
    move |reason| ExperimentError::Privacy { key, value, reason }
}

fn mechanism(noise_multiplier: NoiseMultiplier, encoding: Encoding) -> Mechanism {
    match encoding {
        Encoding::Clipped(grid) => Mechanism::DiscreteGaussian {
            noise_multiplier,
            grid_bits: grid.bits() as u8,
        },
        // Never with noise: that needs a clip norm.
        Encoding::Unbounded => Mechanism::Gaussian { noise_multiplier },
    }
}

/// The sampler of std `z · 2^bits` steps, never less.
fn grid_noise(
    noise_multiplier: NoiseMultiplier,
    bits: u32,
) -> Result<Option<DiscreteGaussian>, ExperimentError> {
    let value = noise_multiplier.get();
    if value <= 0.0 {
        return Ok(None);
    }
    let steps = value * f64::from(bits).exp2();
    Ok(Some(sampler("privacy.noise_multiplier", value, steps)?.0))
}

/// The sampler of a std in grid steps and its std, which is rounded up; `value` of `key` asks for it.
pub(super) fn sampler(
    key: &'static str,
    value: f64,
    std: f64,
) -> Result<(DiscreteGaussian, f64), ExperimentError> {
    /// The std is a multiple of this part of a step.
    const DENOMINATOR: u64 = 1 << 10;
    let numerator = (std * DENOMINATOR as f64).ceil();
    let sampler = DiscreteGaussian::new(numerator as u64, DENOMINATOR);
    let sampler = sampler.map_err(|reason| ExperimentError::Range {
        key,
        value: value.to_string(),
        expected: format!("one that the grid can carry ({reason})"),
    })?;
    Ok((sampler, numerator / DENOMINATOR as f64))
}

/// What a reader of the statement must know beside the numbers.
fn notes(config: &Config, spent: &[PrivacyEvent], origin: &Origin) -> Vec<String> {
    let mut notes = origin.notes(config.seed, config.privacy.trust == Trust::Local);
    notes.extend(earlier(spent));
    if config.cohort.denominator == Denominator::Realised
        && config.cohort.sampling == SamplingScheme::Poisson
    {
        notes.push(
            "The sum is divided by the number of devices drawn, as the paper prints it. That \
             reveals the size of each cohort, which this epsilon does not cover."
                .to_owned(),
        );
    }
    if let Some(cap) = config.cohort.weight_cap {
        notes.push(format!(
            "Updates are weighed by samples, {cap} or more counting in full. The noise is that for the \
             largest weight, and epsilon holds for every device. The sum is divided by the expected number of \
             devices, not by their weights, which nobody may know."
        ));
    }
    notes
}

/// What other runs spent before.
fn earlier(spent: &[PrivacyEvent]) -> Option<String> {
    let earlier: u64 = spent.iter().map(|event| event.count).sum();
    (earlier > 0).then(|| {
        format!(
            "{earlier} of the rounds were run by others before this run began and stand in the \
             shared ledger: this is the cost of those and this run's together."
        )
    })
}
