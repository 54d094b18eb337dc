//! Devices with secrets in a secure element: the keys that leave it, and failures of the element or
//! the power.

use core::cell::RefCell;
use std::rc::Rc;

use super::*;
use crate::{
    crypto::kdf::{Kdf, expand},
    element::{Element, ElementFault, SecretSlot, SecureElement, check, named},
    ledger::LedgerError,
    mask::MaskRoot,
};

const ROOT: [u8; 32] = [9; 32];

/// An element in memory that counts requests and fails on demand.
struct State {
    slots: [Key; 3],
    /// Keys that it gave out.
    given: Vec<Key>,
    /// Number of requests until it fails once.
    left: Option<usize>,
}

#[derive(Clone)]
pub(super) struct Chip(Rc<RefCell<State>>);

impl Chip {
    pub(super) fn new() -> Self {
        Self(Rc::new(RefCell::new(State {
            slots: [ROOT, KEY, [0; 32]].map(Key::from_secret),
            given: vec![],
            left: None,
        })))
    }

    fn fails_after(&self, calls: usize) {
        self.0.borrow_mut().left = Some(calls);
    }

    /// Makes a request to a working element.
    fn asked(&self, slot: SecretSlot, info: &[u8]) -> Result<Key, ElementFault> {
        let mut state = self.0.borrow_mut();
        match state.left {
            Some(0) => {
                state.left = None;
                return Err(ElementFault);
            }
            Some(left) => state.left = Some(left - 1),
            None => {}
        }
        Ok(expand(&state.slots[slot as usize], info))
    }
}

impl SecureElement for Chip {
    fn expand(
        &mut self,
        slot: SecretSlot,
        info: &[u8],
        place: &mut [u8; 32],
    ) -> Result<(), ElementFault> {
        let key = self.asked(slot, info)?;
        *place = *key.secret();
        self.0.borrow_mut().given.push(key);
        Ok(())
    }

    fn expand_into(
        &mut self,
        from: SecretSlot,
        info: &[u8],
        to: SecretSlot,
    ) -> Result<(), ElementFault> {
        let key = self.asked(from, info);
        // A failed step has left nothing useful.
        let written = key.clone().unwrap_or(Key::from_secret([0xee; 32]));
        self.0.borrow_mut().slots[to as usize] = written;
        key.map(drop)
    }
}

fn root_check() -> [u8; 16] {
    check(&Key::from_secret(ROOT))
}

/// Returns the ledger's content after `steps` steps.
pub(super) fn name(steps: u32) -> Key {
    let key = Key::from_secret(*later(steps as usize).secret());
    named(steps, &check(&key))
}

pub(super) fn element_chain() -> ChainKey {
    ChainKey::with_kdf(Key::from_secret(KEY), Kdf::HkdfSha256)
}

fn later(steps: usize) -> ChainKey {
    (0..steps).fold(element_chain(), |chain, _| chain.next())
}

pub(super) fn new_ledger() -> Ledger<Ram> {
    Ledger::create(erased(), NONCE, name(0)).unwrap()
}

pub(super) fn identity_in(chip: &Chip) -> Identity<Element<Chip>> {
    Identity {
        device: 42,
        root: Element::new(chip.clone(), &root_check()).unwrap(),
    }
}

fn board_in<F>(chip: &Chip, ledger: Ledger<F>, start: u32) -> Board<Stream, F, Element<Chip>> {
    let nonces = super::stream(Purpose::Initialisation, start);
    board_of(identity_in(chip), nonces, policy(), ledger)
}

fn coordinator_of(chain: ChainKey, round: u32) -> Coordinator {
    Coordinator::new(chain, round, invitation(noise()), model())
}

/// Returns the root of the streams of a round.
pub(super) fn root(round: u32) -> Root {
    let mut info = b"streams ".to_vec();
    info.extend(NONCE);
    info.extend(round.to_le_bytes());
    Root::from_secret(*expand(&Key::from_secret(ROOT), &info).secret())
}

fn is_as_simulated(other: &Coordinator) -> bool {
    other.integers == simulated_by(&root(other.round), other.round, &other.invitation).0
}

