//! Noise and accounting of a run, configured before it starts: the noise for a target ε, and ε
//! (with its statements) after any number of rounds.

pub mod error;

use std::sync::Arc;

use smolfed_accounting::accountant::{Accountant, AccountingError, Estimate};
use smolfed_accounting::calibrate::{CalibrationError, CalibrationProblem};
use smolfed_accounting::correlated::Strategy;
use smolfed_accounting::distributed::MIN_NOISE_STEPS;
use smolfed_accounting::event::{
    Adjacency, Mechanism as EventMechanism, PrivacyEvent, PrivacyUnit, Sampling, TrustModel,
};
use smolfed_accounting::params::{ClipNorm, Delta, Epsilon, NoiseMultiplier};
use smolfed_accounting::selection::{Selection, Trials};
use smolfed_core::noise::DiscreteGaussian;
use smolfed_core::quantize::Grid;

use super::schedule::Schedule;
use super::split::Split;
use super::statement::PrivacyStatement;
use crate::bit::ClipBit;
use crate::condition::{Condition, Conditions, Effect, Randomness};
use crate::mechanism::{Mechanism, sampler_of_std};
use crate::{Encoding, Timing};
pub use error::PlanError;
use error::refuse;

/// Noise and accounting of the releases of a run, configured before it starts.
#[derive(Clone, Debug)]
pub struct PrivacyPlan {
    /// The event of one round, and its noise.
    pub mechanism: Mechanism,
    /// δ.
    pub delta: Delta,
    /// The accountant.
    pub accountant: Accountant,
    /// The largest ε of any round, including the cost of earlier runs.
    pub budget: Option<Epsilon>,
    /// The events of other runs on the same population before this one.
    pub spent: Vec<PrivacyEvent>,
    /// Other releases of a device in some rounds, with their cost for the same unit.
    side: Vec<SideReleases>,
    /// The number of runs from which this run was selected as the best. Every ε is then the cost of
    /// the whole selection.
    trials: Option<Trials>,
    /// The conditions of every ε besides the numbers, for example means of the devices' rows
    /// without noise.
    conditions: Conditions,
    /// L. `None` if there is none, or if it changes from round to round.
    clip_norm: Option<ClipNorm>,
    /// s: the largest number of rounds between the round of an update and the round of its model,
    /// if rounds are windows of time.
    staleness: Option<u32>,
    /// Whether there were earlier runs on the same population, whose releases may have influenced
    /// this configuration.
    follows_others: bool,
    /// Number of repeated rounds, which may have released something else under the same noise.
    repeated: u64,
    notes: Vec<String>,
}

/// The keys of `[privacy]`, in their internal types.
#[derive(Clone, Copy, Debug)]
pub struct PrivacyKeys {
    /// δ.
    pub delta: Delta,
    /// The accountant, if one is given.
    pub accountant: Option<Accountant>,
    /// Who adds the noise.
    pub trust: TrustModel,
    /// L, in `f64`: accounting does not round it to the `f32` of devices.
    pub clip_norm: Option<ClipNorm>,
    /// The largest ε of any round, if the noise is given.
    pub max_epsilon: Option<Epsilon>,
    /// The amount of noise.
    pub noise: NoiseAmount,
    /// k: devices of one user, as configured.
    pub devices_per_user: u32,
    /// The noise of the bit of adaptive clipping, if the clip norm is adaptive.
    pub bit_noise: Option<BitNoise>,
}

/// σ_b: the noise std of the bit of adaptive clipping.
#[derive(Clone, Copy, Debug)]
pub enum BitNoise {
    /// The configured value.
    Given(f64),
    /// At least this value, and at least 2z. The bit then takes at most a sixteenth of 1/z², and
    /// the noise of the updates grows by at most 3.3 %.
    Default(f64),
}

