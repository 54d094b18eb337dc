//! A device's side of the protocol: bytes in, bytes out, no clock and no transport.
//!
//! The firmware owns the loop:
//!
//! 1. write [`Session::outgoing`] to the line, and give received bytes to [`Session::receive`], in
//!    this order;
//! 2. when [`Session::phase`] is [`Phase::Training`], call [`Session::train`] with the local data,
//!    or [`Session::train_some`] again and again, which returns after a few samples;
//! 3. when the line was silent for a while, call [`Session::timeout`]: it repeats what is waiting
//!    for an answer, at most [`REPETITIONS`] times in a row, and then begins a new session;
//! 4. otherwise sleep.
//!
//! [`Session::exchange`] does the first step on any byte stream with the traits of `embedded-io`.
//! With the feature `async`, `Session::drive` does all but the second on one with those of
//! `embedded-io-async`.
//! Nothing here waits or loops beyond the bytes that it was given, and nothing panics. Invalid
//! input is left out and counted ([`Session::refusals`]).
//!
//! An update is trained, clipped, quantised, covered by the device's noise and packed. The noise is
//! drawn once, when training ends, and what is sent takes the place of the update: a chunk that is
//! repeated has the same values, in a new session as well, and nothing without noise is left. The
//! update needs no third vector.
//!
//! A device that loses its RAM in deep sleep keeps such an update in flash: [`Session::hold`],
//! [`Session::resume`] and [`Session::release`]. With the feature `sleep` it declines rounds for
//! which it is not awake long enough: `Session::set_awake`.

use crate::{
    identity::Identity,
    ledger::Ledger,
    personal::store::{NoStore, PersonalStore},
    predict::{CurrentModel, Predictor},
    progress::Progress,
    samples::{SampleError, Samples},
    secrets::Secrets,
    stream::Root,
    wire::{message::MAX_WINDOW, refusal::Refusals},
};

mod build;
mod conversation;
mod device;
#[cfg(feature = "async")]
mod drive;
mod exchange;
#[cfg(feature = "reports")]
mod experiment;
mod greeter;
mod held;
mod last_round;
mod line;
#[cfg(feature = "masks")]
mod masked;
mod memory;
mod naming;
mod pace;
mod phase;
mod policy;
#[cfg(feature = "questions")]
mod questions;
mod round;
mod saved_model;
#[cfg(test)]
#[cfg(all(
    feature = "local-noise",
    feature = "gradient-smoothing",
    feature = "adaptive-bit",
    feature = "pseudonym"
))]
mod tests;
mod trainable;
mod training;
#[cfg(not(feature = "masks"))]
mod unmasked;
#[cfg(feature = "sleep")]
mod wake;

pub use conversation::REPETITIONS;
pub use device::SessionError;
#[cfg(feature = "async")]
pub use drive::{Clock, LinkLost};
#[cfg(feature = "reports")]
pub use experiment::Experiment;
pub use greeter::Greeter;
#[cfg(feature = "x25519")]
pub use greeter::X25519;
pub use held::held_bytes;
pub use last_round::{LastRound, Outcome};
pub use memory::Memory;
pub use pace::{Heard, Pace};
pub use phase::Phase;
pub use policy::{GRID_LOSS, Policy, SETTING_LIMITS, STEPS_PER_EPOCH};
#[cfg(feature = "questions")]
pub use questions::QuestionPolicy;
pub use trainable::{FixedPoint, Parts, Trainable, Unlabelled};
#[cfg(feature = "sleep")]
pub use wake::Wake;

use conversation::{Answer, Conversation};
use device::Device;
use line::Line;
#[cfg(feature = "masks")]
use masked as masks;
use masks::DeviceMasks;
#[cfg(not(feature = "masks"))]
use unmasked as masks;

/// A device's side of the protocol around a model of any size.
pub struct Session<'a, M: Trainable, F, R, K = NoStore, V = Root> {
    line: Line,
    conversation: Conversation<'a, M, F, R, K, V>,
}

impl<'a, M, F, R, V> Session<'a, M, F, R, NoStore, V>
where
    M: Trainable,
    R: Greeter,
    V: Secrets,
{
    /// A session that has not sent anything yet, of a device without a personal model.
    ///
    /// `nonces` gives 16 bytes a session that never come again: of hardware entropy, or of a
    /// counter that survives restarts. Repeating them lets old sessions be replayed to the device;
    /// its ledger still refuses their rounds. In an `X25519`, of the feature of that name, they
    /// open sessions whose keys nobody finds later: [`Greeter`].
    ///
    /// The device's streams derive from its root and the ledger's nonce: [`Identity`].
    ///
    /// # Errors
    /// [`SessionError`] if the protocol cannot carry the model, or `memory` does not fit it.
    #[inline(always)]
    pub fn new(
        identity: Identity<V>,
        policy: Policy,
        model: M,
        memory: Memory<'a>,
        ledger: Ledger<F>,
        nonces: R,
    ) -> Result<Self, SessionError> {
        let store = NoStore;
        Self::with_store(identity, policy, model, memory, ledger, nonces, store)
    }
}

