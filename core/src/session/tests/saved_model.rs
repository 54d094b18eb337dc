//! The saved model of a device after restarts and power cuts at any byte.

use super::*;
use crate::personal::store::flash::{FlashStore, flash_bytes};

type Flash = Ram<8, 128>;
type Store = FlashStore<Flash>;

fn store() -> Store {
    let bytes = flash_bytes(PARAMETERS, 128) as usize;
    FlashStore::new(Flash::new(vec![0xff; bytes])).unwrap()
}

/// Returns the model of a round.
fn model_of(round: u32) -> Vec<f32> {
    (0..PARAMETERS)
        .map(|at| ((at * 31 + round as usize * 7) % 13) as f32 * 0.1 - 0.6)
        .collect()
}

/// Returns a board that has received the model of a round, and its coordinator.
fn received(ledger: Ledger<Ram>, start: u32, round: u32) -> (Board, Coordinator) {
    let mut board = board(policy(), ledger, start);
    let mut other = coordinator(round, noise());
    other.model = model_of(round);
    while board.phase() != Phase::Training {
        turn_without_training(&mut board, &mut other);
    }
    (board, other)
}

/// Restarts. Returns the round and the parameters for predictions.
fn restored(ledger: Ledger<Ram>, store: &mut Store) -> Option<(u32, Vec<f32>)> {
    let mut board = board(policy(), ledger, 77);
    let round = board.restore_model(store).unwrap();
    let model = board.model();
    assert_eq!(round, model.map(|model| model.round()));
    model.map(|model| (model.round(), model.parameters().to_vec()))
}

/// Returns the same ledger twice, as found by two restarts.
fn twice(ledger: Ledger<Ram>) -> (Ledger<Ram>, Ledger<Ram>) {
    let flash = ledger.into_flash();
    let open = |flash| Ledger::open(flash).unwrap();
    (open(flash.clone()), open(flash))
}

#[test]
fn a_saved_model_predicts_after_a_restart() {
    let mut store = store();
    assert_eq!(restored(ledger(), &mut store), None, "nothing is saved");
    let mut at = ledger();
    for round in [0, 3, 4] {
        let (mut board, mut other) = received(at, round, round);
        assert_eq!(board.save_model(&mut store), Ok(true));
        assert_eq!(board.save_model(&mut store), Ok(false), "it is there");
        run(&mut board, &mut other, |bytes| bytes);
        let (now, next) = twice(board.into_ledger());
        let expected = Some((round, model_of(round)));
        assert_eq!(restored(now, &mut store), expected);
        at = next;
    }
}

/// Whether or not the next round is recorded, the model is never older than the ledger.
#[test]
fn a_power_cut_at_any_byte_leaves_a_model_that_predicts() {
    for is_backward in [false, true] {
        let mut store = store();
        let mut at = ledger();
        for round in [2, 3] {
            let (mut board, mut other) = received(at, round, round);
            board.save_model(&mut store).unwrap();
            run(&mut board, &mut other, |bytes| bytes);
            at = board.into_ledger();
        }
        let before = store.into_flash();
        for power in 0.. {
            let mut cut = before.clone();
            (cut.power, cut.is_backward) = (power, is_backward);
            let mut store = FlashStore::new(cut).unwrap();
            let (now, rest) = twice(at);
            let (now, again) = twice(now);
            at = rest;
            let (board, _) = received(now, 4, 4);
            let saved = board.save_model(&mut store);
            let mut flash = store.into_flash();
            flash.power = usize::MAX;
            let mut store = FlashStore::new(flash).unwrap();
            let (round, parameters) = restored(again, &mut store).unwrap();
            assert!(round == 3 || round == 4, "{power}: {round}");
            assert_eq!(parameters, model_of(round), "{power}");
            if saved.is_ok() {
                assert_eq!(round, 4);
                break;
            }
        }
    }
}

