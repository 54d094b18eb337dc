//! The encrypted connection between a coordinator and a helper.
//!
//! | module | contents |
//! | --- | --- |
//! | [`cipher`] | the frames of a link |
//! | [`link`] | the connection |
//! | [`message`] | the messages on it |

pub mod cipher;
pub mod link;
pub mod message;

/// Identifier of a coordinator's process.
pub type Process = [u8; 16];
