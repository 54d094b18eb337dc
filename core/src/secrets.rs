//! Storage and use of a device's two secrets: the root of its streams and its chain key.
//!
//! A [`Root`] is in RAM, and the chain key in the ledger. With the feature `element`, both may be
//! in a secure element, which derives keys and reveals neither: `element`.

use core::convert::Infallible;

use crate::{
    crypto::{Key, joined},
    identity::LedgerNonce,
    mask::MaskRoot,
    stream::Root,
    wire::keys::{Chain, ChainKey},
};

/// The secrets of a device: a [`Root`], or with the feature `element` an `Element`.
pub trait Secrets: sealed::Sealed {
    /// Error if derivation from a secret fails. Impossible for a [`Root`].
    #[doc(hidden)]
    type Fault;

    /// Returns the root of the streams of a round of this ledger.
    #[doc(hidden)]
    fn streams(&mut self, ledger: &LedgerNonce, round: u32) -> Result<Root, Self::Fault>;

    /// Checks that the chain key named by the ledger is present.
    #[doc(hidden)]
    fn recognise(&mut self, chain: &ChainKey) -> Result<(), Self::Fault>;

    /// Binds the secrets to a device with this ledger.
    #[doc(hidden)]
    fn bind(&mut self, ledger: &LedgerNonce);

    /// Makes this round the one of [`Self::current`].
    #[doc(hidden)]
    fn begin(&mut self, ledger: &LedgerNonce, round: u32) -> Result<(), Self::Fault>;

    /// Ends the use of the streams of the round.
    #[doc(hidden)]
    fn end(&mut self);

    /// Returns the root of the streams of the current round.
    #[doc(hidden)]
    fn current(&self) -> &Root;

    /// Returns the root of the device's masks.
    #[doc(hidden)]
    fn masks(&mut self, device: u32) -> Result<MaskRoot, Self::Fault>;

    /// Derives the key for these inputs from the chain key named by the ledger.
    #[doc(hidden)]
    fn derive(&mut self, chain: &ChainKey, inputs: &[&[u8; 16]]) -> Result<Key, Self::Fault>;

    /// Returns the ledger's name for the chain key after this one, or `None` if the ledger holds
    /// the key itself, from which the next one follows.
    #[doc(hidden)]
    fn next(&mut self, chain: &ChainKey) -> Result<Option<ChainKey>, Self::Fault>;
}

pub(crate) mod sealed {
    pub trait Sealed {}
}

/// Label before the nonce of a ledger in the derivation of its streams' root.
pub(crate) const STREAMS: &[u8; 8] = b"streams ";

impl sealed::Sealed for Root {}

/// The streams of a device have the root HChaCha20(root; "streams " ‖ nonce).
///
/// HChaCha20 is a pseudo-random function: to anyone who does not know the root, the roots of two
/// nonces are independent uniform keys, and so the ChaCha20 streams under them are independent. The
/// root itself keys nothing else but the root of the masks. So a device with a new ledger, after an
/// erase of its flash, never draws from a stream again. One root serves all rounds of a ledger,
/// because the round is in the name of a stream.
///
/// A seeded root does not change: it names the streams of a simulation, which are not secret and
/// must be the same on every board. A secret of 32 random bytes looks like one only with
/// probability 2⁻¹⁹².
impl Secrets for Root {
    type Fault = Infallible;

    #[inline(never)]
    fn streams(&mut self, ledger: &LedgerNonce, _: u32) -> Result<Root, Infallible> {
        let mut bound = self.clone();
        bound.bind(ledger);
        Ok(bound)
    }

    #[inline(always)]
    fn recognise(&mut self, _: &ChainKey) -> Result<(), Infallible> {
        Ok(())
    }

    /// Not inlined, so that its keys leave the stack at once.
    #[inline(never)]
    fn bind(&mut self, ledger: &LedgerNonce) {
        if !self.is_seeded() {
            let root = Key::from_secret(*self.secret());
            let root = root.derive(&joined(STREAMS, ledger));
            *self = Self::from_secret(*root.secret());
        }
    }

    #[inline(always)]
    fn begin(&mut self, _: &LedgerNonce, _: u32) -> Result<(), Infallible> {
        Ok(())
    }

    #[inline(always)]
    fn end(&mut self) {}

    #[inline(always)]
    fn current(&self) -> &Root {
        self
    }

    #[inline(always)]
    fn masks(&mut self, device: u32) -> Result<MaskRoot, Infallible> {
        Ok(MaskRoot::new(self, device))
    }

    #[inline(always)]
    fn derive(&mut self, chain: &ChainKey, inputs: &[&[u8; 16]]) -> Result<Key, Infallible> {
        Ok(chain.derive(inputs, |key| key))
    }

    #[inline(always)]
    fn next(&mut self, _: &ChainKey) -> Result<Option<ChainKey>, Infallible> {
        Ok(None)
    }
}

/// The chain key named by a device's ledger, in any storage:
/// [`Ledger::chain_of`](crate::ledger::Ledger::chain_of).
#[derive(Debug)]
pub struct Held<'a, S> {
    pub(crate) secrets: &'a mut S,
    pub(crate) chain: &'a ChainKey,
}

impl<S: Secrets> Chain for &mut Held<'_, S> {
    type Of<T> = Result<T, S::Fault>;

    #[inline(always)]
    fn derive<T>(self, inputs: &[&[u8; 16]], make: impl FnOnce(Key) -> T) -> Result<T, S::Fault> {
        self.secrets.derive(self.chain, inputs).map(make)
    }
}
