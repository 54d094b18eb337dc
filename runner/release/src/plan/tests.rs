//! The events that a plan counts, and its statements.

use smolfed_accounting::Parties;
use smolfed_accounting::correlated::{Family, Participation};
use smolfed_accounting::params::SamplingRate;
use smolfed_core::quantize::Grid;

use super::*;
use crate::condition::Conditions;

/// Bits of the grid of the updates.
const BITS: u32 = 12;

fn noise(multiplier: f64) -> NoiseMultiplier {
    NoiseMultiplier::new(multiplier).unwrap()
}

fn clip_norm(value: f64) -> ClipNorm {
    ClipNorm::new(value).unwrap()
}

fn poisson() -> Sampling {
    Sampling::poisson(1_000, SamplingRate::new(0.05).unwrap()).unwrap()
}

/// Returns the release of a round: z = 1, and each device with probability 1/20.
fn event(mechanism: fn(NoiseMultiplier) -> EventMechanism) -> PrivacyEvent {
    PrivacyEvent::new(mechanism(noise(1.0)), poisson(), 1)
}

fn update() -> PrivacyEvent {
    event(|noise_multiplier| EventMechanism::Gaussian { noise_multiplier })
}

fn matrix() -> PrivacyEvent {
    event(|noise_multiplier| EventMechanism::CorrelationMatrix { noise_multiplier })
}

fn moments() -> PrivacyEvent {
    event(|noise_multiplier| EventMechanism::Moments {
        noise_multiplier,
        grid_bits: 20,
    })
}

fn score() -> PrivacyEvent {
    event(|noise_multiplier| EventMechanism::Score {
        noise_multiplier,
        grid_bits: 20,
    })
}

fn plan() -> PrivacyPlan {
    let delta = Delta::new(1e-5).unwrap();
    PrivacyPlan::new(update(), delta, Some(Accountant::Rdp), Vec::new())
}

#[test]
fn a_side_release_counts_in_each_round_of_it_up_to_the_last() {
    for (from, every, max_releases) in [(0, 1, 3), (2, 3, 2), (5, 1, 1), (0, 2, 0)] {
        let side = SideReleases {
            event: matrix(),
            schedule: Schedule { from, every },
            max_releases,
        };
        for rounds in 0..12 {
            let due: Vec<PrivacyEvent> = (0..rounds).filter_map(|t| side.event_in(t)).collect();
            let count = due.len() as u64;
            let expected = (count > 0).then(|| matrix().with_count(count));
            assert_eq!(side.events(u64::from(rounds)), expected, "{rounds}");
            assert!(due.iter().all(|event| *event == matrix()));
            assert!(count <= u64::from(max_releases));
        }
        assert_eq!(side.event_in(from).is_some(), max_releases > 0);
    }
}

#[test]
fn the_bit_has_at_least_twice_the_noise_of_the_updates_by_default() {
    let total = noise(3.0);
    for (least, std) in [(1.0, 6.0), (7.0, 7.0)] {
        let split = BitNoise::Default(least).split(total).unwrap();
        assert_eq!(split.bit.get(), 2.0 * std);
    }
    let refusal = BitNoise::Given(1.5).split(total).unwrap_err().to_string();
    assert!(refusal.contains("above 1.5"), "{refusal}");
}

/// Only rounds of updates are rounds: moments and scores are released once per run.
#[test]
fn rounds_of_other_runs_are_said() {
    assert_eq!(earlier(&[]), None);
    assert_eq!(earlier(&[moments(), score()]), None);
    let said = earlier(&[moments(), update().with_count(7), score()]).unwrap();
    assert!(said.starts_with("7 of the rounds"), "{said}");
}

#[test]
fn the_planned_rounds_are_those_within_the_budget() {
    let epsilon = |rounds| plan().estimate(rounds).unwrap().epsilon;
    assert_eq!(plan().planned_rounds(40).unwrap(), 40);
    for within in [0, 1, 2, 20, 39, 40] {
        // Spent exactly, and slightly less than one round more.
        let budgets = [epsilon(within), 0.999 * epsilon(within + 1)];
        for budget in budgets.into_iter().filter(|budget| *budget > 0.0) {
            let mut plan = plan();
            plan.budget = Some(Epsilon::new(budget).unwrap());
            assert_eq!(plan.planned_rounds(40).unwrap(), within as u32, "{budget}");
        }
    }
}

#[test]
fn what_is_not_covered_leaves_no_proof() {
    let mut plan = plan();
    assert!(!plan.has_uncovered());
    assert!(plan.statements(3).unwrap()[0].is_upper_bound());
    plan.depend_on([Condition::InitialModel]);
    assert!(plan.has_uncovered());
    let statements = plan.statements(3).unwrap();
    assert!(!statements[0].is_upper_bound());
    let sentence = Condition::InitialModel.sentence();
    assert_eq!(Some(&statements[0].notes[0]), sentence.as_ref());
}