#[test]
fn each_round_has_streams_of_its_own_root() {
    let chip = Chip::new();
    let mut board = board_in(&chip, new_ledger(), 0);
    let mut chain = element_chain();
    for round in [3, 4, 7] {
        let mut other = coordinator_of(chain, round);
        board.send(Answer::Hello);
        run(&mut board, &mut other, |bytes| bytes);
        turn(&mut board, &mut other, &mut |bytes| bytes);
        assert!(is_as_simulated(&other), "round {round}");
        assert_eq!((other.refusals.total(), board.refusals().total()), (0, 0));
        chain = other.chain;
    }
    assert_eq!(board.ledger().past().participations, 3);
}

/// A restart after each round: the ledger knows which slot has the chain key.
#[test]
fn the_chain_key_moves_on_in_the_element_alone() {
    let chip = Chip::new();
    let (mut ledger, mut chain) = (new_ledger(), element_chain());
    for round in 0..5 {
        let mut board = board_in(&chip, ledger, round);
        let mut other = coordinator_of(chain, round);
        run(&mut board, &mut other, |bytes| bytes);
        assert!(is_as_simulated(&other));
        // The key of this session. The device has the next one.
        assert!(other.chain == later(round as usize));
        ledger = board.into_ledger();
        let steps = round + 1;
        assert_eq!(ledger.chain().secret(), name(steps).secret());
        let slot = 1 + steps as usize % 2;
        let next = later(steps as usize);
        assert_eq!(chip.0.borrow().slots[slot].secret(), next.secret());
        chain = other.chain;
    }
    // Neither the root nor any chain key has left the element.
    let state = chip.0.borrow();
    let chains: Vec<_> = (0..8).map(|steps| *later(steps).secret()).collect();
    let is_secret = |key: &&Key| *key.secret() == ROOT || chains.contains(key.secret());
    assert!(state.given.len() > 20);
    assert_eq!(state.given.iter().filter(is_secret).count(), 0);
}

/// The device hides its number and, where compiled, greets with X25519.
#[test]
fn each_greeting_is_under_the_key_in_the_element() {
    let chip = Chip::new();
    let policy = Policy {
        hides_number: true,
        ..policy()
    };
    #[cfg(not(feature = "x25519"))]
    let nonces = super::stream(Purpose::SessionNonces, 0);
    #[cfg(feature = "x25519")]
    let nonces = X25519::new(super::handshake::hardware(0));
    let mut board = board_of(identity_in(&chip), nonces, policy, new_ledger());
    let mut chain = element_chain();
    for round in [3, 4] {
        let mut other = coordinator_of(chain, round);
        #[cfg(feature = "x25519")]
        {
            other.handshake = super::handshake::answer;
        }
        board.send(Answer::Hello);
        run(&mut board, &mut other, |bytes| bytes);
        assert!(is_as_simulated(&other), "round {round}");
        let name = Some(Name::Pseudonym(other.chain.pseudonym()));
        assert_eq!(other.name, name);
        chain = other.chain;
    }
    assert!(chain == later(1));
}

/// Whatever request the element fails, the device continues and takes part once.
#[test]
fn an_element_that_fails_once_costs_time() {
    for calls in 0.. {
        let chip = Chip::new();
        let mut board = board_in(&chip, new_ledger(), 0);
        chip.fails_after(calls);
        let mut other = coordinator_of(element_chain(), 3);
        run(&mut board, &mut other, |bytes| bytes);
        let has_failed = chip.0.borrow().left.is_none();
        if other.declined == Some(Decline::Storage) {
            // Nothing was recorded, so the round may begin again.
            assert_eq!(board.ledger().past().participations, 0);
            assert_eq!(board.element().0.borrow().left, None);
            other.declined = None;
            other.invite();
            run(&mut board, &mut other, |bytes| bytes);
        }
        assert!(is_as_simulated(&other), "after {calls} answers");
        assert_eq!(board.ledger().past().participations, 1);
        if !has_failed {
            // A greeting, its answer, streams, the step of the chain key and its check.
            assert_eq!(calls, 5);
            break;
        }
    }
}

