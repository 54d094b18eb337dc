//! Rounds that take longer than a device is awake. They are declined with this reason and not
//! recorded.

use super::*;
use crate::personal::{Personal, PersonalRequest};

/// A link with ten frames per second, and 50 samples per second.
fn wake(awake_ms: u32, resumes: bool) -> Wake {
    Wake {
        awake_ms,
        round_trip_ms: 20,
        bytes_per_second: NonZeroU32::new(2_560).unwrap(),
        samples_per_second: NonZeroU32::new(50).unwrap(),
        resumes,
    }
}

/// Creates a device with memory for `samples` samples.
fn device(window: u8, samples: usize) -> Board {
    let model = Softmax::new(Const::<FEATURES>, Const::<6>);
    let memory = memory(PARAMETERS, samples, 6);
    let nonces = stream(Purpose::Initialisation, 0);
    let session = Session::new(identity(), policy(), model, memory, ledger(), nonces);
    let mut board = session.unwrap();
    board.set_window(window);
    board
}

/// Returns the device's reason to decline an invitation, or `None` if it fetches the model.
fn answer(board: &mut Board, asked: Invitation) -> Option<Decline> {
    let mut other = Coordinator::new(chain(), 3, asked, model());
    while board.phase() != Phase::Receiving && other.declined.is_none() {
        turn_without_training(board, &mut other);
    }
    assert_eq!(
        board.ledger().past().participations,
        0,
        "nothing is recorded"
    );
    other.declined
}

/// Checks that the bound is exactly `bound` milliseconds.
fn assert_bound(bound: u32, resumes: bool, asked: Invitation, [window, samples]: [u8; 2]) {
    for (awake, declined) in [(bound, None), (bound - 1, Some(Decline::AWAKE))] {
        let mut board = device(window, samples.into());
        board.set_awake(wake(awake, resumes));
        assert_eq!(answer(&mut board, asked), declined, "{bound} {awake}");
    }
}

/// The model has three chunks and the update two. Ten samples in batches of four are three steps,
/// and 126 entries take as long as eight samples.
#[test]
fn a_round_that_does_not_fit_is_declined_before_it_is_recorded() {
    let asked = invitation(noise());
    assert_eq!(asked.update_chunks(), 2);
    let fetch = |exchanges: u32| exchanges * 20 + (3 + exchanges) * 100;
    let send = |exchanges: u32| exchanges * 20 + (2 + exchanges) * 100;
    let train = |samples: u32| (2 * (samples + samples.div_ceil(4)) + 8) * 20;
    assert_bound(fetch(3) + train(10) + send(2), false, asked, [1, 10]);
    assert_bound(fetch(2) + train(10) + send(1), false, asked, [2, 10]);
    assert_bound(fetch(1) + train(30) + send(1), false, asked, [16, 30]);
    // An update that outlives sleep can be sent later.
    assert_bound(fetch(3), true, asked, [1, 10]);
    assert_bound(fetch(1), true, asked, [16, 30]);
    let more = Invitation { epochs: 3, ..asked };
    assert_bound(
        fetch(1) + 3 * 13 * 20 + 8 * 20 + send(1),
        false,
        more,
        [16, 10],
    );
}

/// Without helpers the update is held. With helpers the whole round has to fit.
#[cfg(feature = "masks")]
#[test]
fn a_masked_round_has_to_fit_as_a_whole() {
    let masked = Invitation {
        masks: crate::mask::Masking::new(2, 30),
        ..invitation(None)
    };
    for (awake, declined) in [(10_000, None), (500, Some(Decline::AWAKE))] {
        let mut board = board(super::masked::insists_on(2), ledger(), 0);
        board.set_awake(wake(awake, true));
        board.set_window(16);
        assert_eq!(answer(&mut board, masked), declined);
    }
}

/// Counted steps, on a device with a store.
#[test]
fn counted_steps_take_their_batches() {
    let asked = Invitation {
        clipping: Clipping::Final,
        request: Some(Request::Personal(PersonalRequest {
            personal: Personal::Rest,
            steps: NonZeroU32::new(5),
            shared: PARAMETERS as u32,
            last: None,
        })),
        ..invitation(noise())
    };
    let work = |samples| crate::session::wake::Work {
        invitation: &asked,
        chunks: 0,
        samples,
        window: 1,
    };
    let awake = |awake_ms| wake(awake_ms, false);
    // Two chunks of the update. Five steps of four samples, or of all samples if fewer.
    let send = 2 * 20 + 4 * 100;
    for (samples, passes) in [(10, 5 * 4 + 5 + 8), (3, 5 * 3 + 5 + 8)] {
        assert!(awake(send + passes * 20).suffices(&work(samples)));
        assert!(!awake(send + passes * 20 - 1).suffices(&work(samples)));
    }
}

/// The limits of the arithmetic cause no overflow.
#[test]
fn the_longest_round_is_too_long() {
    let asked = Invitation {
        epochs: u32::MAX,
        batch_size: NonZeroU32::MIN,
        ..invitation(None)
    };
    let work = crate::session::wake::Work {
        invitation: &asked,
        chunks: usize::MAX,
        samples: usize::MAX,
        window: 0,
    };
    for resumes in [false, true] {
        assert!(!wake(u32::MAX, resumes).suffices(&work));
    }
}

/// A covered update goes out however short the device is awake, as it costs nothing more.
#[test]
fn an_update_that_is_there_is_sent_whatever_time_is_left() {
    let asked = invitation(noise());
    let (mut board, mut other) = resumption::interrupted(asked, 0);
    board.set_awake(wake(0, false));
    board.send(Answer::Hello);
    run(&mut board, &mut other, |bytes| bytes);
    assert_eq!(other.integers, expected(3, &asked));
    // The next round is declined.
    let mut next = Coordinator::new(chain(), 4, asked, model());
    run(&mut board, &mut next, |bytes| bytes);
    assert_eq!(next.declined, Some(Decline::AWAKE));
    assert_eq!(board.ledger().past().participations, 1);
}

/// A round without enough time, a round too soon, and a round of another model.
#[test]
fn an_update_that_waits_is_not_given_up_for_a_round_that_is_declined() {
    let asked = invitation(noise());
    let (mut board, mut other) = resumption::interrupted(asked, 1);
    let mut shape = asked;
    shape.shape.kind = ModelKind::Logistic;
    for (round, another, declined) in [
        (4, asked, Decline::AWAKE),
        (2, asked, Decline::RoundUsed),
        (500, asked, Decline::TooFar),
        (4, shape, Decline::Shape),
    ] {
        board.set_awake(wake(0, false));
        board.send(Answer::Hello);
        let mut next = Coordinator::new(chain(), round, another, model());
        run(&mut board, &mut next, |bytes| bytes);
        assert_eq!(next.declined, Some(declined));
        assert!(board.has_unsent_update());
    }
    board.send(Answer::Hello);
    other.next = 0;
    run(&mut board, &mut other, |bytes| bytes);
    assert_eq!(other.integers, expected(3, &asked));

    // A round that it takes part in ends the previous one.
    let (mut board, _) = resumption::interrupted(asked, 1);
    board.send(Answer::Hello);
    let mut next = Coordinator::new(chain(), 4, asked, model());
    run(&mut board, &mut next, |bytes| bytes);
    assert_eq!(next.integers, expected(4, &asked));
    assert_eq!(board.ledger().past().participations, 2);
}
