use super::*;
use smolfed_accounting::Parties;
use smolfed_accounting::event::Mechanism;
use smolfed_accounting::params::{NoiseMultiplier, SamplingRate};

fn event(sampling: Sampling, noise_multiplier: f64) -> PrivacyEvent {
    let noise_multiplier = NoiseMultiplier::new(noise_multiplier).unwrap();
    PrivacyEvent {
        mechanism: Mechanism::DiscreteGaussian {
            noise_multiplier,
            grid_bits: 20,
        },
        sampling,
        trust: TrustModel::Central,
        unit: PrivacyUnit::Device,
        count: 100,
        releases: 1,
        devices_per_user: std::num::NonZeroU32::MIN,
    }
}

fn poisson() -> Sampling {
    Sampling::poisson(1000, SamplingRate::new(0.05).unwrap()).unwrap()
}

fn state(event: PrivacyEvent, delta: f64) -> PrivacyStatement {
    let estimate = Accountant::Rdp
        .epsilon(&[event], Delta::new(delta).unwrap())
        .unwrap();
    PrivacyStatement::new(&estimate, &[event], Some(ClipNorm::new(0.3).unwrap())).unwrap()
}

#[test]
fn the_statement_has_every_key_of_the_contract() {
    let json = serde_json::to_value(state(event(poisson(), 1.0), 1e-4)).unwrap();
    for key in [
        "epsilon",
        "delta",
        "accountant",
        "is_upper_bound",
        "noise_multiplier",
        "noise_std",
        "clip_norm",
        "adjacency",
        "sampling",
        "sampling_rate",
        "rounds",
        "unit",
        "trust",
    ] {
        assert!(!json[key].is_null(), "{key} of {json}");
    }
    assert_eq!(json["adjacency"], "add-remove");
    assert_eq!(json["trust"], "central");
    assert!((json["noise_std"].as_f64().unwrap() - 0.3).abs() < 1e-12);
}

#[test]
fn the_statement_survives_a_file() {
    for statement in [
        state(event(poisson(), 1.0), 1e-4),
        state(event(poisson(), 0.0), 1e-4),
    ] {
        let text = serde_json::to_string(&statement).unwrap();
        assert_eq!(
            serde_json::from_str::<PrivacyStatement>(&text).unwrap(),
            statement
        );
    }
}

#[test]
fn a_dangerous_delta_is_called_so() {
    assert!(
        state(event(poisson(), 1.0), 1e-2)
            .in_words()
            .contains("not below 1/N")
    );
    assert!(
        !state(event(poisson(), 1.0), 1e-4)
            .in_words()
            .contains("not below 1/N")
    );
}

#[test]
fn words_name_what_each_scheme_assumes() {
    let words = state(event(poisson(), 1.0), 1e-4).in_words();
    assert!(words.contains("whether one device took part") && words.contains("in secret"));
    let uniform = Sampling::uniform(1000, 50).unwrap();
    let words = state(event(uniform, 2.0), 1e-4).in_words();
    assert!(
        words.contains("two given versions of one device's data"),
        "{words}"
    );
    let unsampled = Sampling::unsampled(1000, 7).unwrap();
    let words = state(event(unsampled, 20.0), 1e-4).in_words();
    assert!(words.contains("more than 7 of 100 rounds"), "{words}");
    let local = PrivacyEvent {
        trust: TrustModel::Local,
        ..event(poisson(), 50.0)
    };
    assert!(
        state(local, 1e-4)
            .in_words()
            .contains("sampling does not amplify privacy")
    );
}

/// One line states at least ε, δ, the unit, the trusted parties and the status of the figure.
#[test]
fn a_line_has_what_a_figure_must_not_go_without() {
    let line = state(event(poisson(), 1.0), 1e-4).in_one_line();
    for part in [
        "epsilon = ",
        "delta = 10⁻⁴",
        "for one device",
        "a proved upper bound",
        "the server is trusted",
        "`rdp`, add-remove",
    ] {
        assert!(line.contains(part), "{line}");
    }
    assert!(!line.contains('\n'));
    let line = state(event(poisson(), 0.0), 1e-4).in_one_line();
    assert!(line.starts_with("no finite epsilon holds at delta = 10⁻⁴ for one device, the server"));
}

