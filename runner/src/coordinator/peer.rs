//! The coordinator's side of the protocol towards one device: frames in, frames out. No transport and
//! no clock: the time is an argument.
//!
//! A `Hello` may be a recorded one. So a session stands until the first authentic frame of a new one
//! shows that the device is there; until then the new one is *pending*, and only a few are.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use smolfed_core::wire::frame::{Encoded, Frame};
use smolfed_core::wire::link::{CoordinatorEnd, Link, greet};
use smolfed_core::wire::mac::{Key, Nonce};
use smolfed_core::wire::message::{Hello, Message, Refused, Shape, Welcome, WhyRefused};
use smolfed_core::wire::refusal::{Refusal, Refusals};
use smolfed_core::wire::{Direction, VERSION};

use super::exchange::{Absence, Exchange, Offer, Reply, Verdict};

/// Most sessions of one device on one line that wait for a proof that the device is there. A new one
/// takes the place of the oldest of its line: what is said elsewhere cannot push it out.
pub const PENDING: usize = 4;

/// Most of them on all lines.
const PENDING_IN_ALL: usize = 16 * PENDING;

/// Names one connection; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineId(pub u64);

/// What the federation asks of every device.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// The model.
    pub shape: Shape,
    /// Whether devices add noise of their own.
    pub local_noise: bool,
}

struct Session {
    link: Link<CoordinatorEnd>,
    /// Where the device was heard last; `None` once that connection is gone.
    line: Option<LineId>,
    device_nonce: Nonce,
    coordinator_nonce: Nonce,
}

/// One device as the coordinator sees it.
pub struct Peer {
    device: u32,
    key: Key,
    terms: Terms,
    standing: Option<Session>,
    pending: VecDeque<Session>,
    exchange: Option<Exchange>,
    refusals: Refusals,
    refused: Option<WhyRefused>,
    heard: Option<Duration>,
    tally: Tally,
}

/// What came of a device's rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Rounds that it was drawn for.
    pub drawn: u32,
    /// Rounds that it answered.
    pub answered: u32,
    /// Why it missed the last round that it missed.
    pub missed: Option<Absence>,
}

impl Peer {
    /// A device that has not been heard of.
    #[must_use]
    pub const fn new(device: u32, key: Key, terms: Terms) -> Self {
        Self {
            device,
            key,
            terms,
            standing: None,
            pending: VecDeque::new(),
            exchange: None,
            refusals: Refusals::new(),
            refused: None,
            heard: None,
            tally: Tally {
                drawn: 0,
                answered: 0,
                missed: None,
            },
        }
    }

    /// Offers a round; the device is invited when it is next [polled](Self::poll).
    pub fn offer(&mut self, offer: Arc<Offer>) {
        self.exchange = Some(Exchange::new(offer));
    }

