//! Storage of a device's personal model between rounds: the kinds of states, their names by round,
//! and the interface of a store.
//!
//! A state has the number of the round that produced it. An invitation names the valid round: the
//! last one of the run in which the coordinator received the whole update of this device. The store
//! has two states, of the newest round and of the round named in its invitation, so that the next
//! invitation can name either. A device whose update was late, refused or lost with its coordinator
//! continues from its previous state, as in a simulation, without any confirmation.
//!
//! The state is not encrypted, and never leaves the device.

use crate::ledger::LedgerNonce;

pub mod flash;

/// Kind of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateKind {
    /// A model.
    Model,
    /// An offset to the shared model.
    Offset,
    /// The parameters after the shared ones.
    Rest,
    /// The final model of a run, fine-tuned.
    Tuned,
    /// The shared model as received, of a shape with this
    /// [checksum](crate::wire::message::ModelShape::checksum): for predictions after a restart.
    Shared(u32),
    /// An update waiting to be sent, for an invitation with this checksum.
    Held(u32),
}

impl StateKind {
    /// Returns the number in flash, and the checksum of a shape or an invitation, or 0.
    const fn code(self) -> (u8, u32) {
        match self {
            Self::Model => (1, 0),
            Self::Offset => (2, 0),
            Self::Rest => (3, 0),
            Self::Tuned => (4, 0),
            Self::Shared(shape) => (5, shape),
            Self::Held(invitation) => (6, invitation),
        }
    }
}

/// Identity of a state. States of another kind or device do not match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateId {
    /// Kind of the state.
    pub kind: StateKind,
    /// Nonce of the device's ledger.
    pub owner: LedgerNonce,
    /// Round that produced the state.
    pub round: u32,
}

/// Error for a personal model that could not be read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct StoreError;

impl core::fmt::Display for StoreError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the personal model could not be read or written")
    }
}

impl core::error::Error for StoreError {}

/// Storage of a device's personal model, with two states. A session trains with a [`BlockingStore`]
/// or, with the feature `async`, with an `AsyncStore`.
pub trait PersonalStore {
    /// Whether there is a store. Without one, code that needs it is not compiled.
    const IS_PRESENT: bool = true;

    /// Returns the maximum number of values of a state.
    fn capacity(&self) -> usize;
}

/// A blocking store.
pub trait BlockingStore: PersonalStore {
    /// Reads a state into `to`, and returns whether it exists, undamaged and as long as `to`.
    /// Otherwise `to` may hold anything.
    ///
    /// # Errors
    /// [`StoreError`] if the memory fails. A damaged state counts as missing.
    fn load(&mut self, id: &StateId, to: &mut [f32]) -> Result<bool, StoreError>;

    /// Writes a state, and may replace any other than `before`, if given.
    ///
    /// # Errors
    /// [`StoreError`]. `before` is then unchanged.
    fn save(
        &mut self,
        id: &StateId,
        state: &[f32],
        before: Option<&StateId>,
    ) -> Result<(), StoreError>;
}

/// An async store. Dropping a future is equivalent to a power cut. HALs have wrappers that
/// implement the async traits for blocking flash.
#[cfg(feature = "async")]
pub trait AsyncStore: PersonalStore {
    /// See [`BlockingStore::load`].
    ///
    /// # Errors
    /// [`StoreError`], as there.
    fn load_async(
        &mut self,
        id: &StateId,
        to: &mut [f32],
    ) -> impl Future<Output = Result<bool, StoreError>>;

    /// See [`BlockingStore::save`].
    ///
    /// # Errors
    /// [`StoreError`], as there.
    fn save_async(
        &mut self,
        id: &StateId,
        state: &[f32],
        before: Option<&StateId>,
    ) -> impl Future<Output = Result<(), StoreError>>;
}

/// The store of a device without a personal model.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoStore;

impl PersonalStore for NoStore {
    const IS_PRESENT: bool = false;

    fn capacity(&self) -> usize {
        0
    }
}

impl BlockingStore for NoStore {
    fn load(&mut self, _: &StateId, _: &mut [f32]) -> Result<bool, StoreError> {
        Ok(false)
    }

    fn save(&mut self, _: &StateId, _: &[f32], _: Option<&StateId>) -> Result<(), StoreError> {
        Err(StoreError)
    }
}

#[cfg(feature = "async")]
impl AsyncStore for NoStore {
    async fn load_async(&mut self, _: &StateId, _: &mut [f32]) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn save_async(
        &mut self,
        _: &StateId,
        _: &[f32],
        _: Option<&StateId>,
    ) -> Result<(), StoreError> {
        Err(StoreError)
    }
}
