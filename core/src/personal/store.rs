//! Where a device keeps its personal model between rounds.
//!
//! A state has the number of the round that led to it. An invitation names the round that counts:
//! the last one of the run in which the coordinator had the whole update of this device. The store
//! has two states, that of the newest round and that of the one before which it was invited with,
//! so that either can be named: a device whose update was late, refused or lost with its
//! coordinator goes on from where it was, as in a simulation, and nothing has to be confirmed.
//!
//! The state is not encrypted, and never leaves the device.

use crate::ledger::LedgerNonce;

pub mod flash;

/// What a state is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateKind {
    /// A model.
    Model,
    /// What is added to the shared model.
    Offset,
    /// The parameters behind the shared ones.
    Rest,
    /// The final model of a run, fine-tuned.
    Tuned,
    /// The shared model as it came down, of a shape with this
    /// [checksum](crate::wire::message::ModelShape::checksum): for predictions after a restart.
    Shared(u32),
    /// An update that waits to be sent, of an invitation with this checksum.
    Held(u32),
}

impl StateKind {
    /// The number in flash, and the checksum of a shape or an invitation, or 0.
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

/// What a state belongs to: another kind, or another device's, is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateId {
    /// What it is.
    pub kind: StateKind,
    /// The ledger of the device.
    pub owner: LedgerNonce,
    /// The round that led to it.
    pub round: u32,
}

/// A personal model could not be read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct StoreError;

impl core::fmt::Display for StoreError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the personal model could not be read or written")
    }
}

impl core::error::Error for StoreError {}

/// Where a device keeps its personal model: two states. A session trains with a [`BlockingStore`]
/// or, with the feature `async`, with an `AsyncStore`.
pub trait PersonalStore {
    /// Whether there is a store: without, nothing that needs one is compiled.
    const IS_PRESENT: bool = true;

    /// Values of a state, at most.
    fn capacity(&self) -> usize;
}

/// A store that answers when it is done.
pub trait BlockingStore: PersonalStore {
    /// Reads a state into `to`; whether it is there, undamaged and as long as `to`. Without it,
    /// `to` may hold anything.
    ///
    /// # Errors
    /// [`StoreError`] if the memory fails. Damage is no state.
    fn load(&mut self, id: &StateId, to: &mut [f32]) -> Result<bool, StoreError>;

    /// Writes a state, in the place of any other than `before`, if that is given.
    ///
    /// # Errors
    /// [`StoreError`]; `before` is as it was.
    fn save(
        &mut self,
        id: &StateId,
        state: &[f32],
        before: Option<&StateId>,
    ) -> Result<(), StoreError>;
}

/// A store that is awaited. A future that is dropped is a power cut. Flash that blocks becomes one
/// in a wrapper that has the asynchronous traits, as those of HALs do.
#[cfg(feature = "async")]
pub trait AsyncStore: PersonalStore {
    /// [`BlockingStore::load`].
    ///
    /// # Errors
    /// As there.
    fn load_async(
        &mut self,
        id: &StateId,
        to: &mut [f32],
    ) -> impl Future<Output = Result<bool, StoreError>>;

    /// [`BlockingStore::save`].
    ///
    /// # Errors
    /// As there.
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
