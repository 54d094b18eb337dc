use proptest::prelude::*;
use tempfile::TempDir;

use super::charge::uncovered;
use super::*;
use crate::condition::{Condition, Effect, Randomness};
use crate::durable::forgetful::ForgetfulFile;
use smolfed_accounting::accountant::Accountant;
use smolfed_accounting::event::{Mechanism, PrivacyUnit, Sampling, TrustModel};
use smolfed_accounting::params::{Delta, Epsilon, NoiseMultiplier, SamplingRate};

fn event(noise_multiplier: f64, sampling: Sampling) -> PrivacyEvent {
    PrivacyEvent {
        mechanism: Mechanism::DiscreteGaussian {
            noise_multiplier: NoiseMultiplier::new(noise_multiplier).unwrap(),
            grid_bits: 20,
        },
        sampling,
        trust: TrustModel::Central,
        unit: PrivacyUnit::Device,
        count: 1,
        releases: 1,
        devices_per_user: std::num::NonZeroU32::MIN,
    }
}

fn poisson() -> Sampling {
    Sampling::poisson(1_000, SamplingRate::new(0.05).unwrap()).unwrap()
}

fn charge(run: &str, round: u32) -> Charge {
    Charge {
        run: run.to_owned(),
        seed: Some(run.len() as u64 + u64::from(run.as_bytes()[0])),
        round,
        repetition: 0,
        planned: Some(10),
        event: event(1.0, poisson()),
        has_digest: true,
        has_uncovered: false,
        known_seeds: None,
        declared: Vec::new(),
        is_selected: false,
    }
}

fn limit(epsilon: f64) -> Limit {
    Limit {
        accountant: Accountant::Rdp,
        delta: Delta::new(1e-5).unwrap(),
        epsilon: Epsilon::new(epsilon).unwrap(),
    }
}

#[test]
fn what_was_charged_is_there_after_opening_again() {
    let place = TempDir::new().unwrap();
    let path = place.path().join("ledger.jsonl");
    let mut ledger = Ledger::open(&path).unwrap();
    for round in 0..3 {
        ledger.charge(charge("a", round), None).unwrap();
    }
    // The same release again costs nothing more.
    ledger.charge(charge("a", 1), None).unwrap();
    let ledger = Ledger::open(&path).unwrap();
    assert_eq!(ledger.charges(), [0, 1, 2].map(|round| charge("a", round)));
    assert_eq!(Ledger::read(&path).unwrap(), ledger.charges());
    ledger.expect("a", 0..3, event(1.0, poisson())).unwrap();
    let missing = ledger.expect("a", 0..4, event(1.0, poisson())).unwrap_err();
    assert!(missing.to_string().contains("no charge for round 3"));
}

/// A crash loses unsynced writes. Earlier charges and digests stay.
#[test]
fn charges_and_digests_are_on_the_disk_when_they_return() {
    let place = TempDir::new().unwrap();
    let path = place.path().join("ledger.jsonl");
    drop(Ledger::open(&path).unwrap());
    let forgetful = || {
        let (file, disk) = ForgetfulFile::open(&path, true).unwrap();
        (Ledger::over(Box::new(file), &path).unwrap(), disk)
    };
    for round in 0..2 {
        let (mut ledger, disk) = forgetful();
        ledger.charge(charge("a", round), None).unwrap();
        disk.crash().unwrap();
        let found = Ledger::read(&path).unwrap();
        assert_eq!(found.last(), Some(&charge("a", round)));
    }
    let length = || std::fs::metadata(&path).unwrap().len();
    let before = length();
    let (mut ledger, disk) = forgetful();
    assert_eq!(ledger.record("a", 1, "first", &[]).unwrap(), []);
    disk.crash().unwrap();
    assert!(length() > before, "the digest is there");
    let before = length();
    // The same release again costs nothing, another one is charged once more.
    let (mut ledger, disk) = forgetful();
    assert_eq!(ledger.record("a", 1, "first", &[]).unwrap(), []);
    assert_eq!(length(), before);
    let again = ledger.record("a", 1, "second", &[]).unwrap();
    assert_eq!(again, [event(1.0, poisson())]);
    disk.crash().unwrap();
    assert_eq!(Ledger::open(&path).unwrap().repeated("a"), again);
}

