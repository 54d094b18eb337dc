//! Devices that sleep: `cargo test -p smolfed-c --features sleep --test sleep`.

#![allow(
    clippy::indexing_slicing,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a panic fails the test"
)]

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use smolfed_c::{sf_status::*, *};
use smolfed_core::wire::message::Decline;

#[path = "device/board.rs"]
mod board;
#[path = "device/peer.rs"]
mod peer;

use board::{Board, FEATURES};
use peer::{KINDS, Kind, Peer, give, is_training};

/// Pages for an update, which lose power before an operation.
struct Store {
    bytes: Vec<u8>,
    page: usize,
    /// Changes until the power fails.
    left: usize,
}

impl Store {
    fn new(page: usize) -> Self {
        Self {
            bytes: vec![0xFF; 16 * page],
            page,
            left: usize::MAX,
        }
    }

    fn functions(&mut self) -> sf_flash {
        let (page_bytes, pages) = (self.page as u32, (self.bytes.len() / self.page) as u32);
        sf_flash {
            context: std::ptr::from_mut(self).cast(),
            read: Some(read),
            write: Some(write),
            erase: Some(erase),
            poll: None,
            page_bytes,
            pages,
        }
    }

    fn is_powered(&mut self) -> bool {
        let is_powered = self.left > 0;
        self.left = self.left.saturating_sub(1);
        is_powered
    }
}

unsafe extern "C" fn read(context: *mut c_void, at: u32, to: *mut u8, count: usize) -> i32 {
    // SAFETY: the context is a `Store` of the test, and the library has room for the bytes.
    unsafe {
        let store = &*context.cast::<Store>();
        to.copy_from(store.bytes[at as usize..][..count].as_ptr(), count);
    }
    0
}

unsafe extern "C" fn write(context: *mut c_void, at: u32, from: *const u8, count: usize) -> i32 {
    // SAFETY: as in `read`.
    let (store, from) = unsafe {
        let store = &mut *context.cast::<Store>();
        (store, std::slice::from_raw_parts(from, count))
    };
    if !store.is_powered() {
        return -1;
    }
    let place = &mut store.bytes[at as usize..][..count];
    assert!(place.iter().all(|byte| *byte == 0xFF), "not erased");
    place.copy_from_slice(from);
    0
}

unsafe extern "C" fn erase(context: *mut c_void, at: u32, count: usize) -> i32 {
    // SAFETY: as in `read`.
    let store = unsafe { &mut *context.cast::<Store>() };
    let at = at as usize;
    assert!(
        at.is_multiple_of(store.page) && count.is_multiple_of(store.page),
        "whole pages"
    );
    if !store.is_powered() {
        return -1;
    }
    store.bytes[at..][..count].fill(0xFF);
    0
}

fn open(board: &mut Board, kind: &Kind) -> *mut sf_device {
    let device = board.open(|config| {
        (config.kind, config.places) = (kind.kind, kind.places());
    });
    device.unwrap()
}

/// Adds samples.
fn measure(device: *mut sf_device) {
    for class in 0..4 {
        let row = [class as i8; FEATURES];
        // SAFETY: an open device, and a row.
        let added = unsafe { sf_add_sample_i8(device, row.as_ptr(), FEATURES, class % 2) };
        assert_eq!(added, SF_OK);
    }
}

/// A device with samples that is invited to round 1, and its coordinator.
fn invited(kind: &Kind) -> (Board, *mut sf_device, Peer) {
    let mut board = Board::new();
    let device = open(&mut board, kind);
    measure(device);
    let mut peer = Peer::new(kind);
    connect(device, &mut peer);
    peer.invite(1);
    (board, device, peer)
}

fn connect(device: *mut sf_device, peer: &mut Peer) {
    // SAFETY: an open device.
    unsafe {
        assert_eq!(sf_timeout(device), SF_OK);
        peer.exchange(device, || {});
    }
}