impl BitNoise {
    /// Returns the split of a total noise multiplier z above 0.
    fn split(self, total: NoiseMultiplier) -> Result<Split, PlanError> {
        let z = total.get();
        let std = match self {
            Self::Given(std) => std,
            Self::Default(std) => std.max(2.0 * z),
        };
        Split::new(total, std).ok_or_else(|| PlanError::Range {
            key: "privacy.adaptive.bit_noise",
            value: std.to_string(),
            expected: format!(
                "above {}, half of the noise multiplier: the clipping indicator of an update would \
                 cost more than the whole round may",
                z / 2.0
            ),
        })
    }
}

/// The amount of noise.
#[derive(Clone, Copy, Debug)]
pub enum NoiseAmount {
    /// As much as a target ε requires. The target is also the budget.
    Target(Epsilon),
    /// This noise multiplier.
    Multiplier(NoiseMultiplier),
}

impl NoiseAmount {
    /// The error for noise on updates that are not clipped.
    pub const NO_CLIP_NORM: PlanError = PlanError::Missing {
        key: "privacy.clip_norm",
        purpose: "noise protects only updates that are clipped",
    };

    /// Returns whether no noise is requested.
    #[must_use]
    pub fn is_none(self) -> bool {
        match self {
            Self::Multiplier(multiplier) => multiplier.get() <= 0.0,
            Self::Target(target) => target.get().is_infinite(),
        }
    }
}

/// The updates to be released.
pub struct Updates<'a> {
    /// T.
    pub rounds: u32,
    /// The keys of `[privacy]`.
    pub keys: PrivacyKeys,
    /// The sampling of devices.
    pub sampling: Sampling,
    /// The combination of the sums of rounds before noise is added, if the noise is correlated.
    pub strategy: Option<Arc<Strategy>>,
    /// The encoding of updates as integers.
    pub encoding: Encoding,
    /// How often a device releases something in a round.
    pub timing: Timing,
    /// The factor of a configured noise multiplier.
    pub noise_scale: f64,
    /// Other releases of the devices.
    pub side: Vec<SideReleases>,
    /// Other releases of the devices with the same amount of noise and the same sampling as a
    /// round. Both are calibrated together.
    pub with_noise_of_rounds: Vec<SideReleases>,
    /// The distribution of the number of trials, if the run is the best of several.
    pub trials: Option<Trials>,
    /// The events of earlier runs.
    pub spent: &'a [PrivacyEvent],
    /// Whether other runs may share the ledger.
    pub is_ledger_shared: bool,
    /// The conditions of ε besides the numbers.
    pub conditions: Conditions,
    /// s, if rounds are windows of time.
    pub staleness: Option<u32>,
    /// Facts that a reader of the statement must know in addition to its numbers.
    pub notes: Vec<String>,
}

/// Releases of a device in addition to its updates, in some rounds and a limited number of times.
#[derive(Clone, Debug)]
pub struct SideReleases {
    /// The cost of one release. Its `count` is 1.
    pub event: PrivacyEvent,
    /// The rounds of the releases.
    pub schedule: Schedule,
    /// The largest number of releases of one device.
    pub max_releases: u32,
}

impl SideReleases {
    /// Creates a single release, in round `from`.
    #[must_use]
    pub const fn once(event: PrivacyEvent, from: u32) -> Self {
        let every = u32::MAX;
        Self {
            event,
            schedule: Schedule { from, every },
            max_releases: 1,
        }
    }

    fn without_noise(self) -> Self {
        let event = self.event.with_noise_multiplier(NoiseMultiplier::NONE);
        Self { event, ..self }
    }

    /// Returns the releases of the first `rounds` rounds. `None` if there are none.
    fn events(&self, rounds: u64) -> Option<PrivacyEvent> {
        let rounds = u32::try_from(rounds).unwrap_or(u32::MAX);
        let count = self.schedule.count(rounds).min(self.max_releases);
        (count > 0).then(|| self.event.with_count(u64::from(count)))
    }