#[test]
fn another_release_under_the_same_name_is_refused() {
    let place = TempDir::new().unwrap();
    let path = place.path().join("ledger.jsonl");
    let mut ledger = Ledger::open(&path).unwrap();
    ledger.charge(charge("a", 0), None).unwrap();
    let other = Charge {
        event: event(2.0, poisson()),
        ..charge("a", 0)
    };
    let error = ledger.charge(other, None).unwrap_err().to_string();
    assert!(error.contains("round 0 of this run with a different event"));
    let error = ledger.expect("a", 0..1, event(2.0, poisson())).unwrap_err();
    assert!(matches!(error, LedgerError::Conflict { .. }));
}

#[test]
fn a_file_torn_at_any_byte_keeps_all_whole_lines() {
    let place = TempDir::new().unwrap();
    let path = place.path().join("ledger.jsonl");
    let mut ledger = Ledger::open(&path).unwrap();
    for round in 0..3 {
        ledger.charge(charge("a", round), None).unwrap();
    }
    let whole = std::fs::read(&path).unwrap();
    // Each byte of the last line, and every seventeenth byte before it.
    let last = whole.len() - whole.len() / 3 - 1;
    for length in (0..last).step_by(17).chain(last..=whole.len()) {
        std::fs::write(&path, &whole[..length]).unwrap();
        let lines = whole[..length].iter().filter(|b| **b == b'\n').count();
        let mut ledger = Ledger::open(&path).unwrap();
        assert_eq!(ledger.charges().len(), lines);
        let kept = whole[..length].iter().rposition(|byte| *byte == b'\n');
        let kept = kept.map_or(0, |end| end as u64 + 1);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), kept);
        if length % 10 == 0 {
            ledger.charge(charge("a", 9), None).unwrap();
            assert_eq!(Ledger::open(&path).unwrap().charges().len(), lines + 1);
        }
    }
}

#[test]
fn damage_before_the_end_is_an_error_that_names_the_line() {
    let place = TempDir::new().unwrap();
    let path = place.path().join("ledger.jsonl");
    let mut ledger = Ledger::open(&path).unwrap();
    for round in 0..3 {
        ledger.charge(charge("a", round), None).unwrap();
    }
    let whole = std::fs::read_to_string(&path).unwrap();
    let damaged = whole.replacen("\"round\":1", "\"round\":0", 1);
    assert_ne!(whole, damaged);
    std::fs::write(&path, damaged).unwrap();
    let error = Ledger::open(&path).unwrap_err().to_string();
    assert!(
        error.contains("line 2") && error.contains("checksum"),
        "{error}"
    );
}

/// Appends to a file as another process would, while a ledger has it open.
fn append(path: &Path, bytes: &[u8]) {
    let mut file = OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(bytes).unwrap();
}

#[test]
fn a_line_that_another_run_tore_is_cut_off_before_the_next() {
    let place = TempDir::new().unwrap();
    let path = place.path().join("ledger.jsonl");
    let mut ledger = Ledger::open(&path).unwrap();
    ledger.charge(charge("a", 0), None).unwrap();
    let torn = Line::Charge(charge("b", 0)).text();
    append(&path, &torn.as_bytes()[..torn.len() / 2]);
    ledger.charge(charge("a", 1), None).unwrap();
    let expected = [0, 1].map(|round| charge("a", round));
    assert_eq!(Ledger::read(&path).unwrap(), expected);
}

