//! The smallest coordinator that follows `docs/protocol.md`, for one device.
//! `tests/boards/rounds.rs` uses it as well, for emulated boards.

use std::{boxed::Box, vec, vec::Vec};

use super::*;

/// A way to answer requests for the model.
pub(super) trait Delivery {
    /// Sends the answer to `message`.
    fn deliver(&mut self, message: &Message<'_>, model: &[f32], send: &mut dyn FnMut(&Message<'_>));
}

pub(super) struct Coordinator {
    /// The chain key of the last session whose device was there.
    pub(super) chain: ChainKey,
    /// The name in the last Hello.
    pub(super) name: Option<Name>,
    pub(super) round: u32,
    pub(super) invitation: Invitation,
    pub(super) model: Vec<f32>,
    /// Another answer to requests for the model.
    pub(super) delivery: Option<Box<dyn Delivery>>,
    sessions: u8,
    link: Option<Link<CoordinatorEnd>>,
    /// Answers a Hello instead of a Welcome, with the key that both sides then have.
    pub(super) handshake: fn(&Hello, &ChainKey) -> Option<(Encoded, SessionKey)>,
    /// A session whose device has not proved its presence yet.
    pending: Option<(Link<CoordinatorEnd>, ChainKey)>,
    /// Number of messages of the round that it has answered.
    pub(super) requests: usize,
    /// The next chunk of the update.
    pub(super) next: u16,
    pub(super) integers: Vec<i64>,
    /// The bit after the update, if the invitation asked for it.
    pub(super) bit: Option<i64>,
    /// The tags of a masked update, by helper.
    pub(super) tags: Vec<Tag>,
    pub(super) done: bool,
    pub(super) declined: Option<Decline>,
    pub(super) refusals: Refusals,
    decoder: Decoder,
    pub(super) outgoing: Vec<Vec<u8>>,
}

impl Coordinator {
    pub(super) fn new(
        chain: ChainKey,
        round: u32,
        invitation: Invitation,
        model: Vec<f32>,
    ) -> Self {
        Self {
            chain,
            name: None,
            round,
            invitation,
            integers: vec![0; invitation.update_length()],
            bit: None,
            tags: vec![Tag::default(); invitation.helpers().into()],
            model,
            delivery: None,
            sessions: 0,
            link: None,
            handshake: |_, _| None,
            pending: None,
            requests: 0,
            next: 0,
            done: false,
            declined: None,
            refusals: Refusals::new(),
            decoder: Decoder::new(),
            outgoing: vec![],
        }
    }

    pub(super) fn connected(&self) -> bool {
        self.link.is_some()
    }

    pub(super) fn receive(&mut self, bytes: &[u8]) {
        for byte in bytes {
            let mut decoder = std::mem::take(&mut self.decoder);
            if let Some(raw) = decoder.push(*byte)
                && let Err(refusal) = raw.and_then(|raw| self.frame(raw))
            {
                self.refusals.count(refusal);
            }
            self.decoder = decoder;
        }
    }

    fn frame(&mut self, raw: &mut [u8]) -> Result<(), Refusal> {
        let mut frame = match Frame::parse(raw)? {
            Frame::Greeting { kind, body } => return self.greeting(kind, body),
            Frame::Sealed(frame) => frame,
        };
        let mut is_open = false;
        if let Some((mut link, chain)) = self.pending.take() {
            is_open = link.admit(&mut frame).is_ok();
            if is_open {
                self.link = Some(link);
                self.chain = chain;
            } else {
                self.pending = Some((link, chain));
            }
        }
        let link = self.link.as_mut().ok_or(Refusal::Unexpected)?;
        if !is_open {
            link.admit(&mut frame)?;
        }
        let (round, message) = read::<CoordinatorEnd>(&frame)?;
        self.message(round, message)
    }