/// 2 devices have δ = 1/N^1.1 = 0.47, so the promise holds with probability 0.53.
#[test]
fn a_large_delta_is_named_in_the_line() {
    let line = |delta| state(event(poisson(), 1.0), delta).in_one_line();
    let devices = state(event(poisson(), 1.0), 1e-4).devices;
    let remedy = if devices < 1000 {
        "1e-3"
    } else {
        "\"1/N^1.1\""
    };
    let caution = format!("(large: set `privacy.delta` to {remedy} or less) for one device");
    // The last one is small, and not below one over the number of devices.
    for delta in [0.011, 0.4665, 1.0 / f64::from(devices)] {
        assert!(line(delta).contains(&caution), "{}", line(delta));
    }
    for delta in [1e-9, 0.9 / f64::from(devices).max(91.0)] {
        assert!(!line(delta).contains("large"), "{}", line(delta));
    }
}

#[test]
fn no_noise_is_stated_as_no_guarantee() {
    let words = state(event(poisson(), 0.0), 1e-4).in_words();
    assert!(
        words.contains("No finite epsilon") && words.contains("with certainty"),
        "{words}"
    );
}

#[test]
fn a_limit_is_stated_as_no_guarantee() {
    let event = event(poisson(), 1.0);
    let estimate = Accountant::Gdp
        .epsilon(&[event], Delta::new(1e-4).unwrap())
        .unwrap();
    let statement = PrivacyStatement::new(&estimate, &[event], None).unwrap();
    assert!(statement.in_words().contains("NOT a guarantee"));
    assert!(!statement.is_upper_bound() && statement.noise_std.is_none());
}

#[test]
fn nothing_is_stated_about_no_event() {
    let estimate = Accountant::Rdp
        .epsilon(&[], Delta::new(1e-4).unwrap())
        .unwrap();
    assert!(PrivacyStatement::new(&estimate, &[], None).is_none());
}

/// A party that sees every upload knows who took part: noise hides only the content of the uploads.
/// Local differential privacy usually means replacing one device's data, at twice the sensitivity.
#[test]
fn local_trust_sentence() {
    let of = |trust| PrivacyEvent {
        trust,
        ..event(poisson(), 50.0)
    };
    for trust in [TrustModel::Local, TrustModel::Distributed(Parties::PAIR)] {
        let event = of(trust);
        let statement = state(event, 1e-4);
        let words = statement.in_words();
        assert!(
            words.contains("whether one device sent its update or zeros"),
            "{words}"
        );
        assert!(!words.contains("took part"), "{words}");
        // Half of the noise relative to the sensitivity.
        let replaced = PrivacyEvent {
            mechanism: Mechanism::Gaussian {
                noise_multiplier: NoiseMultiplier::new(25.0).unwrap(),
            },
            ..event
        };
        let found = statement.epsilon_replace_one.unwrap();
        let delta = Delta::new(1e-4).unwrap();
        let expected = Accountant::Pld.epsilon(&[replaced], delta).unwrap().epsilon;
        assert!((found / expected - 1.0).abs() < 1e-3, "{found} {expected}");
        assert!(found > 1.5 * Accountant::Pld.epsilon(&[event], delta).unwrap().epsilon);
        assert!(words.contains(&format!(
            "epsilon is then {} (",
            crate::number::upper(found, 5)
        )));
        let json = serde_json::to_value(&statement).unwrap();
        assert!(json["epsilon_replace_one"].is_f64(), "{json}");
    }
    let central = state(of(TrustModel::Central), 1e-4);
    assert!(central.in_words().contains("whether one device took part"));
    assert_eq!(central.epsilon_replace_one, None);
}