#[test]
fn damage_by_another_run_is_named_by_its_line_in_the_file() {
    let place = TempDir::new().unwrap();
    let path = place.path().join("ledger.jsonl");
    let mut ledger = Ledger::open(&path).unwrap();
    for round in 0..2 {
        ledger.charge(charge("a", round), None).unwrap();
    }
    ledger.record("a", 0, "5f", &[]).unwrap();
    append(&path, b"{}\n");
    let error = ledger.charge(charge("a", 2), None).unwrap_err();
    assert!(error.to_string().contains("line 4"), "{error}");
}

#[test]
fn runs_that_share_a_file_add_up_and_stop_at_the_limit() {
    let place = TempDir::new().unwrap();
    let path = place.path().join("ledger.jsonl");
    let cost = |rounds| {
        let all = event(1.0, poisson()).with_count(rounds);
        Accountant::Rdp.epsilon(&[all], limit(1.0).delta).unwrap()
    };
    // Room for seven rounds of both together, in any order.
    let limit = limit(cost(7).epsilon);
    let (mut first, mut second) = (Ledger::open(&path).unwrap(), Ledger::open(&path).unwrap());
    for round in 0..4 {
        first.charge(charge("a", round), Some(&limit)).unwrap();
    }
    for round in 0..3 {
        second.charge(charge("b", round), Some(&limit)).unwrap();
    }
    let untouched = std::fs::read(&path).unwrap();
    for (ledger, run) in [(&mut first, "a"), (&mut second, "b")] {
        let error = ledger.charge(charge(run, 4), Some(&limit)).unwrap_err();
        assert!(matches!(error, LedgerError::OverLimit { .. }));
    }
    assert_eq!(untouched, std::fs::read(&path).unwrap());
    assert_eq!(
        events(second.charges()),
        [event(1.0, poisson()).with_count(7)]
    );
    assert_eq!(
        Spent::before("b", second.charges()).events(),
        [event(1.0, poisson()).with_count(4)]
    );
    assert_eq!(Spent::before("a", second.charges()).events(), []);
}

/// A run checks its own rounds before it trains: the limit applies to several runs.
#[test]
fn the_limit_of_a_ledger_is_for_several_runs() {
    let place = TempDir::new().unwrap();
    let mut ledger = Ledger::open(&place.path().join("ledger.jsonl")).unwrap();
    let tiny = limit(1e-9);
    ledger.charge(charge("a", 0), Some(&tiny)).unwrap();
    ledger.charge(charge("a", 1), Some(&tiny)).unwrap();
    let error = ledger.charge(charge("b", 0), Some(&tiny)).unwrap_err();
    assert!(matches!(error, LedgerError::OverLimit { round: 0, .. }));
}

#[test]
fn two_runs_with_one_seed_are_refused() {
    let place = TempDir::new().unwrap();
    let mut ledger = Ledger::open(&place.path().join("ledger.jsonl")).unwrap();
    let with_seed = |run, seed| Charge {
        seed,
        ..charge(run, 0)
    };
    ledger.charge(with_seed("a", Some(7)), None).unwrap();
    let error = ledger.charge(with_seed("b", Some(7)), None).unwrap_err();
    assert!(error.to_string().contains("another run with seed 7"));
    ledger.charge(with_seed("b", Some(8)), None).unwrap();
    ledger.charge(with_seed("c", None), None).unwrap();
    ledger.charge(with_seed("d", None), None).unwrap();
    assert_eq!(ledger.charges().len(), 4);
}

#[test]
fn participations_are_bounded_run_by_run() {
    let sampling = Sampling::unsampled(100, 2).unwrap();
    let charges: Vec<Charge> = [("a", 0), ("a", 1), ("a", 2), ("b", 0)]
        .map(|(run, round)| Charge {
            event: event(4.0, sampling),
            ..charge(run, round)
        })
        .to_vec();
    let events = events(&charges);
    assert_eq!(events.iter().map(|e| e.count).collect::<Vec<_>>(), [3, 1]);
    let participations: u64 = events.iter().map(|e| e.exposure().count()).sum();
    assert_eq!(participations, 3);
}

