//! The identity of a device: its number and the root of its random streams.

use crate::stream::Root;

/// Eight random bytes that distinguish a ledger from all others of the same device.
pub type LedgerNonce = [u8; 8];

/// Identity of a device.
///
/// Its streams derive from its root and from the nonce of its ledger, by HChaCha20(root; "streams "
/// ‖ nonce). So a device with a new ledger, after an erase of its flash, never draws from a stream
/// again.
///
/// With the feature `element`, an `Element` can replace the root: the secrets are in a secure
/// element, and the streams derive there.
#[derive(Clone, Debug)]
pub struct Identity<S = Root> {
    /// Number of the device, which also names its random streams.
    pub device: u32,
    /// Root of the random streams, known to nobody else.
    pub root: S,
}