    /// Returns the event of one round. Every device counts as if it released something in each
    /// scheduled round, up to the largest number of its releases.
    #[must_use]
    pub fn event_in(&self, round: u32) -> Option<PrivacyEvent> {
        let is_counted = self.schedule.count(round) < self.max_releases;
        (self.schedule.is_in(round) && is_counted).then_some(self.event)
    }
}

/// Returns the event of one release of all `devices`. It has the adjacency and trust of the
/// updates, so that both compose: `sampling` is the sampling of the updates, and `trust` and the
/// devices of a user are keys of `[privacy]`.
///
/// # Errors
/// [`PlanError`] for an invalid number of devices.
pub fn release_of_all(
    mechanism: smolfed_accounting::Mechanism,
    devices: u32,
    sampling: Sampling,
    trust: TrustModel,
    devices_per_user: u32,
) -> Result<PrivacyEvent, PlanError> {
    let all = match sampling.adjacency() {
        Adjacency::AddRemove => Sampling::full(devices),
        Adjacency::ReplaceOne => Sampling::uniform(devices, devices),
    };
    let all = all.map_err(refuse("data.devices", devices))?;
    let event = PrivacyEvent {
        trust,
        ..PrivacyEvent::new(mechanism, all, 1)
    };
    let event = event.with_devices_per_user(devices_per_user);
    event.map_err(refuse("privacy.devices_per_user", devices_per_user))
}

impl PrivacyPlan {
    /// Returns the noise and accounting of updates.
    ///
    /// # Errors
    /// [`PlanError`] for the first invalid key.
    pub fn of_updates(updates: Updates<'_>) -> Result<Self, PlanError> {
        let keys = updates.keys;
        let event = PrivacyEvent {
            trust: keys.trust,
            releases: updates.timing.releases(),
            ..updates.event_without_noise()?
        };
        let devices = keys.devices_per_user;
        let event = event.with_devices_per_user(devices);
        let event = event.map_err(refuse("privacy.devices_per_user", devices))?;
        let spent = of_unit(updates.spent, PrivacyUnit::Device);
        let accountant = keys.accountant.or_else(|| updates.exact_accountant());
        let mut plan = Self::new(event, keys.delta, accountant, spent);
        plan.clip_norm = keys.clip_norm;
        plan.budget = keys.max_epsilon;
        plan.side = updates.side;
        plan.trials = updates.trials;
        if plan.trials.is_some() {
            // The theorems of private selection are about Rényi divergence.
            plan.accountant = Accountant::Rdp;
        }
        plan.notes = updates.notes;
        plan.conditions = updates.conditions;
        plan.staleness = updates.staleness;
        // Without a grid there is no noise to correlate.
        let strategy = updates
            .strategy
            .filter(|_| updates.encoding.grid().is_some());
        plan.mechanism.strategy = strategy;
        let of_side = |side: &SideReleases| side.schedule.count(updates.rounds);
        let others: u32 = updates.with_noise_of_rounds.iter().map(of_side).sum();
        let releases = updates.rounds.saturating_add(others);
        let noise_multiplier = plan.noise_multiplier(keys.noise, releases)?;
        if event.releases == 0 {
            // There are no updates that would need noise, and no noise of rounds for the others.
            let others = updates.with_noise_of_rounds.into_iter();
            plan.side.extend(others.map(SideReleases::without_noise));
            plan.is_of_side_releases(keys, updates.rounds)?;
            return Ok(plan);
        }
        let value = noise_multiplier.get() * updates.noise_scale;
        let noise_multiplier =
            NoiseMultiplier::new(value).map_err(|reason| PlanError::Privacy {
                key: "privacy.noise_multiplier",
                value: value.to_string(),
                reason,
            })?;
        let event = plan.mechanism.event;
        plan.mechanism.event = event.with_noise_multiplier(noise_multiplier);
        let others = updates.with_noise_of_rounds.into_iter();
        plan.side.extend(others.map(|side| SideReleases {
            event: side.event.with_noise_multiplier(noise_multiplier),
            ..side
        }));
        if let Encoding::Clipped(grid) = updates.encoding {
            plan.cover(keys.bit_noise, &grid)?;
        }
        if plan.mechanism.sampler.is_none() {
            // Sums without noise are released separately, by servers and by helpers.
            plan.mechanism.strategy = None;
        }
        plan.is_accountable(u64::from(updates.rounds))?;
        Ok(plan)
    }

