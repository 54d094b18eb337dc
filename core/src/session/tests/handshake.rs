//! Sessions that begin with an X25519 handshake.

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use zeroize::Zeroizing;

use super::*;
use crate::wire::handshake::{Ephemeral, Second};

/// Replaces the hardware generator. It is independent of the device's root: handshake keys from the
/// root's streams would be compromised along with the stored secrets.
pub(super) fn hardware(start: u32) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(start.into())
}

fn secure(start: u32) -> Board<X25519<ChaCha20Rng>> {
    board_with(X25519::new(hardware(start)), policy(), ledger())
}

/// Answers as the coordinator, with another key for each Hello.
pub(super) fn answer(hello: &Hello, chain: &ChainKey) -> Option<(Encoded, SessionKey)> {
    let secret = [hello.nonce, hello.nonce].concat().try_into().unwrap();
    let (second, key) = second(hello, chain, secret)?;
    Some((Greeting::Second(second).encoded(), key))
}

fn second(hello: &Hello, chain: &ChainKey, secret: [u8; 32]) -> Option<(Second, SessionKey)> {
    let own = Ephemeral::from_secret(Zeroizing::new(secret));
    hello
        .admit(&chain.handshake(42))?
        .answer(&own, crate::wire::VERSION)
}

fn coordinator_with(round: u32) -> Coordinator {
    let mut other = coordinator(round, noise());
    other.handshake = answer;
    other
}

/// Returns the Hello that the board has sent.
fn said<R: Greeter>(board: &mut Board<R>) -> Hello {
    let mut raw = crate::wire::tests::frames(board.outgoing())
        .remove(0)
        .unwrap();
    board.sent();
    let frame = Frame::parse(&mut raw).unwrap();
    let found = crate::wire::greeting::greeting(&frame, Direction::ToCoordinator);
    match found {
        Ok(Greeting::Hello(hello)) => hello,
        other => panic!("{other:?}"),
    }
}

fn greeted() -> (Board<X25519<ChaCha20Rng>>, Hello) {
    let mut board = secure(0);
    board.timeout();
    let hello = said(&mut board);
    assert!(hello.has_handshake());
    (board, hello)
}

#[test]
fn a_round_with_a_handshake_brings_the_bits_of_the_simulator() {
    let mut board = secure(0);
    for round in [3, 4] {
        let mut other = coordinator_with(round);
        // The second session uses the next chain key.
        other.chain = board.ledger().chain().clone();
        board.send(Answer::Hello);
        run(&mut board, &mut other, |bytes| bytes);
        turn(&mut board, &mut other, &mut |bytes| bytes);
        assert_eq!(other.integers, expected(round, &other.invitation));
        assert_eq!((other.refusals.total(), board.refusals().total()), (0, 0));
    }
    assert_eq!(board.ledger().chain(), &chain().next().next());
}