/// T = 3, τ = 0.2, z = 1.0484: by `gdp` no attack would catch more than 3.0 % at a false-positive
/// rate of 1 %. An explicit test catches 3.55 %.
#[test]
fn approximation_at_most() {
    let sampling = Sampling::poisson(1000, SamplingRate::new(0.2).unwrap()).unwrap();
    let event = event(sampling, 1.0484).with_count(3);
    let estimate = Accountant::Gdp.epsilon(&[event], Delta::new(1e-3).unwrap());
    let of_gdp = PrivacyStatement::new(&estimate.unwrap(), &[event], None).unwrap();
    let words = of_gdp.in_words();
    assert!(of_gdp.hit_rate_at_1_percent < 0.0355, "{words}");
    assert!(!words.contains("at most"), "{words}");
    assert!(words.contains("neither is a bound"), "{words}");
    let estimate = Accountant::Pld.epsilon(&[event], Delta::new(1e-3).unwrap());
    let of_pld = PrivacyStatement::new(&estimate.unwrap(), &[event], None).unwrap();
    assert!(of_pld.hit_rate_at_1_percent > 0.0355);
    assert!(of_pld.in_words().contains("rate is at most"));
}

/// Correlated noise makes no assumption on participation except its number and separation, and its
/// noise is relative to the sensitivity.
#[test]
fn correlated_noise_sentence() {
    use smolfed_accounting::correlated::{Family, Participation, Strategy};
    let of = |separation| {
        let participation = Participation::new(100, separation, 9).unwrap();
        let strategy = Strategy::plan(Family::SquareRootBanded, participation).unwrap();
        let noise_multiplier = NoiseMultiplier::new(2.0).unwrap();
        PrivacyEvent::correlated(&strategy, noise_multiplier, 20, 1000).unwrap()
    };
    let statement = state(of(20), 1e-4);
    let words = statement.in_words();
    let expected = "whichever devices take part, in any order, at most 5 times and at least 20 \
                    rounds apart";
    assert!(words.contains(expected), "{words}");
    assert!(
        words.contains("2 times the sensitivity, which is 3.17"),
        "{words}"
    );
    assert!(
        !words.contains("in secret") && !words.contains("noise on the sum"),
        "{words}"
    );
    let sensitivity = statement.sensitivity.unwrap();
    let noise_std = statement.noise_std.unwrap();
    assert!((noise_std / (2.0 * sensitivity * 0.3) - 1.0).abs() < 1e-6);
    assert_eq!(
        (statement.max_participations, statement.separation),
        (Some(5), Some(20))
    );
    let json = serde_json::to_string(&statement).unwrap();
    assert_eq!(
        serde_json::from_str::<PrivacyStatement>(&json).unwrap(),
        statement
    );
    let once = state(of(100), 1e-4).in_words();
    assert!(
        once.contains("in any order, at most once, as enforced"),
        "{once}"
    );
    let json = serde_json::to_value(state(event(poisson(), 1.0), 1e-4)).unwrap();
    assert!(json.get("sensitivity").is_none() && json.get("separation").is_none());
}

/// The statement names the ε against the parties, who see the cohorts, the ε against everybody
/// else, and the coalitions against which nothing holds.
#[test]
fn distributed_trust_says_what_holds_against_whom() {
    let of = |trust| {
        let event = PrivacyEvent {
            trust,
            ..event(poisson(), 50.0)
        };
        (event, state(event, 1e-4))
    };
    let (event, pair) = of(TrustModel::Distributed(Parties::PAIR));
    let outsiders = event.outsiders().unwrap();
    let delta = Delta::new(1e-4).unwrap();
    let expected = Accountant::Pld.epsilon(&[outsiders], delta).unwrap();
    assert_eq!(pair.epsilon_outsiders, Some(expected.epsilon));
    assert!(expected.epsilon < 0.3 * pair.epsilon);
    let who = |statement: &PrivacyStatement| {
        let views = statement.views.iter();
        let views: Vec<(String, Option<f64>)> =
            views.map(|view| (view.who.clone(), view.epsilon)).collect();
        views
    };
    let epsilon = Some(pair.epsilon);
    assert_eq!(
        who(&pair),
        [
            ("coordinator".to_owned(), epsilon),
            ("helper".to_owned(), epsilon),
            ("everybody else".to_owned(), pair.epsilon_outsiders),
            ("coordinator and helper together".to_owned(), None),
        ]
    );
    let words = pair.in_words();
    for part in [
        "The coordinator, or a helper, who sees the participants",
        "Against everybody else",
        "the coordinator and the helper do not collude",
        "no helper can read what devices send to the coordinator",
        "each party's noise is 50 times the clip norm",
        "against them sampling does not amplify privacy",
    ] {
        assert!(words.contains(part), "{part}: {words}");
    }
    let json = serde_json::to_value(&pair).unwrap();
    assert_eq!(json["trust"]["distributed"]["helpers"], 1);
    assert!(json["epsilon_outsiders"].is_f64() && json["views"].is_array());
    let read: PrivacyStatement = serde_json::from_value(json).unwrap();
    assert_eq!(read, pair);

    let (_, two) = of(TrustModel::Distributed(Parties::new(3, 2).unwrap()));
    assert_eq!(two.epsilon, pair.epsilon);
    assert_eq!(who(&two)[2].0, "any 2 of them together");
    assert_eq!(who(&two)[4].0, "more than 2 of them together");
    assert!(two.in_words().contains("no more than 2 collude"));

    let (_, central) = of(TrustModel::Central);
    assert!(central.views.is_empty() && central.epsilon_outsiders.is_none());
}

