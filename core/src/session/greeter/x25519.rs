//! A device that begins its sessions with an X25519 handshake.

use rand_core::CryptoRng;

use super::{Greeter, sealed};
use crate::{
    secrets::{Held, Secrets},
    wire::{
        VERSION,
        greeting::{Hello, Name, Versions},
        handshake::{Ephemeral, Second},
        keys::{Chain, Nonce, SessionKey},
        refusal::Refusal,
    },
};

/// Maximum number of answers to one Hello that the device multiplies with: each costs a board as
/// much as a Hello. More answers can only come from an attacker on the device's line, and are
/// skipped until the next Hello.
pub(in crate::session) const MAX_ANSWERS: u8 = 2;

/// A device that opens sessions only with an X25519 handshake, with keys from a generator whose
/// output nobody can predict or reconstruct, such as that of the hardware or of the operating
/// system. A generator with a stored or reproducible state adds no security, because the handshake
/// protects against the disclosure of everything stored.
///
/// It also makes the nonces of the sessions. A plain nonce generator, such as a counter, does not
/// compile:
///
/// ```compile_fail,E0599
/// use core::convert::Infallible;
///
/// use rand_core::TryRng;
/// use smolfed_core::session::X25519;
///
/// struct Counter(u64);
///
/// impl TryRng for Counter {
///     type Error = Infallible;
///     fn try_next_u32(&mut self) -> Result<u32, Infallible> {
///         self.try_next_u64().map(|number| number as u32)
///     }
///     fn try_next_u64(&mut self) -> Result<u64, Infallible> {
///         self.0 += 1;
///         Ok(self.0)
///     }
///     fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
///         bytes.fill(self.try_next_u64()? as u8);
///         Ok(())
///     }
/// }
///
/// X25519::new(Counter(0));
/// ```
#[derive(Debug)]
pub struct X25519<R> {
    rng: R,
    /// The key of the Hello that waits for its answer, `None` once the answer has come.
    ephemeral: Option<Ephemeral>,
    answers: u8,
}

impl<R: CryptoRng> X25519<R> {
    /// Creates a greeter with keys from this generator.
    pub const fn new(rng: R) -> Self {
        Self {
            rng,
            ephemeral: None,
            answers: 0,
        }
    }
}

#[cfg(test)]
impl<R> X25519<R> {
    pub(in crate::session) const fn has_ephemeral(&self) -> bool {
        self.ephemeral.is_some()
    }
}

impl<R: CryptoRng> sealed::Sealed for X25519<R> {}

impl<R: CryptoRng> Greeter for X25519<R> {
    const HAS_HANDSHAKE: bool = true;

    fn begin(&mut self, nonce: &mut Nonce) {
        self.rng.fill_bytes(nonce);
        self.ephemeral = Some(Ephemeral::generate(&mut self.rng));
    }

    fn hello<S: Secrets>(
        &self,
        chain: &mut Held<'_, S>,
        device: u32,
        name: Name,
        nonce: Nonce,
    ) -> Result<Hello, S::Fault> {
        let (key, versions) = (chain.greeting()?, Versions::OURS);
        Ok(match &self.ephemeral {
            Some(ephemeral) => {
                let psk = chain.handshake(device)?;
                Hello::with_handshake(&key, &psk, name, nonce, versions, ephemeral)
            }
            // The key exists as long as a Hello is repeated.
            None => Hello::new(&key, name, nonce, versions),
        })
    }

    fn greets(&mut self) {
        self.answers = 0;
    }

    fn answered(&mut self) -> Result<(), Refusal> {
        if self.ephemeral.is_none() || self.answers >= MAX_ANSWERS {
            return Err(Refusal::Unexpected);
        }
        self.answers += 1;
        Ok(())
    }

    fn conclude<S: Secrets>(
        &mut self,
        chain: &mut Held<'_, S>,
        device: u32,
        hello: &Hello,
        second: &Second,
    ) -> Result<SessionKey, Refusal> {
        let ephemeral = self.ephemeral.as_ref().ok_or(Refusal::Unexpected)?;
        let psk = chain.handshake(device).map_err(|_| Refusal::Unexpected)?;
        let opened = second.open(&psk, hello, ephemeral);
        let (version, key) = opened.ok_or(Refusal::Tag)?;
        if version != VERSION {
            return Err(Refusal::Version);
        }
        // No longer needed, and overwritten.
        self.ephemeral = None;
        Ok(key)
    }
}
