//! Correlated noise: all rounds of a run are one release, so an attacker looks at all of them
//! together.
//!
//! A canary sends the longest update along a separate coordinate, and tries to take part in every
//! round. The release path admits it as often and as early as (k, b) participation allows, which is
//! the worst pattern of all families except, in some runs, the tree. The release is Y = C X + Z
//! with independent Z, so the likelihood ratio of the claim is a sum over releases: with s_t the
//! contribution of the canary to release t and σ the noise std, Σ (y_t s_t - s_t²/2) / σ². Where
//! devices are drawn in turn, a canary takes part when it is drawn (`in_turn`). All else is the
//! round that `smolfed run` runs.

mod in_turn;

use std::collections::HashSet;
use std::num::NonZeroU32;
use std::sync::Arc;

use smolfed_accounting::AccountingError;
use smolfed_accounting::correlated::{COEFFICIENT_UNIT, Strategy, StrategyKind};
use smolfed_core::noise::DiscreteGaussian;
use smolfed_core::stream::{Purpose, Root, StreamId, below};
use smolfed_core::train::{TrainError, TrainReport};

use super::Confidence;
use super::attack::{self, Attack, Size};
use super::check::{Check, ERROR};
use super::selection::Scores;
use super::statistics::coins;
use super::tails::{Worst, mean_product, mean_square};
use super::target::TargetError;
use super::view::View;
use crate::attendance::Attendance;
use crate::experiment::Experiment;
use crate::method::contract::{Assignment, Learner, Method, MethodProperties, Store, Trainer};
use crate::method::state::StateError;
use crate::question::Inquiry;
use crate::round::{TrainingLoop, TrainingState};
use crate::source::{CohortSum, Draw, Simulated, Source, SourceError, Step};
use in_turn::InTurn;
use smolfed_data::federation::Federation;
use smolfed_release::PrivacyStatement;
use smolfed_release::{Contribution, Fault};

/// First seed of the direct tests.
const SEEDS: u64 = 6 << 40;
/// Number of values in the direct tests of the noise, in all releases of a run together.
const VALUES: usize = 1 << 18;
/// Entry of a canary's update before clipping, in clip norms.
const LENGTH: f32 = 10.0;

/// An experiment with correlated noise, and possibly an injected fault.
#[derive(Debug, Clone)]
pub struct Correlated<'a> {
    experiment: Experiment,
    federation: &'a Federation,
    /// The accounted strategy.
    strategy: Arc<Strategy>,
    /// The claim about the draw, if devices are drawn in turn.
    in_turn: Option<InTurn>,
    /// z s: the claimed noise std on a release, in clip norms.
    std: f64,
    /// The attacked view.
    view: View,
    /// The claim about all rounds.
    pub claim: PrivacyStatement,
}

impl<'a> Correlated<'a> {
    /// Creates the target of `experiment`. Returns `None` if it has no noise or no correlated
    /// noise.
    ///
    /// # Errors
    /// [`AccountingError`] if the accountant has no figure for it.
    pub fn new(
        experiment: &Experiment,
        federation: &'a Federation,
        fault: Fault,
    ) -> Result<Option<Self>, AccountingError> {
        let fault = fault.compiled();
        let Some(strategy) = &experiment.release.mechanism.strategy else {
            return Ok(None);
        };
        let strategy = Arc::clone(strategy);
        let rounds = experiment.config.rounds;
        let claims = experiment.privacy.statements(u64::from(rounds))?;
        let std = experiment.privacy.multiplier().get() * strategy.sensitivity();
        let in_turn = InTurn::from_experiment(experiment, &strategy);
        let mut experiment = experiment.clone();
        experiment.release.weight_cap = None;
        experiment.config.evaluate_every = 0;
        inject(fault.placed(rounds, &[]), &mut experiment, &strategy);
        Ok(claims.into_iter().next().map(|claim| Self {
            experiment,
            federation,
            strategy,
            in_turn,
            std,
            view: View::default(),
            claim,
        }))
    }

    /// Changes the view to this party's. Where devices are drawn in turn, parties that know the
    /// draw are not attacked: their claim is about each participation separately.
    #[must_use]
    pub fn seen_by(self, view: View) -> Self {
        let claimed = self.experiment.privacy.event();
        let ratio = view.event(claimed).mechanism.noise_multiplier().get()
            / claimed.mechanism.noise_multiplier().get();
        Self {
            std: self.std * ratio,
            view,
            ..self
        }
    }

