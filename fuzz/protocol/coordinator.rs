//! The coordinator's side.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use smolfed::fleet::exchange::{ExchangeOutcome, Offer};
use smolfed::fleet::lock::lock;
use smolfed::fleet::peer::{ConnectionId, Peer, Terms};
use smolfed::fleet::registry::{Registry, SharedPeer};
use smolfed::fleet::short_model::Recent;
use smolfed::fleet::{connection::Connection, ledgers::KnownLedgers};
use smolfed_core::crypto::Key;
use smolfed_core::harness::{PARAMETERS, shape};
use smolfed_core::recipe::Recipe;
use smolfed_core::wire::cobs::Decoder;
use smolfed_core::wire::frame::Frame;
use smolfed_core::wire::greeting::{Greeting, Hello, Name, Versions, greeting};
use smolfed_core::wire::keys::{Chain, ChainKey};
use smolfed_core::wire::link::{DeviceEnd, Link};
use smolfed_core::wire::message::{
    MAX_WINDOW, Message, ModelGrid, Packed, Ready, UPDATE_CHUNK_BYTES, UpdateChunk,
};
use smolfed_core::wire::{Direction, FRAME_BYTES, pack};

use super::{Action, KEY, Script, invitation, raw, stream};

/// Gradients of 8 × 8 pixels in cells of 4 × 4.
const RECIPE: [u8; 8] = [1, 1, 8, 0, 8, 0, 4, 0];

/// Tests the coordinator with a device that knows its key and one that does not.
///
/// For any input, it must return, answer each received frame with at most a window of frames and a
/// `Call`, and accept no update beyond its bound.
pub fn coordinator(bytes: &[u8]) {
    let mut script = Script(bytes);
    let settings = script.byte().unwrap_or(0);
    let local_noise = settings & 1 != 0;
    // For `invitation`: noise, and a bit.
    let choice = 1 | (settings & 3) << 4;
    let terms = Terms {
        shape: shape(),
        local_noise,
        handshake: settings & 128 != 0,
        recipe: Recipe::read(&RECIPE),
    };
    let peers = [(5, KEY), (6, [4; 32])];
    let peers = peers.map(|(device, secret)| {
        let key = Key::from_secret(secret);
        (device, Peer::new(device, ChainKey::new(key), terms))
    });
    let mut coordinator = Coordinator {
        registry: Registry::new(BTreeMap::from(peers), KnownLedgers::default(), stream()),
        connection: Connection::new(ConnectionId(0)),
        connections: 0,
        // Models of rounds up to 127 are on the grid.
        recent: Recent::new(ModelGrid::new(8)),
    };
    let mut device = Device {
        link: None,
        round: 0,
        choice,
    };
    let mut now = Duration::ZERO;
    while let Some(action) = script.next() {
        let nonce = matches!(action, Action::Greeting).then_some([device.round as u8; 16]);
        match action {
            Action::Silence => now += Duration::from_millis(700),
            Action::Reconnect => coordinator.reconnect(now),
            Action::NextRound => {
                device.round += 1;
                coordinator.next_round(device.round, choice);
            }
            _ => {}
        }
        let answer = coordinator.receive(&device.send(action), now);
        if let (Some(ours), Some(theirs)) = (nonce, welcome(&answer)) {
            let session = chain().session(5, &ours, &theirs);
            device.link = Some(Link::new(session.cipher()));
        }
    }
    coordinator.close();
}

/// The coordinator with the connection used by the script.
struct Coordinator {
    registry: Registry,
    connection: Connection,
    /// Number of lost connections.
    connections: u64,
    /// Models in 16 bits.
    recent: Recent,
}

impl Coordinator {
    fn reconnect(&mut self, now: Duration) {
        self.connection.lost(&self.registry, now);
        self.connections += 1;
        self.connection = Connection::new(ConnectionId(self.connections));
    }

    fn next_round(&mut self, number: u32, choice: u8) {
        self.close();
        let model = vec![f32::from(number as u8); PARAMETERS];
        let next = Arc::new(Offer {
            short: self.recent.offer(number, &model),
            ..Offer::new(number, invitation(choice), model)
        });
        for peer in self.peers() {
            lock(&peer).offer(Arc::clone(&next));
        }
    }

    /// Ends the round.
    fn close(&mut self) {
        for peer in self.peers() {
            check(lock(&peer).close());
        }
    }

    /// Returns all devices.
    fn peers(&self) -> Vec<SharedPeer> {
        let peers = [5, 6].map(|device| self.registry.peer(device));
        peers.into_iter().flatten().collect()
    }