    /// Whether nothing more can come of the round that was offered.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.exchange.as_ref().is_none_or(Exchange::is_settled)
    }

    /// Ends the round for this device, whatever it is doing, and says what came of it.
    ///
    /// `None` if no round was offered.
    pub fn close(&mut self) -> Option<Verdict> {
        let has_session = self.is_reachable();
        let verdict = self.exchange.as_mut()?.close(has_session);
        self.tally.drawn += 1;
        match &verdict {
            Verdict::Answered(_) => self.tally.answered += 1,
            Verdict::Missing(absence) => self.tally.missed = Some(*absence),
        }
        Some(verdict)
    }

    /// What came of its rounds.
    #[must_use]
    pub const fn tally(&self) -> Tally {
        self.tally
    }

    /// Whether the device has a session on a connection that is there.
    #[must_use]
    pub fn is_reachable(&self) -> bool {
        let standing = self.standing.as_ref();
        standing.is_some_and(|session| session.line.is_some())
    }

    /// Whether the device has a session, but its connection is gone.
    #[must_use]
    pub fn is_orphan(&self) -> bool {
        self.standing.is_some() && !self.is_reachable()
    }

    /// Whether the device has its session on this line.
    #[must_use]
    pub fn is_on(&self, line: LineId) -> bool {
        let standing = self.standing.as_ref();
        standing.is_some_and(|session| session.line == Some(line))
    }

    /// Frames that came in the device's name and were left out, by reason.
    #[must_use]
    pub const fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// When an authentic frame came last.
    #[must_use]
    pub const fn heard(&self) -> Option<Duration> {
        self.heard
    }

    /// A few words for where the device stands.
    #[must_use]
    pub fn state(&self) -> String {
        match (self.refused, &self.exchange) {
            (Some(reason), _) => format!("refused: {reason}"),
            _ if self.is_orphan() => "line lost".to_owned(),
            _ if !self.is_reachable() => "never heard".to_owned(),
            (None, Some(exchange)) if !exchange.is_settled() => exchange.state().to_owned(),
            _ => "ready".to_owned(),
        }
    }

    /// The connection is gone. Its session may come back on another one.
    pub fn line_lost(&mut self, line: LineId) {
        self.pending.retain(|session| session.line != Some(line));
        if let Some(session) = self.standing.as_mut()
            && session.line == Some(line)
        {
            session.line = None;
        }
    }

    /// Answers a `Hello` in this device's name. `fresh` is a nonce that was never used.
    ///
    /// # Errors
    /// [`Refusal::Tag`] unless who sent it knows the device's key.
    pub fn hello(
        &mut self,
        line: LineId,
        frame: &Frame<'_>,
        hello: &Hello,
        fresh: Nonce,
    ) -> Result<Encoded, Refusal> {
        if !frame.is_authentic(&self.key, Direction::ToCoordinator) {
            self.refusals.count(Refusal::Tag);
            return Err(Refusal::Tag);
        }
        let (key, device) = (self.key.clone(), self.device);
        let session = |nonce: &Nonce| key.session(device, &hello.nonce, nonce);
        let version = match self.agrees(hello) {
            Ok(version) => {
                self.refused = None;
                version
            }
            Err(reason) => {
                self.refused = Some(reason);
                let refused = Message::Refused(Refused {
                    nonce: fresh,
                    lowest_version: VERSION,
                    highest_version: VERSION,
                    reason,
                });
                return Ok(greet::<CoordinatorEnd>(&refused, &session(&fresh)));
            }
        };
        // A device that did not hear the welcome repeats its hello, and gets the same again.
        let is_same =
            |session: &&Session| session.device_nonce == hello.nonce && session.line == Some(line);
        let nonce = match self.pending.iter().find(is_same) {
            Some(known) => known.coordinator_nonce,
            None => {
                self.make_room(line);
                self.pending.push_back(Session {
                    link: Link::<CoordinatorEnd>::new(session(&fresh)),
                    line: Some(line),
                    device_nonce: hello.nonce,
                    coordinator_nonce: fresh,
                });
                fresh
            }
        };
        let welcome = Message::Welcome(Welcome { version, nonce });
        Ok(greet::<CoordinatorEnd>(&welcome, &session(&nonce)))
    }

    /// Makes room for a pending session of this line.
    fn make_room(&mut self, line: LineId) {
        let is_here = |session: &Session| session.line == Some(line);
        let here = self
            .pending
            .iter()
            .filter(|session| is_here(session))
            .count();
        if here >= PENDING
            && let Some(oldest) = self.pending.iter().position(is_here)
        {
            self.pending.remove(oldest);
        }
        if self.pending.len() >= PENDING_IN_ALL {
            self.pending.pop_front();
        }
    }

    /// Whether the last hello was refused.
    #[must_use]
    pub const fn is_refused(&self) -> bool {
        self.refused.is_some()
    }

    /// The version to speak, if the federation and the device fit together.
    fn agrees(&self, hello: &Hello) -> Result<u8, WhyRefused> {
        let version = hello.common_version().ok_or(WhyRefused::Version)?;
        if hello.shape != self.terms.shape {
            return Err(WhyRefused::Shape);
        }
        if hello.needs_local_noise && !self.terms.local_noise {
            return Err(WhyRefused::Trust);
        }
        Ok(version)
    }

    /// Takes a frame that is not of the greeting; returns the answer, which may be no bytes.
    ///
    /// # Errors
    /// [`Refusal::Tag`] if it belongs to no session of this device: it may be another device's.
    /// Any other [`Refusal`] was counted here.
    pub fn receive(
        &mut self,
        line: LineId,
        frame: &Frame<'_>,
        now: Duration,
    ) -> Result<Encoded, Refusal> {
        let message = match self.open(line, frame) {
            Ok(message) => message,
            Err(Refusal::Tag) => return Err(Refusal::Tag),
            Err(refusal) => {
                self.refusals.count(refusal);
                return Err(refusal);
            }
        };
        self.heard = Some(now);
        self.refused = None;
        let answer = self.answer(frame.header.round, &message, now);
        if let Err(refusal) = answer {
            self.refusals.count(refusal);
        }
        answer.map(|reply| self.say(reply))
    }

    /// The message of a frame of whichever session it belongs to, which then stands.
    fn open<'a>(&mut self, line: LineId, frame: &Frame<'a>) -> Result<Message<'a>, Refusal> {
        if let Some(session) = self.standing.as_mut() {
            match session.link.open(frame) {
                Err(Refusal::Tag) => {}
                opened => {
                    // Whoever has the newest authentic frame is where the device is.
                    if opened.is_ok() {
                        session.line = Some(line);
                    }
                    return opened;
                }
            }
        }
        for index in 0..self.pending.len() {
            let Some(session) = self.pending.get_mut(index) else {
                break;
            };
            match session.link.open(frame) {
                Err(Refusal::Tag) => {}
                Err(refusal) => return Err(refusal),
                Ok(message) => {
                    session.line = Some(line);
                    self.standing = self.pending.remove(index);
                    self.pending.clear();
                    if let Some(exchange) = &mut self.exchange {
                        exchange.session_lost();
                    }
                    return Ok(message);
                }
            }
        }
        Err(Refusal::Tag)
    }

    fn answer(
        &mut self,
        round: u32,
        message: &Message<'_>,
        now: Duration,
    ) -> Result<Option<Reply>, Refusal> {
        if matches!(message, Message::Ready) {
            let due = self.exchange.as_mut().filter(|exchange| exchange.is_open());
            return Ok(due.map(|exchange| {
                exchange.is_due(now);
                Reply::Invitation
            }));
        }
        match &mut self.exchange {
            Some(exchange) if exchange.number() == round => exchange.receive(message).map(Some),
            Some(_) => Err(Refusal::Round),
            None => Err(Refusal::Unexpected),
        }
    }

    /// The frame for a reply; without one, that there is nothing to do.
    fn say(&mut self, reply: Option<Reply>) -> Encoded {
        let Some(session) = self.standing.as_mut() else {
            return Encoded::empty();
        };
        match (reply, &self.exchange) {
            (Some(reply), Some(exchange)) => match exchange.message(reply) {
                Some(message) => session.link.seal(exchange.number(), &message),
                None => Encoded::empty(),
            },
            _ => session.link.seal(0, &Message::Wait),
        }
    }

    /// What is to be said on this line without having been asked: an invitation, when it is due.
    pub fn poll(&mut self, line: LineId, now: Duration) -> Encoded {
        let is_here = self.is_on(line);
        let exchange = self.exchange.as_mut();
        if is_here && exchange.is_some_and(|exchange| exchange.is_due(now)) {
            self.say(Some(Reply::Invitation))
        } else {
            Encoded::empty()
        }
    }
}

impl std::fmt::Debug for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Peer({}, {})", self.device, self.state())
    }
}
