//! The coordinator's end of the protocol with one device: frames in, frames out. It has no
//! transport and no clock: the time is an argument.
//!
//! A `Hello` may be a replay. The active session therefore ends only when the first authentic frame
//! of a new one proves that the device sent it. Until then the new one is *pending*. The number of
//! pending sessions is limited. That frame is `Ready`, which names the device's ledger: a known
//! device with another ledger is refused.

use std::collections::VecDeque;
use std::fmt::Display;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use smolfed_core::recipe::{MAX_RECIPE_BYTES, Recipe};
use smolfed_core::wire::frame::{Encoded, Sealed};
use smolfed_core::wire::greeting::{Greeting, Hello, Versions, Welcome};
use smolfed_core::wire::keys::{Chain as _, ChainKey, Nonce, Pseudonym};
use smolfed_core::wire::link::{CoordinatorEnd, Link, read};
use smolfed_core::wire::message::{
    MAX_SHAPE_BYTES, Message, ModelShape, NO_RECIPE, Ready, Refused, WhyRefused,
};
use smolfed_core::wire::refusal::{Refusal, Refusals};
use smolfed_core::wire::round_trip::RoundTrip;

use super::chains::{Chain, Found, Renamed, SearchLimit};
use super::exchange::{Absence, Exchange, ExchangeOutcome, Offer, Reply};
use super::handshakes::HandshakeLimit;
use super::ledgers::KnownLedgers;
use super::link::{Link as LinkTimes, to_ms};
use super::lock::lock;

/// Pending sessions of a device on one connection. A new one replaces the oldest one of the same
/// connection. Frames on other connections cannot evict it.
pub const MAX_PENDING: usize = 4;

/// Pending sessions of a device on all connections.
const MAX_PENDING_TOTAL: usize = 16 * MAX_PENDING;

/// Identifier of a connection. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionId(pub u64);

/// Requirements of the federation for every device.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// The model.
    pub shape: ModelShape,
    /// Whether devices add noise.
    pub local_noise: bool,
    /// Whether devices must greet with an X25519 handshake.
    pub handshake: bool,
    /// The features that the experiment computes from samples. A device that computes features must
    /// compute the same ones.
    pub recipe: Option<Recipe>,
}

impl Terms {
    /// Checks that a device may compute features by this recipe.
    fn agree_on(&self, recipe: &[u8]) -> Result<(), Unwanted> {
        let mut bytes = [0; MAX_RECIPE_BYTES];
        let own = self.recipe.as_ref().map(|own| own.write(&mut bytes));
        if recipe.is_empty() || own == Some(recipe) {
            return Ok(());
        }
        let device = Recipe::read(recipe);
        let device = device.map_or_else(|| "of another version".into(), |x| x.to_string());
        let experiment = self.recipe.map_or_else(|| "none".into(), |x| x.to_string());
        let unwanted = Unwanted::both(WhyRefused::RECIPE, &device, &experiment);
        Err(unwanted.with(own.unwrap_or(NO_RECIPE)))
    }
}

/// Time after which a device is logged again if it is still refused.
const LOG_AGAIN: Duration = Duration::from_secs(600);

/// Why the coordinator refuses a device.
struct Unwanted {
    /// The reason sent to the device.
    reason: WhyRefused,
    /// Additional details for the operator.
    details: String,
    /// The experiment's model or recipe, for the device.
    experiment: Vec<u8>,
}

impl Unwanted {
    /// Returns a refusal that states the device's value and the experiment's.
    fn both(reason: WhyRefused, device: &dyn Display, experiment: &dyn Display) -> Self {
        Self {
            details: format!(" (device: {device}; experiment: {experiment})"),
            ..reason.into()
        }
    }

    /// Also sends the experiment's model or recipe to the device.
    fn with(self, experiment: &[u8]) -> Self {
        Self {
            experiment: experiment.to_vec(),
            ..self
        }
    }
}

