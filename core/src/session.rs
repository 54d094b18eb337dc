//! The device side of the protocol: bytes in, bytes out, no clock and no transport.
//!
//! The firmware owns the loop:
//!
//! 1. Write [`Session::outgoing`] to the line, then pass received bytes to [`Session::receive`].
//! 2. When [`Session::phase`] is [`Phase::Training`], call [`Session::train`] with the local data,
//!    or call [`Session::train_some`] repeatedly, which returns after a few samples.
//! 3. When the line was silent for a while, call [`Session::timeout`]. It repeats the message that
//!    waits for an answer, at most [`REPETITIONS`] times in a row, and then begins a new session.
//! 4. Otherwise sleep.
//!
//! [`Session::exchange`] does the first step on any byte stream with the traits of `embedded-io`.
//! With the feature `async`, `Session::drive` does all but the second step on a stream with the
//! traits of `embedded-io-async`. Nothing here waits, loops beyond the given bytes, or panics.
//! Invalid input is skipped and counted ([`Session::refusals`]).
//!
//! An update is trained, clipped, quantised, covered by the device's noise and packed. The noise is
//! drawn once, when training ends, and the noisy integers overwrite the update. A repeated chunk
//! therefore has the same values, also in a new session, and no copy without noise remains. The
//! update needs no third vector.
//!
//! A device that loses its RAM in deep sleep keeps such an update in flash: [`Session::hold`],
//! [`Session::resume`] and [`Session::release`]. With the feature `sleep` it declines rounds that
//! take longer than it stays awake: `Session::set_awake`.

use core::mem::MaybeUninit;

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
pub(crate) mod exchange;
#[cfg(feature = "reports")]
mod experiment;
mod greeter;
mod held;
mod last_round;
pub(crate) mod line;
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

/// The device side of the protocol around a model of any size.
pub struct Session<'a, M: Trainable, F, R, K = NoStore, V = Root> {
    line: Line,
    conversation: Conversation<'a, M, F, R, K, V>,
}

/// A session of these parts that has sent nothing. With a function instead of this macro, they
/// would be on the stack twice.
macro_rules! session {
    ($identity:ident, $masks:ident, $policy:ident, $model:ident, $memory:ident, $ledger:ident,
     $nonces:ident, $store:ident) => {{
        let conversation = Conversation {
            device: Device {
                identity: $identity,
                masks: $masks,
                policy: $policy,
                model: $model,
                memory: $memory,
                ledger: $ledger,
                store: $store,
                parts: M::Parts::default(),
                recipe: &[],
                #[cfg(feature = "questions")]
                questions: QuestionPolicy::NONE,
            },
            nonces: $nonces,
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
            #[cfg(feature = "short")]
            is_short: false,
            last: None,
            #[cfg(feature = "reports")]
            experiment: None,
        };
        Session {
            line: Line::new(),
            conversation,
        }
    }};
}