/// Trains, until the update waits to be sent.
fn train(device: *mut sf_device, peer: &mut Peer) {
    loop {
        let frames = peer.frames();
        assert!(!frames.is_empty(), "the device has not trained");
        for frame in frames {
            // SAFETY: an open device.
            unsafe {
                give(device, &frame);
                let mut has_more = is_training(device);
                let trains = has_more;
                while has_more {
                    assert_eq!(sf_train_some(device, 2, &raw mut has_more), SF_OK);
                }
                if trains {
                    return;
                }
                peer.take(device);
            }
        }
    }
}

/// A call with the flash of an update.
type Call = unsafe extern "C" fn(*mut sf_device, *const sf_flash, *mut bool) -> sf_status;

fn call(function: Call, device: *mut sf_device, store: &mut Store) -> Result<bool, sf_status> {
    let (flash, mut done) = (store.functions(), false);
    // SAFETY: an open device, and flash.
    match unsafe { function(device, &raw const flash, &raw mut done) } {
        SF_OK => Ok(done),
        status => Err(status),
    }
}

fn participations(device: *mut sf_device) -> u32 {
    let mut count = 0;
    // SAFETY: an open device.
    assert_eq!(unsafe { sf_participations(device, &raw mut count) }, SF_OK);
    count
}

/// The deep sleep: the memory of the device is lost.
fn restart(board: &mut Board, device: *mut sf_device, kind: &Kind) -> *mut sf_device {
    // SAFETY: an open device.
    assert_eq!(unsafe { sf_close(device) }, SF_OK);
    open(board, kind)
}

/// The updates of two rounds of a device that does not sleep.
fn expected(kind: &Kind) -> [Vec<i64>; 2] {
    let (_board, device, mut peer) = invited(kind);
    let updates = [1, 2].map(|round| {
        peer.invite(round);
        // SAFETY: an open device.
        unsafe { peer.exchange(device, || {}) };
        assert!(peer.is_done());
        peer.update().to_vec()
    });
    // SAFETY: an open device.
    assert_eq!(unsafe { sf_close(device) }, SF_OK);
    updates
}

fn integers() -> Kind {
    *KINDS
        .iter()
        .find(|kind| kind.name == "sf_softmax_i8")
        .unwrap()
}

/// The two updates are in one slot each.
#[test]
fn updates_outlive_the_memory_of_the_device() {
    let kind = integers();
    let expected = expected(&kind);
    for page in [64, 128, 512, 4096] {
        let (mut board, mut device, mut peer) = invited(&kind);
        let mut store = Store::new(page);
        for (round, expected) in (1..).zip(&expected) {
            assert_eq!(
                call(sf_hold, device, &mut store),
                Ok(false),
                "nothing waits"
            );
            train(device, &mut peer);
            assert_eq!(call(sf_hold, device, &mut store), Ok(true));
            assert_eq!(call(sf_hold, device, &mut store), Ok(false), "it is there");
            device = restart(&mut board, device, &kind);
            assert_eq!(call(sf_release, device, &mut store), Ok(false), "too early");
            assert_eq!(call(sf_resume, device, &mut store), Ok(true));
            connect(device, &mut peer);
            assert_eq!(call(sf_release, device, &mut store), Ok(false), "it waits");
            peer.invite(round);
            // SAFETY: an open device.
            unsafe { peer.exchange(device, || panic!("it has trained")) };
            assert!(peer.is_done() && peer.declined().is_none());
            assert!(
                peer.update() == expected,
                "round {round}, pages of {page} bytes"
            );
            assert_eq!(participations(device), round);
            assert_eq!(call(sf_release, device, &mut store), Ok(true));
            assert!(store.bytes.iter().all(|byte| *byte == 0xFF), "it is erased");
            device = restart(&mut board, device, &kind);
            assert_eq!(call(sf_resume, device, &mut store), Ok(false));
            measure(device);
            connect(device, &mut peer);
            peer.invite(round + 1);
        }
        // SAFETY: an open device.
        assert_eq!(unsafe { sf_close(device) }, SF_OK);
    }
}

