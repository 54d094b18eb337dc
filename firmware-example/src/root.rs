//! Secrets of a board without a secure element: those of its record.

use smolfed_core::{provision::Record, stream::Root};

use crate::{board, refused::Refused};

/// Where the board has its secrets.
pub type Secrets = Root;

/// The record of the board.
///
/// # Errors
/// [`Refused::Record`]: the device must then not take part.
pub fn record() -> Result<Record<'static>, Refused> {
    Record::read(board::provisioning()).map_err(|_| Refused::Record)
}