    /// Returns the views that can be attacked.
    #[must_use]
    pub fn views(&self) -> Vec<View> {
        let mut views = View::for_experiment(&self.experiment);
        views.retain(|view| self.in_turn.is_none() || !view.knows_cohorts());
        views
    }

    /// Returns the attacked view.
    #[must_use]
    pub const fn view(&self) -> View {
        self.view
    }

    /// Returns the number of pairs of runs that takes a few seconds, by the number of combined
    /// entries.
    #[must_use]
    pub fn default_pairs(&self, canaries: u32) -> u32 {
        /// Nanoseconds for a round, and for an entry of a sum.
        const COSTS: [f64; 2] = [60_000.0, 2.0];
        const BUDGET: f64 = 1e10;
        let entries = f64::from(canaries) * self.strategy.kept_sums() as f64;
        let rounds = f64::from(self.experiment.config.rounds);
        let pair = 2.0 * rounds * (COSTS[0] + COSTS[1] * entries);
        (BUDGET / pair).clamp(100.0, 20_000.0) as u32
    }

    /// Returns the releases of one run, round after round. Each is a vector of `coordinates` values
    /// for every release of the round, in clip norms. Canary i has coordinate i, and takes part if
    /// `is_in`.
    fn run(
        &self,
        root: &Root,
        coordinates: usize,
        is_in: &[bool],
    ) -> Result<Vec<Vec<f64>>, TargetError> {
        let canaries = Canaries {
            properties: MethodProperties {
                shared_count: coordinates,
                shares_a_model: false,
                ..MethodProperties::new(*self.experiment.task())
            },
            present: (0..)
                .zip(is_in)
                .filter(|(_, is_in)| **is_in)
                .map(|(i, _)| i)
                .collect(),
        };
        let experiment = Experiment {
            method: Arc::new(canaries.clone()),
            ..self.experiment.clone()
        };
        let state = TrainingState::new(&experiment);
        let mut training = TrainingLoop::new(
            &experiment,
            self.federation,
            root.clone(),
            &state,
            None,
            None,
        )?;
        let mut source = Everywhere {
            devices: Simulated(self.federation),
            canaries: &canaries,
            is_drawn: self.in_turn.is_some(),
        };
        let unit = experiment
            .release
            .encoding
            .grid()
            .map_or(1.0, |grid| grid.clip_norm().get());
        let mut releases = Vec::new();
        while !training.is_done() {
            let round = training.round();
            if let Some(released) = training.step(&mut source)?.released {
                let released =
                    self.view
                        .of_release(released, &experiment, &experiment.release, root, round);
                let values = released.values();
                let in_norms = values.chunks(coordinates.max(1));
                releases.extend(in_norms.map(|values| -> Vec<f64> {
                    values.iter().map(|x| x / f64::from(unit)).collect()
                }));
            }
        }
        Ok(releases)
    }

    /// Returns the accounted contribution of a canary to each release, in clip norms.
    fn signal(&self) -> Vec<f64> {
        let allowed = self.strategy.participation();
        let (b, k) = (allowed.separation(), allowed.participations());
        let takes_part = |round: u32| round.is_multiple_of(b) && round / b < k;
        let count = |rounds: std::ops::RangeInclusive<u32>| {
            rounds.filter(|round| takes_part(*round)).count() as f64
        };
        let of_round = |round: u32| -> Vec<f64> {
            match self.strategy.kind() {
                StrategyKind::Toeplitz(toeplitz) => {
                    let terms = (0..=round).rev().zip(toeplitz.coefficients());
                    let terms = terms.filter(|(round, _)| takes_part(*round));
                    let sum: i64 = terms.map(|(_, m)| m).sum();
                    vec![sum as f64 / COEFFICIENT_UNIT as f64]
                }
                StrategyKind::Tree(tree) => (0..tree.completed(round))
                    .map(|height| count(round + 1 - (1 << height)..=round))
                    .collect(),
            }
        };
        (0..allowed.rounds()).flat_map(of_round).collect()
    }