/// The coordinator finds a chain key ahead of its own, and a hidden number.
#[test]
fn a_handshake_is_under_the_current_chain_key() {
    let hidden = Policy {
        hides_number: true,
        ..policy()
    };
    let rng = X25519::new(hardware(0));
    let mut board = board_with(rng, hidden, ledger());
    for round in [1, 2] {
        let mut other = coordinator_with(round);
        let name = board.ledger().chain().pseudonym();
        board.send(Answer::Hello);
        run(&mut board, &mut other, |bytes| bytes);
        assert_eq!(other.integers, expected(round, &other.invitation));
        assert_eq!(other.name, Some(Name::Pseudonym(name)));
        turn(&mut board, &mut other, &mut |bytes| bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn a_bad_line_costs_a_handshake_turns_and_nothing_else(
        faults in vec((0u8..12, any::<u16>()), 200),
    ) {
        let mut board = secure(0);
        let mut other = coordinator_with(1);
        let mut faults = faults.iter().cycle();
        run(&mut board, &mut other, |bytes| {
            let (fault, at) = faults.next().unwrap();
            let mut out = bytes.clone();
            match fault {
                0 => out.clear(),
                1 => out[usize::from(*at) % bytes.len()] ^= 0x10,
                2 => out.extend(&bytes),
                _ => {}
            }
            out
        });
        prop_assert_eq!(&other.integers, &expected(1, &other.invitation));
    }
}

#[test]
fn no_session_opens_without_the_handshake_that_was_asked_for() {
    let (mut board, hello) = greeted();
    // From a holder of the chain key.
    let keys = chain().session(42, &hello.nonce, &[9; 16]);
    let welcome = |offer| Greeting::Welcome(Welcome::new(&keys, [9; 16], offer)).encoded();
    board.receive(welcome(Ok(crate::wire::VERSION)).as_slice());
    assert_eq!(board.phase(), Phase::Greeting);
    assert_eq!(board.refusals().get(Refusal::Unexpected), 1);
    assert!(board.outgoing().is_empty());
    board.receive(answer(&hello, &chain()).unwrap().0.as_slice());
    assert_eq!(board.phase(), Phase::Ready);

    // The device still believes that there is no common version.
    let (mut board, hello) = greeted();
    let keys = chain().session(42, &hello.nonce, &[9; 16]);
    let others = Versions {
        lowest: 7,
        highest: 9,
    };
    let incompatible = Welcome::new(&keys, [9; 16], Err(others));
    board.receive(Greeting::Welcome(incompatible).encoded().as_slice());
    assert_eq!(board.phase(), Phase::Refused(WhyRefused::Version));
}

/// A device without the handshake accepts no answer to one.
#[test]
fn a_device_that_asked_for_no_handshake_takes_none() {
    let mut board = board(policy(), ledger(), 0);
    board.timeout();
    let hello = said(&mut board);
    assert!(!hello.has_handshake());
    assert!(second(&hello, &chain(), [1; 32]).is_none());
    let (_, other) = greeted();
    board.receive(answer(&other, &chain()).unwrap().0.as_slice());
    assert_eq!(board.phase(), Phase::Greeting);
    assert_eq!(board.refusals().get(Refusal::Unexpected), 1);
}

/// A version inside the handshake that differs from that of the frames.
#[test]
fn a_handshake_agrees_on_the_version() {
    let (mut board, hello) = greeted();
    let own = Ephemeral::from_secret(Zeroizing::new([1; 32]));
    let admit = || hello.admit(&chain().handshake(42)).unwrap();
    let answer = |version| admit().answer(&own, version).unwrap().0;
    let next = answer(crate::wire::VERSION + 1);
    board.receive(Greeting::Second(next).encoded().as_slice());
    assert_eq!(board.phase(), Phase::Greeting);
    assert_eq!(board.refusals().get(Refusal::Version), 1);
    // The key is still there, and the same Hello is repeated.
    board.timeout();
    assert_eq!(said(&mut board), hello);
    let ours = answer(crate::wire::VERSION);
    board.receive(Greeting::Second(ours).encoded().as_slice());
    assert_eq!(board.phase(), Phase::Ready);
    assert!(!board.conversation.nonces.has_ephemeral(), "overwritten");
}

/// Each answer costs a multiplication, so the device processes only a few forged ones.
#[test]
fn forged_answers_are_multiplied_with_a_few_times() {
    let (mut board, hello) = greeted();
    let forged = second(&hello, &chain(), [5; 32]).unwrap().0;
    let mut raw = crate::wire::tests::frames(Greeting::Second(forged).encoded().as_slice());
    let body = raw[0].as_mut().unwrap()[2..52].to_vec();
    let forge = |at: usize| {
        let mut body = body.clone();
        body[at] ^= 1;
        let parsed = Greeting::parse(6, &body, Direction::ToDevice).unwrap();
        parsed.encoded().as_slice().to_vec()
    };
    for (at, tags, others) in [(0, 1, 0), (32, 2, 0), (49, 2, 1)] {
        board.receive(&forge(at));
        let refusals = board.refusals();
        let found = (
            refusals.get(Refusal::Tag),
            refusals.get(Refusal::Unexpected),
        );
        assert_eq!(found, (tags, others));
    }
    let right = Greeting::Second(forged).encoded();
    board.receive(right.as_slice());
    assert_eq!(board.phase(), Phase::Greeting, "until the next Hello");
    board.timeout();
    board.sent();
    board.receive(right.as_slice());
    assert_eq!(board.phase(), Phase::Ready);
}

/// A recording of an old session is useless in a new one, in either direction.
#[test]
fn a_recorded_handshake_opens_no_session() {
    let (mut board, hello) = greeted();
    let (recorded, key) = answer(&hello, &chain()).unwrap();
    board.receive(recorded.as_slice());
    assert_eq!(board.phase(), Phase::Ready);
    board.send(Answer::Hello);
    let next = said(&mut board);
    assert_ne!(next, hello);
    board.receive(recorded.as_slice());
    assert_eq!(board.phase(), Phase::Greeting);
    assert_eq!(board.refusals().get(Refusal::Tag), 1);
    // The coordinator answers a recorded Hello with another key, so a recorded Ready is refused.
    let (_, again) = second(&hello, &chain(), [8; 32]).unwrap();
    assert!(again != key);
}
