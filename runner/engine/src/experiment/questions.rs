//! `[[questions]]`: the cost of each question, and its release.
//!
//! A question draws a separate cohort and is a separate event: answers and updates of one cohort
//! would be one release with both noises, and counting them as two sampled ones would be too
//! little. Its number differs from all rounds ([`number_of`]), so no random stream covers two
//! releases.
//!
//! If no noise is given for them, all questions of a run share the noise that costs the share
//! `privacy.questions` of a target. Rounds are then calibrated to the rest, jointly with all
//! answers. Where helpers add the noise, answers have the noise of the rounds, and both are
//! calibrated together.

mod reading;

use std::num::NonZeroU32;

use smolfed_accounting::accountant::Accountant;
use smolfed_accounting::event::{Mechanism, PrivacyEvent, PrivacyUnit, Sampling, TrustModel};
use smolfed_accounting::params::{Delta, NoiseMultiplier, SamplingRate};
use smolfed_core::quantize::DEFAULT_BITS;
use smolfed_core::question::Dimensions;

use super::keys::Keys;
use crate::attendance::Attendance;
use crate::check::{ExperimentError, out_of_range, refuse};
use crate::config::Config;
use crate::question::AskedQuestion;
use crate::tables::question::QuestionConfig;
use reading::{check_format, name, question, range};
use smolfed_data::federation::Federation;
use smolfed_release::masking::Masking;
use smolfed_release::number::{counted, lower, upper};
use smolfed_release::origin::Origin;
use smolfed_release::plan::{
    NoiseAmount, PlanError, PrivacyKeys, SideReleases, of_unit, release_of_all, sampler,
};
use smolfed_release::schedule::Schedule;
use smolfed_release::{Channel, ReleaseSettings};

/// Key of the noise.
const NOISE: &str = "questions.noise_multiplier";
/// Key of the share of a target.
const SHARE: &str = "privacy.questions";
/// Default share.
const DEFAULT_SHARE: f64 = 0.1;
/// Default confidence of intervals.
const DEFAULT_CONFIDENCE: f64 = 0.99;
/// Maximum number of questions in an experiment. A charge names each by a number of 8 bits.
const MAX_QUESTIONS: usize = 64;
/// Maximum number of entries in an answer.
const MAX_ENTRIES: usize = 1 << 16;

/// The questions of an experiment, before the noise of its rounds is known.
#[derive(Debug)]
pub(super) struct Drafts {
    drafts: Vec<Draft>,
    /// Whether helpers add the noise, so answers have the noise of the rounds.
    has_noise_of_rounds: bool,
}

/// A question in preparation.
#[derive(Debug)]
struct Draft {
    asked: AskedQuestion,
    /// z, as configured.
    given: Option<NoiseMultiplier>,
}

impl Drafts {
    /// Prepares the questions with separate noise, except with helpers. `is_alone` says whether
    /// devices send no updates, so that answers may cost the whole target.
    ///
    /// # Errors
    /// [`ExperimentError`] for the first invalid key, and if no noise meets the share of a target.
    pub(super) fn new(
        config: &Config,
        federation: &Federation,
        keys: &Keys,
        spent: &[PrivacyEvent],
        is_alone: bool,
    ) -> Result<Self, ExperimentError> {
        let found = config.questions.len();
        if found > MAX_QUESTIONS {
            let expected = format!("at most {MAX_QUESTIONS}");
            return Err(out_of_range("questions", found as f64, &expected));
        }
        let tables = (0..).zip(&config.questions);
        let format = config.simulation.feature_format();
        let drafts = tables
            .map(|(index, table)| {
                if let Some(format) = format {
                    check_format(table, format)?;
                }
                draft(index, table, config.rounds, federation, keys)
            })
            .collect::<Result<_, _>>()?;
        Ok(Self {
            drafts: priced(drafts, config, &keys.privacy, spent, is_alone)?,
            has_noise_of_rounds: matches!(keys.privacy.trust, TrustModel::Distributed(_)),
        })
    }

    /// Returns the cost and schedule of the questions: first those with separate noise, then those
    /// with the noise of the rounds.
    pub(super) fn sides(&self) -> [Vec<SideReleases>; 2] {
        let drafts = self.drafts.iter();
        let sides = drafts.map(|draft| draft.asked.side.clone()).collect();
        match self.has_noise_of_rounds {
            false => [sides, Vec::new()],
            true => [Vec::new(), sides],
        }
    }