/// After a power cut before any change of the flash, the device sends the same update or none.
#[test]
fn a_power_cut_leaves_the_whole_update_or_none() {
    let kind = integers();
    let [expected, _] = expected(&kind);
    for page in [64, 512] {
        let mut whole = Vec::new();
        for left in 0..30 {
            let (mut board, device, mut peer) = invited(&kind);
            train(device, &mut peer);
            let mut store = Store::new(page);
            store.left = left;
            let held = call(sf_hold, device, &mut store);
            store.left = usize::MAX;
            let device = restart(&mut board, device, &kind);
            let is_resumed = call(sf_resume, device, &mut store) == Ok(true);
            assert_eq!(held.is_ok(), is_resumed, "{page}: {left}");
            connect(device, &mut peer);
            peer.invite(1);
            // SAFETY: an open device.
            unsafe { peer.exchange(device, || panic!("it has trained")) };
            match is_resumed {
                true => assert!(peer.update() == expected, "{page}: {left}"),
                false => assert!(peer.declined().is_some(), "{page}: {left}"),
            }
            assert_eq!(participations(device), 1);
            whole.push(is_resumed);
            // SAFETY: an open device.
            assert_eq!(unsafe { sf_close(device) }, SF_OK);
        }
        assert!(whole.contains(&true) && whole.contains(&false), "{whole:?}");
    }
}

#[test]
fn a_device_declines_a_round_that_it_has_no_time_for() {
    let kind = integers();
    let wake = |awake_ms| sf_wake {
        awake_ms,
        round_trip_ms: 10,
        bytes_per_second: 10_000,
        samples_per_second: 1_000,
        resumes: true,
    };
    for (awake_ms, declined) in [(40, Some(Decline::AWAKE)), (100, None)] {
        let (_board, device, mut peer) = invited(&kind);
        let wake = wake(awake_ms);
        // SAFETY: an open device.
        unsafe {
            assert_eq!(sf_set_awake(device, &raw const wake), SF_OK);
            peer.exchange(device, || {});
        }
        assert_eq!(peer.declined(), declined);
        assert_eq!(peer.is_done(), declined.is_none());
        assert_eq!(participations(device), u32::from(declined.is_none()));
        // SAFETY: an open device.
        assert_eq!(unsafe { sf_close(device) }, SF_OK);
    }
}

#[test]
fn arguments_that_do_not_fit_are_refused() {
    let (_board, device, _) = invited(&integers());
    let mut wake = sf_wake {
        awake_ms: 1,
        round_trip_ms: 1,
        bytes_per_second: 0,
        samples_per_second: 1,
        resumes: false,
    };
    let mut pages = 0;
    // SAFETY: an open device.
    unsafe {
        assert_eq!(sf_set_awake(device, null()), SF_POINTER);
        assert_eq!(sf_set_awake(device, &raw const wake), SF_CONFIG);
        (wake.bytes_per_second, wake.samples_per_second) = (1, 0);
        assert_eq!(sf_set_awake(device, &raw const wake), SF_CONFIG);
        assert_eq!(sf_held_pages(device, 0, &raw mut pages), SF_CONFIG);
        assert_eq!(sf_held_pages(device, 96, &raw mut pages), SF_CONFIG);
        assert_eq!(sf_held_pages(device, 512, null_mut()), SF_OK);
        assert_eq!(sf_held_pages(device, 512, &raw mut pages), SF_OK);
        assert_eq!(pages, 2);
        assert_eq!(sf_held_pages(device, 64, &raw mut pages), SF_OK);
        assert!(pages > 4 && pages.is_multiple_of(2), "{pages}");
        assert_eq!(sf_hold(device, null(), null_mut()), SF_POINTER);
    }
    let mut store = Store::new(512);
    for (change, expected) in [
        ((|flash| flash.read = None) as fn(&mut sf_flash), SF_POINTER),
        (|flash| flash.page_bytes = 0, SF_CONFIG),
        (|flash| flash.page_bytes = 96, SF_CONFIG),
        (|flash| flash.pages = 1, SF_FLASH),
    ] {
        let mut flash = store.functions();
        change(&mut flash);
        // SAFETY: an open device, and flash.
        let status = unsafe { sf_hold(device, &raw const flash, null_mut()) };
        assert_eq!(status, expected);
    }
    // SAFETY: an open device.
    assert_eq!(unsafe { sf_close(device) }, SF_OK);
}