#[test]
fn what_was_declared_public_is_named_by_its_key() {
    let mut plan = plan();
    assert!(plan.declared().is_empty());
    let key = "data.classes".to_owned();
    plan.depend_on([Condition::InitialModel, Condition::Confirmed { key }]);
    assert_eq!(plan.declared(), ["data.classes"]);
}

/// Repeated rounds count once more, with everything they release. Those of messages belong to
/// another statement.
#[test]
fn repeated_rounds_count_again_and_are_said() {
    let said = |plan: &PrivacyPlan| {
        let statements = plan.statements(3).unwrap();
        let notes = statements[0].notes.iter();
        let mut notes = notes.filter(|note| note.contains("were repeated"));
        let number = notes
            .next()
            .map(|note| note.split(' ').next().unwrap().to_owned());
        (number, statements[0].is_upper_bound())
    };
    assert_eq!(said(&plan().with_repeated(&[])), (None, true));
    let repeated = [moments(), score(), matrix(), update().with_count(5)];
    let plan = plan().with_repeated(&repeated);
    assert_eq!(plan.spent, repeated);
    assert_eq!(said(&plan), (Some("5".to_owned()), false));
    // Answers alone have no updates that could be repeated.
    let mut alone = updates(NoiseAmount::Multiplier(noise(1.0)));
    alone.timing = Timing::Never;
    alone.side = vec![SideReleases::once(moments(), 0)];
    let alone = built(alone);
    assert_eq!(said(&alone), (None, true));
    let alone = alone.with_repeated(&[moments()]);
    assert_eq!(said(&alone), (Some("1".to_owned()), false));
}

/// Returns five rounds of clipped updates with this noise, clip norm 1/2, added by the server.
fn updates(noise: NoiseAmount) -> Updates<'static> {
    let grid = Grid::new(smolfed_core::params::ClipNorm::new(0.5).unwrap(), BITS);
    Updates {
        rounds: 5,
        keys: PrivacyKeys {
            delta: Delta::new(1e-5).unwrap(),
            accountant: None,
            trust: TrustModel::Central,
            clip_norm: Some(clip_norm(0.5)),
            max_epsilon: None,
            noise,
            devices_per_user: 1,
            bit_noise: None,
        },
        sampling: poisson(),
        strategy: None,
        encoding: Encoding::Clipped(grid.unwrap()),
        timing: Timing::EachRound,
        noise_scale: 1.0,
        side: Vec::new(),
        with_noise_of_rounds: Vec::new(),
        trials: None,
        spent: &[],
        is_ledger_shared: false,
        conditions: Conditions::default(),
        staleness: None,
        notes: Vec::new(),
    }
}

fn built(updates: Updates<'_>) -> PrivacyPlan {
    PrivacyPlan::of_updates(updates).unwrap()
}

/// Returns the std of a sampler, in steps.
fn steps(sampler: Option<DiscreteGaussian>) -> f64 {
    let (numerator, denominator) = sampler.unwrap().sigma().ratio();
    numerator as f64 / denominator as f64
}

#[test]
fn what_a_round_does_is_what_is_charged() {
    let mut updates = updates(NoiseAmount::Multiplier(noise(1.5)));
    updates.keys.trust = TrustModel::Local;
    updates.timing = Timing::EachStep(4);
    updates.noise_scale = 2.0;
    let plan = built(updates);
    let mechanism = EventMechanism::DiscreteGaussian {
        noise_multiplier: noise(3.0),
        grid_bits: 12,
    };
    let expected = PrivacyEvent {
        trust: TrustModel::Local,
        releases: 4,
        ..PrivacyEvent::new(mechanism, poisson(), 1)
    };
    assert_eq!(plan.event(), expected);
    assert_eq!(plan.events_of(3), [expected.with_count(3)]);
    assert!(plan.mechanism.is_local() && plan.has_noise());
    // The drawn noise is the claimed noise, in steps of the grid and in units of the parameters.
    assert_eq!(steps(plan.mechanism.sampler), 3.0 * 4_096.0);
    assert_eq!(plan.noise_std(), 1.5);
    assert_eq!(plan.mechanism.noise_std_at(clip_norm(0.25)), 0.75);
    assert!(plan.mechanism.split().is_none() && plan.mechanism.bit.is_none());
}

