//! One connection of the delivery service, as frames in and frames out: the session of a device,
//! the offer of a version, and the requested bytes. It has no transport and no clock.
//!
//! The service keeps nothing of a device but its session: a device names the version that it has,
//! and asks for bytes of the file by their offset, so it continues on any connection. A `Hello` may
//! be a replay, so the session in use ends only with the first authentic frame of the new one.

use std::collections::BTreeMap;

use smolfed_core::wire::cobs::Decoder;
use smolfed_core::wire::frame::{Frame, Sealed};
use smolfed_core::wire::greeting::{Greeting, Hello, Name, Versions, Welcome};
use smolfed_core::wire::keys::{Chain as _, ChainKey, Fingerprint, Nonce};
use smolfed_core::wire::link::{CoordinatorEnd, Link, read};
use smolfed_core::wire::message::{Delivery, FILE_CHUNK, Installed, Message};
use smolfed_core::wire::refusal::Refusal;
use smolfed_core::wire::{Direction, VERSION};

use super::figures::Figures;
use super::published::Published;

/// Bytes of answers after which further frames of a read are refused. No honest device asks for
/// that much.
const MAX_ANSWERS: usize = 1 << 15;

/// What all connections share.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The key of each device.
    pub keys: &'a BTreeMap<u32, ChainKey>,
    /// The current versions.
    pub published: &'a Published,
    /// The counters.
    pub figures: &'a Figures,
}

/// One connection.
#[derive(Default)]
pub struct Conversation {
    decoder: Decoder,
    session: Option<Session>,
    /// A session whose device has not shown yet that it knows its key.
    pending: Option<Session>,
    refused: u32,
    /// Authentic frames.
    heard: u64,
}

struct Session {
    device: u32,
    /// The fingerprint of its key.
    key: Fingerprint,
    link: Link<CoordinatorEnd>,
    /// The version that the device has, once it has named one and can use the models.
    held: Option<u32>,
    /// The last offered version, or 0.
    offered: u32,
    /// Whether the device has reacted to the offer.
    has_reacted: bool,
}

impl std::fmt::Debug for Conversation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let device = self.session.as_ref().map(|session| session.device);
        write!(f, "Conversation({device:?})")
    }
}

impl Conversation {
    /// Whether the device has shown that it knows its key.
    #[must_use]
    pub const fn has_session(&self) -> bool {
        self.session.is_some()
    }

    /// Returns the device of the session.
    #[must_use]
    pub fn device(&self) -> Option<u32> {
        self.session.as_ref().map(|session| session.device)
    }

    /// Returns the number of authentic frames so far.
    #[must_use]
    pub const fn heard(&self) -> u64 {
        self.heard
    }