fn digest(round: u32, digest: &str) -> DigestRecord {
    DigestRecord {
        run: "a".to_owned(),
        round,
        repetition: 0,
        digest: digest.to_owned(),
    }
}

#[test]
fn a_repetition_is_free_only_if_it_releases_the_same() {
    let place = TempDir::new().unwrap();
    let path = place.path().join("ledger.jsonl");
    let mut ledger = Ledger::open(&path).unwrap();
    for round in 0..2 {
        ledger.charge(charge("a", round), None).unwrap();
        assert!(ledger.record("a", round, "5f", &[]).unwrap().is_empty());
    }
    let before = std::fs::read(&path).unwrap();
    let again = |digest: &str| {
        let mut ledger = Ledger::open(&path).unwrap();
        ledger.charge(charge("a", 1), None).unwrap();
        ledger.record("a", 1, digest, &[]).unwrap()
    };
    assert!(again("5f").is_empty());
    assert_eq!(std::fs::read(&path).unwrap(), before);
    // Another release is charged, and known from then on.
    assert_eq!(again("60"), [event(1.0, poisson())]);
    let charged = std::fs::read(&path).unwrap();
    assert!(again("60").is_empty() && again("5f").is_empty());
    assert_eq!(std::fs::read(&path).unwrap(), charged);
    assert_eq!(again("61").len(), 1);
    let charges = Ledger::read(&path).unwrap();
    let repetitions: Vec<(u32, u32)> = charges.iter().map(|c| (c.round, c.repetition)).collect();
    assert_eq!(repetitions, [(0, 0), (1, 0), (1, 1), (1, 2)]);
    assert_eq!(
        repeated(&charges, "a"),
        [event(1.0, poisson()).with_count(2)]
    );
    assert!(repeated(&charges, "b").is_empty());
    assert_eq!(events(&charges), [event(1.0, poisson()).with_count(4)]);
    let missing = Ledger::open(&path)
        .unwrap()
        .record("a", 2, "5f", &[])
        .unwrap_err();
    assert!(missing.to_string().contains("no charge for round 2"));
}

/// Charge, release, digest, use: a crash before the digest lost a release that nobody used.
#[test]
fn a_crash_before_the_digest_leaves_it_to_the_repetition() {
    let place = TempDir::new().unwrap();
    let path = place.path().join("ledger.jsonl");
    let mut ledger = Ledger::open(&path).unwrap();
    ledger.charge(charge("a", 0), None).unwrap();
    ledger.record("a", 0, "5f", &[]).unwrap();
    ledger.record("a", 0, "60", &[]).unwrap();
    let whole = std::fs::read(&path).unwrap();
    let lines: Vec<usize> = (0..whole.len()).filter(|at| whole[*at] == b'\n').collect();
    assert_eq!(lines.len(), 4);
    // Torn within the digest of the first release, or of the second.
    for (torn, expected) in [(lines[1] - 5, "61"), (lines[3] - 5, "61")] {
        std::fs::write(&path, &whole[..torn]).unwrap();
        let mut ledger = Ledger::open(&path).unwrap();
        let charged = ledger.charges().len();
        assert!(ledger.record("a", 0, expected, &[]).unwrap().is_empty());
        assert_eq!(ledger.charges().len(), charged);
        assert_eq!(ledger.record("a", 0, "62", &[]).unwrap().len(), 1);
    }
}

/// Earlier versions recorded no digests, so the releases of their rounds are unknown.
#[test]
fn rounds_of_earlier_versions_are_charged_when_they_are_repeated() {
    let place = TempDir::new().unwrap();
    let path = place.path().join("ledger.jsonl");
    let old = Charge {
        has_digest: false,
        ..charge("a", 0)
    };
    let text = Line::Charge(old).text();
    assert!(!text.contains("digest") && !text.contains("repetition"));
    std::fs::write(&path, text).unwrap();
    let mut ledger = Ledger::open(&path).unwrap();
    ledger.charge(charge("a", 0), None).unwrap();
    assert_eq!(ledger.record("a", 0, "5f", &[]).unwrap().len(), 1);
    assert!(ledger.record("a", 0, "5f", &[]).unwrap().is_empty());
    let has_digest = |charge: &Charge| charge.has_digest;
    let found: Vec<bool> = ledger.charges().iter().map(has_digest).collect();
    assert_eq!(found, [false, true]);
}

