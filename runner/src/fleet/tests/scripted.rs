//! A device whose messages the test chooses.

use smolfed_core::wire::link::{DeviceEnd, Link, greet};
use smolfed_core::wire::message::{Hello, Message, Packed, UPDATE_CHUNK_BYTES, UpdateChunk};
use smolfed_core::wire::pack;
use smolfed_core::wire::{Direction, VERSION};

use crate::fleet::exchange::Offer;

use super::harness::*;

/// A device whose messages the test chooses.
pub(super) struct ScriptedDevice {
    pub(super) link: Link<DeviceEnd>,
    pub(super) device: u32,
}

impl ScriptedDevice {
    /// Opens a session as `device`.
    pub(super) fn new(harness: &mut Harness, device: u32) -> Self {
        let nonce = [7; 16];
        let answer = harness.receive(&hello(device, device, nonce));
        let mut device = Self::welcomed(device, nonce, &answer);
        device.ready(harness);
        device
    }

    /// Names its ledger.
    pub(super) fn ready(&mut self, harness: &mut Harness) -> Vec<u8> {
        let ledger = key(self.device).ledger_fingerprint(self.device, &NONCE);
        self.send(harness, 0, &Message::Ready(ledger))
    }

    /// A session that the welcome in `answer` opens.
    pub(super) fn welcomed(device: u32, nonce: [u8; 16], answer: &[u8]) -> Self {
        let welcome = frames(answer).into_iter().find_map(|(kind, body)| {
            match Message::parse(kind, &body, Direction::ToDevice) {
                Ok(Message::Welcome(welcome)) => Some(welcome),
                _ => None,
            }
        });
        let session = key(device).session(device, &nonce, &welcome.unwrap().nonce);
        Self {
            link: Link::<DeviceEnd>::new(session),
            device,
        }
    }

    /// Sends a message; returns the kinds of the answers.
    pub(super) fn send(
        &mut self,
        harness: &mut Harness,
        round: u32,
        message: &Message<'_>,
    ) -> Vec<u8> {
        let bytes = self.link.seal(round, message);
        let answer = harness.receive(bytes.as_slice());
        frames(&answer).into_iter().map(|(kind, _)| kind).collect()
    }

    /// Requests the whole model.
    pub(super) fn fetch(&mut self, harness: &mut Harness, round: u32) {
        for index in 0..3 {
            assert!(
                self.send(harness, round, &Message::WantModel(index))
                    .contains(&19)
            );
        }
        assert_eq!(harness.peer(self.device).state(), "training");
    }

    /// Sends the bit of an update, behind its last chunk; returns the kinds of the answers.
    pub(super) fn send_bit(&mut self, harness: &mut Harness, offer: &Offer, bit: i64) -> Vec<u8> {
        let asked = &offer.invitation;
        let mut packed = [0; UPDATE_CHUNK_BYTES];
        let width = asked.bit_width().unwrap();
        let used = pack::pack([bit].into_iter(), width, &mut packed).unwrap();
        let chunk = UpdateChunk {
            index: asked.update_chunks(PARAMETERS) as u16 - 1,
            negated: false,
            packed: Packed::Bytes(&packed[..used]),
        };
        self.send(harness, offer.number, &Message::UpdateChunk(chunk))
    }

    /// Sends an update; returns the kinds of the answers to its last chunk.
    pub(super) fn send_update(
        &mut self,
        harness: &mut Harness,
        offer: &Offer,
        values: &[i64],
        negated: bool,
    ) -> Vec<u8> {
        let width = offer.invitation.width();
        let count = pack::capacity(width, UPDATE_CHUNK_BYTES);
        let mut kinds = vec![];
        for (index, values) in values.chunks(count).enumerate() {
            let mut packed = [0; UPDATE_CHUNK_BYTES];
            let used = pack::pack(values.iter().copied(), width, &mut packed).unwrap();
            let chunk = UpdateChunk {
                index: index as u16,
                negated,
                packed: Packed::Bytes(&packed[..used]),
            };
            kinds = self.send(harness, offer.number, &Message::UpdateChunk(chunk));
        }
        kinds
    }
}

/// The first message of a device.
pub(super) fn greeting(device: u32, nonce: [u8; 16]) -> Hello {
    Hello {
        device,
        nonce,
        lowest_version: VERSION,
        highest_version: VERSION,
        shape: shape(),
        needs_local_noise: false,
    }
}

/// The same as a frame, under the key of `owner`.
pub(super) fn hello(device: u32, owner: u32, nonce: [u8; 16]) -> Vec<u8> {
    let hello = Message::Hello(greeting(device, nonce));
    let frame = greet::<DeviceEnd>(&hello, &key(owner));
    frame.as_slice().to_vec()
}

/// Kinds and bodies of the frames in these bytes.
pub(super) fn frames(bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut decoder = smolfed_core::wire::cobs::Decoder::new();
    let mut frames = vec![];
    for byte in bytes {
        if let Some(Ok(raw)) = decoder.push(*byte) {
            let frame = smolfed_core::wire::frame::Frame::parse(raw).unwrap();
            frames.push((frame.header.kind, frame.body.to_vec()));
        }
    }
    frames
}

/// Device 0 restarts.
pub(super) fn restart(harness: &mut Harness, start: u8) -> ScriptedDevice {
    let nonce = [100 + start; 16];
    let answer = harness.receive(&hello(0, 0, nonce));
    let mut device = ScriptedDevice::welcomed(0, nonce, &answer);
    device.ready(harness);
    device
}