    /// Returns the questions with their noise: separate, or from the rounds under masks.
    ///
    /// # Errors
    /// [`ExperimentError`] if the grid cannot carry the noise.
    pub(super) fn with_noise(
        self,
        rounds: &smolfed_release::Mechanism,
        masking: Option<Masking>,
        origin: &Origin,
    ) -> Result<Vec<AskedQuestion>, ExperimentError> {
        let is_simulation = origin.is_simulation();
        let drafts = self.drafts.into_iter();
        drafts
            .map(|draft| draft.with_noise(rounds, masking, is_simulation))
            .collect()
    }
}

fn draft(
    index: u8,
    table: &QuestionConfig,
    rounds: u32,
    federation: &Federation,
    keys: &Keys,
) -> Result<Draft, ExperimentError> {
    let dimensions = Dimensions {
        features: federation.feature_count(),
        classes: federation.class_count().unwrap_or(0),
    };
    let question = question(table, &dimensions)?;
    let length = question.length(&dimensions);
    if length > MAX_ENTRIES {
        let expected = format!("one with an answer of at most {MAX_ENTRIES} numbers");
        return Err(range("questions.kind", table.kind.name(), expected));
    }
    let confidence = table.confidence.unwrap_or(DEFAULT_CONFIDENCE);
    if !(0.5..=0.999_999).contains(&confidence) {
        let expected = "from 0.5 to 0.999999";
        return Err(out_of_range("questions.confidence", confidence, expected));
    }
    let (sampling, attendance) = cohort(table, keys)?;
    let bits = keys
        .encoding
        .grid()
        .map_or(DEFAULT_BITS, |grid| grid.bits());
    let mechanism = Mechanism::Answer {
        noise_multiplier: NoiseMultiplier::NONE,
        // At most 24.
        grid_bits: bits as u8,
        question: index,
    };
    let event = event(mechanism, sampling, keys)?;
    let given = table.noise_multiplier;
    let given = given.map(|value| NoiseMultiplier::new(value).map_err(refuse(NOISE, value)));
    let release = ReleaseSettings::of_numbers(Channel::Answers, event, None, bits);
    let release = release.ok_or_else(|| out_of_range("privacy.grid_bits", bits.into(), "lower"))?;
    let schedule = match table.every {
        0 => Schedule {
            from: rounds.saturating_sub(1),
            every: u32::MAX,
        },
        every => Schedule {
            from: every - 1,
            every,
        },
    };
    Ok(Draft {
        asked: AskedQuestion {
            index,
            name: table.name.clone().unwrap_or_else(|| name(table)),
            question,
            dimensions,
            samples: table.samples,
            attendance,
            side: SideReleases {
                event,
                schedule,
                max_releases: u32::MAX,
            },
            release,
            confidence,
            target_unit: federation.target_scale().std(),
        },
        given: given.transpose()?,
    })
}

/// Returns the cohort of a question: as in the rounds, with a separate size if it has one. Devices
/// that are not drawn at random are all asked.
fn cohort(table: &QuestionConfig, keys: &Keys) -> Result<(Sampling, Attendance), ExperimentError> {
    let sampling = keys.sampling;
    if keys.correlated.is_some() || keys.window_bound.is_some() {
        let all = all_of(sampling)?;
        return Ok((all, Attendance::Drawn(all)));
    }
    let Some(size) = table.cohort_size else {
        return Ok((sampling, keys.attendance.clone()));
    };
    const KEY: &str = "questions.cohort_size";
    let devices = sampling.device_count();
    let size = NonZeroU32::new(size).filter(|size| size.get() <= devices);
    let Some(size) = size else {
        let expected = format!("from 1 to {devices}, the number of devices");
        let found = f64::from(table.cohort_size.unwrap_or(0));
        return Err(out_of_range(KEY, found, &expected));
    };
    let drawn = match sampling {
        Sampling::Poisson { .. } => {
            let rate = f64::from(size.get()) / f64::from(devices);
            let rate = SamplingRate::new(rate).map_err(refuse(KEY, size))?;
            Sampling::poisson(devices, rate)
        }
        _ => Sampling::uniform(devices, size.get()),
    };
    let drawn = drawn.map_err(refuse(KEY, size))?;
    Ok((drawn, Attendance::Drawn(drawn)))
}

/// Returns all devices, with the adjacency of this sampling.
fn all_of(sampling: Sampling) -> Result<Sampling, ExperimentError> {
    let mechanism = Mechanism::Gaussian {
        noise_multiplier: NoiseMultiplier::NONE,
    };
    let devices = sampling.device_count();
    let event = release_of_all(mechanism, devices, sampling, TrustModel::Central, 1)?;
    Ok(event.sampling)
}

