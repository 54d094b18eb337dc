//! A device's report of its last round.

use super::*;

/// Returns a board that trained in a round on these samples, and answered.
fn after(noise: Option<Sigma>, samples: &SampleSlice<'_, u16>, most: usize) -> Board {
    after_of(coordinator(3, noise), samples, most)
}

/// [`after`] with this coordinator's round.
fn after_of(mut other: Coordinator, samples: &SampleSlice<'_, u16>, most: usize) -> Board {
    let mut board = board(policy(), ledger(), 0);
    while board.phase() != Phase::Training {
        turn_without_training(&mut board, &mut other);
        assert_eq!(board.last_round(), None);
    }
    while board.train_some(samples, most) == Progress::More {}
    board
}

fn outcome(board: &Board) -> (u32, Outcome) {
    let last = board.last_round().unwrap();
    (last.round, last.outcome)
}

#[test]
fn an_update_is_known_with_the_report_of_the_simulator() {
    let (features, targets) = data();
    let samples = SampleSlice::new(&features, &targets, FEATURES).unwrap();
    for most in [1, 2, usize::MAX] {
        let board = after(noise(), &samples, most);
        assert_eq!(outcome(&board), (3, Outcome::Updated));
        #[cfg(feature = "reports")]
        {
            let root = Root::from_seed(11);
            let asked = invitation(noise());
            let sent = harness::simulated(&root, 42, 3, &asked, &harness::model()).unwrap();
            let report = board.last_round().unwrap().training;
            assert!(report.norm > 0.0 && report.first_loss > report.last_loss);
            // A sum of losses in pieces is in the same order as the whole sum.
            assert_eq!(report, sent.report);
        }
    }
}

/// Zeros under noise, with a reason that only the device knows.
#[test]
fn an_update_of_zeros_is_known_with_its_reason() {
    let (mut features, targets) = data();
    let none = SampleSlice::new(&[], &[], FEATURES).unwrap();
    let board = after(noise(), &none, 1);
    assert_eq!(outcome(&board), (3, Outcome::Zero(Decline::NoSamples)));
    features[3] = f32::NAN;
    let damaged = SampleSlice::new(&features, &targets, FEATURES).unwrap();
    let board = after(noise(), &damaged, 1);
    assert_eq!(outcome(&board), (3, Outcome::Zero(Decline::SAMPLES)));
    features[3] = 0.5;
    let usable = SampleSlice::new(&features, &targets, FEATURES).unwrap();
    let mut broken = coordinator(3, noise());
    broken.model[5] = f32::NAN;
    let board = after_of(broken, &usable, 1);
    assert_eq!(outcome(&board), (3, Outcome::Zero(Decline::Diverged)));
    #[cfg(feature = "reports")]
    assert_eq!(
        board.last_round().unwrap().training,
        crate::train::TrainReport::default()
    );
}

/// Before a round is recorded, and when its invitation arrives.
#[test]
fn a_decline_is_known_with_its_reason() {
    let (mut features, targets) = data();
    features[3] = f32::NAN;
    let damaged = SampleSlice::new(&features, &targets, FEATURES).unwrap();
    let board = after(None, &damaged, 1);
    assert_eq!(outcome(&board), (3, Outcome::Declined(Decline::SAMPLES)));

    let mut strict = policy();
    strict.min_noise_multiplier = NoiseMultiplier::new(100.0).unwrap();
    let mut board = super::board(strict, ledger(), 0);
    let mut other = coordinator(3, noise());
    run(&mut board, &mut other, |bytes| bytes);
    assert_eq!(other.declined, Some(Decline::Noise));
    assert_eq!(outcome(&board), (3, Outcome::Declined(Decline::Noise)));

    // The next round replaces it.
    let mut other = coordinator(4, None);
    board.send(Answer::Hello);
    run(&mut board, &mut other, |bytes| bytes);
    assert_eq!(outcome(&board), (4, Outcome::Declined(Decline::Noise)));
}