impl From<WhyRefused> for Unwanted {
    fn from(reason: WhyRefused) -> Self {
        Self {
            reason,
            details: String::new(),
            experiment: Vec::new(),
        }
    }
}

struct PeerSession {
    link: Link<CoordinatorEnd>,
    /// The connection of its last frame. `None` once the connection is lost.
    connection: Option<ConnectionId>,
    hello: Hello,
    /// The answer to the `Hello`.
    answer: Greeting,
    /// Time of the answer. `None` once it was repeated.
    answered: Option<Duration>,
    /// Steps of its chain key ahead of the known one.
    steps: u32,
    /// Whether the device has said that it answers questions.
    answers_questions: bool,
}

/// One device, as the coordinator sees it.
pub struct Peer {
    device: u32,
    /// The provisioned chain key.
    first: ChainKey,
    chain: Chain,
    renamed: Renamed,
    terms: Terms,
    active: Option<PeerSession>,
    pending: VecDeque<PeerSession>,
    exchange: Option<Exchange>,
    /// Round-trip estimate of the device's link.
    round_trip: RoundTrip,
    refusals: Refusals,
    /// Reason why its last `Hello` or `Ready` was refused, in words.
    refused: Option<String>,
    /// Time of the last log entry about it.
    refused_at: Option<Duration>,
    last_received: Option<Duration>,
    /// Time of the last loss of its session's connection.
    last_connected: Option<Duration>,
    /// Whether it has stayed disconnected since it missed a round for that reason.
    is_away: bool,
    tally: Tally,
    takeovers: Takeovers,
    /// The connection whose session was replaced.
    displaced: Option<ConnectionId>,
    is_revoked: bool,
}

/// Sessions that replaced another one whose connection was still open. A device that reconnects
/// does that now and then. Two boards with one key alternate.
#[derive(Clone, Copy, Debug, Default)]
struct Takeovers {
    /// All of them.
    total: u32,
    /// Number since `first`.
    count: u32,
    first: Duration,
    /// Whether they must be reported.
    is_alarming: bool,
}

impl Takeovers {
    /// This many within the time raise the alarm.
    const MOST: u32 = 3;
    const TIME: Duration = Duration::from_secs(60);

    fn note(&mut self, now: Duration) {
        if now.saturating_sub(self.first) > Self::TIME {
            (self.count, self.first) = (0, now);
        }
        self.total = self.total.saturating_add(1);
        self.count += 1;
        // Once per period.
        self.is_alarming |= self.count == Self::MOST;
    }
}

/// Participation of a device so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Rounds that it was drawn for.
    pub drawn: u32,
    /// Rounds that it answered.
    pub answered: u32,
    /// Reason for its last missed round.
    pub missed: Option<Absence>,
}

/// Progress of a device in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The round's number.
    pub number: u32,
    /// Whether the device waits for its turn.
    pub is_held: bool,
    /// Whether it has asked for the model and has no outcome yet.
    pub is_engaged: bool,
    /// Whether it has the whole model and no outcome yet.
    pub has_model: bool,
    /// Whether it has declined for a public reason.
    pub has_declined: bool,
    /// Whether the outcome is final.
    pub is_settled: bool,
}

impl Peer {
    /// Returns a device that has not been in contact yet.
    #[must_use]
    pub fn new(device: u32, first: ChainKey, terms: Terms) -> Self {
        Self {
            device,
            chain: Chain::new(&first, first.clone()),
            first,
            renamed: Renamed::default(),
            terms,
            active: None,
            pending: VecDeque::new(),
            exchange: None,
            round_trip: LinkTimes::default().round_trip(),
            refusals: Refusals::new(),
            refused: None,
            refused_at: None,
            last_received: None,
            last_connected: None,
            is_away: false,
            tally: Tally {
                drawn: 0,
                answered: 0,
                missed: None,
            },
            takeovers: Takeovers::default(),
            displaced: None,
            is_revoked: false,
        }
    }

