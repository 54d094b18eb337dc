//! One connection: bytes in, bytes out. Which device it belongs to follows from its frames.

use std::time::Duration;

use smolfed_core::wire::Direction;
use smolfed_core::wire::VERSION;
use smolfed_core::wire::cobs::Decoder;
use smolfed_core::wire::frame::{Encoded, Frame, Sealed};
use smolfed_core::wire::greeting::Greeting;
use smolfed_core::wire::refusal::{Refusal, Refusals};

use super::peer::{ConnectionId, Peer};
use super::registry::Registry;

/// Devices of one connection that are remembered. There is one, unless a gateway serves several.
const MAX_DEVICES: usize = 8;

/// Interval at which `Call` is sent on a connection without a session.
const CALL_INTERVAL: Duration = Duration::from_secs(1);

/// How long no `Call` is sent after a device was refused, as it would only send its `Hello` again.
const REFUSED_PAUSE: Duration = Duration::from_secs(60);

/// Frames without a session that are compared with the orphaned sessions of other connections.
/// Later ones are refused at once: each comparison costs a tag a session.
const MAX_UNMATCHED: u32 = 16;

/// One connection.
pub struct Connection {
    id: ConnectionId,
    decoder: Decoder,
    /// Devices that sent an authentic frame on it, the most recent one first.
    devices: Vec<u32>,
    refusals: Refusals,
    /// When `Call` was sent last.
    called: Option<Duration>,
    /// Frames that matched no session.
    unmatched: u32,
}

impl Connection {
    /// A connection on which nothing was received yet.
    #[must_use]
    pub const fn new(id: ConnectionId) -> Self {
        Self {
            id,
            decoder: Decoder::new(),
            devices: Vec::new(),
            refusals: Refusals::new(),
            called: None,
            unmatched: 0,
        }
    }

    /// Refused frames that no device is known to have sent, by reason.
    #[must_use]
    pub const fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// Takes these counts, to be added up elsewhere.
    pub fn take_refusals(&mut self) -> Refusals {
        std::mem::take(&mut self.refusals)
    }

    /// Processes received bytes; appends the answers to `out`: for each received frame at most one,
    /// or [`MAX_WINDOW`](smolfed_core::wire::message::MAX_WINDOW) chunks of the model.
    pub fn receive(
        &mut self,
        bytes: &[u8],
        registry: &mut Registry,
        now: Duration,
        out: &mut Vec<u8>,
    ) {
        for byte in bytes {
            let mut decoder = std::mem::take(&mut self.decoder);
            let result = decoder
                .push(*byte)
                .map(|raw| self.frame(raw?, registry, now, out));
            self.decoder = decoder;
            match result {
                None | Some(Ok(())) => {}
                Some(Err(refusal)) => self.refusals.count(refusal),
            }
        }
    }

    /// Appends to `out` what is due without having been asked for: invitations, or a `Call`.
    pub fn poll(&mut self, registry: &mut Registry, now: Duration, out: &mut Vec<u8>) {
        for device in &self.devices {
            if let Some(peer) = registry.peers.get_mut(device) {
                peer.poll(self.id, now, out);
            }
        }
        let waited = self.called.map(|then| now.saturating_sub(then));
        let is_due = waited.is_none_or(|waited| waited >= CALL_INTERVAL);
        if is_due && !self.has_session(registry) {
            self.called = Some(now);
            // A zero ends a frame that was cut short.
            out.push(0);
            out.extend_from_slice(Greeting::Call.encoded().as_slice());
        }
    }

    /// Whether a device has its session on this connection.
    #[must_use]
    pub fn has_session(&self, registry: &Registry) -> bool {
        let mut peers = self.devices.iter().filter_map(|x| registry.peers.get(x));
        peers.any(|peer| peer.is_on(self.id))
    }

    /// Tells the devices that the connection is lost.
    pub fn lost(&self, registry: &mut Registry) {
        for device in &self.devices {
            if let Some(peer) = registry.peers.get_mut(device) {
                peer.connection_lost(self.id);
            }
        }
    }

    fn frame(
        &mut self,
        raw: &mut [u8],
        registry: &mut Registry,
        now: Duration,
        out: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let mut frame = match Frame::parse(raw)? {
            Frame::Greeting { kind, body } => {
                let answer = self.greeting(kind, body, registry, now)?;
                out.extend_from_slice(answer.as_slice());
                return Ok(());
            }
            Frame::Sealed(frame) => frame,
        };
        // Until its tag is verified a frame is attributed to no device.
        if frame.version() != VERSION {
            return Err(Refusal::Version);
        }
        if self.offer_to(&self.devices.clone(), &mut frame, registry, now, out) {
            return Ok(());
        }
        if self.unmatched >= MAX_UNMATCHED {
            return Err(Refusal::Tag);
        }
        // A session whose connection was lost may continue on this one.
        let orphans = registry.peers.iter().filter(|(_, peer)| peer.is_orphan());
        let orphans: Vec<u32> = orphans.map(|(device, _)| *device).collect();
        if self.offer_to(&orphans, &mut frame, registry, now, out) {
            return Ok(());
        }
        self.unmatched += 1;
        Err(Refusal::Tag)
    }

    /// Appends the answer of the device whose session the frame belongs to; whether there is such a
    /// device.
    fn offer_to(
        &mut self,
        devices: &[u32],
        frame: &mut Sealed<'_>,
        registry: &mut Registry,
        now: Duration,
        out: &mut Vec<u8>,
    ) -> bool {
        for device in devices {
            match registry.receive(*device, self.id, frame, now, out) {
                Err(Refusal::Tag) => {}
                // The peer has counted it.
                Err(_) => return true,
                Ok(()) => {
                    self.greeted(*device, registry, now);
                    return true;
                }
            }
        }
        false
    }

    fn greeting(
        &mut self,
        kind: u8,
        body: &[u8],
        registry: &mut Registry,
        now: Duration,
    ) -> Result<Encoded, Refusal> {
        let Greeting::Hello(hello) = Greeting::parse(kind, body, Direction::ToCoordinator)? else {
            return Err(Refusal::Unexpected);
        };
        // Without the device's key nothing is authentic.
        let device = registry.device_of(&hello.name).ok_or(Refusal::Tag)?;
        match registry.hello(device, self.id, &hello, now) {
            Ok(answer) => {
                self.greeted(device, registry, now);
                Ok(answer)
            }
            // The peer has counted it.
            Err(_) => Ok(Encoded::empty()),
        }
    }

    /// The device has sent an authentic frame here.
    fn greeted(&mut self, device: u32, registry: &Registry, now: Duration) {
        let peer = registry.peers.get(&device);
        if peer.is_some_and(Peer::is_refused) {
            self.called = Some(now + REFUSED_PAUSE);
        }
        self.remember(device);
    }

    fn remember(&mut self, device: u32) {
        if self.devices.first() == Some(&device) {
            return;
        }
        self.devices.retain(|other| *other != device);
        self.devices.truncate(MAX_DEVICES - 1);
        self.devices.insert(0, device);
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} of devices {:?}", self.id, self.devices)
    }
}