/// Without rounds, nothing adds the noise that other releases would share. They still count.
#[test]
fn releases_with_the_noise_of_absent_rounds_count_without_noise() {
    let mut updates = updates(NoiseAmount::Multiplier(noise(1.5)));
    updates.timing = Timing::Never;
    updates.with_noise_of_rounds = vec![SideReleases::once(moments(), 0)];
    let plan = PrivacyPlan::of_updates(updates);
    let without_noise = moments().with_noise_multiplier(NoiseMultiplier::NONE);
    assert_eq!(plan.unwrap().events_of(1), [without_noise]);
}

#[test]
fn an_adaptive_clip_norm_splits_the_noise_if_there_is_some() {
    for (multiplier, has_noise) in [(0.0, false), (1.5, true)] {
        let mut updates = updates(NoiseAmount::Multiplier(noise(multiplier)));
        updates.keys.bit_noise = Some(BitNoise::Given(2.0));
        let plan = built(updates);
        assert_eq!(plan.has_noise(), has_noise);
        assert_eq!(plan.mechanism.sampler.is_some(), has_noise);
        assert_eq!(plan.mechanism.split().is_some(), has_noise);
        assert!(!plan.mechanism.is_local() && plan.noise_std() == 0.0);
        if has_noise {
            // z_b = 2 * 2, and z_update = (1.5^-2 - 4^-2)^(-1/2) = 1.618.
            assert_eq!(
                steps(plan.mechanism.bit.and_then(|bit| bit.noise().copied())),
                4.0 * 4_096.0
            );
            let std = plan.mechanism.noise_std_at(clip_norm(1.0));
            assert!((std - 1.618).abs() < 1e-3, "{std}");
        }
    }
}

#[test]
fn a_target_needs_noise_where_something_is_released() {
    let epsilon = |value| NoiseAmount::Target(Epsilon::new(value).unwrap());
    let plan = built(updates(epsilon(2.0)));
    let found = plan.estimate(5).unwrap().epsilon;
    assert!(plan.has_noise() && (1.98..=2.0).contains(&found), "{found}");
    for (amount, timing) in [
        (epsilon(f64::INFINITY), Timing::EachRound),
        (epsilon(2.0), Timing::Never),
        (NoiseAmount::Multiplier(noise(1.0)), Timing::Never),
    ] {
        let mut updates = updates(amount);
        updates.keys.clip_norm = None;
        updates.timing = timing;
        let plan = built(updates);
        assert!(!plan.has_noise() && plan.mechanism.sampler.is_none());
    }
    let mut unclipped = updates(epsilon(2.0));
    unclipped.keys.clip_norm = None;
    let refusal = PrivacyPlan::of_updates(unclipped).unwrap_err().to_string();
    assert!(refusal.contains("privacy.clip_norm"), "{refusal}");
}

#[test]
fn what_the_accountant_has_no_figure_for_is_refused_before_the_run() {
    let mut updates = updates(NoiseAmount::Multiplier(noise(1.0)));
    updates.keys.accountant = Some(Accountant::AnalyticGaussian);
    let refusal = PrivacyPlan::of_updates(updates).unwrap_err();
    assert!(matches!(refusal, PlanError::Accounting { .. }), "{refusal}");
}

/// Returns updates with correlated noise of devices that are not drawn.
fn correlated(multiplier: f64) -> (Arc<Strategy>, Updates<'static>) {
    let participation = Participation::new(5, 2, 2).unwrap();
    let strategy = Strategy::plan(Family::BandedOptimalMean, participation).unwrap();
    let mut updates = updates(NoiseAmount::Multiplier(noise(multiplier)));
    updates.sampling = strategy.sampling(1_000).unwrap();
    let strategy = Arc::new(strategy);
    updates.strategy = Some(Arc::clone(&strategy));
    (strategy, updates)
}

#[test]
fn correlated_noise_is_relative_to_the_sensitivity_of_all_rounds() {
    let (strategy, updates) = correlated(1.5);
    let plan = built(updates);
    let expected = strategy.noise_steps(noise(1.5), BITS as u8);
    assert!((0.0..=1.0 / 1_024.0).contains(&(steps(plan.mechanism.sampler) - expected)));
    assert_eq!(plan.noise_std(), 1.5 * 0.5 * strategy.sensitivity());
    assert!(built(correlated(0.0).1).mechanism.sampler.is_none());
}

