//! A device whose messages the test chooses.

use smolfed_core::wire::Direction;
use smolfed_core::wire::frame::Frame;
use smolfed_core::wire::greeting::{Greeting, Hello, Name, Versions, greeting};
use smolfed_core::wire::keys::{Chain, ChainKey, ledger_fingerprint};
use smolfed_core::wire::link::{DeviceEnd, Link};
use smolfed_core::wire::message::{Message, Packed, Ready, UPDATE_CHUNK_BYTES, UpdateChunk};
use smolfed_core::wire::pack;

use crate::exchange::Offer;

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

    /// Opens a session as a device that answers questions.
    pub(super) fn answering(harness: &mut Harness, device: u32) -> Self {
        let nonce = [7; 16];
        let answer = harness.receive(&hello(device, device, nonce));
        let mut device = Self::welcomed(device, nonce, &answer);
        let ready = Ready {
            answers_questions: true,
            ..ready()
        };
        device.send(harness, 0, &Message::Ready(ready));
        device
    }

    /// Sends `Ready`.
    pub(super) fn ready(&mut self, harness: &mut Harness) -> Vec<u8> {
        self.send(harness, 0, &Message::Ready(ready()))
    }

    /// Returns the session that the welcome in `answer` opens.
    pub(super) fn welcomed(device: u32, nonce: [u8; 16], answer: &[u8]) -> Self {
        let welcome = greetings(answer).into_iter().find_map(|found| match found {
            Greeting::Welcome(welcome) => Some(welcome),
            _ => None,
        });
        let welcome = welcome.unwrap();
        let session = chain(device).session(device, &nonce, &welcome.nonce);
        assert!(welcome.is_authentic(&session));
        Self {
            link: Link::<DeviceEnd>::new(session.cipher()),
            device,
        }
    }

    /// Sends a message. Returns the kinds of the answers.
    pub(super) fn send(
        &mut self,
        harness: &mut Harness,
        round: u32,
        message: &Message<'_>,
    ) -> Vec<u8> {
        let bytes = self.link.seal(round, message);
        let answer = harness.receive(bytes.as_slice());
        self.kinds(&answer)
    }

    /// Returns the kinds of the messages in these bytes.
    pub(super) fn kinds(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut kinds = vec![];
        for mut raw in raws(bytes) {
            if let Frame::Sealed(mut frame) = Frame::parse(&mut raw).unwrap() {
                let (_, message) = self.link.open(&mut frame).unwrap();
                kinds.push(message.kind());
            }
        }
        kinds
    }

    /// Requests the whole model.
    pub(super) fn fetch(&mut self, harness: &mut Harness, round: u32) {
        for index in 0..3 {
            assert!(
                self.send(
                    harness,
                    round,
                    &Message::WantModel {
                        chunk: index,
                        count: 1
                    }
                )
                .contains(&19)
            );
        }
        assert_eq!(harness.peer(self.device).state(), "training");
    }

    /// Sends the bit of an update, after its last chunk. Returns the kinds of the answers.
    pub(super) fn send_bit(&mut self, harness: &mut Harness, offer: &Offer, bit: i64) -> Vec<u8> {
        let asked = &offer.invitation;
        let mut packed = [0; UPDATE_CHUNK_BYTES];
        let width = asked.bit_width().unwrap();
        let used = pack::pack([bit].into_iter(), width, &mut packed).unwrap();
        let chunk = UpdateChunk {
            index: asked.update_chunks() as u16 - 1,
            negated: false,
            more: false,
            packed: Packed::Bytes(&packed[..used]),
        };
        self.send(harness, offer.number, &Message::UpdateChunk(chunk))
    }

    /// Sends an update. Returns the kinds of the answers to its last chunk.
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
                more: false,
                packed: Packed::Bytes(&packed[..used]),
            };
            kinds = self.send(harness, offer.number, &Message::UpdateChunk(chunk));
        }
        kinds
    }
}

/// Returns the properties of every device here.
pub(super) fn ready() -> Ready<'static> {
    Ready {
        ledger: ledger_fingerprint(&NONCE),
        shape: shape(),
        needs_local_noise: false,
        answers_questions: false,
        recipe: &[],
    }
}

/// Returns the first chain key of a device.
pub(super) fn chain(device: u32) -> ChainKey {
    ChainKey::new(key(device))
}

/// Returns the first frame of a device, under the key of `owner`.
pub(super) fn hello(device: u32, owner: u32, nonce: [u8; 16]) -> Vec<u8> {
    hello_of(&chain(owner), Name::Number(device), nonce, Versions::OURS)
}

pub(super) fn hello_of(
    chain: &ChainKey,
    name: Name,
    nonce: [u8; 16],
    versions: Versions,
) -> Vec<u8> {
    let hello = Greeting::Hello(Hello::new(&chain.greeting(), name, nonce, versions));
    hello.encoded().as_slice().to_vec()
}

/// Returns the frames in these bytes, before COBS.
pub(super) fn raws(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut decoder = smolfed_core::wire::cobs::Decoder::new();
    let mut raws = vec![];
    for byte in bytes {
        if let Some(Ok(raw)) = decoder.push(*byte) {
            raws.push(raw.to_vec());
        }
    }
    raws
}

/// Returns the greetings to a device in these bytes.
pub(super) fn greetings(bytes: &[u8]) -> Vec<Greeting> {
    let raws = raws(bytes).into_iter();
    raws.filter_map(|mut raw| {
        let frame = Frame::parse(&mut raw).unwrap();
        greeting(&frame, Direction::ToDevice).ok()
    })
    .collect()
}

/// Restarts device 0.
pub(super) fn restart(harness: &mut Harness, start: u8) -> ScriptedDevice {
    let nonce = [100 + start; 16];
    let answer = harness.receive(&hello(0, 0, nonce));
    let mut device = ScriptedDevice::welcomed(0, nonce, &answer);
    device.ready(harness);
    device
}
