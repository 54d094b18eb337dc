//! The hooks of a product around the client, which uses the model and reports the results of
//! rounds: at the start, during training, and between rounds.

use smolfed_core::session::{Session, Trainable};

#[cfg(feature = "element")]
use crate::element::Secrets;
#[cfg(feature = "x25519")]
use crate::handshake::Nonces;
#[cfg(not(feature = "x25519"))]
use crate::nonces::Nonces;
#[cfg(not(feature = "element"))]
use crate::root::Secrets;

/// Session of a board.
pub type Device<'a, M, F, K> = Session<'a, M, F, Nonces, K, Secrets>;

/// A product around the client. A client alone uses `()`.
pub trait Product<M: Trainable, F, K> {
    /// Called after the board has started, before anything is sent.
    fn starts(&mut self, _: &mut Device<'_, M, F, K>) {}

    /// Called before each piece of a round. The ledger has not recorded it before the first piece.
    fn trains(&mut self, _: &Device<'_, M, F, K>) {}

    /// Called if there is nothing to train.
    fn rests(&mut self, _: &Device<'_, M, F, K>) {}

    /// Called between rounds, once per tick.
    fn idle(&mut self, _: &Device<'_, M, F, K>) {}
}

impl<M: Trainable, F, K> Product<M, F, K> for () {}
