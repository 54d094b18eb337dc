//! One connection: bytes in, bytes out. Which device it belongs to follows from its frames.

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

/// Devices of one connection that are remembered. There is one, unless a gateway serves several.
const MAX_DEVICES: usize = 8;

/// How long no `Call` is sent after a device was refused, as it would only send its `Hello` again.
const REFUSED_PAUSE: Duration = Duration::from_secs(60);

/// Frames without a session that are compared with the orphaned sessions of other connections.
/// Later ones are refused at once: each comparison costs a tag a session.
const MAX_UNMATCHED: u32 = 16;

/// Bytes of answers that a connection holds before it sends them, and a window more.
const MAX_ANSWERS: usize = 1 << 15;

/// One connection.
pub struct Connection {
    id: ConnectionId,
    decoder: Decoder,
    /// Devices that sent an authentic frame on it, the most recent one first.
    devices: Vec<(u32, SharedPeer)>,
    refusals: Refusals,
    /// When `Call` was sent last.
    called: Option<Duration>,
    /// Interval at which it is sent without a session.
    call_interval: Duration,
    /// Frames that matched no session.
    unmatched: u32,
    handshakes: HandshakeLimit,
    /// Whether a device was refused since this was last asked.
    has_refused: bool,
    /// A device under whose key two sessions have replaced each other.
    alarm: Option<u32>,
    /// A device whose session on this connection has replaced one, and the connection of that.
    displaced: Option<(u32, ConnectionId)>,
    /// A device without a common version, and its versions.
    incompatible: Option<(u32, Versions)>,
}

impl Connection {
    /// A connection on which nothing was received yet.
    #[must_use]
    pub fn new(id: ConnectionId) -> Self {
        Self::on_link(id, &Link::default())
    }

    /// The same on a link of this kind.
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

    /// Refused frames that no device is known to have sent, by reason.
    #[must_use]
    pub const fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// Takes these counts, to be added up elsewhere.
    pub fn take_refusals(&mut self) -> Refusals {
        std::mem::take(&mut self.refusals)
    }

    /// A device under whose key two sessions have replaced each other since the last call.
    pub(super) const fn take_alarm(&mut self) -> Option<u32> {
        self.alarm.take()
    }

    /// A device whose session on this connection has replaced one on another open connection since
    /// the last call, and that connection.
    pub(super) const fn take_displaced(&mut self) -> Option<(u32, ConnectionId)> {
        self.displaced.take()
    }

    /// A device that speaks other versions of the protocol only, and which, since the last call.
    pub(super) const fn take_incompatible(&mut self) -> Option<(u32, Versions)> {
        self.incompatible.take()
    }

    /// Whether a device was refused since the last call.
    pub(super) fn take_refused(&mut self) -> bool {
        std::mem::take(&mut self.has_refused)
    }

    /// Processes received bytes; appends the answers to `out`: for each received frame at most one,
    /// or [`MAX_WINDOW`](smolfed_core::wire::message::MAX_WINDOW) chunks of the model. Frames that
    /// come when the answers have `MAX_ANSWERS` bytes are left out: no honest device asks for as
    /// much.
    pub fn receive(&mut self, bytes: &[u8], registry: &Registry, now: Duration, out: &mut Vec<u8>) {
        // Taken once: the frames that it holds are borrowed while they are answered.
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

    /// Appends to `out` what is due without having been asked for: invitations, or a `Call`.
    pub fn poll(&mut self, now: Duration, out: &mut Vec<u8>) {
        for (_, peer) in &self.devices {
            lock(peer).poll(self.id, now, out);
        }
        let waited = self.called.map(|then| now.saturating_sub(then));
        let is_due = waited.is_none_or(|waited| waited >= self.call_interval);
        if is_due && !self.has_session() {
            self.called = Some(now);
            // A zero ends a frame that was cut short.
            out.push(0);
            out.extend_from_slice(Greeting::Call.encoded().as_slice());
        }
    }

    /// When [`Self::poll`] has something to send next, unless bytes are received before.
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

    /// Whether a device has its session on this connection.
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
        // Until its tag is verified a frame is attributed to no device.
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

    /// Appends the answer of the device if the frame belongs to its session; whether it does.
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
            // The peer has counted it. One that is authentic and of an earlier round still shows
            // where the device is, which is then invited there.
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
            // The peer has counted it, and may have something to tell.
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
