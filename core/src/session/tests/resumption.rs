//! A covered update survives the loss of its session and goes out in the next one: the same
//! integers, under the same noise.

use super::*;

/// Returns a board in the middle of its update, and the coordinator, which has `chunks` chunks of
/// it.
pub(super) fn interrupted(asked: Invitation, chunks: u16) -> (Board, Coordinator) {
    let mut board = board(policy(), ledger(), 0);
    let mut other = Coordinator::new(chain(), 3, asked, model());
    while board.phase() != Phase::Sending {
        turn(&mut board, &mut other, &mut |bytes| bytes);
    }
    for _ in 0..chunks {
        other.receive(board.outgoing());
    }
    // Everything else in transit is lost.
    other.outgoing.clear();
    board.sent();
    assert_eq!((other.next, other.done), (chunks, false));
    (board, other)
}

#[test]
fn the_same_update_goes_out_in_a_new_session() {
    for asked in [
        invitation(None),
        invitation(noise()),
        bit::adaptive(noise(), 0.5),
    ] {
        for chunks in [0, 1] {
            let (mut board, mut other) = interrupted(asked, chunks);
            // The coordinator has chunks of a different update: it keeps none of them.
            other.next = 0;
            other.integers.fill(7);
            board.send(Answer::Hello);
            assert_eq!(board.phase(), Phase::Greeting);
            let mut was_training = false;
            run(&mut board, &mut other, |bytes| bytes);
            was_training |= board.phase() == Phase::Training;
            assert!(!was_training && other.declined.is_none());
            assert_eq!(other.integers, expected(3, &asked));
            assert_eq!(board.ledger().past().participations, 1);
        }
    }
}

/// A coordinator with a different invitation in a begun round, or one to another round, gets
/// nothing of the update.
#[test]
fn another_invitation_is_not_answered_with_the_update() {
    let asked = invitation(noise());
    let others = [
        Invitation {
            noise: Sigma::new(1 << 20, 2).ok(),
            ..asked
        },
        Invitation {
            noise: None,
            ..asked
        },
        Invitation { epochs: 1, ..asked },
        bit::adaptive(noise(), 0.5),
    ];
    for another in others {
        let (mut board, mut other) = interrupted(asked, 1);
        board.send(Answer::Hello);
        (other.invitation, other.next) = (another, 0);
        run(&mut board, &mut other, |bytes| bytes);
        assert_eq!(other.declined, Some(Decline::RoundUsed));
        assert_eq!(other.next, 0, "no chunk");
        // The update is gone, so the first invitation comes too late.
        (other.invitation, other.declined) = (asked, None);
        other.invite();
        run(&mut board, &mut other, |bytes| bytes);
        assert_eq!(other.declined, Some(Decline::RoundUsed));
    }

    let (mut board, _) = interrupted(asked, 1);
    board.send(Answer::Hello);
    let mut next = Coordinator::new(chain(), 4, asked, model());
    run(&mut board, &mut next, |bytes| bytes);
    assert_eq!(next.integers, expected(4, &asked));
    assert_eq!(board.ledger().past().participations, 2);
}

/// Once it has arrived, and after a restart, there is nothing to resume.
#[test]
fn an_update_that_has_arrived_or_is_lost_is_not_sent_again() {
    let asked = invitation(noise());
    let (mut board, mut other) = interrupted(asked, 1);
    other.send(&Message::Done);
    for said in core::mem::take(&mut other.outgoing) {
        board.receive(&said);
    }
    assert_eq!(board.phase(), Phase::Idle);
    board.send(Answer::Hello);
    run(&mut board, &mut other, |bytes| bytes);
    assert_eq!(other.declined, Some(Decline::RoundUsed));

    let (board, mut other) = interrupted(asked, 1);
    let mut restarted = self::board(policy(), board.into_ledger(), 1);
    run(&mut restarted, &mut other, |bytes| bytes);
    assert_eq!(other.declined, Some(Decline::RoundUsed));
}