    /// Sets the kind of link.
    #[must_use]
    pub fn on_link(self, link: &LinkTimes) -> Self {
        Self {
            round_trip: link.round_trip(),
            ..self
        }
    }

    /// Returns whether two sessions under the device's key have replaced each other since the last
    /// call.
    pub fn take_alarm(&mut self) -> bool {
        std::mem::take(&mut self.takeovers.is_alarming)
    }

    /// Returns the number of sessions that replaced another one with an open connection.
    #[must_use]
    pub const fn second_sessions(&self) -> u32 {
        self.takeovers.total
    }

    /// Takes the open connection whose session was replaced by one on another connection, if any
    /// since the last call.
    pub(super) const fn take_displaced(&mut self) -> Option<ConnectionId> {
        self.displaced.take()
    }

    /// Offers a round. The device is invited at the next [poll](Self::poll).
    pub fn offer(&mut self, offer: Arc<Offer>) {
        self.begin(offer, false);
    }

    /// Offers a round to which the device is invited once [`Self::release`] gives it its turn.
    pub fn hold(&mut self, offer: Arc<Offer>) {
        self.begin(offer, true);
    }

    /// Returns the device's position in its round, unless its outcome was taken.
    #[must_use]
    pub fn position(&self) -> Option<Position> {
        let exchange = self
            .exchange
            .as_ref()
            .filter(|exchange| !exchange.is_closed())?;
        Some(Position {
            number: exchange.number(),
            is_held: exchange.is_held(),
            is_engaged: exchange.is_engaged(),
            has_model: exchange.has_model(),
            has_declined: exchange.has_declined(),
            is_settled: exchange.is_settled(),
        })
    }

    fn begin(&mut self, offer: Arc<Offer>, is_held: bool) {
        let mut exchange = Exchange::new(self.device, offer, is_held);
        if !self.is_reachable() {
            exchange.disconnected();
        }
        self.exchange = Some(exchange);
        self.pass_over();
    }

    /// Ends a question for a device that answers none.
    fn pass_over(&mut self) {
        let session = self.active.as_ref();
        if let Some(exchange) = &mut self.exchange
            && session.is_some_and(|session| !session.answers_questions)
        {
            exchange.answers_nothing();
        }
    }

    /// Gives the device its turn in a held round, for which it may have had to wait. Returns the
    /// connection to poll, if it has one.
    pub fn release(&mut self, has_waited: bool) -> Option<ConnectionId> {
        self.exchange.as_mut()?.release(has_waited);
        self.active.as_ref()?.connection
    }

    /// Returns whether the device occupies the line: it was invited, has a session and has not
    /// received the whole model.
    #[must_use]
    pub fn is_in_flight(&self) -> bool {
        let exchange = self.exchange.as_ref();
        self.is_reachable() && exchange.is_some_and(Exchange::is_in_flight)
    }