impl<'a, M, F, R, K, V> Session<'a, M, F, R, K, V>
where
    M: Trainable,
    R: Greeter,
    K: PersonalStore,
    V: Secrets,
{
    /// [`Session::new`], of a device with a `store` for a personal model. Rounds of methods
    /// without one are as for all devices.
    ///
    /// # Errors
    /// As [`Session::new`].
    // Inlined, so that with sizes known to the compiler nothing is left of the checks, and the
    // session is built in its place: a `Result` that is converted would be in RAM twice.
    #[inline(always)]
    pub fn with_store(
        mut identity: Identity<V>,
        policy: Policy,
        model: M,
        memory: Memory<'a>,
        ledger: Ledger<F>,
        nonces: R,
        store: K,
    ) -> Result<Self, SessionError> {
        device::check(&model, &memory)?;
        if !policy.suits_build() {
            return Err(SessionError::Build);
        }
        // As it was provisioned: helpers know nothing of ledgers.
        let masks =
            DeviceMasks::new(&mut identity, ledger.nonce()).map_err(|_| SessionError::Element)?;
        let recognised = identity.root.recognise(ledger.chain());
        recognised.map_err(|_| SessionError::Element)?;
        identity.root.bind(ledger.nonce());
        let conversation = Conversation {
            device: Device {
                identity,
                masks,
                policy,
                model,
                memory,
                ledger,
                store,
                parts: M::Parts::default(),
                recipe: &[],
                #[cfg(feature = "questions")]
                questions: QuestionPolicy::NONE,
            },
            nonces,
            nonce: [0; 16],
            link: None,
            phase: Phase::Silent,
            round: None,
            repetitions: 0,
            window: 1,
            #[cfg(feature = "sleep")]
            wake: None,
            refusals: Refusals::new(),
            model_round: 0,
            has_model: false,
            last: None,
            #[cfg(feature = "reports")]
            experiment: None,
        };
        Ok(Self {
            line: Line::new(),
            conversation,
        })
    }

    /// Where the device has its personal model.
    pub const fn store(&mut self) -> &mut K {
        &mut self.conversation.device.store
    }

    /// The last model that came down whole, for predictions: the shared one, not the personal one.
    ///
    /// `None` until the first model has come down, while another one comes down over it (the device
    /// has memory for one), and until one has come down whole if that was cut short. Every
    /// parameter came in an authentic frame of a round that the ledger admitted; a model with a
    /// value that is not finite, or not a weight, is not lent.
    ///
    /// Cost: one pass over the parameters. Lend it once for several predictions.
    pub fn model(&self) -> Option<CurrentModel<'_, M>>
    where
        M: Predictor,
    {
        let Conversation {
            device,
            model_round,
            has_model: true,
            ..
        } = &self.conversation
        else {
            return None;
        };
        let parameters = device
            .memory
            .global
            .get(..Trainable::parameter_count(&device.model));
        CurrentModel::new(*model_round, &device.model, parameters?).ok()
    }

    /// Whether a round can train on all of these samples.
    ///
    /// Call it before the samples of a round change, or each time that a sample comes in. A round
    /// with unusable samples declines before the participation is recorded if the device adds no
    /// noise and no masks. Otherwise a decline would reveal something about the data, so the
    /// device takes part with an update of zeros, and the participation is spent.
    ///
    /// # Errors
    /// [`SampleError`] of the first sample that training cannot use. It describes private data and
    /// must not leave the device.
    pub fn check<S>(&self, samples: &S) -> Result<(), SampleError>
    where
        S: Samples<Target = M::Target>,
    {
        self.conversation.device.check_samples(samples)
    }

    /// Where the session stands.
    pub const fn phase(&self) -> Phase {
        self.conversation.phase
    }

    /// The model or the recipe of the experiment, if the coordinator refused the device because it
    /// has another one: [`Phase::Refused`].
    #[cfg(feature = "reports")]
    pub fn experiment(&self) -> Option<&Experiment> {
        let is_refused = matches!(self.phase(), Phase::Refused(_));
        self.conversation.experiment.as_ref().filter(|_| is_refused)
    }

    /// How the last round went that the device trained in or declined; none before the first one.
    ///
    /// It describes private data: it is for the firmware, its log and its display, and must not
    /// leave the device.
    pub const fn last_round(&self) -> Option<&LastRound> {
        self.conversation.last.as_ref()
    }

    /// The frames that were left out, by reason.
    pub const fn refusals(&self) -> &Refusals {
        &self.conversation.refusals
    }

    /// The device's ledger.
    pub const fn ledger(&self) -> &Ledger<F> {
        &self.conversation.device.ledger
    }

    /// Gives the ledger back, as at a restart.
    pub fn into_ledger(self) -> Ledger<F> {
        self.conversation.device.ledger
    }

    /// Bytes for the line: a whole frame, or none.
    pub fn outgoing(&self) -> &[u8] {
        self.line.outgoing()
    }

    /// The bytes of [`Self::outgoing`] are on the line. More may follow them at once.
    pub fn sent(&mut self) {
        // What is no longer there is not followed by anything.
        let was_any = !self.outgoing().is_empty();
        self.line.sent();
        if was_any {
            let answer = self.conversation.follow();
            self.send(answer);
        }
    }

    /// The number of the last authentic frame of this session; 0 before the first one. It changes
    /// with each authentic frame, whatever is in it.
    #[must_use]
    pub fn received(&self) -> u32 {
        let link = self.conversation.link.as_ref();
        link.map_or(0, crate::wire::link::Link::received)
    }

    /// Receives some of these bytes as [`Self::receive`] does, and says what a [`Pace`] hears in
    /// them.
    pub fn hear(&mut self, bytes: &[u8]) -> (usize, Heard) {
        let before = (self.received(), self.refusals().total());
        let taken = self.receive(bytes);
        let is_authentic = self.received() != before.0;
        let is_accepted = is_authentic && self.refusals().total() == before.1;
        let heard = match is_accepted || !self.outgoing().is_empty() {
            true => Heard::Answer,
            false if is_authentic => Heard::Frame,
            false => Heard::Nothing,
        };
        (taken, heard)
    }

    /// How many chunks of the model the device asks for at once, and how many of the update it
    /// sends before it waits for an answer: 1 to [`MAX_WINDOW`], and 1 unless this is called.
    ///
    /// A line that holds as many frames as it is sent, like a socket, is faster with more; a serial
    /// line with one place for a frame loses them.
    pub fn set_window(&mut self, chunks: u8) {
        self.conversation.window = chunks.clamp(1, MAX_WINDOW);
    }

    /// The recipe of the features that the device computes of its samples, as
    /// [`Recipe::write`](crate::recipe::Recipe::write) writes it. The coordinator refuses a device
    /// whose recipe is not that of its experiment. Empty unless this is called: the samples are
    /// features already.
    pub const fn set_recipe(&mut self, recipe: &'a [u8]) {
        self.conversation.device.recipe = recipe;
    }

    /// Which questions the device answers: none unless this is called.
    #[cfg(feature = "questions")]
    pub const fn set_questions(&mut self, policy: QuestionPolicy) {
        self.conversation.device.questions = policy;
    }

    /// How long the device stays awake from now on. Until the next call it declines invitations to
    /// rounds that take longer, before the ledger records them: call it before
    /// [`Self::receive`], with the time that is left. Unless this is called, no round takes too
    /// long.
    ///
    /// An update that waits is sent whatever time is left. In a build with the feature `sleep` it
    /// is given up only for a round that the device takes part in.
    #[cfg(feature = "sleep")]
    pub const fn set_awake(&mut self, wake: Wake) {
        self.conversation.wake = Some(wake);
    }

    /// Takes bytes from the line, up to the end of a frame; returns how many it took.
    ///
    /// If it took fewer than there are, the rest is for the next call, after the outgoing bytes: a
    /// frame that comes while one waits to go out is left out and counted: [`Crossed`].
    ///
    /// [`Crossed`]: crate::wire::refusal::Refusal::Crossed
    pub fn receive(&mut self, bytes: &[u8]) -> usize {
        for (index, byte) in bytes.iter().enumerate() {
            // Only a zero ends a frame.
            if let Some(raw) = self.line.receive(*byte) {
                let answer = match self.conversation.receive(raw) {
                    Answer::Consider => self.conversation.consider(),
                    answer => answer,
                };
                self.send(answer);
                return index + 1;
            }
        }
        bytes.len()
    }

    /// The line was silent: repeats what waits for an answer, or begins anew.
    ///
    /// While a frame is coming in it waits for the next time-out, at most four times a message.
    pub fn timeout(&mut self) {
        if !self.line.waits() {
            let answer = self.conversation.timeout();
            self.send(answer);
        }
    }

    /// Whether there is more of a round to do.
    fn progress(&self) -> Progress {
        match self.phase() {
            Phase::Training => Progress::More,
            _ => Progress::Done,
        }
    }

    fn send(&mut self, answer: Answer) {
        if !matches!(answer, Answer::Nothing) {
            self.conversation.send(answer, self.line.send());
        }
    }
}

#[cfg(feature = "element")]
impl<M, F, R, K, E> Session<'_, M, F, R, K, crate::element::Element<E>>
where
    M: Trainable,
    E: crate::element::SecureElement,
{
    /// The device's secure element.
    pub const fn element(&mut self) -> &mut E {
        self.conversation.device.identity.root.chip()
    }
}

impl<M: Trainable, F, R, K, V> core::fmt::Debug for Session<'_, M, F, R, K, V> {
    /// Where it stands, and nothing of the data.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Conversation { device, phase, .. } = &self.conversation;
        let parameters = device.memory.global.len();
        let ledger = &device.ledger;
        write!(f, "Session({phase:?}, {parameters} parameters, {ledger:?})")
    }
}
