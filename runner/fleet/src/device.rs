//! A device as a process: the client that boards run, with its memory on the heap and its ledger in
//! a file.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`client`] | the main loop, between a connection and the session |
//! | [`memory`] | the memory of a session, on the heap |
//! | [`flash`] | NOR flash in a file, for the device's ledger |
//! | [`image`] | the ledger of a new device as bytes |
//! | [`personal`] | the personal model of a device in a file |

pub mod client;
pub mod flash;
pub mod image;
pub mod memory;
pub mod personal;
