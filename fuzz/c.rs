//! A device behind the interface for C, with arbitrary actions of its firmware and line.
//! The bytes are a script. [`Script::act`] defines its meaning.

#[allow(dead_code, reason = "other tests use more of it")]
#[path = "../c/tests/device/board.rs"]
mod board;
#[allow(dead_code, reason = "other tests use more of it")]
#[path = "../c/tests/device/peer.rs"]
mod peer;

use std::collections::VecDeque;
use std::ptr::null_mut;

use smolfed_c::{sf_status::*, *};
use smolfed_core::wire::FRAME_BYTES;

use board::{BUDGET, Board, FEATURES};
use peer::{KINDS, Kind, Peer, give};

/// Tests a device against any line and any firmware that keeps to the preconditions.
///
/// Every call must return. The number of participations must neither fall nor exceed the budget,
/// even across restarts, and no outgoing bytes may exceed a frame.
pub fn c(bytes: &[u8]) {
    participations(bytes);
}

/// Runs [`c`] and returns the number of participations: scripts without any test little.
pub fn participations(bytes: &[u8]) -> u32 {
    let Some((first, rest)) = bytes.split_first() else {
        return 0;
    };
    let kind = &KINDS[usize::from(*first) % KINDS.len()];
    let mut board = Board::new();
    let device = open(&mut board, kind);
    let mut script = Script {
        bytes: rest,
        board,
        kind,
        device,
        peer: Peer::new(kind),
        waiting: VecDeque::new(),
        round: 0,
    };
    let mut past = 0;
    while script.act().is_some() {
        let (mut now, mut outgoing, mut count) = (0, std::ptr::null(), 0);
        let device = script.device;
        // SAFETY: an open device, and places for the results.
        unsafe {
            assert_eq!(sf_participations(device, &raw mut now), SF_OK);
            let status = sf_outgoing(device, &raw mut outgoing, &raw mut count);
            assert!(status == SF_OK && count <= FRAME_BYTES);
        }
        assert!((past..=BUDGET).contains(&now), "{past}, then {now}");
        past = now;
    }
    // SAFETY: an open device.
    assert_eq!(unsafe { sf_close(script.device) }, SF_OK);
    past
}

/// Opens a device in memory of exactly the required size.
fn open(board: &mut Board, kind: &Kind) -> *mut sf_device {
    let mut config = board.config();
    (config.kind, config.places) = (kind.kind, kind.places());
    // SAFETY: a valid configuration.
    let bytes = unsafe { sf_memory_bytes(&raw const config) };
    board.memory = vec![0xAAAA_AAAA_AAAA_AAAA; bytes / 8];
    let device = board.open(|config| {
        (config.kind, config.places) = (kind.kind, kind.places());
    });
    device.expect("a valid configuration")
}

struct Script<'a> {
    /// The rest of the script.
    bytes: &'a [u8],
    board: Board,
    kind: &'a Kind,
    device: *mut sf_device,
    peer: Peer,
    /// Frames of the coordinator in transit.
    waiting: VecDeque<Vec<u8>>,
    round: u32,
}

impl Script<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*first)
    }

    /// Runs the next action. Returns `None` at the end.
    fn act(&mut self) -> Option<()> {
        let (action, choice) = (self.byte()?, self.byte()?);
        let device = self.device;
        // SAFETY: the device is open, and all values exist.
        unsafe {
            match action % 8 {
                0 => {
                    let length = usize::from(choice).min(self.bytes.len());
                    let (chunk, rest) = self.bytes.split_at(length);
                    self.bytes = rest;
                    give(device, chunk);
                }
                1 => assert_eq!(sf_sent(device), SF_OK),
                2 => self.peer.take(device),
                3 => self.deliver(choice),
                4 => assert_eq!(sf_timeout(device), SF_OK),
                5 => {
                    let status = sf_train_some(device, choice.into(), null_mut());
                    assert_eq!(status, SF_OK);
                }
                6 => self.firmware(choice),
                _ => {
                    self.round = self.round.saturating_add(u32::from(choice % 4));
                    self.peer.invite(self.round);
                }
            }
        }
        Some(())
    }

    /// Delivers the next frame of the coordinator: whole, damaged, or never.
    ///
    /// # Safety
    /// The device must be open.
    unsafe fn deliver(&mut self, choice: u8) {
        self.waiting.extend(self.peer.frames());
        let Some(mut frame) = self.waiting.pop_front() else {
            return;
        };
        if choice == 255 {
            return;
        }
        if choice > 127 {
            let at = usize::from(choice) % frame.len();
            frame[at] ^= choice;
        }
        // SAFETY: the contract of this function.
        unsafe { give(self.device, &frame) };
    }

    /// Performs an arbitrary action of a program on its device.
    ///
    /// # Safety
    /// The device must be open.
    unsafe fn firmware(&mut self, choice: u8) {
        let device = self.device;
        let row = [choice; FEATURES];
        let (small, wide) = (row.map(|x| x as i8), row.map(|x| i16::from(x) << 7));
        let floats = row.map(|x| f32::from_bits(u32::from(x) << 23 | u32::from(x)));
        let (mut scores, mut integers) = ([0.0; 3], [0; 3]);
        let (class, outputs) = (u16::from(choice) / 8 % 4, self.kind.outputs());
        let value = f32::from(choice) - 128.0;
        // SAFETY: the contract of this function, and all values exist.
        unsafe {
            match choice % 8 {
                0 => {
                    sf_add_sample_f32(device, floats.as_ptr(), FEATURES, class);
                    sf_add_sample_i8(device, small.as_ptr(), FEATURES, class);
                    sf_add_sample_i16(device, wide.as_ptr(), FEATURES, class);
                }
                1 => {
                    sf_add_value_f32(device, floats.as_ptr(), FEATURES, value);
                    sf_add_value_i8(device, small.as_ptr(), FEATURES, value);
                    sf_add_value_i16(device, wide.as_ptr(), FEATURES, value);
                }
                2 => {
                    let (to, floats) = (scores.as_mut_ptr(), floats.as_ptr());
                    sf_predict_f32(device, floats, FEATURES, to, outputs, null_mut());
                    sf_probabilities_f32(device, to, outputs);
                }
                3 => {
                    let to = integers.as_mut_ptr();
                    sf_predict_i8(device, small.as_ptr(), FEATURES, to, outputs, null_mut());
                    sf_predict_i16(device, wide.as_ptr(), FEATURES, to, outputs, null_mut());
                    sf_probabilities_i32(device, to, outputs);
                }
                4 => {
                    sf_forget_samples(device);
                }
                5 => {
                    let mut counts = sf_sample_counts::default();
                    assert_eq!(sf_count_samples(device, &raw mut counts), SF_OK);
                    sf_last_round(device, null_mut());
                }
                6 => assert_eq!(sf_set_window(device, choice), SF_OK),
                _ => {
                    assert_eq!(sf_close(device), SF_OK);
                    self.device = open(&mut self.board, self.kind);
                }
            }
        }
    }
}
