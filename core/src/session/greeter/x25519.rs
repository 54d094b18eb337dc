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

/// Answers to one Hello that are multiplied with at most: each costs a board as much as a Hello.
/// More come from who writes on the device's line, and are left out until the next Hello.
pub(in crate::session) const MAX_ANSWERS: u8 = 2;

/// A device that opens sessions with an X25519 handshake only, by a generator that nobody can
/// predict, neither before nor after: that of the hardware, or of the operating system. A generator
/// whose state is stored, or can be computed again, gives nothing: the handshake is for the day on
/// which everything stored is known.
///
/// It also makes the nonces of the sessions. A generator of nonces only, like a counter, is none:
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
    /// That of the Hello that waits for its answer; none once that has come.
    ephemeral: Option<Ephemeral>,
    answers: u8,
}

impl<R: CryptoRng> X25519<R> {
    /// Greets with keys of this generator.
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
            // There is one for as long as a Hello is repeated.
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
        // Of no use any more, and overwritten.
        self.ephemeral = None;
        Ok(key)
    }
}