    /// Attacks `size.canaries` devices.
    ///
    /// # Errors
    /// [`TargetError`] if a round breaks down.
    pub fn attack(&self, size: Size, confidence: Confidence) -> Result<Attack, TargetError> {
        let size = Size {
            canaries: size.canaries.clamp(1, self.federation.device_count()),
            ..size
        };
        let signal = self.signal();
        let run = |root: &Root, is_in: Vec<bool>| -> Result<Scores, TargetError> {
            let releases = self.run(root, is_in.len(), &is_in)?;
            let values = (0..is_in.len()).map(|canary| self.score(&signal, &releases, canary));
            let values: Vec<[f64; 3]> = values.collect();
            let statistic = |index: usize| values.iter().map(|values| values[index]).collect();
            Ok(Scores {
                values: std::array::from_fn(statistic),
                is_in,
            })
        };
        attack::evaluate(size, confidence, |number| {
            let root = Root::from_seed(size.seed.wrapping_add(number));
            let coins = coins(&root, size.canaries);
            let opposite = coins.iter().map(|coin| !coin).collect();
            Ok([run(&root, coins)?, run(&root, opposite)?])
        })
    }

    /// Scores a device that comes whenever it may: by the likelihood ratio of the claim, by the
    /// observed spread instead, which finds a coordinate without noise, and by the part that is
    /// insensitive to noise common to all releases.
    fn score(&self, signal: &[f64], releases: &[Vec<f64>], canary: usize) -> [f64; 3] {
        let value = |release: &Vec<f64>| release.get(canary).copied().unwrap_or(0.0);
        let seen: Vec<f64> = releases.iter().map(value).collect();
        if let Some(in_turn) = &self.in_turn {
            return in_turn.scores(self.std, &seen, canary as u32);
        }
        let n = signal.len().max(1) as f64;
        let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
        let centred = |values: &[f64]| -> Vec<f64> {
            let mean = values.iter().sum::<f64>() / n;
            values.iter().map(|x| x - mean).collect()
        };
        let squares = product(signal, signal);
        let matched = product(&seen, signal);
        let ratio = (matched - squares / 2.0) / (self.std * self.std);
        // The part orthogonal to the signal, scaled to fit.
        let residual = product(&seen, &seen) - matched * matched / squares;
        let spread = (residual / n).max(f64::MIN_POSITIVE).sqrt();
        [
            ratio,
            matched / spread,
            product(&centred(&seen), &centred(signal)),
        ]
    }

    /// Checks whether a device moves the releases of a run by no more than the accounted amount,
    /// and whether the noise has the claimed std and is fresh in each release.
    ///
    /// # Errors
    /// [`TargetError`] if a round breaks down.
    pub fn checks(&self, seed: u64) -> Result<Vec<Check>, TargetError> {
        let root = Root::from_seed(seed.wrapping_add(SEEDS));
        let coordinates = (VALUES / self.signal().len()).max(64);
        let noise = self.run(&root, coordinates, &[])?;
        let noise: Vec<Vec<f64>> = noise
            .iter()
            .map(|values| values.iter().map(|x| x / self.std).collect())
            .collect();
        let mut checks = vec![self.sensitivity(&root)?];
        checks.extend(self.noise(&noise));
        let in_turn = self.in_turn.iter();
        checks.extend(in_turn.flat_map(|in_turn| in_turn.checks(&self.experiment, seed)));
        Ok(checks)
    }

    /// Compares the releases of a run with and without one device, without noise.
    fn sensitivity(&self, root: &Root) -> Result<Check, TargetError> {
        let mut clean = self.clone();
        clean.experiment.release.mechanism.sampler = None;
        in_turn::draw_all(&mut clean.experiment.attendance);
        let with = clean.run(root, 1, &[true])?.concat();
        // Helpers cannot be told to omit their noise. The rest of it is in both runs.
        let without = clean.run(root, 1, &[false])?.concat();
        let releases: Vec<f64> = with.iter().zip(&without).map(|(x, y)| x - y).collect();
        let (test, moved) = match &self.in_turn {
            None => {
                let squares: f64 = releases.iter().map(|x| x * x).sum();
                ("sensitivity of all rounds together", squares.sqrt())
            }
            Some(in_turn) => (
                "sensitivity of one participation",
                in_turn.largest_move(&releases),
            ),
        };
        let claimed = self.strategy.sensitivity();
        Ok(Check {
            test,
            // In steps of the grid both are exact. Here they are rounded.
            is_as_claimed: moved <= claimed * (1.0 + 1e-9),
            evidence: format!("a device moves them by {moved:.4}, claimed: {claimed:.4}"),
        })
    }

