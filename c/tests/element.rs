//! A device whose secrets are in a secure element:
//! `cargo test -p smolfed-c --features element --test element`.

#![allow(
    clippy::indexing_slicing,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a panic fails the test"
)]

use std::ffi::c_void;
use std::ptr::null_mut;

use smolfed_c::{sf_status::*, *};
use smolfed_core::crypto::Key;
use smolfed_core::crypto::kdf::{self, Kdf};
use smolfed_core::provision::leave_to_element;
use smolfed_core::wire::keys::ChainKey;

#[allow(dead_code, reason = "other tests read more of it")]
#[path = "device/board.rs"]
mod board;
#[allow(dead_code, reason = "other tests read more of it")]
#[path = "device/peer.rs"]
mod peer;

use board::{Board, DEVICE, FEATURES, KEY, ROOT};
use peer::{KINDS, Kind, Peer};

/// An element in memory, with a secret in each slot.
struct Element {
    slots: [[u8; 32]; 3],
    is_away: bool,
    /// Answers until it fails.
    answers: u32,
}

/// # Safety
/// The context is an `Element` of the test, and the info is there.
unsafe fn result(
    context: *mut c_void,
    from: sf_slot,
    info: *const u8,
    count: usize,
) -> Option<[u8; 32]> {
    assert!(count <= 20);
    // SAFETY: as of this function.
    let (element, info) = unsafe {
        let element = &mut *context.cast::<Element>();
        (element, std::slice::from_raw_parts(info, count))
    };
    let fails = element.is_away || element.answers == 0;
    element.answers = element.answers.saturating_sub(1);
    let secret = Key::from_secret(element.slots[from as usize]);
    (!fails).then(|| *ChainKey::new(kdf::expand(&secret, info)).secret())
}

unsafe extern "C" fn expand(
    context: *mut c_void,
    from: sf_slot,
    info: *const u8,
    count: usize,
    to: *mut u8,
) -> i32 {
    // SAFETY: the library gives room for 32 bytes.
    unsafe {
        match result(context, from, info, count) {
            Some(key) => {
                to.copy_from(key.as_ptr(), 32);
                0
            }
            None => 1,
        }
    }
}

unsafe extern "C" fn expand_into(
    context: *mut c_void,
    from: sf_slot,
    info: *const u8,
    count: usize,
    to: sf_slot,
) -> i32 {
    // SAFETY: the context is an `Element` of the test.
    unsafe {
        match result(context, from, info, count) {
            Some(key) => {
                (*context.cast::<Element>()).slots[to as usize] = key;
                0
            }
            None => 1,
        }
    }
}

/// A board whose record leaves the secrets to the element.
fn board_with_element() -> (Board, Box<Element>) {
    let mut board = Board::new();
    leave_to_element(&mut board.record).unwrap();
    let element = Element {
        slots: [ROOT, KEY, [0; 32]],
        is_away: false,
        answers: u32::MAX,
    };
    (board, Box::new(element))
}

fn open(board: &mut Board, element: &mut Element) -> Result<*mut sf_device, sf_status> {
    let context = (&raw mut *element).cast();
    board.open(|config| {
        config.kind = kind().kind;
        config.element = sf_element {
            context,
            expand: Some(expand),
            expand_into: Some(expand_into),
        };
    })
}

fn kind() -> &'static Kind {
    KINDS
        .iter()
        .find(|kind| kind.name == "sf_softmax_f32")
        .unwrap()
}

#[test]
fn a_device_takes_part_with_secrets_that_it_does_not_have() {
    let (mut board, mut element) = board_with_element();
    let chain = ChainKey::with_kdf(Key::from_secret(KEY), Kdf::HkdfSha256);
    let mut peer = Peer::with_chain(kind(), chain);
    let row = [0.5; FEATURES];
    let mut number = 0;
    let device = open(&mut board, &mut element).unwrap();
    // SAFETY: an open device, and a record.
    unsafe {
        let record = (board.record.as_ptr(), board.record.len());
        assert_eq!(sf_record_device(record.0, record.1, &raw mut number), SF_OK);
        assert_eq!(sf_add_record(device, record.0, record.1), SF_OK);
        assert_eq!(sf_add_sample_f32(device, row.as_ptr(), FEATURES, 1), SF_OK);
        assert_eq!(sf_timeout(device), SF_OK);
        peer.exchange(device, || {});
        for round in 1..3 {
            peer.invite(round);
            peer.exchange(device, || {});
            assert!(peer.is_done(), "{round}");
        }
        assert_eq!(sf_close(device), SF_OK);
    }
    assert_eq!(number, DEVICE);
    assert_ne!(element.slots[2], [0; 32], "the chain key has taken a step");
    assert_eq!(element.slots[0], ROOT);
    let device = open(&mut board, &mut element).unwrap();
    // SAFETY: an open device.
    assert_eq!(unsafe { sf_close(device) }, SF_OK);
}

#[test]
fn a_device_without_its_element_does_not_open() {
    let (mut board, mut element) = board_with_element();
    let context = null_mut();
    let nothing = sf_element {
        context,
        expand: None,
        expand_into: None,
    };
    assert_eq!(
        board.open(|config| config.element = nothing),
        Err(SF_ELEMENT)
    );
    element.is_away = true;
    assert_eq!(open(&mut board, &mut element), Err(SF_ELEMENT));
    element.is_away = false;
    for answers in 0..4 {
        element.answers = answers;
        assert_eq!(open(&mut board, &mut element), Err(SF_ELEMENT), "{answers}");
    }
    element.answers = u32::MAX;
    element.slots[0][0] ^= 1;
    assert_eq!(open(&mut board, &mut element), Err(SF_ELEMENT));
    element.slots[0][0] ^= 1;
    // A record that has its secrets is none for an element.
    let mut plain = Board::new();
    assert_eq!(open(&mut plain, &mut element), Err(SF_ELEMENT));
    let device = open(&mut board, &mut element).unwrap();
    // SAFETY: an open device.
    assert_eq!(unsafe { sf_close(device) }, SF_OK);
}