    /// Returns the answer to `bytes`.
    fn receive(&mut self, bytes: &[u8], now: Duration) -> Vec<u8> {
        let mut out = Vec::new();
        let registry = &self.registry;
        self.connection.receive(bytes, registry, now, &mut out);
        self.connection.poll(now, &mut out);
        let frames = bytes.iter().filter(|byte| **byte == 0).count();
        // A window of answers per frame, an invitation per device, and a call.
        let limit = (frames * usize::from(MAX_WINDOW) + 4) * FRAME_BYTES;
        assert!(out.len() <= limit, "{} bytes", out.len());
        let without_key = registry.peer(6);
        assert!(
            without_key.is_some_and(|peer| !lock(&peer).is_reachable()),
            "without its key"
        );
        out
    }
}

/// The device, as played by the script.
struct Device {
    link: Option<Link<DeviceEnd>>,
    round: u32,
    /// Selects the invitation.
    choice: u8,
}

impl Device {
    /// Returns the bytes that it sends.
    fn send(&mut self, action: Action<'_>) -> Vec<u8> {
        match action {
            Action::Bytes(bytes) => bytes.to_vec(),
            Action::Frame(kind, round, body) => {
                match Message::parse(kind, body, Direction::ToCoordinator) {
                    Ok(message) => self.seal(round, &message),
                    Err(_) => raw(kind, round, body).as_slice().to_vec(),
                }
            }
            Action::WellFormed(what, choice) => self.well_formed(what, choice),
            Action::Greeting => {
                let name = match self.choice & 32 {
                    0 => Name::Number(5),
                    _ => Name::Pseudonym(chain().pseudonym()),
                };
                let nonce = [self.round as u8; 16];
                let hello = Hello::new(&chain().greeting(), name, nonce, Versions::OURS);
                Greeting::Hello(hello).encoded().as_slice().to_vec()
            }
            Action::Silence | Action::Reconnect | Action::NextRound => Vec::new(),
        }
    }

    fn well_formed(&mut self, what: u8, choice: u8) -> Vec<u8> {
        let index = u16::from(choice % 4);
        match what % 4 {
            0 => {
                let garbage = [choice; 3];
                let ready = Ready {
                    ledger: [choice / 128; 8],
                    shape: shape(),
                    needs_local_noise: choice & 64 != 0,
                    answers_questions: choice & 32 != 0,
                    recipe: [&[], &RECIPE[..], &[], &garbage][usize::from(choice % 4)],
                };
                self.seal(self.round, &Message::Ready(ready))
            }
            1 if choice >= 128 => self.seal(
                self.round,
                &Message::WantShort {
                    chunk: index,
                    count: choice % 40,
                    base: (choice & 64 != 0).then(|| self.round.saturating_sub(1)),
                },
            ),
            1 => self.seal(
                self.round,
                &Message::WantModel {
                    chunk: index,
                    count: choice % 40,
                },
            ),
            _ => {
                let asked = invitation(self.choice);
                let mut width = asked.width();
                let count = pack::capacity(width, UPDATE_CHUNK_BYTES);
                let before = usize::from(index) * count;
                let mut left = PARAMETERS.saturating_sub(before).min(count);
                if let (0, Some(bit_width)) = (left, asked.bit_width()) {
                    (width, left) = (bit_width, 1);
                }
                let packed = [choice / 64; UPDATE_CHUNK_BYTES];
                let length = pack::packed_bytes(width, left);
                let chunk = UpdateChunk {
                    index,
                    negated: choice & 32 != 0,
                    more: choice & 16 != 0,
                    packed: Packed::Bytes(packed.get(..length).unwrap_or_default()),
                };
                self.seal(self.round, &Message::UpdateChunk(chunk))
            }
        }
    }

    fn seal(&mut self, round: u32, message: &Message<'_>) -> Vec<u8> {
        let frame = self.link.as_mut().map(|link| link.seal(round, message));
        frame.map_or_else(Vec::new, |frame| frame.as_slice().to_vec())
    }
}

/// Returns the chain key of the device.
fn chain() -> ChainKey {
    ChainKey::new(Key::from_secret(KEY))
}

/// Returns the coordinator's nonce in these bytes.
fn welcome(bytes: &[u8]) -> Option<[u8; 16]> {
    let mut decoder = Decoder::new();
    let mut nonce = None;
    for byte in bytes {
        if let Some(Ok(raw)) = decoder.push(*byte)
            && let Ok(frame) = Frame::parse(raw)
            && let Ok(Greeting::Welcome(found)) = greeting(&frame, Direction::ToDevice)
        {
            nonce = Some(found.nonce);
        }
    }
    nonce
}

fn check(outcome: Option<ExchangeOutcome>) {
    if let Some(ExchangeOutcome::Answered(update)) = outcome {
        assert_eq!(update.length(), PARAMETERS);
    }
}
