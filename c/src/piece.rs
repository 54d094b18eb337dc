//! A piece of a round, and the start of the ledger. Both wait for flash.
//!
//! The functions of the firmware wait for blocking flash. With the feature `requested` a piece may
//! stop while the flash works, and the next call continues it.

#[cfg(not(feature = "requested"))]
mod blocking;
#[cfg(feature = "requested")]
mod requested;

#[cfg(not(feature = "requested"))]
pub(crate) use blocking::{Piece, open};
#[cfg(feature = "requested")]
pub(crate) use requested::{Piece, open};
