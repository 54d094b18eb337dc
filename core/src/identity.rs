//! Who a device is: its number, and the root of its random streams.

use crate::{
    crypto::{Key, joined},
    stream::Root,
};

/// What tells a ledger from all others of the same device: 8 random bytes.
pub type LedgerNonce = [u8; 8];

/// Who the device is.
///
/// Its streams derive from its root and from the nonce of its ledger, by
/// HChaCha20(root; "streams " ‖ nonce): a device whose ledger is new, because its flash was erased,
/// never draws from a stream again.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Its number, which also names its random streams.
    pub device: u32,
    /// The root of its random streams, which nobody else knows.
    pub root: Root,
}

/// Before the nonce of a ledger in what the root of its streams derives from.
const STREAMS_LABEL: &[u8; 8] = b"streams ";

impl Identity {
    /// Replaces the root by that of the streams of this ledger:
    /// HChaCha20(root; "streams " ‖ nonce).
    ///
    /// HChaCha20 is a pseudo-random function: for somebody who does not know the root, the
    /// roots of two nonces are independent uniform keys, and so are the ChaCha20 streams under
    /// them. The root itself keys nothing else. So a device whose ledger is new, because its flash
    /// was erased, never draws from a stream again.
    ///
    /// A seeded root stays: it names the streams of a simulation, which are no secret and have to
    /// be the same on every board. No secret of 32 random bytes is taken for one, but with
    /// probability 2⁻¹⁹².
    // Its keys leave the stack at once.
    #[inline(never)]
    pub(crate) fn bind(&mut self, nonce: &LedgerNonce) {
        if !self.root.is_seeded() {
            let root = Key::from_secret(*self.root.secret());
            let root = root.derive(&joined(STREAMS_LABEL, nonce));
            self.root = Root::from_secret(*root.secret());
        }
    }
}