#[test]
fn a_repetition_that_would_exceed_the_limit_is_refused() {
    let place = TempDir::new().unwrap();
    let mut ledger = Ledger::open(&place.path().join("ledger.jsonl")).unwrap();
    let cost = |rounds| {
        let all = event(1.0, poisson()).with_count(rounds);
        let estimate = Accountant::Rdp.epsilon(&[all], limit(1.0).delta);
        estimate.unwrap().epsilon
    };
    let limits = [(PrivacyUnit::Device, limit(cost(3)))];
    for round in 0..2 {
        ledger.charge(charge("a", round), None).unwrap();
        ledger.record("a", round, "5f", &limits).unwrap();
    }
    assert_eq!(ledger.record("a", 0, "60", &limits).unwrap().len(), 1);
    let error = ledger
        .record("a", 1, "60", &limits)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("round 1 did not repeat the release"),
        "{error}"
    );
    assert_eq!(ledger.charges().len(), 3);
}

/// In repeated rounds, a device may take part as often again.
#[test]
fn repeated_participations_are_counted_apart() {
    let sampling = Sampling::unsampled(100, 1).unwrap();
    let at = |repetition| Charge {
        repetition,
        event: event(4.0, sampling),
        ..charge("a", 0)
    };
    let events = events(&[at(0), at(1)]);
    let participations: u64 = events.iter().map(|e| e.exposure().count()).sum();
    assert_eq!(participations, 2);
}

/// Successive rounds of one run cost one composition per turn of all parts. Rounds of two runs are
/// not successive, and repeated rounds need not be.
#[test]
fn rounds_of_parts_that_take_turns_are_counted_run_by_run() {
    let rate = SamplingRate::new(0.5).unwrap();
    let sampling = Sampling::block_cyclic(100, 5, rate).unwrap();
    let at = |run, round, repetition| Charge {
        repetition,
        event: event(4.0, sampling),
        ..charge(run, round)
    };
    let compositions = |charges: &[Charge]| -> u64 {
        let events = events(charges);
        events.iter().map(|event| event.exposure().count()).sum()
    };
    let run = |name| (0..7).map(move |round| at(name, round, 0));
    assert_eq!(compositions(&run("a").collect::<Vec<_>>()), 2);
    let both: Vec<Charge> = run("a").chain(run("b")).collect();
    assert_eq!(compositions(&both), 4);
    let repeated = run("a").chain([at("a", 0, 1), at("a", 5, 1)]);
    assert_eq!(compositions(&repeated.collect::<Vec<_>>()), 4);
}

#[test]
fn both_kinds_of_lines_survive_their_text() {
    let digest = DigestRecord {
        repetition: 3,
        ..digest(7, "5f")
    };
    for line in [Line::Charge(charge("a", 7)), Line::Digest(digest)] {
        let text = line.text();
        assert_eq!(Line::parse(text.trim_end().as_bytes()), Ok(line));
    }
}

proptest! {
    #[test]
    fn no_line_of_any_bytes_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Line::parse(&bytes);
    }

    #[test]
    fn one_changed_byte_is_seen(position in 0usize..150, to in any::<u8>()) {
        let text = Line::Charge(charge("a", 7)).text();
        let mut bytes = text.trim_end().as_bytes().to_vec();
        let position = position % bytes.len();
        prop_assume!(bytes[position] != to);
        bytes[position] = to;
        prop_assert!(Line::parse(&bytes).is_err());
    }
}

