//! Where a device has its two secrets, the root of its streams and its chain key, and what is done
//! with them.
//!
//! A [`Root`] is in RAM, and the chain key beside it in the ledger. With the feature `element` both
//! may be in a secure element, which derives keys and gives out neither: `element`.

use core::convert::Infallible;

use crate::{
    crypto::{Key, joined},
    identity::LedgerNonce,
    mask::MaskRoot,
    stream::Root,
    wire::keys::{Chain, ChainKey},
};

/// Where a device has its secrets: a [`Root`], or with the feature `element` an `Element`.
pub trait Secrets: sealed::Sealed {
    /// That nothing derives from a secret; of a [`Root`], what cannot happen.
    #[doc(hidden)]
    type Fault;

    /// The root of the streams of a round of this ledger.
    #[doc(hidden)]
    fn streams(&mut self, ledger: &LedgerNonce, round: u32) -> Result<Root, Self::Fault>;

    /// Whether the chain key is there that the ledger names.
    #[doc(hidden)]
    fn recognise(&mut self, chain: &ChainKey) -> Result<(), Self::Fault>;

    /// From now on these are the secrets of a device with this ledger.
    #[doc(hidden)]
    fn bind(&mut self, ledger: &LedgerNonce);

    /// From now on [`Self::current`] is that of this round.
    #[doc(hidden)]
    fn begin(&mut self, ledger: &LedgerNonce, round: u32) -> Result<(), Self::Fault>;

    /// Nothing draws from the streams of the round any more.
    #[doc(hidden)]
    fn end(&mut self);

    /// The root of the streams of the round that was begun.
    #[doc(hidden)]
    fn current(&self) -> &Root;

    /// What the masks of the device derive from.
    #[doc(hidden)]
    fn masks(&mut self, device: u32) -> Result<MaskRoot, Self::Fault>;

    /// The key that belongs to these inputs, of the chain key that the ledger names.
    #[doc(hidden)]
    fn derive(&mut self, chain: &ChainKey, inputs: &[&[u8; 16]]) -> Result<Key, Self::Fault>;

    /// What the ledger names behind this chain key; `None` if it is the key itself that it names,
    /// from which the next one follows.
    #[doc(hidden)]
    fn next(&mut self, chain: &ChainKey) -> Result<Option<ChainKey>, Self::Fault>;
}

pub(crate) mod sealed {
    pub trait Sealed {}
}

/// Before the nonce of a ledger in what the root of its streams derives from.
pub(crate) const STREAMS: &[u8; 8] = b"streams ";

impl sealed::Sealed for Root {}

/// The streams of a device are those of HChaCha20(root; "streams " ‖ nonce).
///
/// HChaCha20 is a pseudo-random function: for somebody who does not know the root, the roots of two
/// nonces are independent uniform keys, and so are the ChaCha20 streams under them. The root itself
/// keys nothing else but the root of the masks. So a device whose ledger is new, because its flash
/// was erased, never draws from a stream again. One root is for all rounds of a ledger: the round
/// is in the name of a stream.
///
/// A seeded root stays: it names the streams of a simulation, which are no secret and have to be
/// the same on every board. No secret of 32 random bytes is taken for one, but with probability
/// 2⁻¹⁹².
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

    /// Its keys leave the stack at once.
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

/// The chain key that a device's ledger names, wherever it is:
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