    fn noise(&self, releases: &[Vec<f64>]) -> [Check; 2] {
        let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
        let (mut std, mut independence) = (Worst::default(), Worst::default());
        let (mut total, mut count) = (0.0, 0.0);
        for (index, values) in releases.iter().enumerate() {
            let n = values.len() as f64;
            let square = product(values, values);
            (total, count) = (total + square, count + n);
            let square = square / n;
            let words = || format!("release {index}: {:.4}", square.sqrt());
            std.add(mean_square(n, square), words);
            for other in [index + 1, index + 2, releases.len() - 1] {
                if let Some(others) = releases.get(other).filter(|_| other > index) {
                    let mean = product(values, others) / n;
                    let words = || format!("releases {index} and {other}: {mean:.4}");
                    independence.add(mean_product(n, mean), words);
                }
            }
        }
        let mean = total / count;
        std.add(mean_square(count, mean), || "all".to_owned());
        let bits = |values: &Vec<f64>| values.iter().map(|x| x.to_bits()).collect::<Vec<u64>>();
        let different: HashSet<Vec<u64>> = releases.iter().map(bits).collect();
        [
            Check {
                test: "standard deviation of the noise on combinations",
                is_as_claimed: !std.fails(ERROR),
                evidence: format!(
                    "{:.4} of the claimed one in {count} values; worst: {}",
                    mean.sqrt(),
                    std.words
                ),
            },
            Check {
                test: "noise on different combinations",
                is_as_claimed: !independence.fails(ERROR) && different.len() == releases.len(),
                evidence: format!("largest correlation: {}", independence.words),
            },
        ]
    }
}

/// Injects the faults outside the release path.
fn inject(fault: Fault, experiment: &mut Experiment, strategy: &Strategy) {
    /// The std is a multiple of 1 / `DENOMINATOR` of a step.
    const DENOMINATOR: u64 = 1 << 10;
    experiment.release.fault = fault;
    in_turn::inject(fault, experiment);
    experiment.attendance = experiment.attendance.clone().with_fault(fault);
    let bits = experiment
        .release
        .encoding
        .grid()
        .map_or(0, |grid| grid.bits());
    match fault {
        Fault::NoiseTooSmall => {
            let multiplier = experiment.privacy.mechanism.party_multiplier();
            let std = 0.9 * strategy.noise_steps(multiplier, bits as u8);
            let smaller = DiscreteGaussian::new((std * DENOMINATOR as f64) as u64, DENOMINATOR);
            if let Ok(smaller) = smaller {
                experiment.release.mechanism.sampler = Some(smaller);
            }
        }
        Fault::OtherCoefficients => {
            let others = match strategy.kind() {
                StrategyKind::Toeplitz(toeplitz) => toeplitz.coefficients().to_vec(),
                StrategyKind::Tree(tree) => vec![COEFFICIENT_UNIT; 1 << (tree.heights() - 1)],
            };
            let mut others = others;
            others.resize(others.len().max(2), 0);
            others
                .iter_mut()
                .skip(1)
                .for_each(|m| *m = 2 * *m + COEFFICIENT_UNIT);
            let injected = Strategy::from_coefficients(strategy.participation(), others);
            let injected = injected.ok().map(Arc::new);
            // Helpers combine as the coordinator does.
            experiment.privacy.mechanism.strategy.clone_from(&injected);
            experiment.release.mechanism.strategy = injected;
        }
        _ => {}
    }
}

/// Canaries with one coordinate each, which all try to take part in every round.
#[derive(Clone, Debug)]
struct Canaries {
    /// Has the layout of the experiment's model, which is not trained.
    properties: MethodProperties,
    /// The canaries that take part.
    present: Vec<u32>,
}

impl Method for Canaries {
    fn properties(&self) -> &MethodProperties {
        &self.properties
    }

    fn initial(&self, _: &Root) -> Vec<f32> {
        vec![0.0; self.properties.shared_count]
    }

    fn begin<'a>(
        &'a self,
        _: &'a Federation,
        _: Option<Store<'_>>,
    ) -> Result<Box<dyn Learner + 'a>, StateError> {
        Ok(Box::new(Willing))
    }
}

struct Willing;

impl Learner for Willing {
    fn trainer<'a>(&'a self, assignment: &'a Assignment<'a>) -> Box<dyn Trainer + 'a> {
        Box::new(Longest(assignment))
    }
}

/// Sends the longest update along the device's coordinate.
struct Longest<'a>(&'a Assignment<'a>);