/// Returns the event of one answer, without its noise.
fn event(
    mechanism: Mechanism,
    sampling: Sampling,
    keys: &Keys,
) -> Result<PrivacyEvent, ExperimentError> {
    let event = PrivacyEvent {
        trust: keys.privacy.trust,
        ..PrivacyEvent::new(mechanism, sampling, 1)
    };
    let devices = keys.privacy.devices_per_user;
    let event = event.with_devices_per_user(devices);
    event.map_err(refuse("privacy.devices_per_user", devices))
}

/// Sets the noise of all questions, except where helpers add it and the rounds decide.
///
/// # Errors
/// [`ExperimentError`] if no noise meets the share of the target.
fn priced(
    mut drafts: Vec<Draft>,
    config: &Config,
    keys: &PrivacyKeys,
    spent: &[PrivacyEvent],
    is_alone: bool,
) -> Result<Vec<Draft>, ExperimentError> {
    let share = share(config.privacy.questions, is_alone)?;
    if config.privacy.questions.is_some() && drafts.is_empty() {
        return Err(ExperimentError::Missing {
            key: "questions",
            purpose: "`privacy.questions` is their share of epsilon",
        });
    }
    if matches!(keys.trust, TrustModel::Distributed(_)) {
        return Ok(drafts);
    }
    let open = drafts.iter().filter(|draft| draft.given.is_none());
    let open = open.filter_map(|draft| draft.events(config.rounds));
    let open: Vec<PrivacyEvent> = open.collect();
    // Without rounds that cover them, all other costs must fit into the target.
    let given = drafts.iter().filter_map(|draft| {
        let event = draft.events(config.rounds)?;
        Some(event.with_noise_multiplier(draft.given?))
    });
    let other = of_unit(spent, PrivacyUnit::Device).into_iter().chain(given);
    let other: Vec<PrivacyEvent> = other.collect();
    let common = match keys.noise {
        _ if open.is_empty() => NoiseMultiplier::NONE,
        // As much as in the rounds.
        NoiseAmount::Multiplier(multiplier) => multiplier,
        NoiseAmount::Target(target) if target.get().is_infinite() => NoiseMultiplier::NONE,
        NoiseAmount::Target(target) => Share {
            epsilon: share * target.get(),
            delta: keys.delta,
            before: if is_alone { other } else { Vec::new() },
            open,
            accountant: keys.accountant,
        }
        .noise_multiplier()?,
    };
    for draft in &mut drafts {
        let multiplier = draft.given.unwrap_or(common);
        let side = &mut draft.asked.side;
        side.event = side.event.with_noise_multiplier(multiplier);
    }
    leave_something(&drafts, config.rounds, keys, is_alone)?;
    Ok(drafts)
}

/// Returns the share of a target that answers may cost.
fn share(given: Option<f64>, is_alone: bool) -> Result<f64, ExperimentError> {
    let (default, expected) = match is_alone {
        true => (1.0, "above 0 and at most 1"),
        false => (DEFAULT_SHARE, "above 0 and below 1"),
    };
    let share = given.unwrap_or(default);
    match share > 0.0 && (share < 1.0 || is_alone && share <= 1.0) {
        true => Ok(share),
        false => Err(out_of_range(SHARE, share, expected)),
    }
}

/// Refuses answers that cost the whole target, so no noise is enough for the rounds.
fn leave_something(
    drafts: &[Draft],
    rounds: u32,
    keys: &PrivacyKeys,
    is_alone: bool,
) -> Result<(), ExperimentError> {
    let given = drafts.iter().filter_map(|draft| draft.given);
    let smallest = given.map(NoiseMultiplier::get).reduce(f64::min);
    let (Some(smallest), NoiseAmount::Target(target)) = (smallest, keys.noise) else {
        return Ok(());
    };
    let events = drafts.iter().filter_map(|draft| draft.events(rounds));
    let events: Vec<PrivacyEvent> = events.collect();
    let accountant = Accountant::tightest_for(&events);
    let found = accountant.epsilon(&events, keys.delta);
    let epsilon = found.map_or(f64::INFINITY, |found| found.epsilon);
    let fits = epsilon < target.get() || is_alone && epsilon <= target.get();
    match fits || target.get().is_infinite() {
        true => Ok(()),
        false => {
            let cost = upper(epsilon, 4);
            let expected = format!(
                "larger: all answers together cost an epsilon of {cost}, and `privacy.epsilon` is \
                 {}",
                target.get()
            );
            Err(out_of_range(NOISE, smallest, &expected))
        }
    }
}

