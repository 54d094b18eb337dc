//! The encrypted connection between a coordinator and a helper.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`cipher`] | the frames of a link |
//! | [`link`] | the connection |
//! | [`message`] | what travels over it |

pub mod cipher;
pub mod link;
pub mod message;

/// What names a coordinator's process.
pub type Process = [u8; 16];