impl Trainer for Longest<'_> {
    fn train(
        &mut self,
        device: u32,
        contribution: &mut Contribution<'_>,
    ) -> Result<TrainReport, String> {
        let grid = self.0.release.encoding.grid();
        let grid = grid.ok_or_else(|| TrainError::Diverged.to_string())?;
        let update = contribution.update();
        update.fill(0.0);
        if let Some(entry) = update.get_mut(device as usize) {
            *entry = LENGTH * grid.clip_norm().get();
        }
        let mut report = TrainReport::default();
        let clipped = contribution.clip(&mut report);
        clipped.map_err(|error| error.to_string())?;
        Ok(report)
    }
}

/// A source that asks all canaries in every round, regardless of the timetable. Where devices are
/// drawn in turn, it asks the drawn ones.
struct Everywhere<'a> {
    devices: Simulated<'a>,
    canaries: &'a Canaries,
    /// Whether devices are drawn in turn.
    is_drawn: bool,
}

impl Source for Everywhere<'_> {
    fn draw(
        &mut self,
        attendance: &Attendance,
        root: &Root,
        step: Step,
    ) -> Result<Option<Draw>, SourceError> {
        let Some(mut draw) = self.devices.draw(attendance, root, step)? else {
            return Ok(None);
        };
        let mut cohort = self.canaries.present.clone();
        cohort.retain(|device| !self.is_drawn || draw.cohort.binary_search(device).is_ok());
        if let Some(windows) = attendance.windows() {
            // Each canary has a separate schedule: its updates are of random age.
            let oldest = windows.staleness.min(step.round);
            let version = |device: &u32| {
                let (round, device) = (step.round, *device);
                let mut stream = root.stream(StreamId {
                    purpose: Purpose::CohortSampling,
                    round,
                    device,
                });
                round - below(NonZeroU32::MIN.saturating_add(oldest), &mut stream)
            };
            draw.versions = cohort.iter().map(version).collect();
        }
        draw.cohort = cohort;
        Ok(Some(draw))
    }

    fn sum(
        &mut self,
        assignment: &Assignment<'_>,
        learner: &mut dyn Learner,
        cohort: &[u32],
    ) -> Result<CohortSum, SourceError> {
        self.devices.sum(assignment, learner, cohort)
    }

    fn answers(&mut self, inquiry: &Inquiry<'_>, cohort: &[u32]) -> Result<CohortSum, SourceError> {
        self.devices.answers(inquiry, cohort)
    }
}

#[cfg(test)]
mod tests {
    use smolfed_accounting::Delta;

    use super::*;
    use crate::config::{Config, Override};
    use smolfed_data::DataFolders;

    const TINY: &str = "method = \"dp-fed\"\nrounds = 8\nseed = 7\n[data]\nsource = \
                        \"synthetic\"\ndevices = 24\nsamples_per_device = 2\nfeatures = 2\n\
                        classes = 2\ntest = 4\nvalidation = 0\n[cohort]\nsampling = \
                        \"rotation\"\n[privacy]\nclip_norm = 0.5\nepsilon = 1.0\ndelta = 1e-3\n\
                        mechanism = \"correlated\"\nseparation = 3\n";

    /// Returns the failed checks, and the largest lower bound on ε. The claim is 1.
    fn audited(fault: Fault, settings: &[&str], pairs: u32) -> (Vec<&'static str>, f64) {
        let overrides: Vec<Override> = settings.iter().map(|s| s.parse().unwrap()).collect();
        let config = Config::parse(TINY, "test", &overrides).unwrap();
        let folders = DataFolders::new(Vec::new());
        let federation = Federation::new(&config.data, &folders, config.seed).unwrap();
        let experiment = Experiment::new(config, &federation).unwrap();
        let target = Correlated::new(&experiment, &federation, fault)
            .unwrap()
            .unwrap();
        assert!((target.claim.epsilon - 1.0).abs() < 1e-3);
        let checks = target.checks(3).unwrap();
        let failed = checks.iter().filter(|check| !check.is_as_claimed);
        let failed = failed.map(|check| check.test).collect();
        if pairs == 0 {
            return (failed, 0.0);
        }
        let size = Size {
            seed: 1,
            pairs,
            canaries: 24,
        };
        let confidence = Confidence {
            delta: Delta::new(1e-3).unwrap(),
            // A fault is either found or not. A correct claim must hold with more confidence.
            error: if fault == Fault::None { 1e-6 } else { 1e-2 },
        };
        let attack = target.attack(size, confidence).unwrap();
        let bounds = attack.findings.iter().map(|finding| finding.epsilon_low);
        (failed, bounds.fold(0.0, f64::max))
    }

    const SENSITIVITY: &str = "sensitivity of all rounds together";
    const STD: &str = "standard deviation of the noise on combinations";
    const FRESH: &str = "noise on different combinations";

