//! A device of each kind through two rounds with a coordinator, behind the interface for C.

#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic fails the test"
)]

use std::ffi::c_void;
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::thread;

use smolfed_c::{sf_status::*, *};

#[path = "device/board.rs"]
mod board;
#[path = "device/peer.rs"]
mod peer;

use board::{BUDGET, Board, FEATURES};
use peer::{Features, KINDS, Kind, Peer};

/// Adds a sample of any kind.
///
/// # Safety
/// The device is open.
unsafe fn add(device: *mut sf_device, kind: &Kind, number: u16) -> sf_status {
    let row = [number; FEATURES];
    let (small, wide) = (row.map(|x| x as i8), row.map(|x| x as i16));
    let (floats, class) = (row.map(|x| f32::from(x) / 8.0), number % 2);
    let value = f32::from(class);
    let is_linear = kind.name.contains("linear");
    // SAFETY: an open device, and as many values as it is said.
    unsafe {
        match (kind.features, is_linear) {
            (Features::F32, false) => sf_add_sample_f32(device, floats.as_ptr(), FEATURES, class),
            (Features::I8, false) => sf_add_sample_i8(device, small.as_ptr(), FEATURES, class),
            (Features::I16, false) => sf_add_sample_i16(device, wide.as_ptr(), FEATURES, class),
            (Features::F32, true) => sf_add_value_f32(device, floats.as_ptr(), FEATURES, value),
            (Features::I8, true) => sf_add_value_i8(device, small.as_ptr(), FEATURES, value),
            (Features::I16, true) => sf_add_value_i16(device, wide.as_ptr(), FEATURES, value),
        }
    }
}

fn open(board: &mut Board, kind: &Kind) -> *mut sf_device {
    let device = board.open(|config| {
        config.kind = kind.kind;
        config.places = kind.places();
    });
    device.unwrap()
}

/// A board with an open device of a kind, which has samples, and its coordinator.
fn start(kind: &Kind) -> (Board, *mut sf_device, Peer) {
    let mut board = Board::new();
    let device = open(&mut board, kind);
    for number in 0..7 {
        // SAFETY: an open device.
        assert_eq!(unsafe { add(device, kind, number) }, SF_OK);
    }
    (board, device, Peer::new(kind))
}

/// Opens a session, and plays rounds. Returns the frames for the device.
fn play(device: *mut sf_device, peer: &mut Peer, rounds: u32) -> Vec<u8> {
    // SAFETY: an open device.
    unsafe {
        assert_eq!(sf_set_window(device, 2), SF_OK);
        assert_eq!(sf_timeout(device), SF_OK);
        let mut frames = peer.exchange(device, || {});
        for round in 1..=rounds {
            peer.invite(round);
            frames.extend(peer.exchange(device, || {}));
        }
        frames
    }
}

/// With `SMOLFED_TRANSCRIPTS` the record and the frames of each kind are written to that folder:
/// `sanitizers.sh` plays them to a program in C.
#[test]
fn every_kind_takes_part_in_two_rounds() {
    for kind in &KINDS {
        let (board, device, mut peer) = start(kind);
        let frames = play(device, &mut peer, 2);
        assert!(peer.is_done(), "{}", kind.name);
        let mut last = sf_round {
            round: 0,
            outcome: sf_outcome::SF_DECLINED,
            reason: 9,
        };
        let (mut count, mut round) = (0, 0);
        // SAFETY: an open device.
        unsafe {
            assert_eq!(sf_last_round(device, &raw mut last), SF_OK);
            assert_eq!(sf_participations(device, &raw mut count), SF_OK);
            assert_eq!(sf_model_round(device, &raw mut round), SF_OK);
            assert_eq!(sf_close(device), SF_OK);
        }
        let outcome = (last.round, last.outcome, last.reason);
        assert_eq!(outcome, (2, sf_outcome::SF_UPDATED, 0), "{}", kind.name);
        assert_eq!((count, round), (2, 2));
        if let Some(folder) = std::env::var_os("SMOLFED_TRANSCRIPTS") {
            let path = Path::new(&folder).join(kind.name);
            std::fs::write(path.with_extension("record"), &board.record).unwrap();
            std::fs::write(path.with_extension("frames"), frames).unwrap();
        }
    }
}

