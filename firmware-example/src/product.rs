//! What a product does around the client: it uses the model, and looks at how rounds went.

use smolfed_core::session::{Session, Trainable};

#[cfg(feature = "element")]
use crate::element::Secrets;
#[cfg(feature = "x25519")]
use crate::handshake::Nonces;
#[cfg(not(feature = "x25519"))]
use crate::nonces::Nonces;
#[cfg(not(feature = "element"))]
use crate::root::Secrets;

/// The session of a board.
pub type Device<'a, M, F, K> = Session<'a, M, F, Nonces, K, Secrets>;

/// A product around the client. A client alone has none: `()`.
pub trait Product<M: Trainable, F, K> {
    /// The board has started, and nothing is on the line.
    fn starts(&mut self, _: &mut Device<'_, M, F, K>) {}

    /// A piece of a round is next. Before the first one the round is not recorded in the ledger.
    fn trains(&mut self, _: &Device<'_, M, F, K>) {}

    /// There is nothing to train.
    fn rests(&mut self, _: &Device<'_, M, F, K>) {}

    /// Between rounds, once a tick.
    fn idle(&mut self, _: &Device<'_, M, F, K>) {}
}

impl<M: Trainable, F, K> Product<M, F, K> for () {}
