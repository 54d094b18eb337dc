//! One buffer for the incoming and the outgoing frame.

use super::*;

/// Returns a device that has sent its hello, and the frame that welcomes it.
fn greeting() -> (Board, Vec<u8>) {
    let mut board = board(policy(), ledger(), 0);
    board.timeout();
    let session = chain().session(42, &board.conversation.nonce, &[9; 16]);
    let welcome = Welcome::new(&session, [9; 16], Ok(crate::wire::VERSION));
    let frame = Greeting::Welcome(welcome).encoded();
    (board, frame.as_slice().to_vec())
}

#[test]
fn a_frame_that_crosses_another_is_refused_and_the_next_one_is_received() {
    let (mut board, welcome) = greeting();
    let hello = board.outgoing().to_vec();
    assert_eq!(board.receive(&welcome), welcome.len());
    assert_eq!(board.outgoing(), hello, "what waits is not touched");
    assert_eq!(board.refusals().get(Refusal::Crossed), 1);

    // The rest of a frame is no frame if its beginning collided.
    let (early, late) = welcome.split_at(20);
    board.receive(early);
    board.sent();
    board.receive(late);
    assert_eq!(board.refusals().get(Refusal::Crossed), 2);
    assert_eq!(board.phase(), Phase::Greeting);

    board.receive(&welcome);
    assert_eq!(board.phase(), Phase::Ready);
    assert_eq!(board.refusals().total(), 2);
}

#[test]
fn a_time_out_waits_while_a_frame_is_coming_in() {
    let (mut board, welcome) = greeting();
    let (early, late) = welcome.split_at(20);
    board.sent();
    board.receive(early);
    board.timeout();
    assert!(board.outgoing().is_empty(), "the line is not silent");
    board.receive(late);
    assert_eq!((board.phase(), board.refusals().total()), (Phase::Ready, 0));

    // An incomplete frame is given up.
    let (mut board, _) = greeting();
    board.sent();
    board.receive(early);
    board.timeout();
    board.timeout();
    assert!(!board.outgoing().is_empty(), "hello, again");
    board.sent();
    board.receive(late);
    assert_eq!(board.refusals().get(Refusal::Crossed), 1);
    assert_eq!(board.phase(), Phase::Greeting);
}

#[test]
fn a_slow_line_gets_a_frame_through() {
    let (mut board, welcome) = greeting();
    board.sent();
    for part in welcome.chunks(welcome.len().div_ceil(4)) {
        board.receive(part);
        if board.phase() == Phase::Greeting {
            board.timeout();
        }
    }
    assert_eq!((board.phase(), board.refusals().total()), (Phase::Ready, 0));
}

#[test]
fn nobody_keeps_a_device_silent() {
    let mut board = board(policy(), ledger(), 0);
    let mut said = 0;
    for _ in 0..1_000 {
        board.receive(&[0]);
        board.receive(&[7]);
        board.timeout();
        said += u32::from(!board.outgoing().is_empty());
        board.sent();
    }
    assert_eq!(said, 200, "one time-out in five sends");
}
