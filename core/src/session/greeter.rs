//! How a device greets: with its chain key alone, or with a Diffie-Hellman handshake.
//!
//! The type of the session's nonce source decides. Any generator can make nonces, even a counter.
//! [`X25519`] wraps an unpredictable one.

use rand_core::Rng;

#[cfg(feature = "x25519")]
pub use x25519::X25519;

#[cfg(feature = "x25519")]
use crate::wire::{handshake::Second, keys::SessionKey, refusal::Refusal};
use crate::{
    secrets::{Held, Secrets},
    wire::{
        greeting::{Hello, Name, Versions},
        keys::{Chain, Nonce},
    },
};

#[cfg(feature = "x25519")]
mod x25519;

/// A way to greet: any [`Rng`], or with the feature `x25519` an `X25519` of a `CryptoRng`.
pub trait Greeter: sealed::Sealed {
    /// Whether it begins handshakes, and opens no session without one.
    #[doc(hidden)]
    const HAS_HANDSHAKE: bool;

    /// Begins a new session with a nonce that was never used before.
    #[doc(hidden)]
    fn begin(&mut self, nonce: &mut Nonce);

    /// Returns the Hello of this session, the same one each time.
    #[doc(hidden)]
    fn hello<S: Secrets>(
        &self,
        chain: &mut Held<'_, S>,
        device: u32,
        name: Name,
        nonce: Nonce,
    ) -> Result<Hello, S::Fault>;

    /// Notes that a Hello goes out.
    #[cfg(feature = "x25519")]
    #[doc(hidden)]
    fn greets(&mut self) {}

    /// Counts an answer to a Hello. An error if none is awaited, or there were too many.
    #[cfg(feature = "x25519")]
    #[doc(hidden)]
    fn answered(&mut self) -> Result<(), Refusal> {
        Err(Refusal::Unexpected)
    }

    /// Returns the key of the session that this answer to `hello` opens.
    #[cfg(feature = "x25519")]
    #[doc(hidden)]
    fn conclude<S: Secrets>(
        &mut self,
        _chain: &mut Held<'_, S>,
        _device: u32,
        _hello: &Hello,
        _second: &Second,
    ) -> Result<SessionKey, Refusal> {
        Err(Refusal::Unexpected)
    }
}

mod sealed {
    pub trait Sealed {}
}

impl<R: Rng> sealed::Sealed for R {}

impl<R: Rng> Greeter for R {
    const HAS_HANDSHAKE: bool = false;

    #[inline(always)]
    fn begin(&mut self, nonce: &mut Nonce) {
        self.fill_bytes(nonce);
    }

    #[inline(always)]
    fn hello<S: Secrets>(
        &self,
        chain: &mut Held<'_, S>,
        _: u32,
        name: Name,
        nonce: Nonce,
    ) -> Result<Hello, S::Fault> {
        let key = &chain.greeting()?;
        Ok(Hello::new(key, name, nonce, Versions::OURS))
    }
}
