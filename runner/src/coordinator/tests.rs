//! The coordinator against the core's own session over lines that lose, damage, repeat and reorder,
//! and against devices that lie.

use std::sync::Arc;

use proptest::{collection::vec, prelude::*};
use smolfed_core::ledger::Budget;
use smolfed_core::session::{Phase, Policy};
use smolfed_core::wire::Direction;
use smolfed_core::wire::frame::{Encoded, Header};
use smolfed_core::wire::link::{DeviceEnd, Link, greet};
use smolfed_core::wire::mac::Key;
use smolfed_core::wire::message::{Decline, Hello, Message, Packed, UpdateChunk, update_chunks};
use smolfed_core::wire::refusal::Refusal;

use super::exchange::{Absence, Verdict};
use super::line::Line;
use super::peer::{LineId, PENDING};

mod desk;
mod liar;

use desk::*;
use liar::*;

#[test]
fn rounds_bring_the_bits_of_the_simulator() {
    for noise in [None, noise()] {
        let (mut desk, mut board) = (Desk::new(noise), board(2));
        for number in [3, 4, 9] {
            let offer = offer(number, noise);
            desk.peer(2).offer(Arc::clone(&offer));
            let verdict = run(&mut board, &mut desk, 2, |bytes| bytes);
            assert_eq!(verdict, Verdict::Answered(expected(2, &offer)));
        }
        assert_eq!(desk.peer(2).refusals().total(), 0);
        assert_eq!(desk.peer(2).state(), "ready");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A third of what is said is lost, damaged, repeated, cut, delayed or mixed with garbage, and
    /// now and then the connection itself is another one.
    #[test]
    fn a_bad_line_costs_turns_and_nothing_else(
        faults in vec((0u8..24, any::<u16>()), 200),
        with_noise in any::<bool>(),
    ) {
        let noise = noise().filter(|_| with_noise);
        let (mut desk, mut board) = (Desk::new(noise), board(1));
        let offer = offer(5, noise);
        desk.peer(1).offer(Arc::clone(&offer));
        let mut faults = faults.iter().cycle();
        let (mut last, mut late) = (vec![], vec![]);
        let mut verdict = None;
        for count in 0..20_000 {
            if desk.peer(1).is_settled() {
                verdict = desk.peer(1).close();
                break;
            }
            if count % 37 == 36 {
                desk.reconnect();
            }
            turn(&mut board, &mut desk, &mut |bytes| {
                let (fault, at) = faults.next().unwrap();
                let at = usize::from(*at) % bytes.len();
                let mut out = bytes.clone();
                match fault {
                    0 => out.clear(),
                    1 => out[at] ^= 0x10,
                    2 => out.extend(&bytes),
                    3 => out.truncate(at),
                    4 => out = [&[0x55; 300][..], &[0], &bytes].concat(),
                    5 => out = [&last[..], &bytes].concat(),
                    6 => out = std::mem::replace(&mut late, out),
                    _ => {}
                }
                last = bytes;
                out
            });
        }
        // A session that was lost after the model came costs the round; else the bits are right.
        match verdict {
            Some(Verdict::Answered(integers)) => prop_assert_eq!(integers, expected(1, &offer)),
            other => prop_assert_eq!(other, Some(Verdict::Missing(Absence::SessionLost))),
        }
        prop_assert_eq!(board.ledger().past().participations, 1);
    }

    #[test]
    fn random_bytes_are_left_out_and_counted(
        bytes in vec(prop_oneof![Just(0u8), any::<u8>()], 0..2_000),
    ) {
        let mut desk = Desk::new(None);
        desk.hear(&[]);
        prop_assert!(desk.hear(&bytes).len() < 100, "a call at most");
        let pieces = bytes.split(|byte| *byte == 0).rev().skip(1);
        let pieces = pieces.filter(|piece| !piece.is_empty()).count();
        prop_assert_eq!(desk.line.refusals().total() as usize, pieces);
    }
}

#[test]
fn updates_that_cannot_be_are_refused_by_name() {
    let bound = 1i64 << 20;
    let one = |at: usize, value: i64| {
        let mut values = vec![0; PARAMETERS];
        values[at] = value;
        values
    };
    let mut two = one(3, bound - 1);
    two[90] = bound - 1;
    let cases = [
        (one(5, -bound), false, Some(one(5, -bound))),
        (one(5, -bound), true, Some(one(5, bound))),
        (one(5, bound - 1), false, Some(one(5, bound - 1))),
        (two, false, None),
        // Negated without need: two ways to say the same would let a device mark its update.
        (one(5, 3), true, None),
        (vec![-bound; PARAMETERS], false, None),
    ];
    for (values, negated, accepted) in cases {
        let mut desk = Desk::new(None);
        let offer = offer(1, None);
        desk.peer(0).offer(Arc::clone(&offer));
        let mut liar = Liar::new(&mut desk, 0);
        liar.fetch(&mut desk, 1);
        let kinds = liar.send(&mut desk, &offer, &values, negated);
        let expected = match accepted {
            Some(values) => (22, Verdict::Answered(values)),
            None => (24, Verdict::Missing(Absence::OutOfBound)),
        };
        assert_eq!((kinds[0], desk.peer(0).close().unwrap()), expected);
    }
}

#[test]
fn malformed_chunks_and_lying_lengths_are_counted_and_the_round_waits_on() {
    let mut desk = Desk::new(None);
    let offer = offer(1, None);
    desk.peer(0).offer(Arc::clone(&offer));
    let mut liar = Liar::new(&mut desk, 0);
    let chunk = |index, negated, packed| {
        Message::UpdateChunk(UpdateChunk {
            index,
            negated,
            packed: Packed::Bytes(packed),
        })
    };
    // Before it has the model.
    liar.say(&mut desk, 1, &chunk(0, false, &[0; 221]));
    assert_eq!(desk.peer(0).refusals().get(Refusal::Unexpected), 1);
    liar.say(&mut desk, 1, &Message::WantModel(3));
    assert_eq!(desk.peer(0).refusals().get(Refusal::Body), 1);
    liar.fetch(&mut desk, 1);
    // A chunk that is too short, one that is not next, another round, and the end before it.
    liar.say(&mut desk, 1, &chunk(0, false, &[0; 220]));
    liar.say(&mut desk, 1, &chunk(1, false, &[0; 111]));
    liar.say(&mut desk, 2, &chunk(0, false, &[0; 221]));
    let chunks = update_chunks(PARAMETERS, 21);
    assert_eq!(chunks, 2);
    let refusals = *desk.peer(0).refusals();
    assert_eq!(refusals.get(Refusal::Body), 2);
    assert_eq!(refusals.get(Refusal::Unexpected), 2);
    assert_eq!(refusals.get(Refusal::Round), 1);
    // The flag may not change on the way.
    assert_eq!(liar.say(&mut desk, 1, &chunk(0, false, &[0; 221]))[0], 21);
    liar.say(&mut desk, 1, &chunk(1, true, &[0; 111]));
    assert_eq!(desk.peer(0).refusals().get(Refusal::Body), 3);
    assert!(!desk.peer(0).is_settled());
    assert_eq!(liar.say(&mut desk, 1, &chunk(1, false, &[0; 111]))[0], 22);
    assert_eq!(
        desk.peer(0).close().unwrap(),
        Verdict::Answered(vec![0; PARAMETERS])
    );
}

#[test]
fn another_key_or_another_name_opens_no_session() {
    let mut desk = Desk::new(None);
    desk.hear(&[]);
    // Device 1 claims to be device 0; a device that nobody knows.
    let mut other = board_with(0, 1, 0, policy());
    let mut unknown = board(7);
    for _ in 0..10 {
        turn(&mut other, &mut desk, &mut |bytes| bytes);
        turn(&mut unknown, &mut desk, &mut |bytes| bytes);
    }
    assert!(desk.peer(0).refusals().get(Refusal::Tag) >= 10);
    assert!(desk.line.refusals().get(Refusal::Tag) >= 10);
    assert!((0..4).all(|device| !desk.peer(device).is_reachable()));
}

#[test]
fn a_recorded_hello_does_not_end_a_session() {
    let mut desk = Desk::new(None);
    let offer = offer(1, None);
    let mut board = board(3);
    let mut tape = vec![];
    for _ in 0..3 {
        turn(&mut board, &mut desk, &mut |bytes| {
            tape.extend(&bytes);
            bytes
        });
    }
    assert!(desk.peer(3).is_reachable());
    desk.peer(3).offer(Arc::clone(&offer));
    // More than are kept.
    for number in 0..5 * PENDING as u8 {
        turn(&mut board, &mut desk, &mut |bytes| bytes);
        desk.hear(&tape);
        desk.hear(&hello(3, 3, [number; 16]));
    }
    let verdict = run(&mut board, &mut desk, 3, |bytes| bytes);
    assert_eq!(verdict, Verdict::Answered(expected(3, &offer)));
}

/// A kilobyte is what a connection is read at a time: nothing more waits for a device.
#[test]
fn answers_to_a_flood_of_requests_are_bounded_by_what_was_read() {
    let mut desk = Desk::new(None);
    desk.peer(0).offer(offer(1, None));
    let mut liar = Liar::new(&mut desk, 0);
    let request = |_| liar.link.seal(1, &Message::WantModel(0));
    let mut flood: Vec<u8> = (0..32)
        .map(request)
        .flat_map(|x| x.as_slice().to_vec())
        .collect();
    flood.truncate(1024);
    let answers = desk.hear(&flood);
    // A frame has 32 bytes at least, and its answer 256 at most.
    assert!(answers.len() <= 1024 / 32 * 256, "{} bytes", answers.len());
    assert_eq!(frames(&answers).len(), 30);
}

#[test]
fn a_device_that_may_have_begun_is_not_asked_again() {
    let mut desk = Desk::new(None);
    desk.peer(0).offer(offer(1, None));
    let mut first = Liar::new(&mut desk, 0);
    first.say(&mut desk, 1, &Message::WantModel(0));
    // Not all of the model: it cannot have begun, and is invited again.
    let mut second = restart(&mut desk, 1);
    second.fetch(&mut desk, 1);
    assert!(!desk.peer(0).is_settled());
    restart(&mut desk, 2);
    assert!(desk.peer(0).is_settled());
    let expected = Verdict::Missing(Absence::SessionLost);
    assert_eq!(desk.peer(0).close().unwrap(), expected);
}

#[test]
fn whoever_misses_a_round_is_named_with_the_reason() {
    let verdict = |desk: &mut Desk| desk.peer(0).close().unwrap();
    let missing = Verdict::Missing;
    let mut desk = Desk::new(None);
    desk.peer(0).offer(offer(1, None));
    assert_eq!(verdict(&mut desk), missing(Absence::NotConnected));
    let mut liar = Liar::new(&mut desk, 0);
    desk.peer(0).offer(offer(2, None));
    assert_eq!(verdict(&mut desk), missing(Absence::Silent));
    desk.peer(0).offer(offer(3, None));
    liar.fetch(&mut desk, 3);
    assert_eq!(verdict(&mut desk), missing(Absence::Late));
    // What comes too late is answered, so that the device need not wait.
    assert_eq!(liar.say(&mut desk, 3, &Message::WantModel(0))[0], 24);
    desk.peer(0).offer(offer(4, None));
    liar.say(&mut desk, 4, &Message::Decline(Decline::Budget));
    assert!(desk.peer(0).is_settled());
    assert_eq!(
        verdict(&mut desk),
        missing(Absence::Declined(Decline::Budget))
    );
}

#[test]
fn devices_that_do_not_fit_the_federation_are_told_why_and_fall_silent() {
    let insists = Policy {
        least_noise_multiplier: 1,
        ..policy()
    };
    let mut desk = Desk::new(None);
    let mut board = board_with(0, 0, 0, insists);
    for _ in 0..5 {
        turn(&mut board, &mut desk, &mut |bytes| bytes);
    }
    assert!(matches!(board.phase(), Phase::Refused(_)));
    assert_eq!(
        desk.peer(0).state(),
        "refused: the federation's devices add no noise"
    );
    // Of a version that is not spoken here, and with another model.
    let mut hello = Hello {
        lowest_version: 2,
        highest_version: 9,
        ..greeting(1, [1; 16])
    };
    for state in [
        "refused: no common version of the protocol",
        "refused: the federation trains another model",
    ] {
        let frame = greet::<DeviceEnd>(&Message::Hello(hello), &key(1));
        let answer = frames(&desk.hear(frame.as_slice()));
        assert!(answer.iter().any(|(kind, _)| *kind == 4), "told");
        assert_eq!(desk.peer(1).state(), state);
        hello.lowest_version = 1;
        hello.shape.outputs += 1;
    }
}

/// A coordinator that lies about the budget is the device's to stop: its own count decides.
#[test]
fn a_device_stops_at_its_own_budget() {
    let twice = Policy {
        budget: Budget(2),
        ..policy()
    };
    let (mut desk, mut board) = (Desk::new(None), board_with(0, 0, 0, twice));
    let mut verdicts = vec![];
    for number in 0..4 {
        desk.peer(0).offer(offer(number, None));
        verdicts.push(run(&mut board, &mut desk, 0, |bytes| bytes));
    }
    assert!(matches!(
        verdicts[..2],
        [Verdict::Answered(_), Verdict::Answered(_)]
    ));
    let spent = Verdict::Missing(Absence::Declined(Decline::Budget));
    assert_eq!(verdicts[2..], [spent.clone(), spent]);
}

/// Whoever recorded a fleet and reaches the port says all of it again, on a line of their own.
#[test]
fn recorded_hellos_from_elsewhere_keep_nobody_out() {
    let mut desk = Desk::new(None);
    let nonce = [77; 16];
    let answer = desk.hear(&hello(0, 0, nonce));
    let mut elsewhere = Line::new(LineId(9));
    let mut out = vec![];
    for number in 0..5 * PENDING as u8 {
        let replay = hello(0, 0, [number; 16]);
        elsewhere.receive(&replay, &mut desk.roster, desk.now, &mut out);
    }
    // Also the very hello that is being answered.
    elsewhere.receive(&hello(0, 0, nonce), &mut desk.roster, desk.now, &mut out);
    let mut device = Liar::welcomed(0, nonce, &answer);
    device.say(&mut desk, 0, &Message::Ready);
    assert!(desk.peer(0).is_on(LineId(0)));
}

#[test]
fn a_device_that_was_refused_is_left_in_peace() {
    let mut desk = Desk::new(None);
    let mut hello = greeting(1, [1; 16]);
    hello.shape.outputs += 1;
    let frame = greet::<DeviceEnd>(&Message::Hello(hello), &key(1));
    desk.hear(frame.as_slice());
    // Ten seconds.
    let calls = |desk: &mut Desk| {
        (0..50)
            .map(|_| desk.hear(&[]))
            .flat_map(|out| frames(&out))
            .count()
    };
    assert_eq!(calls(&mut desk), 0);
    // A line on which nobody spoke is called every second.
    desk.reconnect();
    assert!((8..=10).contains(&calls(&mut desk)));
}

#[test]
fn frames_of_nobody_are_compared_with_all_sessions_a_few_times_only() {
    for (strange, is_found) in [(15, true), (16, false)] {
        let mut desk = Desk::new(None);
        let mut device = Liar::new(&mut desk, 0);
        desk.reconnect();
        assert!(desk.peer(0).is_orphan());
        let mut nobody = Link::<DeviceEnd>::new(Key::from_secret([9; 32]));
        for _ in 0..strange {
            desk.hear(nobody.seal(0, &Message::Ready).as_slice());
        }
        device.say(&mut desk, 0, &Message::Ready);
        assert_eq!(desk.peer(0).is_reachable(), is_found);
    }
}

#[test]
fn a_forged_frame_of_another_version_is_nobodys() {
    let mut desk = Desk::new(None);
    let mut device = Liar::new(&mut desk, 0);
    let header = Header {
        version: 2,
        kind: 16,
        round: 0,
        sequence: 9,
    };
    let nobody = Key::from_secret([9; 32]);
    let frame = Encoded::seal(header, &[], &nobody, Direction::ToCoordinator);
    desk.hear(frame.as_slice());
    assert_eq!(desk.peer(0).refusals().total(), 0);
    assert_eq!(desk.line.refusals().get(Refusal::Version), 1);
    device.say(&mut desk, 0, &Message::Ready);
    assert!(desk.peer(0).is_reachable());
}
