//! Where a device keeps its personal model between rounds.
//!
//! A state is written in two steps. [`PersonalStore::stage`] writes what training has led to, while
//! the update is not even on the line; [`PersonalStore::commit`] makes it count, once the
//! coordinator has the whole update. So a device whose update was late, or refused, goes on from
//! where it was, as in a simulation.
//!
//! The state is not encrypted, and never leaves the device.

pub mod flash;

/// What a state is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum StateKind {
    /// A model.
    Model = 1,
    /// What is added to the shared model.
    Offset = 2,
    /// The parameters behind the shared ones.
    Rest = 3,
}

/// A personal model could not be read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreError;

impl core::fmt::Display for StoreError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the personal model could not be read or written")
    }
}

impl core::error::Error for StoreError {}

/// Where a device keeps its personal model: one state, and a staged one.
pub trait PersonalStore {
    /// Whether anything is ever kept: without, nothing that needs it is compiled.
    const KEEPS: bool = true;

    /// Values of a state, at most.
    fn room(&self) -> usize;

    /// Reads the state into `to`; whether there is one of this kind and length, of round `since` or
    /// a later one. Without, `to` may hold anything.
    ///
    /// # Errors
    /// [`StoreError`] if the memory fails. Damage is no state.
    fn load(&mut self, kind: StateKind, since: u32, to: &mut [f32]) -> Result<bool, StoreError>;

    /// Writes the state of a round, which does not count yet.
    ///
    /// # Errors
    /// [`StoreError`]; the state that counts is as it was.
    fn stage(&mut self, kind: StateKind, round: u32, state: &[f32]) -> Result<(), StoreError>;

    /// Has the state count that was staged last, if there is one.
    ///
    /// # Errors
    /// [`StoreError`]; either of both may count then.
    fn commit(&mut self) -> Result<(), StoreError>;

    /// Forgets the state that was staged, if there is one.
    fn discard(&mut self);
}

/// The store of a device without a personal model.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeepsNothing;

impl PersonalStore for KeepsNothing {
    const KEEPS: bool = false;

    fn room(&self) -> usize {
        0
    }

    fn load(&mut self, _: StateKind, _: u32, _: &mut [f32]) -> Result<bool, StoreError> {
        Ok(false)
    }

    fn stage(&mut self, _: StateKind, _: u32, _: &[f32]) -> Result<(), StoreError> {
        Err(StoreError)
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    fn discard(&mut self) {}
}
