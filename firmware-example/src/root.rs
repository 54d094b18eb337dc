//! Secrets of a board without a secure element: those of its record.

use smolfed_core::{
    crypto::Key,
    identity::Identity,
    provision::{ProvisionError, Record},
    stream::Root,
};

use crate::board;

/// Where the board has its secrets.
pub type Secrets = Root;

/// The record of the board.
///
/// # Errors
/// [`ProvisionError`]: the device must then not take part.
pub fn record() -> Result<Record<'static>, ProvisionError> {
    Record::read(board::provisioning())
}

/// What a new ledger begins with.
pub const fn first_chain(record: &mut Record<'_>) -> Option<Key> {
    record.key.take()
}

/// Who the board is.
///
/// # Errors
/// None.
pub fn identity(record: &Record<'_>) -> Result<Identity, core::convert::Infallible> {
    Ok(record.identity.clone())
}