    /// The direct tests fail with a probability below 3e-7, and the bound is wrong with 1e-6.
    #[test]
    fn what_is_claimed_holds() {
        let (failed, epsilon) = audited(Fault::None, &[], 100);
        assert_eq!(failed, [""; 0]);
        assert!(epsilon > 0.1 && epsilon <= 1.0, "{epsilon}");
        for family in ["identity", "tree", "square-root"] {
            let setting = format!("privacy.family={family}");
            assert_eq!(audited(Fault::None, &[&setting], 0).0, [""; 0], "{family}");
        }
    }

    #[test]
    fn coefficients_other_than_those_accounted_are_found() {
        let (failed, epsilon) = audited(Fault::OtherCoefficients, &[], 250);
        assert_eq!(failed, [SENSITIVITY]);
        assert!(epsilon > 1.0, "{epsilon}");
    }

    #[test]
    fn a_device_that_is_let_in_early_is_found() {
        let (failed, epsilon) = audited(Fault::DeviceLetInEarly, &[], 100);
        assert_eq!(failed, [SENSITIVITY]);
        assert!(epsilon > 1.0, "{epsilon}");
        let tree = ["privacy.family=tree"];
        assert_eq!(audited(Fault::DeviceLetInEarly, &tree, 0).0, [SENSITIVITY]);
    }

    const DRAWN: [&str; 1] = ["cohort={sampling=\"block-cyclic\",cohort_size=4}"];
    const PARTICIPATION: &str = "sensitivity of one participation";
    const RATE: &str = "rate of the cohorts in each part";
    const TURNS: &str = "cohorts of two turns";

    /// As above, every direct test fails by chance with a probability of at most 1e-7.
    #[test]
    fn what_is_claimed_of_devices_that_are_drawn_in_turn_holds() {
        let (failed, epsilon) = audited(Fault::None, &DRAWN, 100);
        assert_eq!(failed, [""; 0]);
        assert!(epsilon <= 1.0, "{epsilon}");
    }

    #[test]
    fn a_draw_other_than_the_accounted_one_is_found() {
        let larger = audited(Fault::SamplingRateTooLarge, &DRAWN, 0);
        assert!(larger.0.contains(&RATE), "{larger:?}");
        assert_eq!(audited(Fault::TurnsAlike, &DRAWN, 0).0, [TURNS]);
        // From all devices instead of the round's part.
        let (failed, epsilon) = audited(Fault::DeviceLetInEarly, &DRAWN, 250);
        assert_eq!(failed, [PARTICIPATION, RATE, TURNS]);
        assert!(epsilon > 1.0, "{epsilon}");
        let others = audited(Fault::OtherCoefficients, &DRAWN, 0);
        assert_eq!(others.0, [PARTICIPATION]);
        assert_eq!(audited(Fault::NoiseTooSmall, &DRAWN, 0).0, [STD]);
    }

    const WINDOWS: [&str; 1] = ["cohort={sampling=\"buffered\",cohort_size=4,staleness=1}"];

    /// Canaries send updates of random age. As above, every direct test fails by chance with a
    /// probability of at most 1e-7.
    #[test]
    fn what_is_claimed_of_windows_holds_and_their_faults_are_found() {
        let (failed, epsilon) = audited(Fault::None, &WINDOWS, 100);
        assert_eq!(failed, [""; 0]);
        assert!(epsilon > 0.1 && epsilon <= 1.0, "{epsilon}");
        // Neither b nor k is checked when an update arrives.
        let (failed, epsilon) = audited(Fault::DeviceLetInEarly, &WINDOWS, 100);
        assert_eq!(failed, [SENSITIVITY]);
        assert!(epsilon > 1.0, "{epsilon}");
        assert_eq!(audited(Fault::NoiseTooSmall, &WINDOWS, 0).0, [STD]);
    }

    #[test]
    fn noise_that_is_stale_or_too_small_is_found() {
        assert_eq!(audited(Fault::NoiseTooSmall, &[], 0).0, [STD]);
        assert_eq!(audited(Fault::NoiseSharedByTwoRounds, &[], 0).0, [FRESH]);
        assert!(audited(Fault::NoNoiseInLastRound, &[], 0).0.contains(&STD));
        let (failed, epsilon) = audited(Fault::NoiseStreamReused, &[], 100);
        assert!(failed.contains(&FRESH), "{failed:?}");
        assert!(epsilon > 1.0, "{epsilon}");
    }
}