/// One Gaussian release has an exact formula, which composes with nothing else.
#[test]
fn a_run_that_is_one_release_and_alone_has_the_exact_accountant() {
    let changed = |change: fn(&mut Updates<'_>)| {
        let mut updates = correlated(1.5).1;
        change(&mut updates);
        updates.exact_accountant()
    };
    assert_eq!(changed(|_| {}), Some(Accountant::AnalyticGaussian));
    let others: [fn(&mut Updates<'_>); 5] = [
        |updates| updates.strategy = None,
        |updates| {
            // Devices are drawn.
            let strategy = updates.strategy.take().map(Arc::unwrap_or_clone);
            let rate = SamplingRate::new(0.5).unwrap();
            let drawn = strategy.map(|strategy| strategy.block_cyclic(rate).unwrap());
            updates.strategy = drawn.map(Arc::new);
        },
        |updates| updates.encoding = Encoding::Unbounded,
        |updates| updates.is_ledger_shared = true,
        |updates| {
            updates.side.push(SideReleases {
                event: matrix(),
                schedule: Schedule { from: 0, every: 1 },
                max_releases: 1,
            });
        },
    ];
    for (index, change) in others.into_iter().enumerate() {
        assert_eq!(changed(change), None, "{index}");
    }
    let spent = [update()];
    let mut after = correlated(1.5).1;
    after.spent = &spent;
    assert_eq!(after.exact_accountant(), None);
}

#[test]
fn a_std_is_rounded_up_to_what_is_drawn() {
    for (std, drawn) in [(2.5, 2.5), (2.5 + 1e-9, 2.5 + 1.0 / 1_024.0)] {
        let (noise, found) = sampler("a.key", 1.0, std).unwrap();
        assert_eq!((found, steps(Some(noise))), (drawn, drawn));
    }
}

#[test]
fn an_approximation_is_never_stated_alone() {
    assert_eq!(plan().statements(3).unwrap().len(), 1);
    let mut approximate = plan();
    approximate.accountant = Accountant::Gdp;
    let statements = approximate.statements(3).unwrap();
    let is_proved: Vec<bool> = statements.iter().map(|x| x.is_upper_bound()).collect();
    assert_eq!(is_proved, [false, true]);
}

#[test]
fn a_noise_std_follows_from_the_clip_norm() {
    assert_eq!(plan().noise_std(), 0.0);
    assert_eq!(plan().with_clip_norm(clip_norm(0.5)).noise_std(), 0.5);
}

#[test]
fn a_release_of_all_devices_has_the_trust_of_the_updates() {
    for trust in [TrustModel::Central, TrustModel::Local] {
        let mechanism = moments().mechanism;
        let event = release_of_all(mechanism, 40, poisson(), trust, 1).unwrap();
        assert_eq!(event.trust, trust);
        assert_eq!(event.sampling, Sampling::full(40).unwrap());
    }
}

/// Each party's noise must be 64 steps of a grid of 2^12 steps: a multiplier of 1/64.
#[test]
fn a_grid_is_refused_that_is_too_coarse_for_the_noise_of_a_party() {
    let needed = |trust, multiplier| {
        let mechanism = EventMechanism::DiscreteGaussian {
            noise_multiplier: noise(multiplier),
            grid_bits: BITS as u8,
        };
        let event = PrivacyEvent::new(mechanism, poisson(), 1);
        let event = PrivacyEvent { trust, ..event };
        let plan = PrivacyPlan::new(event, Delta::new(1e-5).unwrap(), None, Vec::new());
        let refusal = plan.fits_grid(BITS).err()?;
        let PlanError::Range { key, expected, .. } = refusal else {
            panic!("{refusal}");
        };
        assert_eq!(key, "privacy.grid_bits");
        Some(expected.split(':').next().unwrap().to_owned())
    };
    let pair = TrustModel::Distributed(Parties::PAIR);
    let at_least = |bits: u32| Some(format!("at least {bits}"));
    assert_eq!(needed(pair, 1.0 / 64.0), None);
    assert_eq!(needed(pair, 1.0 / 128.0), at_least(13));
    assert_eq!(needed(pair, 1.0 / 192.0), at_least(14));
    assert_eq!(needed(pair, 0.0), None);
    assert_eq!(needed(TrustModel::Central, 1.0 / 128.0), None);
}

#[test]
fn what_other_runs_spent_and_what_is_released_beside_the_updates_counts() {
    let mut plan = plan();
    plan.spent = vec![update().with_count(7)];
    plan.side = vec![SideReleases::once(moments(), 0)];
    let expected = [update().with_count(7), moments(), update().with_count(3)];
    assert_eq!(plan.events_of(3), expected);
}

/// A run that stops early reports it, unless all of its rounds are one release, which costs the
/// same for any number of them.
#[test]
fn a_run_that_stops_early_says_what_was_planned() {
    let whole = plan().statements(3).unwrap();
    let stopped = plan().statements_of(3, 5).unwrap();
    assert_eq!(whole[0].epsilon_planned, None);
    assert_eq!(stopped[0].epsilon, whole[0].epsilon);
    let planned = plan().estimate(5).unwrap().epsilon;
    assert_eq!(stopped[0].epsilon_planned, Some(planned));
    let one = built(correlated(1.5).1);
    assert_eq!(one.statements_of(3, 5).unwrap()[0].epsilon_planned, None);
}
