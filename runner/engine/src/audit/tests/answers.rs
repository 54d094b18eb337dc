//! Audits of answers to questions: each question alone, and together with the updates.
//!
//! Seeds are fixed. Each family of tests fails by chance with a probability of at most 2.2e-8, and
//! all families of one audit together with one below 1e-6.

use super::*;
use crate::audit::channel::Channel;
use crate::audit::channels::answers::Answers;
use crate::audit::view::View;

const STD: &str = "standard deviation of the noise on answers";
const NOISE: &str = "noise of answers and other noise";
const CHANGES: &str = "what one device changes in answers";
const COUNTS: &str = "how often a device counts in answers";
const COHORTS: &str = "cohorts of answers";
const CHARGES: &str = "charges of the ledger";

const QUESTIONS: &str = "[[questions]]\nkind = \"histogram\"\nevery = 1\n[[questions]]\n\
                         kind = \"evaluate\"\n[[questions]]\nkind = \"count\"\nevery = 2\n";
const QUIET: &str = "noise_multiplier = 3.0";
const LOCAL_QUIET: &str = "noise_multiplier = 3.0\ntrust = \"local\"";
const MASKED: &str = "noise_multiplier = 3.0\ntrust = \"distributed\"";

/// Builds an experiment with thirty devices and four rounds that asks these questions.
fn asking(cohort: &str, privacy: &str, questions: &str) -> Audited {
    experiment(30, 4, cohort, &format!("{privacy}\n{questions}"))
}

fn target(audited: &Audited, fault: Fault, view: View) -> Target<'_> {
    let target = Target::new(&audited.experiment, &audited.federation, fault).unwrap();
    target.seen_by(view)
}

fn failed_in_answers(audited: &Audited, fault: Fault, view: View) -> Vec<&'static str> {
    let target = target(audited, fault, view);
    let answers = Answers::from_target(&target).unwrap();
    let checks = answers.checks(1, 1 << 14).unwrap();
    let failed = checks.iter().filter(|check| !check.is_as_claimed);
    failed.map(|check| check.test).collect()
}

/// Returns the proved and the claimed ε of the answers to the first question.
fn attacked(audited: &Audited, fault: Fault, pairs: u32) -> (f64, f64) {
    let target = target(audited, fault, View::for_experiment(&audited.experiment)[0]);
    let asked = &target.questions()[0];
    let claim = target.statement_of(asked).unwrap().unwrap();
    let (size, confidence) = (
        Size {
            seed: 1,
            pairs,
            canaries: 30,
        },
        Confidence {
            delta: claim.delta,
            error: ERROR,
        },
    );
    let attack = attack::audit_answers(&target, asked, size, confidence).unwrap();
    let bounds = attack.findings.iter().map(|finding| finding.epsilon_low);
    (bounds.fold(0.0, f64::max), claim.epsilon)
}

#[test]
fn answers_are_what_is_claimed() {
    for (cohort, privacy) in [
        (POISSON, QUIET),
        (UNIFORM, QUIET),
        ("sampling = \"full\"", QUIET),
        (POISSON, LOCAL_QUIET),
        (POISSON, MASKED),
    ] {
        let audited = asking(cohort, privacy, QUESTIONS);
        for view in View::for_experiment(&audited.experiment) {
            let failed = failed_in_answers(&audited, Fault::None, view);
            assert_eq!(failed, [""; 0], "{cohort} {privacy} {view:?}");
        }
    }
}

/// Rounds, cohorts and charges are unchanged by questions.
#[test]
fn rounds_between_questions_are_what_is_claimed() {
    for privacy in [QUIET, MASKED] {
        let audited = asking(POISSON, privacy, QUESTIONS);
        assert_eq!(failed(&audited, Fault::None), [""; 0], "{privacy}");
    }
}

#[test]
fn a_question_with_a_cohort_of_its_own_is_drawn_at_its_rate() {
    let question = "[[questions]]\nkind = \"count\"\nevery = 1\ncohort_size = 6\n";
    for cohort in [POISSON, UNIFORM] {
        let audited = asking(cohort, QUIET, question);
        let none = View::Releases;
        assert_eq!(failed_in_answers(&audited, Fault::None, none), [""; 0]);
        let found = failed_in_answers(&audited, Fault::AnswerCohortOfRound, none);
        let is_noticed = found == [COHORTS];
        // Another number of devices from the same stream is another cohort of a uniform draw.
        assert!(is_noticed || cohort == UNIFORM, "{cohort}: {found:?}");
    }
}

