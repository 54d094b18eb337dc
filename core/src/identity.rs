//! Who a device is: its number, and the root of its random streams.

use crate::stream::Root;

/// What tells a ledger from all others of the same device: 8 random bytes.
pub type LedgerNonce = [u8; 8];

/// Who the device is.
///
/// Its streams derive from its root and from the nonce of its ledger, by
/// HChaCha20(root; "streams " ‖ nonce): a device whose ledger is new, because its flash was erased,
/// never draws from a stream again.
///
/// With the feature `element` an `Element` takes the place of the root: its secrets are in a secure
/// element, and its streams derive there.
#[derive(Clone, Debug)]
pub struct Identity<S = Root> {
    /// Its number, which also names its random streams.
    pub device: u32,
    /// The root of its random streams, which nobody else knows.
    pub root: S,
}
