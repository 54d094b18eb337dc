//! A device as a process: the client that boards run, with its memory on the heap, its ledger in a
//! file and its data in memory.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`client`] | the loop between a connection and the session |
//! | [`memory`] | the memory of a session, on the heap |
//! | [`flash`] | NOR flash in a file, for the device's ledger |

pub mod client;
pub mod flash;
pub mod memory;
