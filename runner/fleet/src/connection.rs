//! One connection of the coordinator: the devices that its frames identify, refused frames, and
//! limits on devices and answers.

use std::sync::Arc;
use std::time::Duration;

use smolfed_core::wire::Direction;
use smolfed_core::wire::VERSION;
use smolfed_core::wire::cobs::Decoder;
use smolfed_core::wire::frame::{Encoded, Frame, Sealed};
use smolfed_core::wire::greeting::{Greeting, Versions};
use smolfed_core::wire::refusal::{Refusal, Refusals};

use super::handshakes::HandshakeLimit;
use super::link::Link;
use super::lock::lock;
use super::peer::{ConnectionId, Peer};
use super::registry::{Registry, SharedPeer};

/// Number of remembered devices of one connection. Only gateways serve more than one.
const MAX_DEVICES: usize = 8;

/// Time without a `Call` after a refusal, since the device would only send its `Hello` again.
const REFUSED_PAUSE: Duration = Duration::from_secs(60);

/// Number of frames without a session that are compared with the orphaned sessions of other
/// connections. Later ones are refused at once, since each comparison costs a tag per session.
const MAX_UNMATCHED: u32 = 16;

/// Bytes of answers that a connection holds before it sends them, plus one window.
const MAX_ANSWERS: usize = 1 << 15;

/// One connection.
pub struct Connection {
    id: ConnectionId,
    decoder: Decoder,
    /// Devices that sent an authentic frame on it, the most recent one first.
    devices: Vec<(u32, SharedPeer)>,
    refusals: Refusals,
    /// Time of the last `Call`.
    called: Option<Duration>,
    /// Interval between `Call`s without a session.
    call_interval: Duration,
    /// Frames that matched no session.
    unmatched: u32,
    handshakes: HandshakeLimit,
    /// Whether a device was refused since the last query.
    has_refused: bool,
    /// A device under whose key two sessions have replaced each other.
    alarm: Option<u32>,
    /// A device whose session on this connection has replaced another, and the other's connection.
    displaced: Option<(u32, ConnectionId)>,
    /// A device without a common version, and its versions.
    incompatible: Option<(u32, Versions)>,
}

impl Connection {
    /// Returns a connection that has received nothing yet.
    #[must_use]
    pub fn new(id: ConnectionId) -> Self {
        Self::on_link(id, &Link::default())
    }

    /// Returns a new connection on this kind of link.
    #[must_use]
    pub const fn on_link(id: ConnectionId, link: &Link) -> Self {
        Self {
            id,
            decoder: Decoder::new(),
            devices: Vec::new(),
            refusals: Refusals::new(),
            called: None,
            call_interval: link.call_interval,
            unmatched: 0,
            handshakes: HandshakeLimit::new(),
            has_refused: false,
            alarm: None,
            displaced: None,
            incompatible: None,
        }
    }

    /// Returns the number of refused frames without a known device, by reason.
    #[must_use]
    pub const fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// Takes these counts, which the caller adds up.
    pub fn take_refusals(&mut self) -> Refusals {
        std::mem::take(&mut self.refusals)
    }

    /// Takes the device under whose key two sessions have replaced each other, if any.
    pub(super) const fn take_alarm(&mut self) -> Option<u32> {
        self.alarm.take()
    }

    /// Takes the device whose session on this connection has replaced one on another open
    /// connection, and that connection.
    pub(super) const fn take_displaced(&mut self) -> Option<(u32, ConnectionId)> {
        self.displaced.take()
    }

    /// Takes the device without a common protocol version, and its versions.
    pub(super) const fn take_incompatible(&mut self) -> Option<(u32, Versions)> {
        self.incompatible.take()
    }

    /// Returns whether a device was refused since the last call.
    pub(super) fn take_refused(&mut self) -> bool {
        std::mem::take(&mut self.has_refused)
    }

    /// Processes received bytes and appends the answers to `out`: for each frame at most one
    /// answer, or [`MAX_WINDOW`](smolfed_core::wire::message::MAX_WINDOW) chunks of the model.
    /// Ignores further frames once the answers have `MAX_ANSWERS` bytes. No honest device asks for
    /// as much.
    pub fn receive(&mut self, bytes: &[u8], registry: &Registry, now: Duration, out: &mut Vec<u8>) {
        // Taken once: the decoder lends the frames while they are answered.
        let mut decoder = std::mem::take(&mut self.decoder);
        for byte in bytes {
            let Some(raw) = decoder.push(*byte).filter(|_| out.len() < MAX_ANSWERS) else {
                continue;
            };
            if let Err(refusal) = raw.and_then(|raw| self.frame(raw, registry, now, out)) {
                self.refusals.count(refusal);
            }
        }
        self.decoder = decoder;
    }

    /// Appends the messages that are due to `out`: invitations, or a `Call`.
    pub fn poll(&mut self, now: Duration, out: &mut Vec<u8>) {
        for (_, peer) in &self.devices {
            lock(peer).poll(self.id, now, out);
        }
        let waited = self.called.map(|then| now.saturating_sub(then));
        let is_due = waited.is_none_or(|waited| waited >= self.call_interval);
        if is_due && !self.has_session() {
            self.called = Some(now);
            // A zero ends a truncated frame.
            out.push(0);
            out.extend_from_slice(Greeting::Call.encoded().as_slice());
        }
    }

