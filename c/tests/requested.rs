//! Asynchronous flash: `cargo test -p smolfed-c --features requested --test requested`.

#![allow(
    clippy::indexing_slicing,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a panic fails the test"
)]

use std::ffi::c_void;

use smolfed_c::{sf_status::*, *};

#[path = "device/board.rs"]
mod board;
#[path = "device/peer.rs"]
mod peer;

use board::{Board, FEATURES};
use peer::{KINDS, Kind, Peer};

/// What the flash does by itself, with memory of the library.
enum Operation {
    Read(u32, *mut u8, usize),
    Write(u32, *const u8, usize),
    Erase(u32, usize),
}

/// Flash that is done after three questions. It works at the last one, as hardware does that reads
/// memory late.
struct Slow {
    bytes: Vec<u8>,
    operation: Option<Operation>,
    questions: u32,
    /// Whether every operation fails.
    fails: bool,
}

/// # Safety
/// The context is a `Slow` of the test.
unsafe fn begin(context: *mut c_void, operation: Operation) -> i32 {
    // SAFETY: as of this function.
    let flash = unsafe { &mut *context.cast::<Slow>() };
    assert!(flash.operation.is_none(), "one operation at a time");
    flash.operation = Some(operation);
    flash.questions = 3;
    SF_FLASH_PENDING
}

unsafe extern "C" fn read(context: *mut c_void, at: u32, to: *mut u8, count: usize) -> i32 {
    // SAFETY: as of `begin`.
    unsafe { begin(context, Operation::Read(at, to, count)) }
}

unsafe extern "C" fn write(context: *mut c_void, at: u32, from: *const u8, count: usize) -> i32 {
    // SAFETY: as of `begin`.
    unsafe { begin(context, Operation::Write(at, from, count)) }
}

unsafe extern "C" fn erase(context: *mut c_void, at: u32, count: usize) -> i32 {
    // SAFETY: as of `begin`.
    unsafe { begin(context, Operation::Erase(at, count)) }
}

unsafe extern "C" fn poll(context: *mut c_void) -> i32 {
    // SAFETY: the context is a `Slow` of the test.
    let flash = unsafe { &mut *context.cast::<Slow>() };
    flash.questions -= 1;
    if flash.questions > 0 {
        return SF_FLASH_PENDING;
    }
    let bytes = &mut flash.bytes;
    match flash.operation.take().unwrap() {
        Operation::Read(at, to, count) => {
            let from = bytes[at as usize..][..count].as_ptr();
            // SAFETY: the library keeps its memory until the operation is done.
            unsafe { to.copy_from(from, count) };
        }
        Operation::Write(at, from, count) => {
            let to = bytes[at as usize..][..count].as_mut_ptr();
            // SAFETY: as for reading.
            unsafe { to.copy_from(from, count) };
        }
        Operation::Erase(at, count) => bytes[at as usize..][..count].fill(0xFF),
    }
    i32::from(flash.fails)
}

fn kind() -> &'static Kind {
    let mut kinds = KINDS.iter();
    kinds.find(|kind| kind.name == "sf_softmax_f32").unwrap()
}

/// A board with such flash.
struct Rig {
    board: Board,
    flash: Box<Slow>,
}

impl Rig {
    fn new() -> Self {
        let flash = Slow {
            bytes: vec![0xFF; 1024],
            operation: None,
            questions: 0,
            fails: false,
        };
        Self {
            board: Board::new(),
            flash: Box::new(flash),
        }
    }

    fn open(&mut self) -> Result<*mut sf_device, sf_status> {
        let context = (&raw mut *self.flash).cast();
        self.board.open(|config| {
            config.kind = kind().kind;
            config.ledger = sf_flash {
                context,
                read: Some(read),
                write: Some(write),
                erase: Some(erase),
                poll: Some(poll),
                ..config.ledger
            };
        })
    }

    /// A device with a sample that is invited to a round.
    fn invited(&mut self) -> (*mut sf_device, Peer) {
        let device = self.open().unwrap();
        let mut peer = Peer::new(kind());
        let row = [0.5; FEATURES];
        // SAFETY: an open device.
        unsafe {
            assert_eq!(sf_add_sample_f32(device, row.as_ptr(), FEATURES, 1), SF_OK);
            assert_eq!(sf_timeout(device), SF_OK);
            peer.exchange(device, || {});
        }
        (device, peer)
    }
}

fn participations(device: *mut sf_device) -> Result<u32, sf_status> {
    let mut count = 0;
    // SAFETY: an open device.
    match unsafe { sf_participations(device, &raw mut count) } {
        SF_OK => Ok(count),
        status => Err(status),
    }
}

#[test]
fn a_round_goes_on_with_its_flash() {
    let mut rig = Rig::new();
    let (device, mut peer) = rig.invited();
    let mut pending = 0;
    peer.invite(1);
    // SAFETY: an open device.
    unsafe {
        peer.exchange(device, || match participations(device) {
            Ok(count) => assert!(count <= 1),
            Err(status) => {
                assert_eq!(status, SF_PENDING);
                let mut taken = 9;
                let status = sf_receive(device, [1_u8].as_ptr(), 1, &raw mut taken);
                assert_eq!((status, taken), (SF_PENDING, 9), "no byte is lost");
                pending += 1;
            }
        });
    }
    // An erase, two writes and two reads, of which each is asked for three times.
    assert!(peer.is_done() && (10..=15).contains(&pending), "{pending}");
    assert_eq!(participations(device), Ok(1));
    // SAFETY: an open device.
    assert_eq!(unsafe { sf_close(device) }, SF_OK);
    let device = rig.open().unwrap();
    assert_eq!(participations(device), Ok(1), "it is on the flash");
}

#[test]
fn a_device_that_is_closed_meanwhile_waits_for_its_flash() {
    let mut rig = Rig::new();
    let (device, mut peer) = rig.invited();
    peer.invite(1);
    let mut pieces = 0;
    let stopped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        // SAFETY: an open device.
        unsafe {
            peer.exchange(device, || {
                pieces += 1;
                if pieces == 6 {
                    assert_eq!(participations(device), Err(SF_PENDING));
                    std::panic::resume_unwind(Box::new(()));
                }
            });
        }
    }));
    assert!(stopped.is_err());
    // SAFETY: an open device.
    assert_eq!(unsafe { sf_close(device) }, SF_OK);
    assert!(
        rig.flash.operation.is_none(),
        "nothing points to the memory"
    );
    let device = rig.open().unwrap();
    assert_eq!(participations(device), Ok(1), "it was on its way");
    let mut has_more = true;
    // SAFETY: an open device.
    let trained = unsafe { sf_train_some(device, 1, &raw mut has_more) };
    assert_eq!(trained, SF_OK);
    assert!(!has_more);
}

#[test]
fn flash_that_fails_later_spends_no_round_without_a_record() {
    let mut rig = Rig::new();
    let (device, mut peer) = rig.invited();
    rig.flash.fails = true;
    peer.invite(1);
    // SAFETY: an open device.
    unsafe { peer.exchange(device, || {}) };
    assert!(!peer.is_done() && peer.declined().is_some());
    assert_eq!(participations(device), Ok(0));
    // SAFETY: an open device.
    assert_eq!(unsafe { sf_close(device) }, SF_OK);
    assert_eq!(rig.open(), Err(SF_FLASH));
}
