//! Distributed trust: attacks on the views of the coordinator, of a helper and of outsiders.

use super::*;
use crate::audit::correlated::Correlated;
use crate::audit::view::View;

const PAIR: &str = "noise_multiplier = 3.0\ntrust = \"distributed\"";
const THREE: &str = "noise_multiplier = 3.0\ntrust = \"distributed=3/2\"";
const STD: &str = "standard deviation of the noise";
const VIEWS: [View; 3] = [View::Coordinator, View::Helpers, View::Releases];

fn seen_by(audited: &Audited, fault: Fault, view: View) -> Target<'_> {
    let target = Target::new(&audited.experiment, &audited.federation, fault).unwrap();
    target.seen_by(view)
}

fn failed_in(audited: &Audited, fault: Fault, view: View) -> Vec<&'static str> {
    let checks = direct::audit(&seen_by(audited, fault, view), 1, 1 << 14).unwrap();
    let failed = checks.iter().filter(|check| !check.is_as_claimed);
    failed.map(|check| check.test).collect()
}

/// Each view passes every direct test. Each fails by chance with a probability below 1e-6.
#[test]
fn each_party_sees_what_is_claimed() {
    for (cohort, privacy) in [(POISSON, PAIR), (UNIFORM, PAIR), (POISSON, THREE)] {
        let audited = experiment(30, 3, cohort, privacy);
        assert_eq!(View::for_experiment(&audited.experiment), VIEWS);
        for view in VIEWS {
            let failed = failed_in(&audited, Fault::None, view);
            assert_eq!(failed, [""; 0], "{cohort} {privacy} {view:?}");
        }
    }
}

/// Each fault fails its direct test, in a view that shows it.
#[test]
fn each_fault_of_masks_and_parties_is_found() {
    let audited = experiment(30, 3, POISSON, PAIR);
    let any = View::Coordinator;
    for (fault, view, test) in [
        (Fault::MaskReused, any, "masks of two rounds"),
        (Fault::MaskRoundCut, any, "masks of two rounds"),
        (
            Fault::HelperNoiseReused,
            View::Coordinator,
            "noise of different rounds",
        ),
        (
            Fault::OneAnswerTooMany,
            any,
            "answers of a helper in one round",
        ),
        (
            Fault::AttendanceForged,
            any,
            "attendance on the list of a helper",
        ),
        (Fault::NoHelperNoise, View::Coordinator, STD),
        (Fault::NoHelperNoise, View::Releases, STD),
        // The coordinator's own noise protects against the helper alone.
        (Fault::NoNoiseInLastRound, View::Helpers, STD),
        (Fault::ClipSkipped, any, "what one device changes"),
        (
            Fault::EventNeverCharged,
            View::Releases,
            "charges of the ledger",
        ),
    ] {
        let found = failed_in(&audited, fault, view);
        assert!(
            found.contains(&test),
            "{} {view:?}: {found:?}",
            fault.name()
        );
    }
    assert_eq!(failed_in(&audited, Fault::NoNoiseInLastRound, any), [""; 0]);
}

/// The proved ε is below the claim against each view, and above the coordinator's claim if it alone
/// has added noise.
#[test]
fn the_views_are_attacked() {
    let privacy = "noise_multiplier = 3.0\ntrust = \"distributed\"";
    let audited = experiment(20, 4, POISSON, privacy);
    let claims = audited.experiment.privacy.statements(4).unwrap();
    let low = |fault, view| {
        let confidence = Confidence {
            delta: audited.experiment.privacy.delta,
            error: ERROR,
        };
        let size = Size {
            seed: 1,
            pairs: 500,
            canaries: 20,
        };
        let attack = attack::audit(&seen_by(&audited, fault, view), size, confidence).unwrap();
        let bounds = attack.findings.iter().map(|finding| finding.epsilon_low);
        bounds.fold(0.0, f64::max)
    };
    for view in VIEWS {
        let (low, claim) = (low(Fault::None, view), view.epsilon(&claims[0]));
        let is_idle = view.knows_cohorts() && low < 0.1;
        assert!(!is_idle && low <= claim, "{view:?}: {low} of {claim}");
    }
    let (low, claim) = (
        low(Fault::NoHelperNoise, View::Coordinator),
        claims[0].epsilon,
    );
    assert!(low > claim, "{low} is not above {claim}");
}

/// The same attacks with correlated noise, where each party keeps a history.
#[test]
fn histories_of_masked_sums_are_attacked() {
    let cohort = "sampling = \"rotation\"";
    let privacy = "noise_multiplier = 2.0\ntrust = \"distributed\"\nmechanism = \"correlated\"\n\
                   separation = 3";
    let audited = experiment(24, 8, cohort, privacy);
    let checks = |fault, view| {
        let correlated = Correlated::new(&audited.experiment, &audited.federation, fault);
        let correlated = correlated.unwrap().unwrap();
        assert_eq!(correlated.views(), VIEWS);
        let checks = correlated.seen_by(view).checks(3).unwrap();
        let failed = checks.into_iter().filter(|check| !check.is_as_claimed);
        failed.map(|check| check.test).collect::<Vec<_>>()
    };
    for view in VIEWS {
        assert_eq!(checks(Fault::None, view), [""; 0], "{view:?}");
    }
    let std = "standard deviation of the noise on combinations";
    assert!(checks(Fault::NoHelperNoise, View::Coordinator).contains(&std));
    assert!(checks(Fault::NoiseTooSmall, View::Helpers).contains(&std));
}