impl<'a, M, F, R, V> Session<'a, M, F, R, NoStore, V>
where
    M: Trainable,
    R: Greeter,
    V: Secrets,
{
    /// Creates a session that has not sent anything yet, for a device without a personal model.
    ///
    /// `nonces` yields 16 bytes per session that never repeat: from hardware entropy, or from a
    /// counter that survives restarts. Repeated nonces let old sessions be replayed to the device,
    /// but its ledger still refuses their rounds. In an `X25519`, with the feature of that name,
    /// they open sessions whose keys cannot be recovered later: [`Greeter`].
    ///
    /// The device's streams derive from its root and the ledger's nonce: [`Identity`].
    ///
    /// # Errors
    /// Returns [`SessionError`] if the protocol cannot carry the model, or `memory` does not fit
    /// it.
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
    /// Creates a session as [`Session::new`] does, for a device with a `store` for a personal
    /// model. Rounds of methods without a personal model are the same as on other devices.
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
        let masks = device::prepare(&mut identity, &policy, &model, &memory, &ledger)?;
        Ok(session!(
            identity, masks, policy, model, memory, ledger, nonces, store
        ))
    }

    /// Creates a session as [`Session::with_store`] does, in its place. This takes less stack if
    /// sizes are known only at run time.
    ///
    /// The caller drops the session in its place, which overwrites its keys.
    ///
    /// # Errors
    /// As [`Session::new`].
    #[expect(
        clippy::too_many_arguments,
        reason = "the place, and those of `with_store`"
    )]
    #[inline(always)]
    pub fn in_place<'p>(
        place: &'p mut MaybeUninit<Self>,
        mut identity: Identity<V>,
        policy: Policy,
        model: M,
        memory: Memory<'a>,
        ledger: Ledger<F>,
        nonces: R,
        store: K,
    ) -> Result<&'p mut Self, SessionError> {
        let masks = device::prepare(&mut identity, &policy, &model, &memory, &ledger)?;
        Ok(Self::put(
            place, identity, masks, policy, model, memory, ledger, nonces, store,
        ))
    }

    /// Puts a session in its place. A function, so that its parts are not on the stack while their
    /// keys are derived.
    #[expect(
        clippy::too_many_arguments,
        reason = "the place, and the parts of a session"
    )]
    #[inline(never)]
    fn put<'p>(
        place: &'p mut MaybeUninit<Self>,
        identity: Identity<V>,
        masks: DeviceMasks,
        policy: Policy,
        model: M,
        memory: Memory<'a>,
        ledger: Ledger<F>,
        nonces: R,
        store: K,
    ) -> &'p mut Self {
        place.write(session!(
            identity, masks, policy, model, memory, ledger, nonces, store
        ))
    }

    /// Returns the store of the personal model.
    pub const fn store(&mut self) -> &mut K {
        &mut self.conversation.device.store
    }

    /// Returns the last complete model for predictions: the shared model, not the personal one.
    ///
    /// `None` until the first model is complete, and from the first chunk of the next model until
    /// that one is complete (the device has memory for one). Every parameter came in an authentic
    /// frame of a round that the ledger admitted. A model with a value that is not finite, or not a
    /// weight, is not lent.
    ///
    /// Cost: one pass over the parameters. Borrow it once for several predictions.
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

    /// Checks that a round can train on all of these samples.
    ///
    /// Call it before the samples of a round change, or each time that a sample comes in. A round
    /// with unusable samples declines before the participation is recorded if the device adds no
    /// noise and no masks. Otherwise a decline would reveal something about the data, so the
    /// device takes part with an update of zeros, and the participation is spent.
    ///
    /// # Errors
    /// Returns the [`SampleError`] of the first unusable sample. It describes private data and must
    /// not leave the device.
    pub fn check<S>(&self, samples: &S) -> Result<(), SampleError>
    where
        S: Samples<Target = M::Target>,
    {
        self.conversation.device.check_samples(samples)
    }

    /// Returns the phase of the session.
    pub const fn phase(&self) -> Phase {
        self.conversation.phase
    }

    /// Returns the model or the recipe of the experiment, if the coordinator refused the device
    /// because its own differs: [`Phase::Refused`].
    #[cfg(feature = "reports")]
    pub fn experiment(&self) -> Option<&Experiment> {
        let is_refused = matches!(self.phase(), Phase::Refused(_));
        self.conversation.experiment.as_ref().filter(|_| is_refused)
    }

    /// Returns how the last round went that the device trained in or declined, or `None` before the
    /// first.
    ///
    /// It describes private data. It is for the firmware, its log and its display, and must not
    /// leave the device.
    pub const fn last_round(&self) -> Option<&LastRound> {
        self.conversation.last.as_ref()
    }

    /// Returns the number of skipped frames, by reason.
    pub const fn refusals(&self) -> &Refusals {
        &self.conversation.refusals
    }

    /// Returns the device's ledger.
    pub const fn ledger(&self) -> &Ledger<F> {
        &self.conversation.device.ledger
    }

    /// Returns the rules by which the device takes part.
    pub const fn policy(&self) -> &Policy {
        &self.conversation.device.policy
    }

    /// Returns the ledger, as at a restart.
    pub fn into_ledger(self) -> Ledger<F> {
        self.conversation.device.ledger
    }

    /// Returns the bytes for the line: a whole frame, or none.
    pub fn outgoing(&self) -> &[u8] {
        self.line.outgoing()
    }

    /// Confirms that the bytes of [`Self::outgoing`] are on the line. More may follow at once.
    pub fn sent(&mut self) {
        // After a frame that is already gone, nothing follows.
        let was_any = !self.outgoing().is_empty();
        self.line.sent();
        if was_any {
            let answer = self.conversation.follow();
            self.send(answer);
        }
    }

    /// Returns the number of the last authentic frame of this session, or 0 before the first. It
    /// changes with each authentic frame, whatever its content.
    #[must_use]
    pub fn received(&self) -> u32 {
        let link = self.conversation.link.as_ref();
        link.map_or(0, crate::wire::link::Link::received)
    }

    /// Receives some of these bytes like [`Self::receive`], and reports their meaning for a
    /// [`Pace`].
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

    /// Sets how many chunks of the model the device requests at once, and how many of the update it
    /// sends before it waits for an answer: 1 to [`MAX_WINDOW`]. The default is 1.
    ///
    /// A line that buffers all frames sent to it, like a socket, is faster with more. A serial line
    /// with room for one frame loses them.
    pub fn set_window(&mut self, chunks: u8) {
        self.conversation.window = chunks.clamp(1, MAX_WINDOW);
    }

    /// Sets the recipe of the features that the device computes from its samples, as
    /// [`Recipe::write`](crate::recipe::Recipe::write) writes it. The coordinator refuses a device
    /// whose recipe differs from that of its experiment. The default is empty: the samples are
    /// features already.
    pub const fn set_recipe(&mut self, recipe: &'a [u8]) {
        self.conversation.device.recipe = recipe;
    }

    /// Sets which questions the device answers. The default is none.
    #[cfg(feature = "questions")]
    pub const fn set_questions(&mut self, policy: QuestionPolicy) {
        self.conversation.device.questions = policy;
    }

    /// Sets how long the device stays awake from now on. Until the next call it declines
    /// invitations to longer rounds, before the ledger records them. Call it before
    /// [`Self::receive`], with the time left. Without a call, no round takes too long.
    ///
    /// A waiting update is sent whatever time is left. In a build with the feature `sleep` it is
    /// given up only for a round that the device takes part in.
    #[cfg(feature = "sleep")]
    pub const fn set_awake(&mut self, wake: Wake) {
        self.conversation.wake = Some(wake);
    }

    /// Takes bytes from the line, up to the end of a frame, and returns how many it took.
    ///
    /// If it took fewer than given, write the outgoing bytes and pass the rest to the next call. A
    /// frame that arrives while one waits to go out is skipped and counted: [`Crossed`].
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

    /// Handles a silent line: repeats the message that waits for an answer, or begins a new
    /// session.
    ///
    /// While a frame is coming in it waits for the next time-out, at most four times per message.
    pub fn timeout(&mut self) {
        if !self.line.waits() {
            let answer = self.conversation.timeout();
            self.send(answer);
        }
    }

    /// Whether the round has more work to do.
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
    /// Returns the device's secure element.
    pub const fn element(&mut self) -> &mut E {
        self.conversation.device.identity.root.chip()
    }
}

impl<M: Trainable, F, R, K, V> core::fmt::Debug for Session<'_, M, F, R, K, V> {
    /// Writes phase and sizes, and nothing of the data.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Conversation { device, phase, .. } = &self.conversation;
        let parameters = device.memory.global.len();
        let ledger = &device.ledger;
        write!(f, "Session({phase:?}, {parameters} parameters, {ledger:?})")
    }
}