    /// Whether an offer waits for the device's reaction.
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        let session = self.session.as_ref();
        session.is_some_and(|session| session.offered > 0 && !session.has_reacted)
    }

    /// Returns the number of skipped frames.
    #[must_use]
    pub const fn refused(&self) -> u32 {
        self.refused
    }

    /// Appends a request for a greeting to `out`.
    pub fn call(out: &mut Vec<u8>) {
        // A zero ends a truncated frame.
        out.push(0);
        out.extend_from_slice(Greeting::Call.encoded().as_slice());
    }

    /// Takes received bytes, and appends the answers to `out`.
    pub fn receive(&mut self, bytes: &[u8], context: Context<'_>, out: &mut Vec<u8>) {
        // Taken once: the decoder lends the frames while they are answered.
        let mut decoder = std::mem::take(&mut self.decoder);
        for byte in bytes {
            let Some(raw) = decoder.push(*byte) else {
                continue;
            };
            let answered = match out.len() < MAX_ANSWERS {
                true => raw.and_then(|raw| self.frame(raw, context, out)),
                false => Err(Refusal::Crossed),
            };
            if let Err(refusal) = answered {
                self.refused = self.refused.saturating_add(1);
                context.figures.skipped(refusal);
            }
        }
        self.decoder = decoder;
    }

    /// Appends an offer to `out` if the device should get another version than the last offered.
    pub fn poll(&mut self, context: Context<'_>, out: &mut Vec<u8>) {
        if let Some(session) = &mut self.session
            && let Some(held) = session.held
        {
            let version = context.published.offer(session.device, held);
            match version {
                Some((version, _)) if version != session.offered => {
                    session.answer(held, context, out);
                }
                Some(_) => {}
                None => session.offered = 0,
            }
        }
    }

    /// Appends the last offer to `out` again, since the frame may be lost.
    pub fn repeat(&mut self, context: Context<'_>, out: &mut Vec<u8>) {
        if self.is_awaited()
            && let Some(session) = &mut self.session
            && let Some(held) = session.held
        {
            session.answer(held, context, out);
        }
    }

    /// Ends the sessions of a device whose key was removed or replaced.
    pub fn check(&mut self, keys: &BTreeMap<u32, ChainKey>, figures: &Figures) {
        let is_gone = |session: &mut Session| {
            let key = keys.get(&session.device).map(ChainKey::fingerprint);
            key != Some(session.key)
        };
        self.pending.take_if(is_gone);
        if self.session.as_mut().is_some_and(is_gone) {
            self.lost(figures);
        }
    }

    /// Notes that the connection is lost.
    pub fn lost(&mut self, figures: &Figures) {
        if self.session.take().is_some() {
            figures.session(false);
        }
    }

    fn frame(
        &mut self,
        raw: &mut [u8],
        context: Context<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        match Frame::parse(raw)? {
            Frame::Greeting { kind, body } => {
                let greeting = Greeting::parse(kind, body, Direction::ToCoordinator)?;
                let Greeting::Hello(hello) = greeting else {
                    return Err(Refusal::Unexpected);
                };
                self.hello(&hello, context, out)
            }
            Frame::Sealed(mut frame) => {
                self.admit(&mut frame, context.figures)?;
                self.heard += 1;
                let session = self.session.as_mut().ok_or(Refusal::Unexpected)?;
                session.receive(&frame, context, out)
            }
        }
    }

    /// Decrypts a frame. The first one of the pending session makes it the session.
    fn admit(&mut self, frame: &mut Sealed<'_>, figures: &Figures) -> Result<(), Refusal> {
        match self
            .session
            .as_mut()
            .map(|session| session.link.admit(frame))
        {
            Some(Err(Refusal::Tag)) | None => {}
            Some(admitted) => return admitted,
        }
        let pending = self.pending.as_mut().ok_or(Refusal::Tag)?;
        pending.link.admit(frame)?;
        self.lost(figures);
        figures.session(true);
        (self.session, self.refused) = (self.pending.take(), 0);
        Ok(())
    }

    fn hello(
        &mut self,
        hello: &Hello,
        context: Context<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let Name::Number(device) = hello.name else {
            return Err(Refusal::Tag);
        };
        // Without the device's key nothing is authentic.
        let key = context.keys.get(&device).ok_or(Refusal::Tag)?;
        if hello.has_handshake() || !hello.is_authentic(&key.greeting()) {
            return Err(Refusal::Tag);
        }
        let mut nonce = Nonce::default();
        getrandom::fill(&mut nonce).map_err(|_| Refusal::Unexpected)?;
        let session = key.session(device, &hello.nonce, &nonce);
        let offer = match hello.versions.common() {
            Some(_) => Ok(VERSION),
            None => Err(Versions::OURS),
        };
        let welcome = Greeting::Welcome(Welcome::new(&session, nonce, offer));
        out.extend_from_slice(welcome.encoded().as_slice());
        self.pending = offer.is_ok().then(|| Session {
            device,
            key: key.fingerprint(),
            link: Link::new(session.cipher()),
            held: None,
            offered: 0,
            has_reacted: false,
        });
        Ok(())
    }
}

impl Session {
    fn receive(
        &mut self,
        frame: &Sealed<'_>,
        context: Context<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let (version, message) = read::<CoordinatorEnd>(frame)?;
        self.has_reacted = true;
        match message {
            Message::Delivery(Delivery::Installed(installed)) => {
                self.installed(&installed, context, out);
                Ok(())
            }
            Message::Delivery(Delivery::WantFile { offset, count }) => {
                let held = self.held.ok_or(Refusal::Unexpected)?;
                match context.published.offer(self.device, held) {
                    Some((current, file)) if current == version => {
                        self.send(version, file, (offset, count), context.figures, out)
                    }
                    // Its version has changed while it fetched the file.
                    _ => {
                        self.answer(held, context, out);
                        Ok(())
                    }
                }
            }
            _ => Err(Refusal::Unexpected),
        }
    }

    fn installed(&mut self, installed: &Installed<'_>, context: Context<'_>, out: &mut Vec<u8>) {
        if let Some(refused) = context.published.refuses(installed) {
            self.held = None;
            context.figures.refused();
            self.seal(0, &Message::Refused(refused), out);
            return;
        }
        self.held = Some(installed.version);
        context.figures.named(self.device, installed.version);
        self.answer(installed.version, context, out);
    }

    /// Offers a device its version, or tells it to wait for one.
    fn answer(&mut self, held: u32, context: Context<'_>, out: &mut Vec<u8>) {
        match context.published.offer(self.device, held) {
            Some((version, file)) => {
                (self.offered, self.has_reacted) = (version, false);
                // A file of a version fits in 32 bits.
                let offered = Message::Delivery(Delivery::Offered(file.len() as u32));
                self.seal(version, &offered, out);
            }
            None => {
                self.offered = 0;
                self.seal(0, &Message::Wait, out);
            }
        }
    }

    fn send(
        &mut self,
        version: u32,
        file: &[u8],
        (offset, count): (u32, u8),
        figures: &Figures,
        out: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let rest = file.get(offset as usize..).ok_or(Refusal::Body)?;
        for (index, bytes) in rest.chunks(FILE_CHUNK).take(count.into()).enumerate() {
            let offset = offset + (index * FILE_CHUNK) as u32;
            let chunk = Delivery::FileChunk { offset, bytes };
            self.seal(version, &Message::Delivery(chunk), out);
        }
        figures.sent(rest.len().min(usize::from(count) * FILE_CHUNK));
        Ok(())
    }

    fn seal(&mut self, version: u32, message: &Message<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(self.link.seal(version, message).as_slice());
    }
}