    /// Returns whether the outcome of the offered round is final.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.exchange.as_ref().is_none_or(Exchange::is_settled)
    }

    /// Ends the round for this device, whatever its state, and returns the outcome. `None` without
    /// an offered round.
    pub fn close(&mut self) -> Option<ExchangeOutcome> {
        let has_session = self.is_reachable();
        let exchange = self.exchange.as_mut()?;
        // A device that has answered and disconnected since is expected back.
        self.is_away = !has_session && !exchange.is_settled();
        let outcome = exchange.close(has_session);
        self.tally.drawn += 1;
        match &outcome {
            ExchangeOutcome::Answered(_) | ExchangeOutcome::Message(_) => self.tally.answered += 1,
            ExchangeOutcome::Missing(absence) => self.tally.missed = Some(*absence),
        }
        Some(outcome)
    }

    /// Returns its participation so far.
    #[must_use]
    pub const fn tally(&self) -> Tally {
        self.tally
    }

    /// Returns whether the device has a session on an open connection.
    #[must_use]
    pub fn is_reachable(&self) -> bool {
        let active = self.active.as_ref();
        active.is_some_and(|session| session.connection.is_some())
    }

    /// Returns whether the device is connected, or was less than `away_after` ago.
    #[must_use]
    pub fn is_present(&self, now: Duration, away_after: Duration) -> bool {
        let since = self.last_connected.map(|then| now.saturating_sub(then));
        self.is_reachable() || since.is_some_and(|since| since < away_after)
    }

    /// Returns whether the device was not connected when it missed a round, and has not come back.
    /// No round waits for it.
    #[must_use]
    pub const fn is_away(&self) -> bool {
        self.is_away
    }

    /// Returns whether the device has a session whose connection is lost.
    #[must_use]
    pub fn is_orphan(&self) -> bool {
        self.active.is_some() && !self.is_reachable()
    }

    /// Returns whether the device has its session on this connection.
    #[must_use]
    pub fn is_on(&self, connection: ConnectionId) -> bool {
        let active = self.active.as_ref();
        active.is_some_and(|session| session.connection == Some(connection))
    }

    /// Returns the number of refused frames in the device's name, by reason.
    #[must_use]
    pub const fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// Returns when the last authentic frame was received.
    #[must_use]
    pub const fn last_received(&self) -> Option<Duration> {
        self.last_received
    }

    /// Returns the device's state in a few words.
    #[must_use]
    pub fn state(&self) -> String {
        match (&self.refused, &self.exchange) {
            (Some(reason), _) => format!("refused: {reason}"),
            _ if self.is_orphan() => "disconnected".to_owned(),
            _ if !self.is_reachable() => "never connected".to_owned(),
            (None, Some(exchange)) if !exchange.is_settled() => exchange.state().to_owned(),
            _ => "ready".to_owned(),
        }
    }

    /// Ends all sessions, since the device's key is no longer valid. Connections may still hold it.
    pub(super) fn revoke(&mut self) {
        self.active = None;
        self.pending.clear();
        self.exchange = None;
        self.is_revoked = true;
    }

    /// Notes that the connection is lost. Its session may continue on another one.
    pub fn connection_lost(&mut self, connection: ConnectionId, now: Duration) {
        self.pending
            .retain(|session| session.connection != Some(connection));
        if let Some(session) = self.active.as_mut()
            && session.connection == Some(connection)
        {
            session.connection = None;
            self.last_connected = Some(now);
            if let Some(exchange) = &mut self.exchange {
                exchange.disconnected();
            }
        }
    }

    /// Restores the device's chain key from `ledgers`.
    pub(super) fn recall(&mut self, ledgers: &KnownLedgers) {
        let current = ledgers.chain(self.device, &self.first);
        self.chain = Chain::new(&self.first, current);
    }

    /// Returns the possible names of the device if it hides its number.
    pub(super) fn pseudonyms(&self) -> impl Iterator<Item = Pseudonym> {
        self.chain.pseudonyms()
    }

    /// Takes the changes of its pseudonyms since the last call.
    pub(super) fn take_renamed(&mut self) -> Renamed {
        std::mem::take(&mut self.renamed)
    }

    /// Returns how far the chain key of a `Hello` is ahead of the known one.
    ///
    /// # Errors
    /// [`Refusal::Tag`] unless the sender knows it, [`Refusal::Stale`] if it is behind. Both are
    /// counted here.
    pub(super) fn find(
        &mut self,
        hello: &Hello,
        now: Duration,
        searches: &Mutex<SearchLimit>,
        ledgers: &Mutex<KnownLedgers>,
    ) -> Result<u32, Refusal> {
        let refusal = match self.chain.find(hello, now, searches) {
            _ if self.is_revoked => Refusal::Tag,
            Found::Ahead(steps) => return Ok(steps),
            Found::Stale => {
                lock(ledgers).is_stale(self.device);
                Refusal::Stale
            }
            Found::Nowhere => Refusal::Tag,
        };
        self.refusals.count(refusal);
        Err(refusal)
    }

    /// Answers a `Hello` under the chain key this many `steps` ahead ([`Self::find`]). `fresh` must
    /// be an unused nonce, and `handshakes` is the connection's limit.
    ///
    /// # Errors
    /// The errors of a handshake, which are counted here.
    pub(super) fn hello(
        &mut self,
        connection: ConnectionId,
        hello: &Hello,
        steps: u32,
        fresh: Nonce,
        handshakes: &mut HandshakeLimit,
        now: Duration,
    ) -> Result<Encoded, Refusal> {
        // A device that did not receive `Welcome` repeats its `Hello`, and gets the same answer.
        let is_same = |session: &PeerSession| {
            session.hello == *hello && session.connection == Some(connection)
        };
        if let Some(known) = self.pending.iter_mut().find(|session| is_same(session)) {
            known.answered = None;
            return Ok(known.answer.encoded());
        }
        let chain = self.chain.at(steps);
        let offer = hello.versions.common().ok_or(Versions::OURS);
        let (answer, key) = match offer {
            Ok(version) if hello.has_handshake() => {
                let psk = chain.handshake(self.device);
                let answered = handshakes.answer(hello, &psk, version, now);
                answered.inspect_err(|refusal| self.refusals.count(*refusal))?
            }
            _ => {
                let keys = chain.session(self.device, &hello.nonce, &fresh);
                let welcome = Welcome::new(&keys, fresh, offer);
                (Greeting::Welcome(welcome), keys.cipher())
            }
        };
        self.refused = None;
        if offer.is_ok() {
            self.make_room(connection);
            self.pending.push_back(PeerSession {
                link: Link::new(key),
                connection: Some(connection),
                hello: *hello,
                answer,
                answered: Some(now),
                steps,
                answers_questions: false,
            });
        } else {
            self.refused = Some(WhyRefused::Version.to_string());
        }
        Ok(answer.encoded())
    }

    /// Makes room for a pending session of this connection.
    fn make_room(&mut self, connection: ConnectionId) {
        let is_here = |session: &PeerSession| session.connection == Some(connection);
        let here = self
            .pending
            .iter()
            .filter(|session| is_here(session))
            .count();
        if here >= MAX_PENDING
            && let Some(oldest) = self.pending.iter().position(is_here)
        {
            self.pending.remove(oldest);
        }
        if self.pending.len() >= MAX_PENDING_TOTAL {
            self.pending.remove(self.most_expendable());
        }
    }

    /// Returns which pending session gives way to a new one: the newest one of the `Hello` with the
    /// most sessions, since only replays come on several connections, and after the original. The
    /// device's greeting therefore stays while others repeat up to [`MAX_PENDING_TOTAL`] - 2
    /// recorded ones, on any number of connections. If no `Hello` has two sessions, the oldest one.
    fn most_expendable(&self) -> usize {
        let copies = |nonce: &Nonce| {
            let same = self
                .pending
                .iter()
                .filter(|other| other.hello.nonce == *nonce);
            same.count()
        };
        let counted = self
            .pending
            .iter()
            .map(|session| copies(&session.hello.nonce));
        let most = counted.enumerate().max_by_key(|(_, copies)| *copies);
        most.filter(|(_, copies)| *copies > 1)
            .map_or(0, |(index, _)| index)
    }

    /// Returns whether the last `Hello` or `Ready` was refused.
    #[must_use]
    pub const fn is_refused(&self) -> bool {
        self.refused.is_some()
    }

    /// Checks that the device of this pending session meets the terms.
    fn agrees(&self, index: usize, ready: &Ready<'_>) -> Result<(), Unwanted> {
        let session = self.pending.get(index);
        let has_handshake = session.is_some_and(|session| session.hello.has_handshake());
        if self.terms.handshake && !has_handshake {
            return Err(WhyRefused::HANDSHAKE.into());
        }
        if ready.shape != self.terms.shape {
            let (device, experiment) = (ready.shape, self.terms.shape);
            let unwanted = Unwanted::both(WhyRefused::Shape, &device, &experiment);
            return Err(unwanted.with(experiment.write(&mut [0; MAX_SHAPE_BYTES])));
        }
        if ready.needs_local_noise && !self.terms.local_noise {
            return Err(WhyRefused::Trust.into());
        }
        self.terms.agree_on(ready.recipe)
    }

    /// Processes a frame that is not part of the greeting, and appends the answer to `out`: no
    /// frame, one frame, or the requested chunks of the model.
    ///
    /// # Errors
    /// [`Refusal::Tag`] if it belongs to no session of this device. It may be another device's, and
    /// is unchanged. Any other [`Refusal`] is counted here.
    pub fn receive(
        &mut self,
        connection: ConnectionId,
        frame: &mut Sealed<'_>,
        now: Duration,
        ledgers: &Mutex<KnownLedgers>,
        out: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let admitted = match self.admit(connection, frame) {
            Err(Refusal::Tag) => return Err(Refusal::Tag),
            admitted => admitted,
        };
        let answer = admitted.and_then(|pending| {
            self.last_received = Some(now);
            let (round, message) = read::<CoordinatorEnd>(frame)?;
            if let Some(index) = pending {
                let Message::Ready(ready) = message else {
                    return Err(Refusal::Unexpected);
                };
                if let Err(unwanted) = self.agrees(index, &ready) {
                    out.extend_from_slice(self.refuse(index, &unwanted, now).as_slice());
                    return Ok(());
                }
                // Before taking the lock that all devices share.
                let key = self.first.fingerprint();
                if !lock(ledgers).admits(self.device, key, ready.ledger) {
                    out.extend_from_slice(
                        self.refuse(index, &WhyRefused::Ledger.into(), now)
                            .as_slice(),
                    );
                    return Ok(());
                }
                if let Some(session) = self.pending.get_mut(index) {
                    session.answers_questions = ready.answers_questions;
                }
                self.activate(index, connection, now, ledgers);
            }
            self.refused = None;
            let reply = self.answer(round, &message, now)?;
            self.seal(reply, out);
            Ok(())
        });
        if let Err(refusal) = answer {
            self.refusals.count(refusal);
            // The frame was authentic, so the device itself is at fault.
            if let (Refusal::Body | Refusal::Kind, Some(exchange)) = (refusal, &mut self.exchange) {
                exchange.malformed();
            }
        }
        answer
    }

    /// Decrypts a frame. Returns its pending session, if it does not belong to the active one.
    fn admit(
        &mut self,
        connection: ConnectionId,
        frame: &mut Sealed<'_>,
    ) -> Result<Option<usize>, Refusal> {
        if let Some(session) = self.active.as_mut() {
            match session.link.admit(frame) {
                Err(Refusal::Tag) => {}
                admitted => {
                    // The newest authentic frame shows the device's current connection.
                    if admitted.is_ok() {
                        session.connection = Some(connection);
                        self.is_away = false;
                    }
                    return admitted.map(|()| None);
                }
            }
        }
        for (index, session) in self.pending.iter_mut().enumerate() {
            match session.link.admit(frame) {
                Err(Refusal::Tag) => {}
                admitted => return admitted.map(|()| Some(index)),
            }
        }
        Err(Refusal::Tag)
    }

    /// Makes a pending session the active one.
    fn activate(
        &mut self,
        index: usize,
        connection: ConnectionId,
        now: Duration,
        ledgers: &Mutex<KnownLedgers>,
    ) {
        let connected = self.active.as_ref().and_then(|session| session.connection);
        if let Some(other) = connected.filter(|other| *other != connection) {
            self.takeovers.note(now);
            self.displaced = Some(other);
        }
        self.refused_at = None;
        self.is_away = false;
        self.active = self.pending.remove(index);
        if let Some(session) = self.active.as_mut() {
            session.connection = Some(connection);
            if let Some(answered) = session.answered {
                self.round_trip.sample(to_ms(now.saturating_sub(answered)));
            }
            if session.steps > 0 {
                self.renamed = self.chain.advance(session.steps);
                let current = self.chain.current();
                let key = self.first.fingerprint();
                lock(ledgers).advanced(self.device, key, current);
            }
        }
        self.pending.clear();
        if let Some(exchange) = &mut self.exchange {
            exchange.session_lost();
        }
        self.pass_over();
    }

    /// Tells the device of a pending session that it is refused, and why.
    fn refuse(&mut self, index: usize, unwanted: &Unwanted, now: Duration) -> Encoded {
        let Some(session) = self.pending.get_mut(index) else {
            return Encoded::empty();
        };
        let Unwanted {
            reason,
            details,
            experiment,
        } = unwanted;
        let sentence = format!("{reason}{details}");
        // A device repeats its greeting. The log does not repeat the entry.
        let is_due = |logged| now.saturating_sub(logged) >= LOG_AGAIN;
        if self.refused_at.is_none_or(is_due) {
            tracing::warn!(
                reason = "refused",
                private = format!("device {} is refused: {sentence}", self.device),
                "a device is refused: {sentence}"
            );
            self.refused_at = Some(now);
        }
        self.refused = Some(sentence);
        let refused = Refused {
            reason: *reason,
            experiment,
        };
        session.link.seal(0, &Message::Refused(refused))
    }

    fn answer(
        &mut self,
        round: u32,
        message: &Message<'_>,
        now: Duration,
    ) -> Result<Option<Reply>, Refusal> {
        if matches!(message, Message::Ready(_)) {
            let due = self.exchange.as_mut().filter(|exchange| exchange.is_open());
            let jitter = spread(self.device);
            return Ok(due.map(|exchange| {
                exchange.invite(now, jitter, &mut self.round_trip);
                Reply::Invitation
            }));
        }
        match &mut self.exchange {
            Some(exchange) if exchange.number() == round => {
                let invited = exchange.invited();
                let reply = exchange.receive(message)?;
                if let Some(invited) = invited {
                    self.round_trip.answered(to_ms(now.saturating_sub(invited)));
                }
                Ok(Some(reply))
            }
            Some(_) => Err(Refusal::Round),
            None => Err(Refusal::Unexpected),
        }
    }

    /// Seals the frames of a reply, or `Wait` if there is none.
    fn seal(&mut self, reply: Option<Reply>, out: &mut Vec<u8>) {
        let Some(session) = self.active.as_mut() else {
            return;
        };
        match (reply, &self.exchange) {
            (Some(reply), Some(exchange)) => {
                for message in exchange.messages(reply) {
                    let frame = session.link.seal(exchange.number(), &message);
                    out.extend_from_slice(frame.as_slice());
                }
            }
            _ => out.extend_from_slice(session.link.seal(0, &Message::Wait).as_slice()),
        }
    }

    /// Returns when [`Self::poll`] will have something to send on this connection, if ever.
    #[must_use]
    pub fn due(&self, connection: ConnectionId) -> Option<Duration> {
        let exchange = self.exchange.as_ref().filter(|_| self.is_on(connection));
        exchange.and_then(Exchange::due)
    }

    /// Appends an invitation to `out` if one is due on this connection.
    pub fn poll(&mut self, connection: ConnectionId, now: Duration, out: &mut Vec<u8>) {
        let (is_here, jitter) = (self.is_on(connection), spread(self.device));
        let is_due = |exchange: &&mut Exchange| exchange.due().is_some_and(|due| due <= now);
        if let Some(exchange) = self.exchange.as_mut().filter(|_| is_here).filter(is_due) {
            exchange.invite(now, jitter, &mut self.round_trip);
            self.seal(Some(Reply::Invitation), out);
        }
    }
}

/// Returns a number that differs between neighbouring devices.
const fn spread(device: u32) -> u32 {
    // The odd multiplier of Knuth's multiplicative hashing: 2^32 divided by the golden ratio.
    device.wrapping_mul(0x9e37_79b1) >> 24
}

impl std::fmt::Debug for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Peer({}, {})", self.device, self.state())
    }
}
