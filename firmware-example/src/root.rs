//! Secrets of a board without a secure element, in its provisioning record.

use smolfed_core::{
    provision::{ProvisionError, Record},
    stream::Root,
};

use crate::board;

/// Source of the board's secrets.
pub type Secrets = Root;

/// Reads the board's record.
///
/// # Errors
/// [`ProvisionError`]. The device must not take part.
pub fn record() -> Result<Record<'static>, ProvisionError> {
    Record::read(board::provisioning())
}
