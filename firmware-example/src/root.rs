//! Secrets of a board without a secure element: those of its record.

use smolfed_core::{
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