#[test]
fn a_model_that_is_older_than_the_ledger_is_not_restored() {
    let mut store = store();
    let (mut board, mut other) = received(ledger(), 0, 3);
    board.save_model(&mut store).unwrap();
    run(&mut board, &mut other, |bytes| bytes);
    let (mut board, mut other) = received(board.into_ledger(), 1, 4);
    run(&mut board, &mut other, |bytes| bytes);
    assert_eq!(restored(board.into_ledger(), &mut store), None);
}

/// After later damage the previous slot is used, unless it is too old.
#[test]
fn a_damaged_model_is_not_restored() {
    let mut store = store();
    let (mut board, mut other) = received(ledger(), 0, 3);
    board.save_model(&mut store).unwrap();
    run(&mut board, &mut other, |bytes| bytes);
    let (unrecorded, next) = twice(board.into_ledger());
    let (mut board, mut other) = received(next, 1, 4);
    board.save_model(&mut store).unwrap();
    run(&mut board, &mut other, |bytes| bytes);
    let recorded = board.into_ledger();
    let mut flash = store.into_flash();
    // The slot of round 4 is the second one.
    let half = flash.bytes.len() / 2;
    flash.bytes[half + 40] ^= 1;
    let mut store = FlashStore::new(flash).unwrap();
    let expected = Some((3, model_of(3)));
    assert_eq!(restored(unrecorded, &mut store), expected);
    assert_eq!(restored(recorded, &mut store), None);
}

#[test]
fn a_model_of_another_shape_or_ledger_is_not_restored() {
    let mut store = store();
    let (mut board, mut other) = received(ledger(), 0, 3);
    board.save_model(&mut store).unwrap();
    run(&mut board, &mut other, |bytes| bytes);
    let (at, now) = twice(board.into_ledger());

    // The same number of parameters.
    let other = Softmax::new(Const::<41>, Const::<3>);
    assert_eq!(
        crate::model::Parametric::parameter_count(&other),
        PARAMETERS
    );
    let nonces = stream(Purpose::Initialisation, 5);
    let memory = memory(PARAMETERS, 10, 6);
    let session = Session::new(identity(), policy(), other, memory, now, nonces);
    assert_eq!(session.unwrap().restore_model(&mut store), Ok(None));

    let nonce = [8; 8];
    let erased = Ledger::create(erased(), nonce, Key::from_secret(KEY)).unwrap();
    assert_eq!(restored(erased, &mut store), None);
    assert!(restored(at, &mut store).is_some());
}

/// A model with a value that is not finite is neither saved nor lent.
#[test]
fn a_model_that_is_not_finite_is_not_saved() {
    let mut store = store();
    let mut board = board(policy(), ledger(), 0);
    let mut other = coordinator(3, noise());
    other.model[77] = f32::NAN;
    while board.phase() != Phase::Training {
        turn_without_training(&mut board, &mut other);
    }
    assert_eq!(board.save_model(&mut store), Ok(false));
    assert_eq!(restored(ledger(), &mut store), None);
    // Written by other code.
    let shape = invitation(None).shape.checksum();
    let id = crate::personal::store::StateId {
        kind: crate::personal::store::StateKind::Shared(shape),
        owner: NONCE,
        round: 3,
    };
    crate::personal::store::BlockingStore::save(&mut store, &id, &other.model, None).unwrap();
    assert_eq!(restored(ledger(), &mut store), None);
}

/// Only before anything else, because the session then uses the model's memory.
#[test]
fn a_model_is_not_restored_over_one_that_comes() {
    let mut store = store();
    let (board, _) = received(ledger(), 0, 3);
    board.save_model(&mut store).unwrap();
    let mut board = super::board(policy(), ledger(), 1);
    board.timeout();
    assert_eq!(board.restore_model(&mut store), Ok(None));
    assert!(board.model().is_none());
    let full = FlashStore::new(Flash::new(vec![0xff; 512])).unwrap();
    let (board, _) = received(ledger(), 0, 3);
    assert!(board.save_model(&mut { full }).is_err(), "no room");
}