/// On a grid, sums of several parties' noise are one discrete Gaussian up to a term that is stated.
#[test]
fn the_term_of_several_noises_is_stated() {
    let of = |trust| {
        let mechanism = Mechanism::DiscreteGaussian {
            noise_multiplier: NoiseMultiplier::new(50.0).unwrap(),
            grid_bits: 8,
        };
        PrivacyEvent {
            trust,
            ..PrivacyEvent::new(mechanism, poisson(), 100)
        }
    };
    let words = state(of(TrustModel::Distributed(Parties::PAIR)), 1e-4).in_words();
    assert!(
        words.contains("changes no epsilon by more than 10^-"),
        "{words}"
    );
    assert!(
        !state(of(TrustModel::Central), 1e-4)
            .in_words()
            .contains("10^-")
    );
}

/// Only the kind of the estimate and the conditions decide whether ε is a bound: the flag of a file
/// is ignored.
#[test]
fn the_flag_of_a_file_is_not_read() {
    let sound = state(event(poisson(), 1.0), 1e-4);
    assert!(sound.is_upper_bound() && sound.planned_is_upper_bound().is_none());
    let open = sound.clone().with(Condition::InitialModel);
    let text = serde_json::to_string(&open).unwrap();
    let forged = text.replace("\"is_upper_bound\":false", "\"is_upper_bound\":true");
    assert_ne!(forged, text);
    let read: PrivacyStatement = serde_json::from_str(&forged).unwrap();
    assert!(!read.is_upper_bound() && read == open);
}

#[test]
fn a_statement_without_conditions_is_of_unknown_provenance() {
    let mut old = serde_json::to_value(state(event(poisson(), 1.0), 1e-4)).unwrap();
    assert_eq!(old["is_upper_bound"], true);
    old.as_object_mut().unwrap().remove("conditions");
    let read: PrivacyStatement = serde_json::from_value(old).unwrap();
    assert!(!read.is_upper_bound());
    let line = read.in_one_line();
    assert!(line.contains("provenance unknown"), "{line}");
}

#[test]
fn conditions_are_in_the_line_by_their_effect() {
    let sound = state(event(poisson(), 1.0), 1e-4);
    let of = |condition| sound.clone().with(condition);
    let seed = Condition::KnownSeed {
        seed: 7,
        of: crate::condition::Randomness::Simulation,
    };
    let seeded = of(seed.clone());
    assert!(seeded.is_upper_bound());
    let line = seeded.in_one_line();
    assert!(
        line.contains("a proved upper bound if the seed 7 is secret, the server"),
        "{line}"
    );
    let stopped = of(Condition::Stopped).with(seed.clone());
    assert_eq!(stopped.planned_is_upper_bound(), Some(true));
    let line = stopped.in_one_line();
    assert!(
        !stopped.is_upper_bound() && line.contains("fixed beforehand and the seed 7 is secret"),
        "{line}"
    );
    let open = of(Condition::InitialModel)
        .with(seed)
        .with(Condition::Stopped);
    assert_eq!(open.planned_is_upper_bound(), Some(false));
    let line = open.in_one_line();
    assert!(
        line.contains("NOT a guarantee (not covered: the initial model"),
        "{line}"
    );
}