impl Draft {
    /// Returns the event of its answers in this many rounds, or `None` if it is never asked.
    fn events(&self, rounds: u32) -> Option<PrivacyEvent> {
        let side = &self.asked.side;
        let count = side.schedule.count(rounds);
        (count > 0).then(|| side.event.with_count(count.into()))
    }

    /// Returns the question with its noise: separate, or from the rounds under masks.
    ///
    /// # Errors
    /// [`ExperimentError`] if the grid cannot carry the noise.
    fn with_noise(
        self,
        rounds: &smolfed_release::Mechanism,
        masking: Option<Masking>,
        is_simulation: bool,
    ) -> Result<AskedQuestion, ExperimentError> {
        let mut asked = self.asked;
        if masking.is_some() {
            let event = asked.side.event;
            asked.side.event = event.with_noise_multiplier(rounds.multiplier());
        }
        let event = asked.side.event;
        let of_party = smolfed_release::Mechanism::independent(event, None).party_multiplier();
        let noise = match of_party.get() > 0.0 {
            false => None,
            true => {
                let steps = of_party.get() / asked.release.encoding.step();
                Some(sampler(NOISE, of_party.get(), steps)?.0)
            }
        };
        asked.release = ReleaseSettings {
            mechanism: smolfed_release::Mechanism::independent(event, noise),
            masking,
            noise_std: of_party.get(),
            is_simulation,
            ..asked.release
        };
        Ok(asked)
    }
}

/// Answers that may cost a share of a target.
struct Share {
    epsilon: f64,
    delta: Delta,
    /// Events that already count against it.
    before: Vec<PrivacyEvent>,
    /// Answers with unknown noise.
    open: Vec<PrivacyEvent>,
    accountant: Option<Accountant>,
}

impl Share {
    /// Returns the smallest z with which the answers cost no more, within a thousandth.
    fn noise_multiplier(&self) -> Result<NoiseMultiplier, ExperimentError> {
        const LARGEST: f64 = 1e7;
        let mut high = 1.0;
        while !self.fits(high)? {
            high *= 2.0;
            if high > LARGEST {
                let expected = "larger: no noise keeps the answers within their share of epsilon";
                return Err(out_of_range(SHARE, self.epsilon, expected));
            }
        }
        let mut low = high / 2.0;
        while low > 1e-3 && self.fits(low)? {
            (low, high) = (low / 2.0, low);
        }
        while high / low > 1.001 {
            let middle = (low * high).sqrt();
            match self.fits(middle)? {
                true => high = middle,
                false => low = middle,
            }
        }
        NoiseMultiplier::new(high).map_err(refuse(NOISE, high))
    }

    fn fits(&self, z: f64) -> Result<bool, ExperimentError> {
        let multiplier = NoiseMultiplier::new(z).map_err(refuse(NOISE, z))?;
        let open = self.open.iter();
        let open = open.map(|event| event.with_noise_multiplier(multiplier));
        let events: Vec<PrivacyEvent> = self.before.iter().copied().chain(open).collect();
        let tightest = || Accountant::tightest_for(&events);
        let accountant = self.accountant.unwrap_or_else(tightest);
        let found = accountant.epsilon(&events, self.delta);
        let found = found.map_err(|reason| PlanError::Accounting {
            accountant: accountant.name(),
            reason,
        })?;
        Ok(found.epsilon <= self.epsilon)
    }
}

/// Returns the number of `round` among all rounds and questions of a run in chronological order.
/// The questions after it have the subsequent numbers.
pub(crate) fn number_of(questions: &[AskedQuestion], round: u32) -> u32 {
    let asked = |question: &AskedQuestion| question.side.schedule.count(round);
    let before: u32 = questions.iter().map(asked).fold(0, u32::saturating_add);
    round.saturating_add(before)
}

/// Returns the note of the privacy statement, or `None` without questions.
pub(super) fn note(questions: &[AskedQuestion], rounds: u32) -> Option<String> {
    let asked = |question: &AskedQuestion| {
        let count = question.side.schedule.count(rounds);
        let z = question.side.event.mechanism.noise_multiplier().get();
        let (times, z) = (counted(count.into(), "time"), lower(z, 5));
        format!(
            "\"{}\" {times} with a noise multiplier of {z}",
            question.name
        )
    };
    let asked: Vec<String> = questions.iter().map(asked).collect();
    (!asked.is_empty()).then(|| {
        format!(
            "Devices answer questions about their samples, each with its own cohort and noise: {}. \
             Epsilon includes all of these answers.",
            asked.join(", ")
        )
    })
}

#[cfg(test)]
mod tests;