    /// Configures a plan without updates: it covers only the other releases, numbers of norm at
    /// most 1.
    fn is_of_side_releases(&mut self, keys: PrivacyKeys, rounds: u32) -> Result<(), PlanError> {
        let rounds = u64::from(rounds);
        if self.side.is_empty() {
            return Ok(());
        }
        self.clip_norm = ClipNorm::new(1.0).ok();
        let events = self.before(rounds);
        let accountant = keys.accountant;
        self.accountant = accountant.unwrap_or_else(|| Accountant::tightest_for(&events));
        if let NoiseAmount::Target(target) = keys.noise {
            self.budget = Some(target).filter(|target| target.get().is_finite());
        }
        self.is_accountable(rounds)
    }

    /// Returns whether nothing at all is released.
    #[must_use]
    pub fn releases_nothing(&self) -> bool {
        self.event().releases == 0 && self.side.is_empty()
    }

    /// Sets the samplers of the noise: all of it on the update, or, if the clip norm is adaptive,
    /// split between the update and its bit. The event has the total, which is the cost of both
    /// together.
    fn cover(&mut self, bit: Option<BitNoise>, grid: &Grid) -> Result<(), PlanError> {
        let (mechanism, bits) = (&mut self.mechanism, grid.bits());
        let Some(bit) = bit else {
            let of_one = mechanism.party_multiplier();
            mechanism.sampler = match &mechanism.strategy {
                None => grid_noise(of_one, bits)?,
                Some(strategy) => combination_noise(strategy, of_one, bits)?,
            };
            return self.fits_grid(bits);
        };
        self.clip_norm = None;
        mechanism.bit = Some(ClipBit::new(grid, None));
        let total = mechanism.multiplier();
        if total.get() > 0.0 {
            let split = bit.split(total)?;
            mechanism.sampler = grid_noise(split.update, bits)?;
            let of_bit = grid_noise(split.bit, bits)?;
            mechanism.bit = Some(ClipBit::new(grid, of_bit.map(|noise| (noise, split))));
            self.notes.push(
                "The clip norm changes from round to round: with its update, each device reports \
                 under separate noise whether it was clipped, and the noise multiplier covers both \
                 together."
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// Refuses a grid that is too coarse for the sum of several parties' noise.
    fn fits_grid(&self, bits: u32) -> Result<(), PlanError> {
        let of_one = self.mechanism.party_multiplier();
        let of_one = self.event().mechanism.with_noise_multiplier(of_one);
        let steps = of_one.noise_steps().unwrap_or(f64::INFINITY);
        let least = f64::from(MIN_NOISE_STEPS);
        let is_distributed = matches!(self.mechanism.trust(), TrustModel::Distributed(_));
        if !is_distributed || !self.has_noise() || steps >= least {
            return Ok(());
        }
        let more = (least / steps).log2().ceil();
        Err(PlanError::Range {
            key: "privacy.grid_bits",
            value: bits.to_string(),
            expected: format!(
                "at least {}: the noise of each party must be {least} steps of the grid or more, \
                 so that the noise of several adds up",
                f64::from(bits) + more
            ),
        })
    }

    /// Creates a plan without noise for releases with this event. The default accountant is the
    /// tightest one.
    #[must_use]
    pub fn new(
        event: PrivacyEvent,
        delta: Delta,
        accountant: Option<Accountant>,
        spent: Vec<PrivacyEvent>,
    ) -> Self {
        Self {
            mechanism: Mechanism::new(event),
            delta,
            accountant: accountant.unwrap_or_else(|| Accountant::tightest_for(&[event])),
            budget: None,
            follows_others: !spent.is_empty(),
            spent,
            side: Vec::new(),
            trials: None,
            conditions: Conditions::default(),
            staleness: None,
            clip_norm: None,
            repeated: 0,
            notes: Vec::new(),
        }
    }

    /// Sets the clip norm of the releases.
    #[must_use]
    pub fn with_clip_norm(self, bound: ClipNorm) -> Self {
        Self {
            clip_norm: Some(bound),
            ..self
        }
    }

    /// Adds facts that a reader of the statement must know.
    pub fn note(&mut self, notes: impl IntoIterator<Item = String>) {
        self.notes.extend(notes);
    }

    /// Adds conditions to every statement of this plan.
    pub fn depend_on(&mut self, conditions: impl IntoIterator<Item = Condition>) {
        self.conditions.extend(conditions);
    }

    /// Returns whether any release is not covered.
    #[must_use]
    pub fn has_uncovered(&self) -> bool {
        self.conditions.any(Effect::NoBound)
    }

    /// Returns the seeds that somebody can know.
    #[must_use]
    pub fn known_seeds(&self) -> Vec<(Randomness, u64)> {
        let known = self.conditions.iter().filter_map(|found| match found {
            Condition::KnownSeed { seed, of } => Some((*of, *seed)),
            _ => None,
        });
        known.collect()
    }

    /// Returns the keys of the values that the user declared public.
    #[must_use]
    pub fn declared(&self) -> Vec<String> {
        let declared = self.conditions.iter().filter_map(|found| match found {
            Condition::Confirmed { key } => Some(key.clone()),
            _ => None,
        });
        declared.collect()
    }

    /// Checks that the accountant has a figure. The last of `count` releases costs most, so an
    /// unaccountable run is refused before it starts.
    ///
    /// # Errors
    /// [`PlanError::Accounting`].
    pub fn is_accountable(&self, count: u64) -> Result<(), PlanError> {
        match self.estimate(count) {
            Ok(_) => Ok(()),
            Err(reason) => Err(PlanError::Accounting {
                accountant: self.accountant.name(),
                reason,
            }),
        }
    }

    /// Returns the smallest z that keeps `count` rounds within a target ε, which becomes the
    /// budget.
    ///
    /// # Errors
    /// [`CalibrationError`] if there is none.
    pub fn for_target(
        &mut self,
        target: Epsilon,
        count: u64,
    ) -> Result<NoiseMultiplier, CalibrationError> {
        if target.get().is_infinite() {
            return Ok(NoiseMultiplier::NONE);
        }
        self.budget = Some(target);
        let problem = CalibrationProblem {
            accountant: self.accountant,
            event: self.event().with_count(count),
            spent: &self.before(count),
            target,
            delta: self.delta,
        };
        let found = match self.trials {
            None => problem.noise_multiplier(),
            Some(trials) => problem.noise_multiplier_of_trials(trials),
        };
        Ok(found?.value)
    }

    /// Returns z of updates, and sets the budget.
    fn noise_multiplier(
        &mut self,
        noise: NoiseAmount,
        rounds: u32,
    ) -> Result<NoiseMultiplier, PlanError> {
        let sends_nothing = self.event().releases == 0;
        if noise.is_none() || sends_nothing {
            return Ok(NoiseMultiplier::NONE);
        }
        if self.clip_norm.is_none() {
            return Err(NoiseAmount::NO_CLIP_NORM);
        }
        let target = match noise {
            NoiseAmount::Multiplier(multiplier) => return Ok(multiplier),
            NoiseAmount::Target(target) => target,
        };
        let is_matrix = |side: &SideReleases| side.event.is_matrix();
        let (epsilon, has_side) = (target.get(), self.side.iter().any(is_matrix));
        self.for_target(target, u64::from(rounds))
            .map_err(|reason| match has_side {
                true => PlanError::MatricesOverBudget { epsilon, reason },
                false => PlanError::Calibration { epsilon, reason },
            })
    }

    /// Returns the event of one round. Its `count` is 1.
    #[must_use]
    pub const fn event(&self) -> PrivacyEvent {
        self.mechanism.event
    }

    /// Returns z: noise std over clip norm.
    #[must_use]
    pub const fn multiplier(&self) -> NoiseMultiplier {
        self.mechanism.multiplier()
    }

    /// Returns whether releases have noise.
    #[must_use]
    pub fn has_noise(&self) -> bool {
        self.multiplier().get() > 0.0
    }

    /// Returns the noise std ν on the sum (on each update with local trust, on each release with
    /// correlated noise), in units of the parameters. 0 if the clip norm changes from round to
    /// round.
    #[must_use]
    pub fn noise_std(&self) -> f64 {
        self.clip_norm
            .map_or(0.0, |clip_norm| self.mechanism.noise_std_at(clip_norm))
    }

    /// Returns the other events in the budget: other runs, and the releases of devices in addition
    /// to the updates of `rounds` rounds.
    fn before(&self, rounds: u64) -> Vec<PrivacyEvent> {
        let side = self.side.iter().filter_map(|side| side.events(rounds));
        self.spent.iter().copied().chain(side).collect()
    }

    /// Returns all events in the budget after `rounds` rounds. This run's event is the last.
    fn events(&self, rounds: u64) -> Vec<PrivacyEvent> {
        let mut events = self.before(rounds);
        // A statement is about the last event.
        if self.event().releases > 0 || events.is_empty() {
            events.push(self.event().with_count(rounds));
        }
        events
    }

    /// Returns the cost of `rounds` rounds by the accountant of this run, together with earlier
    /// events.
    ///
    /// # Errors
    /// [`AccountingError`] if it has no figure. This does not happen up to the planned number of
    /// rounds.
    pub fn estimate(&self, rounds: u64) -> Result<Estimate, AccountingError> {
        self.estimate_of(self.accountant, &self.events(rounds))
    }

    /// Returns the cost of these events, as those of every trial if there are several.
    fn estimate_of(
        &self,
        accountant: Accountant,
        events: &[PrivacyEvent],
    ) -> Result<Estimate, AccountingError> {
        match self.trials {
            None => accountant.epsilon(events, self.delta),
            Some(trials) => {
                let trial = events.to_vec();
                Selection { trials, trial }.estimate(self.delta)
            }
        }
    }

    /// Returns all accounted events after `rounds` rounds, of one trial if there are several. The
    /// updates are last.
    #[must_use]
    pub fn events_of(&self, rounds: u32) -> Vec<PrivacyEvent> {
        self.events(u64::from(rounds))
    }

    /// Returns the number of rounds of the plan, out of `rounds` configured ones: the rounds before
    /// the first one that would exceed the budget. It does not depend on data.
    ///
    /// # Errors
    /// The errors of [`Self::estimate`].
    pub fn planned_rounds(&self, rounds: u32) -> Result<u32, AccountingError> {
        let Some(budget) = self.budget else {
            return Ok(rounds);
        };
        let fits = |rounds: u32| -> Result<bool, AccountingError> {
            Ok(self.estimate(u64::from(rounds))?.epsilon <= budget.get())
        };
        if fits(rounds)? {
            return Ok(rounds);
        }
        let (mut within, mut beyond) = (0, rounds);
        while beyond - within > 1 {
            let middle = within + (beyond - within) / 2;
            match fits(middle)? {
                true => within = middle,
                false => beyond = middle,
            }
        }
        Ok(within)
    }

    /// Returns the plan after these events of the run were charged once more, because the ledger
    /// does not show that their repetitions released the same. ε counts them twice, which is
    /// correct if the noise of both releases is independent. The streams of a simulation follow
    /// from its seed, so the noise may be the same, and the difference of the releases then has
    /// none: the statements of this plan are not a proof.
    #[must_use]
    pub fn with_repeated(&self, repeated: &[PrivacyEvent]) -> Self {
        let mut plan = self.clone();
        let repeated = of_unit(repeated, self.event().unit);
        // A run of answers alone has no updates.
        let is_alone = self.event().releases == 0;
        let is_own = |event: &&PrivacyEvent| {
            let is_matrix = event.is_matrix() == self.event().is_matrix();
            is_alone || (is_matrix && !event.is_beside_updates())
        };
        let rounds: u64 = repeated.iter().filter(is_own).map(|e| e.count).sum();
        if rounds > 0 {
            plan.note([format!(
                "{rounds} of the rounds were repeated, and the ledger does not show that they \
                 released the same as before: each counts twice. That covers both releases only \
                 if their noise is independent; two releases under the same noise reveal their \
                 difference exactly."
            )]);
        }
        plan.repeated += rounds;
        plan.spent.extend(repeated);
        plan.accountant = plan.accountant.composing(&plan.events(1));
        plan
    }

    /// Returns the sentences of the conditions with this effect.
    fn sentences(&self, effect: Effect) -> impl Iterator<Item = String> {
        let conditions = self.conditions.iter();
        let of_effect = conditions.filter(move |condition| condition.effect() == effect);
        of_effect.filter_map(Condition::sentence)
    }

    /// Returns the statements for `rounds` rounds, which were all planned rounds: the statement of
    /// the plan's accountant and, if it is not an upper bound, the sound one as well.
    ///
    /// # Errors
    /// The errors of [`Self::estimate`].
    pub fn statements(&self, rounds: u64) -> Result<Vec<PrivacyStatement>, AccountingError> {
        self.statements_of(rounds, rounds)
    }

    /// Returns the statements if only `done` of the `planned` rounds were run.
    ///
    /// # Errors
    /// The errors of [`Self::estimate`].
    pub fn statements_of(
        &self,
        done: u64,
        planned: u64,
    ) -> Result<Vec<PrivacyStatement>, AccountingError> {
        let (events, all) = (self.events(done), self.events(planned));
        let mut accountants = vec![self.accountant];
        if !self.estimate(done)?.is_upper_bound() {
            accountants.push(Accountant::tightest_for(&events));
        }
        let mut statements = Vec::new();
        for accountant in accountants {
            let estimate = self.estimate_of(accountant, &events)?;
            let made = PrivacyStatement::new(&estimate, &events, self.clip_norm);
            let Some(mut statement) = made else { continue };
            if let Some(trials) = self.trials {
                statement = statement.of_selection(trials, &estimate, &events);
            }
            // Without noise there is no finite ε, and therefore no bound.
            let is_finite = statement.epsilon.is_finite();
            if is_finite {
                let repeated = (self.repeated > 0).then_some(Condition::Repeated);
                let conditions = self.conditions.iter().cloned().chain(repeated);
                statement = conditions.fold(statement, PrivacyStatement::with);
            }
            // With correlated noise and no sampling all rounds are one release. Its cost is a bound
            // for any number of rounds, even one that depends on earlier releases (a filter: the
            // shifts of the remaining rounds are zero).
            let is_one_release = self.event().is_one_release();
            if done < planned && statement.epsilon.is_finite() && !is_one_release {
                let estimate = self.estimate_of(accountant, &all)?;
                statement = statement.stopped_before(&estimate, &all);
            }
            if self.follows_others && statement.epsilon.is_finite() {
                statement = statement.after_other_runs();
            }
            statement.noise_split = self.mechanism.split().map(Into::into);
            statement.staleness = self.staleness;
            let uncovered = self.sentences(Effect::NoBound).filter(|_| is_finite);
            statement.notes.splice(0..0, uncovered);
            statement.notes.extend(self.sentences(Effect::Stated));
            statement.notes.extend(self.notes.iter().cloned());
            statements.push(statement);
        }
        Ok(statements)
    }
}

/// Returns the events that protect this unit. The other unit is accounted for separately.
#[must_use]
pub fn of_unit(events: &[PrivacyEvent], unit: PrivacyUnit) -> Vec<PrivacyEvent> {
    let of_unit = events.iter().filter(|event| event.unit == unit);
    of_unit.copied().collect()
}

impl Updates<'_> {
    /// Returns the accountant of one Gaussian release, if the run is one: it has correlated noise
    /// and no sampling, and nothing else is counted with it.
    fn exact_accountant(&self) -> Option<Accountant> {
        let is_alone = self.side.is_empty() && self.spent.is_empty() && !self.is_ledger_shared;
        let strategy = self.strategy.as_ref();
        let is_unsampled = strategy.is_some_and(|strategy| strategy.sampling_rate().is_none());
        let is_one_release = is_unsampled && self.encoding.grid().is_some();
        (is_one_release && is_alone).then_some(Accountant::AnalyticGaussian)
    }

    /// Returns the event of one round without its noise and its trust model.
    fn event_without_noise(&self) -> Result<PrivacyEvent, PlanError> {
        let noise_multiplier = NoiseMultiplier::NONE;
        let mechanism = match (self.encoding, &self.strategy) {
            (Encoding::Clipped(grid), Some(strategy)) => {
                let (bits, devices) = (grid.bits() as u8, self.sampling.device_count());
                let event = PrivacyEvent::correlated(strategy, noise_multiplier, bits, devices);
                return match event {
                    // Its rounds are charged separately, and are one release together, or one in b.
                    Ok(event) => Ok(event.with_count(1)),
                    Err(reason) => Err(refuse("data.devices", devices)(reason)),
                };
            }
            (Encoding::Clipped(grid), None) => EventMechanism::DiscreteGaussian {
                noise_multiplier,
                grid_bits: grid.bits() as u8,
            },
            // Always without noise, which needs a clip norm.
            (Encoding::Unbounded, _) => EventMechanism::Gaussian { noise_multiplier },
        };
        Ok(PrivacyEvent::new(mechanism, self.sampling, 1))
    }
}

/// Returns the sampler of std at least `z · 2^bits` steps.
fn grid_noise(
    noise_multiplier: NoiseMultiplier,
    bits: u32,
) -> Result<Option<DiscreteGaussian>, PlanError> {
    let value = noise_multiplier.get();
    if value <= 0.0 {
        return Ok(None);
    }
    let steps = value * f64::from(bits).exp2();
    Ok(Some(sampler("privacy.noise_multiplier", value, steps)?.0))
}

/// Returns the sampler of std at least `z s 2^bits 256` steps of the finer grid.
fn combination_noise(
    strategy: &Strategy,
    noise_multiplier: NoiseMultiplier,
    bits: u32,
) -> Result<Option<DiscreteGaussian>, PlanError> {
    let value = noise_multiplier.get();
    if value <= 0.0 {
        return Ok(None);
    }
    let steps = strategy.noise_steps(noise_multiplier, bits as u8);
    Ok(Some(sampler("privacy.noise_multiplier", value, steps)?.0))
}

/// Returns the sampler of a std in grid steps, and its std, which is rounded up. `key` and `value`
/// name the setting in an error.
///
/// # Errors
/// [`PlanError::Range`] if the grid cannot carry it.
pub fn sampler(
    key: &'static str,
    value: f64,
    std: f64,
) -> Result<(DiscreteGaussian, f64), PlanError> {
    sampler_of_std(std).map_err(|reason| PlanError::Range {
        key,
        value: value.to_string(),
        expected: format!("representable on the grid ({reason})"),
    })
}

/// Returns the note on the cost of earlier runs.
#[must_use]
pub fn earlier(spent: &[PrivacyEvent]) -> Option<String> {
    let rounds = spent.iter().filter(|event| !event.is_beside_updates());
    let earlier: u64 = rounds.map(|event| event.count).sum();
    (earlier > 0).then(|| {
        format!(
            "{earlier} of the rounds belong to other runs, which the shared ledger recorded before \
             this run began: the statement covers them together with those of this run."
        )
    })
}

#[cfg(test)]
mod tests;