/// Each fault fails its test, and no honest release does.
#[test]
fn every_fault_of_answers_fails_its_direct_test() {
    for (fault, tests) in [
        (Fault::AnswerEntryWithoutNoise, &[STD][..]),
        (Fault::AnswersTwice, &[COUNTS]),
        (Fault::AnswerNoiseOfRound, &[NOISE]),
        (Fault::AnswerTooLong, &[CHANGES, COUNTS]),
        (Fault::AnswerCohortOfRound, &[COHORTS]),
    ] {
        for (cohort, privacy) in [(POISSON, QUIET), (UNIFORM, QUIET), (POISSON, LOCAL_QUIET)] {
            let audited = asking(cohort, privacy, QUESTIONS);
            let found = failed_in_answers(&audited, fault, View::Releases);
            let is_found = tests.iter().all(|test| found.contains(test));
            assert!(is_found, "{} {cohort} {privacy}: {found:?}", fault.name());
        }
    }
}

#[test]
fn answers_that_are_not_charged_are_noticed() {
    let audited = asking(POISSON, QUIET, QUESTIONS);
    let found = failed(&audited, Fault::AnswerNeverCharged);
    assert_eq!(found, [CHARGES]);
}

/// A party that knows its own noise sees an entry without any. Helpers refuse wrong lists and
/// numbers, and the answer is then lost, which fails the test of the noise.
#[test]
fn faults_of_answers_are_noticed_under_masks() {
    let audited = asking(POISSON, MASKED, QUESTIONS);
    for (fault, view, test) in [
        (Fault::AnswerEntryWithoutNoise, View::Helpers, STD),
        (Fault::AnswersTwice, View::Coordinator, COUNTS),
        (Fault::AnswerNoiseOfRound, View::Coordinator, STD),
        (Fault::AnswerTooLong, View::Coordinator, CHANGES),
        (Fault::AnswerCohortOfRound, View::Releases, COHORTS),
    ] {
        let found = failed_in_answers(&audited, fault, view);
        assert!(
            found.contains(&test),
            "{} {view:?}: {found:?}",
            fault.name()
        );
    }
}

/// The proved ε of a question is above 0 and below its claim. A bound is wrong with a probability
/// of at most 1e-7.
#[test]
fn the_answers_to_one_question_are_attacked() {
    let question = "[[questions]]\nkind = \"histogram\"\nevery = 2\nnoise_multiplier = 2.0\n";
    let masked = "[[questions]]\nkind = \"histogram\"\nevery = 2\n";
    let (local, loud) = (
        "noise_multiplier = 3.0\ntrust = \"local\"",
        "noise_multiplier = 2.0\ntrust = \"distributed\"",
    );
    for (cohort, privacy, question) in [
        (POISSON, QUIET, question),
        (UNIFORM, QUIET, question),
        (POISSON, local, question),
        (POISSON, loud, masked),
    ] {
        let audited = asking(cohort, privacy, question);
        let (low, claim) = attacked(&audited, Fault::None, 500);
        assert!(low <= claim, "{cohort} {privacy}: {low} above {claim}");
        assert!(low > 0.1, "{cohort} {privacy}: {low} of {claim}");
    }
}

/// The attack alone refutes the claim if a fault is large enough, and not without a fault.
#[test]
fn the_attack_refutes_claims_about_answers() {
    for (fault, z, pairs) in [
        (Fault::AnswerEntryWithoutNoise, 8, 1_000),
        (Fault::AnswerTooLong, 4, 2_000),
    ] {
        let question =
            format!("[[questions]]\nkind = \"count\"\nevery = 1\nnoise_multiplier = {z}.0\n");
        let audited = asking("sampling = \"full\"", QUIET, &question);
        let (low, claim) = attacked(&audited, Fault::None, 200);
        assert!(low <= claim, "z = {z}: {low} above {claim}");
        let (low, claim) = attacked(&audited, fault, pairs);
        assert!(low > claim, "{}: {low} is not above {claim}", fault.name());
    }
}

/// The attacker of all releases also reads the answers: very large noise on updates leaves the
/// proof to them.
#[test]
fn answers_are_attacked_with_the_updates() {
    let question = "[[questions]]\nkind = \"count\"\nevery = 1\nnoise_multiplier = 2.0\n";
    for trust in ["central", "local"] {
        let privacy = format!("noise_multiplier = 300.0\ntrust = \"{trust}\"");
        let audited = asking(POISSON, &privacy, question);
        let Audit { claim, low } = audit(&audited, Fault::None, 200);
        let claim = claim.epsilon;
        assert!(low <= claim, "{trust}: {low} above {claim}");
        assert!(low > 0.1, "{trust}: {low} of {claim}");
    }
}