/// A statement names the mechanism of the last event, and never of moments.
#[test]
fn moments_come_first_in_the_events_of_a_ledger() {
    let moments = Mechanism::Moments {
        noise_multiplier: NoiseMultiplier::new(10.0).unwrap(),
        grid_bits: 20,
    };
    let scale = Charge {
        event: PrivacyEvent::new(moments, poisson(), 1),
        ..charge("b", 0)
    };
    let found = events(&[charge("a", 0), scale.clone(), charge("b", 0)]);
    assert_eq!(found, [scale.event, charge("a", 0).event.with_count(2)]);
}

#[test]
fn no_figure_of_a_ledger_is_proved_where_its_charges_cover_too_little() {
    let sound = charge("a", 0);
    assert!(uncovered([&sound]).is_empty());
    let repeated = Charge {
        repetition: 1,
        ..sound.clone()
    };
    let with_uncovered = Charge {
        has_uncovered: true,
        ..sound.clone()
    };
    let selected = Charge {
        is_selected: true,
        ..sound.clone()
    };
    for (other, condition) in [
        (repeated, Condition::Repeated),
        (with_uncovered, Condition::UnchargedRelease),
        (selected, Condition::Selected),
    ] {
        assert_eq!(uncovered([&sound, &other]), [condition]);
    }
}

/// A figure about examples depends on the charges for examples, and on runs without any. The flaws
/// of a run's other charges concern devices.
#[test]
fn the_conditions_of_a_figure_are_those_of_its_unit() {
    let flawed = |run: &str, unit| Charge {
        event: PrivacyEvent {
            unit,
            ..event(1.0, poisson())
        },
        has_uncovered: true,
        ..charge(run, 0)
    };
    let sound = |run, unit| Charge {
        has_uncovered: false,
        ..flawed(run, unit)
    };
    let (device, example) = (PrivacyUnit::Device, PrivacyUnit::Example);
    let flaws = |charges: &[Charge]| {
        let spent = Spent::before("later", charges);
        [device, example].map(|unit| {
            let found = spent.conditions(unit);
            let flaws = found.iter().filter(|of| of.effect() == Effect::NoBound);
            flaws.count()
        })
    };
    assert_eq!(flaws(&[sound("a", device), flawed("a", example)]), [0, 1]);
    assert_eq!(flaws(&[flawed("a", device), sound("a", example)]), [1, 0]);
    assert_eq!(flaws(&[flawed("a", device), sound("b", example)]), [1, 1]);
    assert_eq!(flaws(&[sound("a", device), sound("a", example)]), [0, 0]);
    // Moments of features are charged for devices alone.
    let noise_multiplier = NoiseMultiplier::new(1.0).unwrap();
    let moments = Charge {
        event: PrivacyEvent {
            mechanism: Mechanism::Moments {
                noise_multiplier,
                grid_bits: 20,
            },
            ..event(1.0, poisson())
        },
        ..charge("a", 0)
    };
    assert_eq!(flaws(&[moments]), [0, 1]);
}

/// A later run includes the events of earlier ones in its ε, and depends on their seeds.
#[test]
fn later_figures_name_the_seeds_and_values_of_earlier_runs() {
    let simulation = charge("a", 0);
    let fleet = Charge {
        known_seeds: Some(vec![(Randomness::Devices, 5)]),
        declared: vec!["data.scale".to_owned()],
        ..charge("b", 0)
    };
    let secret = Charge {
        seed: None,
        ..charge("c", 0)
    };
    let of_examples = Charge {
        event: PrivacyEvent {
            unit: PrivacyUnit::Example,
            ..event(1.0, poisson())
        },
        ..charge("d", 0)
    };
    let seed = |of, seed| Condition::KnownSeed { seed, of };
    let charges = [simulation.clone(), fleet, secret, of_examples.clone()];
    let spent = Spent::before("later", &charges);
    let of_devices = [
        seed(Randomness::Simulation, simulation.seed.unwrap()),
        Condition::Confirmed {
            key: "data.scale".to_owned(),
        },
        seed(Randomness::Devices, 5),
    ];
    let found = spent.conditions(PrivacyUnit::Device);
    let mut expected = of_devices.to_vec();
    expected.push(seed(Randomness::Simulation, of_examples.seed.unwrap()));
    assert_eq!(found, expected);
    // A run that charged only devices may have read something about examples.
    let with_others = of_devices
        .into_iter()
        .chain([seed(Randomness::Simulation, of_examples.seed.unwrap())]);
    let found = spent.conditions(PrivacyUnit::Example);
    assert_eq!(found, with_others.collect::<Vec<_>>());
}