/// A round trains on the samples with which it began.
#[test]
fn samples_cannot_change_while_a_round_trains() {
    for kind in &KINDS {
        let (board, device, mut peer) = start(kind);
        play(device, &mut peer, 0);
        peer.invite(1);
        let mut pieces = 0;
        let refused = || {
            let record = (board.record.as_ptr(), board.record.len());
            // SAFETY: an open device.
            unsafe {
                assert_eq!(add(device, kind, 1), SF_PHASE, "{}", kind.name);
                assert_eq!(sf_add_record(device, record.0, record.1), SF_PHASE);
                assert_eq!(sf_forget_samples(device), SF_PHASE);
            }
            pieces += 1;
        };
        // SAFETY: an open device.
        unsafe {
            peer.exchange(device, refused);
            assert!(peer.is_done() && pieces > 3, "{}: {pieces}", kind.name);
            assert_eq!(add(device, kind, 1), SF_OK);
            assert_eq!(sf_forget_samples(device), SF_OK);
        }
    }
}

/// Calls that fit no round do nothing, and do not end one.
#[test]
fn calls_out_of_turn_do_not_spend_a_participation() {
    let kind = &KINDS[1];
    let (_board, device, mut peer) = start(kind);
    let out_of_turn = |expected: u32| {
        let (mut count, mut more) = (0, true);
        // SAFETY: an open device.
        unsafe {
            assert_eq!(sf_train_some(device, u32::MAX, &raw mut more), SF_OK);
            assert_eq!(sf_sent(device), SF_OK);
            assert_eq!(sf_set_window(device, 0), SF_OK);
            assert_eq!(sf_participations(device, &raw mut count), SF_OK);
        }
        assert_eq!((count, more), (expected, false));
    };
    out_of_turn(0);
    play(device, &mut peer, 1);
    assert!(peer.is_done());
    out_of_turn(1);
}

/// The device declines what is beyond its budget, also after it was closed and opened again.
#[test]
fn a_closed_device_keeps_its_budget() {
    let kind = &KINDS[1];
    let (mut board, mut device, mut peer) = start(kind);
    play(device, &mut peer, BUDGET - 1);
    assert!(peer.is_done());
    for round in [BUDGET, BUDGET + 1] {
        // SAFETY: an open device, closed before its memory is used again.
        unsafe { assert_eq!(sf_close(device), SF_OK) };
        device = open(&mut board, kind);
        // SAFETY: an open device.
        unsafe {
            assert_eq!(add(device, kind, 1), SF_OK);
            play(device, &mut peer, 0);
            peer.invite(round);
            peer.exchange(device, || {});
        }
        assert_eq!(peer.declined().is_some(), round > BUDGET);
    }
    let mut count = 0;
    // SAFETY: an open device.
    assert_eq!(unsafe { sf_participations(device, &raw mut count) }, SF_OK);
    assert_eq!(count, BUDGET);
    // SAFETY: an open device, and no answer is asked for.
    assert_eq!(unsafe { sf_last_round(device, null_mut()) }, SF_OK);
}

static BUSY: AtomicPtr<sf_device> = AtomicPtr::new(null_mut());
static REFUSED: Mutex<Vec<sf_status>> = Mutex::new(Vec::new());

/// Calls of any kind with the device that is busy.
fn call() {
    let device = BUSY.load(Ordering::Acquire);
    // SAFETY: an open device.
    let refused = unsafe {
        [
            sf_phase_of(device, null_mut()),
            sf_timeout(device),
            sf_receive(device, null(), 0, null_mut()),
            sf_train_some(device, 1, null_mut()),
            sf_forget_samples(device),
            sf_close(device),
        ]
    };
    REFUSED.lock().unwrap().extend(refused);
}

/// Writes the ledger. Meanwhile this thread and another one call with the device.
unsafe extern "C" fn write(context: *mut c_void, at: u32, from: *const u8, count: usize) -> i32 {
    if !BUSY.load(Ordering::Acquire).is_null() {
        call();
        thread::spawn(call).join().unwrap();
    }
    // SAFETY: as of this function.
    unsafe { board::write(context, at, from, count) }
}

/// A round continues as if nobody had called.
#[test]
fn calls_are_refused_while_the_ledger_is_written() {
    let kind = &KINDS[1];
    let mut board = Board::new();
    let device = board.open(|config| {
        (config.kind, config.places) = (kind.kind, kind.places());
        config.ledger.write = Some(write);
    });
    let (device, mut peer) = (device.unwrap(), Peer::new(kind));
    // SAFETY: an open device.
    assert_eq!(unsafe { add(device, kind, 1) }, SF_OK);
    BUSY.store(device, Ordering::Release);
    play(device, &mut peer, 1);
    assert!(peer.is_done());
    let refused = REFUSED.lock().unwrap();
    assert!(refused.len() >= 12, "{refused:?}");
    assert!(
        refused.iter().all(|status| *status == SF_BUSY),
        "{refused:?}"
    );
}