    /// Returns when [`Self::poll`] next has something to send, if no bytes arrive before.
    #[must_use]
    pub fn due(&self) -> Option<Duration> {
        let invitations = self.devices.iter();
        let invitation = invitations.filter_map(|(_, peer)| lock(peer).due(self.id));
        let call = (!self.has_session()).then(|| {
            self.called
                .map_or(Duration::ZERO, |then| then + self.call_interval)
        });
        invitation.chain(call).min()
    }

    /// Returns whether a device has its session on this connection.
    #[must_use]
    pub fn has_session(&self) -> bool {
        let mut peers = self.devices.iter();
        peers.any(|(_, peer)| lock(peer).is_on(self.id))
    }

    /// Tells the devices that the connection is lost.
    pub fn lost(&self, registry: &Registry, now: Duration) {
        for (device, peer) in &self.devices {
            let is_orphan = {
                let mut peer = lock(peer);
                peer.connection_lost(self.id, now);
                peer.is_orphan()
            };
            registry.set_orphan(*device, is_orphan);
            registry.notify(*device);
        }
    }

    fn frame(
        &mut self,
        raw: &mut [u8],
        registry: &Registry,
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
        // A frame belongs to no device until its tag is verified.
        if frame.version() != VERSION {
            return Err(Refusal::Version);
        }
        for index in 0..self.devices.len() {
            if let Some((device, peer)) = self.devices.get(index).cloned()
                && self.offer_to(device, &peer, &mut frame, registry, now, out)
            {
                return Ok(());
            }
        }
        if self.unmatched >= MAX_UNMATCHED {
            return Err(Refusal::Tag);
        }
        // A session whose connection was lost may continue on this one.
        for device in registry.orphans() {
            if let Some(peer) = registry.peer(device)
                && self.offer_to(device, &peer, &mut frame, registry, now, out)
            {
                return Ok(());
            }
        }
        self.unmatched += 1;
        Err(Refusal::Tag)
    }

    /// Appends the device's answer if the frame belongs to its session. Returns whether it does.
    fn offer_to(
        &mut self,
        device: u32,
        shared: &SharedPeer,
        frame: &mut Sealed<'_>,
        registry: &Registry,
        now: Duration,
        out: &mut Vec<u8>,
    ) -> bool {
        let mut peer = lock(shared);
        let progress = |peer: &Peer| (peer.is_settled(), peer.is_on(self.id), peer.is_in_flight());
        let before = progress(&peer);
        match registry.receive(device, &mut peer, self.id, frame, now, out) {
            Err(Refusal::Tag) => return false,
            // The peer has counted it. An authentic frame of an earlier round still shows where the
            // device is, and the coordinator then invites it there.
            Err(_) if !peer.is_on(self.id) => return true,
            Err(_) | Ok(()) => {}
        }
        let has_changed = before != progress(&peer);
        if peer.is_refused() {
            self.called = Some(now + REFUSED_PAUSE);
            self.has_refused = true;
        }
        if peer.take_alarm() {
            self.alarm = Some(device);
        }
        if let Some(other) = peer.take_displaced() {
            self.displaced = Some((device, other));
        }
        let is_orphan = peer.is_orphan();
        drop(peer);
        if has_changed {
            registry.set_orphan(device, is_orphan);
            registry.notify(device);
        }
        self.remember(device, shared);
        true
    }

    fn greeting(
        &mut self,
        kind: u8,
        body: &[u8],
        registry: &Registry,
        now: Duration,
    ) -> Result<Encoded, Refusal> {
        let Greeting::Hello(hello) = Greeting::parse(kind, body, Direction::ToCoordinator)? else {
            return Err(Refusal::Unexpected);
        };
        // Without the device's key nothing is authentic.
        let (device, shared) = registry.device_of(&hello.name).ok_or(Refusal::Tag)?;
        let mut peer = lock(&shared);
        let answer = registry.hello(&mut peer, self.id, &hello, &mut self.handshakes, now);
        match answer {
            Ok(answer) => {
                if peer.is_refused() {
                    self.called = Some(now + REFUSED_PAUSE);
                    self.incompatible = Some((device, hello.versions));
                }
                drop(peer);
                self.remember(device, &shared);
                Ok(answer)
            }
            // The peer has counted it, and may have something to report.
            Err(_) => {
                self.has_refused = true;
                Ok(Encoded::empty())
            }
        }
    }

    fn remember(&mut self, device: u32, peer: &SharedPeer) {
        let is_known = |(_, known): &(u32, SharedPeer)| Arc::ptr_eq(known, peer);
        if self.devices.first().is_some_and(is_known) {
            return;
        }
        self.devices.retain(|(other, _)| *other != device);
        self.devices.truncate(MAX_DEVICES - 1);
        self.devices.insert(0, (device, Arc::clone(peer)));
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let devices: Vec<u32> = self.devices.iter().map(|(device, _)| *device).collect();
        write!(f, "{:?} of devices {devices:?}", self.id)
    }
}