/// At the start the secrets must match record and ledger. Otherwise there is no session.
#[test]
fn another_element_is_refused() {
    let start = |chip: &Chip, ledger: Ledger<Ram>| {
        let root = Element::new(chip.clone(), &root_check())?;
        let identity = Identity { device: 42, root };
        let model = Softmax::new(Const::<FEATURES>, Const::<6>);
        let memory = memory(PARAMETERS, 10, 6);
        let nonces = super::stream(Purpose::Initialisation, 0);
        let session = Session::new(identity, policy(), model, memory, ledger, nonces);
        session.map(drop).map_err(|error| {
            assert_eq!(error, SessionError::Element);
            ElementFault
        })
    };
    assert_eq!(start(&Chip::new(), new_ledger()), Ok(()));
    // Silent at the first request, the second, or that of the session.
    for calls in 0..3 {
        let chip = Chip::new();
        chip.fails_after(calls);
        assert_eq!(start(&chip, new_ledger()), Err(ElementFault));
    }
    // Blank, or with the chain key in both slots, or with another chain key.
    for slots in [[[0; 32], KEY], [KEY, KEY], [ROOT, [1; 32]]] {
        let chip = Chip::new();
        for (slot, secret) in slots.into_iter().enumerate() {
            chip.0.borrow_mut().slots[slot] = Key::from_secret(secret);
        }
        assert_eq!(start(&chip, new_ledger()), Err(ElementFault));
    }
    // The ledger of a device without an element.
    let other = Ledger::create(erased(), NONCE, Key::from_secret(KEY)).unwrap();
    assert_eq!(start(&Chip::new(), other), Err(ElementFault));
}

/// A ledger one step back greets with an old key, which the coordinator detects. Further back it
/// names a key that no longer exists.
#[test]
fn a_ledger_that_is_put_back_is_noticed() {
    let chip = Chip::new();
    let mut past = vec![new_ledger().into_flash()];
    let mut chain = element_chain();
    for round in 0..5 {
        let ledger = Ledger::open(past[round].clone()).unwrap();
        let mut board = board_in(&chip, ledger, round as u32);
        let mut other = coordinator_of(chain, round as u32);
        run(&mut board, &mut other, |bytes| bytes);
        chain = other.chain;
        past.push(board.into_ledger().into_flash());
    }
    let mut root = Element::new(chip, &root_check()).unwrap();
    for (steps, flash) in past.into_iter().enumerate() {
        let ledger = Ledger::open(flash).unwrap();
        let known = root.recognise(ledger.chain());
        assert_eq!(known.is_ok(), steps >= 4, "{steps} of 5 steps");
        let mut identity = Identity { device: 42, root };
        let greeting = ledger.chain_of(&mut identity).greeting().unwrap();
        let hello = Hello::new(&greeting, Name::Number(42), [0; 16], Versions::OURS);
        let is_current = hello.is_authentic(&later(5).greeting());
        assert_eq!(is_current && known.is_ok(), steps == 5);
        // The ledger does not record a participation either.
        let mut ledger = ledger;
        let limits = Limits {
            budget: Budget(9),
            ..policy().limits
        };
        let begun = ledger.begin(9, &mut identity, &limits);
        assert_eq!(begun.is_ok(), known.is_ok());
        root = identity.root;
    }
}

/// The power fails at each byte that the ledger writes: the step is repeated, or complete.
#[test]
fn a_power_cut_loses_no_chain_key() {
    let (features, targets) = data();
    let samples = SampleSlice::new(&features, &targets, FEATURES).unwrap();
    for power in 0..=256 {
        let chip = Chip::new();
        let mut flash = new_ledger().into_flash();
        flash.power = power;
        let mut board = board_in(&chip, Ledger::open(flash).unwrap(), 0);
        let mut other = coordinator_of(element_chain(), 3);
        while board.phase() != Phase::Training {
            turn_without_training(&mut board, &mut other);
        }
        board.train(&samples);
        let has_begun = board.phase() == Phase::Sending;
        assert_eq!(has_begun, power == 256);
        let mut flash = board.into_ledger().into_flash();
        flash.power = usize::MAX;
        let ledger = Ledger::open(flash).unwrap();
        let recorded = ledger.past().participations;
        assert!(recorded == 1 || !has_begun);
        let mut board = board_in(&chip, ledger, 1);
        let mut other = coordinator_of(other.chain, 4);
        run(&mut board, &mut other, |bytes| bytes);
        assert!(is_as_simulated(&other), "cut at {power}");
        assert!(other.chain == later(recorded as usize), "cut at {power}");
    }
}