    fn greeting(&mut self, kind: u8, body: &[u8]) -> Result<(), Refusal> {
        let Greeting::Hello(hello) = Greeting::parse(kind, body, Direction::ToCoordinator)? else {
            return Err(Refusal::Kind);
        };
        let mut chain = self.chain.clone();
        let mut steps = 0;
        while !hello.is_authentic(&chain.greeting()) {
            chain = chain.next();
            steps += 1;
            if steps > 8 {
                return Err(Refusal::Tag);
            }
        }
        self.name = Some(hello.name);
        if let Some((answer, key)) = (self.handshake)(&hello, &chain) {
            self.outgoing.push(answer.as_slice().to_vec());
            self.pending = Some((Link::new(key), chain));
            return Ok(());
        }
        self.sessions = self.sessions.wrapping_add(1);
        let nonce = [self.sessions; 16];
        let device = match hello.name {
            Name::Number(device) => device,
            // The number that the tests hide.
            Name::Pseudonym(_) => 42,
        };
        let session = chain.session(device, &hello.nonce, &nonce);
        let offer = Ok(hello.versions.common().unwrap());
        let welcome = Greeting::Welcome(Welcome::new(&session, nonce, offer));
        self.outgoing.push(welcome.encoded().as_slice().to_vec());
        self.pending = Some((Link::new(session.cipher()), chain));
        Ok(())
    }

    fn message(&mut self, round: u32, message: Message<'_>) -> Result<(), Refusal> {
        if matches!(message, Message::Ready(_)) {
            self.send(&Message::Wait);
            return Ok(());
        }
        if round != self.round {
            return Err(Refusal::Round);
        }
        if let Some((chunk, count)) = message.wanted() {
            self.requests += 1;
            if let Some(mut delivery) = self.delivery.take() {
                let model = self.model.clone();
                delivery.deliver(&message, &model, &mut |answer| self.send(answer));
                self.delivery = Some(delivery);
                return Ok(());
            }
            let chunks = self.model.len().div_ceil(MODEL_CHUNK) as u16;
            for index in chunk..chunk.saturating_add(count.into()).min(chunks) {
                let chunk = self.model.chunks(MODEL_CHUNK).nth(index.into());
                let chunk = chunk.ok_or(Refusal::Body)?.to_vec();
                let values = Values::Floats(&chunk);
                self.send(&Message::ModelChunk { index, values });
            }
            return Ok(());
        }
        match message {
            Message::UpdateChunk(chunk) => {
                let width = self.invitation.width();
                let chunks = self.invitation.update_chunks();
                self.requests += usize::from(!chunk.more);
                if chunk.index > self.next {
                    // A chunk was lost.
                    if !chunk.more {
                        self.send(&Message::WantUpdate(self.next));
                    }
                    return Ok(());
                }
                self.next = self.next.max(chunk.index + 1);
                let part = self.invitation.update_part(chunk.index.into());
                match part.ok_or(Refusal::Body)? {
                    UpdatePart::Entries(range) => {
                        let place = &mut self.integers[range];
                        chunk.packed.unpack(width, place).ok_or(Refusal::Body)?;
                        if chunk.negated {
                            place.iter_mut().for_each(|value| *value = -*value);
                        }
                    }
                    UpdatePart::Bit => {
                        let mut bit = [0];
                        let width = self.invitation.bit_width().ok_or(Refusal::Body)?;
                        chunk.packed.unpack(width, &mut bit).ok_or(Refusal::Body)?;
                        self.bit = Some(bit[0]);
                    }
                    UpdatePart::Tag(helper) => {
                        let tag = chunk.packed.tag().ok_or(Refusal::Body)?;
                        self.tags[usize::from(helper)] = tag;
                    }
                }
                if usize::from(chunk.index) + 1 == chunks {
                    self.done = true;
                    self.send(&Message::Done);
                } else if !chunk.more {
                    self.send(&Message::WantUpdate(self.next));
                }
            }
            Message::Decline(reason) => self.declined = Some(reason),
            _ => return Err(Refusal::Unexpected),
        }
        Ok(())
    }

    pub(super) fn invite(&mut self) {
        let packed = PackedInvitation::from(&self.invitation);
        self.send(&Message::Invitation(packed.bytes()));
    }

    pub(super) fn send(&mut self, message: &Message<'_>) {
        if let Some(link) = &mut self.link {
            let encoded = link.seal(self.round, message);
            self.outgoing.push(encoded.as_slice().to_vec());
        }
    }
}
