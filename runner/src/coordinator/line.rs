//! One connection: bytes in, bytes out. Which device speaks on it follows from its frames.

use std::collections::BTreeMap;
use std::time::Duration;

use rand_core::Rng;
use smolfed_core::stream::Stream;
use smolfed_core::wire::VERSION;
use smolfed_core::wire::cobs::Decoder;
use smolfed_core::wire::frame::{Encoded, Frame};
use smolfed_core::wire::link::{CoordinatorEnd, greet, open_greeting};
use smolfed_core::wire::mac::Key;
use smolfed_core::wire::message::{Message, is_greeting};
use smolfed_core::wire::refusal::{Refusal, Refusals};

use super::peer::{LineId, Peer};

/// Most devices that are looked for first on one line: one, as a rule.
const REMEMBERED: usize = 8;

/// Time after which a line without a session is called again.
const CALL_EVERY: Duration = Duration::from_secs(1);

/// All devices whose keys the coordinator has.
pub struct Roster {
    /// By number.
    pub peers: BTreeMap<u32, Peer>,
    /// Where nonces come from: secret, and never the same at two starts.
    nonces: Stream,
}

impl Roster {
    /// Devices that have not been heard of.
    #[must_use]
    pub const fn new(peers: BTreeMap<u32, Peer>, nonces: Stream) -> Self {
        Self { peers, nonces }
    }
}

/// Time for which a device that was refused is not called: it would only ask again.
const REFUSED_FOR: Duration = Duration::from_secs(60);

/// Frames of nobody after which a line's frames are no longer compared with sessions of other lines.
const MOST_STRANGE: u32 = 16;

/// One connection.
pub struct Line {
    id: LineId,
    decoder: Decoder,
    /// Devices that were heard on it, the last one first.
    devices: Vec<u32>,
    refusals: Refusals,
    called: Option<Duration>,
    /// Frames that were compared with all sessions, in vain.
    strange: u32,
}

impl Line {
    /// A connection on which nothing was said.
    #[must_use]
    pub const fn new(id: LineId) -> Self {
        Self {
            id,
            decoder: Decoder::new(),
            devices: Vec::new(),
            refusals: Refusals::new(),
            called: None,
            strange: 0,
        }
    }

    /// Frames of nobody in particular that were left out, by reason.
    #[must_use]
    pub const fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// Takes them away, to be counted elsewhere.
    pub fn take_refusals(&mut self) -> Refusals {
        std::mem::take(&mut self.refusals)
    }

    /// Takes bytes from the connection; what is to be sent is appended to `out`, at most a frame for
    /// each frame that came.
    pub fn receive(&mut self, bytes: &[u8], roster: &mut Roster, now: Duration, out: &mut Vec<u8>) {
        for byte in bytes {
            let mut decoder = std::mem::take(&mut self.decoder);
            let result = decoder.push(*byte).map(|raw| self.frame(raw?, roster, now));
            self.decoder = decoder;
            match result {
                None => {}
                Some(Ok(answer)) => out.extend_from_slice(answer.as_slice()),
                Some(Err(refusal)) => self.refusals.count(refusal),
            }
        }
    }

    /// What is to be said without having been asked, appended to `out`.
    pub fn poll(&mut self, roster: &mut Roster, now: Duration, out: &mut Vec<u8>) {
        for device in &self.devices {
            if let Some(peer) = roster.peers.get_mut(device) {
                out.extend_from_slice(peer.poll(self.id, now).as_slice());
            }
        }
        let waited = self.called.map(|then| now.saturating_sub(then));
        if !self.has_session(roster) && waited.is_none_or(|waited| waited >= CALL_EVERY) {
            self.called = Some(now);
            // A zero ends whatever was torn. The tag of a call means nothing.
            out.push(0);
            let nobody = Key::from_secret([0; 32]);
            let call = greet::<CoordinatorEnd>(&Message::Call, &nobody);
            out.extend_from_slice(call.as_slice());
        }
    }

    /// Whether a device has its session here.
    #[must_use]
    pub fn has_session(&self, roster: &Roster) -> bool {
        let mut peers = self.devices.iter().filter_map(|x| roster.peers.get(x));
        peers.any(|peer| peer.is_on(self.id))
    }

    /// The connection is gone.
    pub fn lost(&self, roster: &mut Roster) {
        for device in &self.devices {
            if let Some(peer) = roster.peers.get_mut(device) {
                peer.line_lost(self.id);
            }
        }
    }

    fn frame(
        &mut self,
        raw: &[u8],
        roster: &mut Roster,
        now: Duration,
    ) -> Result<Encoded, Refusal> {
        let frame = Frame::parse(raw)?;
        if is_greeting(frame.header.kind) {
            return self.greeting(&frame, roster, now);
        }
        // Before its tag is looked at a frame is nobody's.
        if frame.header.version != VERSION {
            return Err(Refusal::Version);
        }
        if let Some(answer) = self.offer_to(&self.devices.clone(), &frame, roster, now) {
            return Ok(answer);
        }
        if self.strange >= MOST_STRANGE {
            return Err(Refusal::Tag);
        }
        // A session whose connection broke may go on here.
        let orphans = roster.peers.iter().filter(|(_, peer)| peer.is_orphan());
        let orphans: Vec<u32> = orphans.map(|(device, _)| *device).collect();
        let answer = self.offer_to(&orphans, &frame, roster, now);
        if answer.is_none() {
            self.strange += 1;
        }
        answer.ok_or(Refusal::Tag)
    }

    /// The answer of the device whose frame it is, which may be no bytes; `None` if it is nobody's.
    fn offer_to(
        &mut self,
        devices: &[u32],
        frame: &Frame<'_>,
        roster: &mut Roster,
        now: Duration,
    ) -> Option<Encoded> {
        for device in devices {
            match roster.peers.get_mut(device)?.receive(self.id, frame, now) {
                Err(Refusal::Tag) => {}
                // Refusals that a peer has counted are not counted twice.
                Err(_) => return Some(Encoded::empty()),
                Ok(answer) => {
                    self.remember(*device);
                    return Some(answer);
                }
            }
        }
        None
    }

    fn greeting(
        &mut self,
        frame: &Frame<'_>,
        roster: &mut Roster,
        now: Duration,
    ) -> Result<Encoded, Refusal> {
        let Message::Hello(hello) = open_greeting::<CoordinatorEnd>(frame)? else {
            return Err(Refusal::Unexpected);
        };
        // Of a device without a key nothing is authentic.
        let peer = roster.peers.get_mut(&hello.device).ok_or(Refusal::Tag)?;
        let mut nonce = [0; 16];
        roster.nonces.fill_bytes(&mut nonce);
        match peer.hello(self.id, frame, &hello, nonce) {
            Ok(answer) => {
                if peer.is_refused() {
                    self.called = Some(now + REFUSED_FOR);
                }
                self.remember(hello.device);
                Ok(answer)
            }
            Err(_) => Ok(Encoded::empty()),
        }
    }

    fn remember(&mut self, device: u32) {
        if self.devices.first() == Some(&device) {
            return;
        }
        self.devices.retain(|other| *other != device);
        self.devices.truncate(REMEMBERED - 1);
        self.devices.insert(0, device);
    }
}

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} of devices {:?}", self.id, self.devices)
    }
}