/// The record is dropped at each of its awaits: the board continues or restarts, and element and
/// ledger agree.
#[cfg(feature = "async")]
#[test]
fn a_record_that_is_dropped_loses_no_chain_key() {
    use crate::ledger::tests::awaited::{Awaited, ENOUGH, polled};

    let (features, targets) = data();
    let samples = SampleSlice::new(&features, &targets, FEATURES).unwrap();
    let mut is_complete = false;
    for polls in 0.. {
        for restarts in [false, true] {
            let (chip, mut flash) = (Chip::new(), new_ledger().into_flash());
            let opened = Ledger::open_async(Awaited(&mut flash));
            let ledger = polled(opened, ENOUGH).unwrap().unwrap();
            let mut board = board_in(&chip, ledger, 0);
            let mut other = coordinator_of(element_chain(), 3);
            while board.phase() != Phase::Training {
                turn_without_training(&mut board, &mut other);
            }
            is_complete = polled(board.train_some_async(&samples, 1), polls).is_some();
            if !restarts {
                while polled(board.train_some_async(&samples, 1), ENOUGH) == Some(Progress::More) {}
                while !other.done {
                    turn_without_training(&mut board, &mut other);
                }
                assert!(is_as_simulated(&other), "{polls}");
            }
            drop(board);
            let ledger = Ledger::open(flash).unwrap();
            let recorded = ledger.past().participations;
            assert!(recorded == 1 || (restarts && !is_complete), "{polls}");
            let mut board = board_in(&chip, ledger, 1);
            let mut other = coordinator_of(other.chain, 4);
            run(&mut board, &mut other, |bytes| bytes);
            assert!(is_as_simulated(&other), "{polls}");
            assert!(other.chain == later(recorded as usize), "{polls}");
        }
        if is_complete {
            assert!(polls > 4, "{polls}");
            break;
        }
    }
}

/// The power fails between any two answers of the element: the step starts over.
#[test]
fn a_restart_within_a_step_loses_no_chain_key() {
    let (features, targets) = data();
    let samples = SampleSlice::new(&features, &targets, FEATURES).unwrap();
    // Streams, the step, its check. After that nothing is requested.
    for calls in 0..=3 {
        let chip = Chip::new();
        let mut board = board_in(&chip, new_ledger(), 0);
        let mut other = coordinator_of(element_chain(), 3);
        while board.phase() != Phase::Training {
            turn_without_training(&mut board, &mut other);
        }
        chip.fails_after(calls);
        board.train(&samples);
        let has_begun = board.phase() == Phase::Sending;
        assert_eq!(has_begun, calls == 3);
        chip.0.borrow_mut().left = None;
        let ledger = Ledger::open(board.into_ledger().into_flash()).unwrap();
        let recorded = ledger.past().participations;
        assert_eq!(recorded, u32::from(has_begun));
        let mut board = board_in(&chip, ledger, 1);
        let mut other = coordinator_of(other.chain, 4);
        run(&mut board, &mut other, |bytes| bytes);
        assert!(is_as_simulated(&other), "after {calls} answers");
        assert!(other.chain == later(recorded as usize));
    }
}

/// A custom protocol with `Ledger::begin`.
#[test]
fn a_participation_has_the_streams_of_the_element() {
    let chip = Chip::new();
    let mut identity = identity_in(&chip);
    let (mut ledger, limits) = (new_ledger(), policy().limits);
    chip.fails_after(0);
    let failed = ledger.begin(3, &mut identity, &limits);
    assert_eq!(failed.err(), Some(LedgerError::Element));
    assert_eq!(ledger.past().participations, 0);
    let participation = ledger.begin(3, &mut identity, &limits).unwrap();
    let mut drawn = participation.streams().open(Purpose::DeviceNoise);
    let mut expected = stream_of(&root(3), Purpose::DeviceNoise, 3);
    use rand_core::Rng;
    assert_eq!(
        [(); 8].map(|()| drawn.next_u32()),
        [(); 8].map(|()| expected.next_u32())
    );
    // No session has begun, so the chain key stays.
    assert_eq!(ledger.chain().secret(), name(0).secret());
    let again = ledger.begin(3, &mut identity, &limits);
    assert_eq!(again.err(), Some(LedgerError::RoundUsed));
}

/// Provisioning gives these to helpers, without the element.
#[test]
fn masks_are_those_of_the_provisioned_root() {
    let mut element = Element::new(Chip::new(), &root_check()).unwrap();
    let provisioned = MaskRoot::with_kdf(&Root::from_secret(ROOT), 42, Kdf::HkdfSha256);
    let [ours, theirs] = [element.masks(42).unwrap(), provisioned].map(|root| root.helper(1));
    assert_eq!(ours.secret(), theirs.secret());
}
