//! A device as a process: the same client as on boards, with its memory on the heap and its ledger
//! in a file.
//!
//! | module | contents |
//! | --- | --- |
//! | [`process`] | one device: its record, its samples, the session of its model |
//! | [`files`] | the record and the ledger of a device |
//! | [`line`](mod@line) | the connection, which reconnects whenever it breaks |
//! | [`client`] | the main loop between a connection and the session |
//! | [`memory`] | the memory of a session, on the heap |
//! | [`flash`] | NOR flash in a file, for the device's ledger |
//! | [`image`] | flash as bytes in memory, and the ledger of a new device |
//! | [`awake`] | how long the device stays awake |
//! | [`held`] | the update that waits to be sent, in a file |
//! | [`personal`] | the personal model of a device in a file |

pub mod awake;
pub mod client;
pub mod files;
pub mod flash;
pub mod held;
pub mod image;
pub mod line;
pub mod memory;
pub mod pace;
pub mod personal;
pub mod process;

/// Error that keeps a device from starting, or stops it.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// A file or an option is wrong.
    #[error("{0}")]
    Usage(String),
    /// The system refused an operation.
    #[error("{0}")]
    Stopped(String),
}