/// The total for devices is about updates, although every round also charges matrices.
#[test]
fn the_last_event_of_a_total_is_that_of_the_updates() {
    let noise_multiplier = NoiseMultiplier::new(1.0).unwrap();
    let matrices = Charge {
        event: PrivacyEvent {
            mechanism: Mechanism::CorrelationMatrix { noise_multiplier },
            ..event(1.0, poisson())
        },
        ..charge("a", 0)
    };
    let found = events([&charge("a", 0), &matrices]);
    assert_eq!(found, [matrices.event, event(1.0, poisson())]);
}

/// Not every round of a run charges every unit of privacy.
#[test]
fn a_run_is_complete_whatever_its_last_round_charges() {
    let mut first = charge("a", 0);
    first.event.unit = PrivacyUnit::Example;
    let charges = [first, charge("a", 9)];
    for unit in [PrivacyUnit::Device, PrivacyUnit::Example] {
        let mut found = conditions(&charges, unit)
            .iter()
            .cloned()
            .collect::<Vec<_>>();
        found.retain(|condition| !matches!(condition, Condition::KnownSeed { .. }));
        assert_eq!(found, []);
    }
}

/// The total of a ledger needs its schedule, unless its single run was not stopped. It depends on
/// the declared values, and on each known seed.
#[test]
fn the_total_of_a_stopped_run_needs_its_schedule() {
    let of = |charges: &[Charge]| {
        let found = conditions(charges, PrivacyUnit::Device);
        found.iter().cloned().collect::<Vec<_>>()
    };
    let secret = |run, round| Charge {
        seed: None,
        ..charge(run, round)
    };
    let whole: Vec<Charge> = (0..10).map(|round| secret("a", round)).collect();
    assert_eq!(of(&whole), []);
    assert_eq!(of(&whole[..9]), [Condition::Stopped]);
    let both = [&whole[..], &[secret("b", 0)]].concat();
    assert_eq!(of(&both), [Condition::AfterOtherRuns, Condition::Stopped]);
    let old = Charge {
        planned: None,
        ..secret("a", 9)
    };
    assert_eq!(of(&[old]), [Condition::NoPlan]);
    let declared = Charge {
        declared: vec!["data.classes".to_owned()],
        ..charge("a", 9)
    };
    let seed = Condition::KnownSeed {
        seed: declared.seed.unwrap(),
        of: Randomness::Simulation,
    };
    let key = "data.classes".to_owned();
    assert_eq!(of(&[declared]), [Condition::Confirmed { key }, seed]);
    // In a federation, the seed of the coordinator need not determine the noise.
    let of_masks = (Randomness::Masks, 3);
    for known_seeds in [vec![], vec![of_masks]] {
        let fleet = Charge {
            known_seeds: Some(known_seeds.clone()),
            ..charge("a", 9)
        };
        let line = Line::Charge(fleet).text();
        let Line::Charge(read) = Line::parse(line.trim_end().as_bytes()).unwrap() else {
            panic!("{line}");
        };
        let seeds = known_seeds.into_iter();
        let seeds = seeds.map(|(of, seed)| Condition::KnownSeed { seed, of });
        assert_eq!(of(&[read]), seeds.collect::<Vec<_>>());
    }
}
