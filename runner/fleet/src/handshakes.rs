//! Handshakes with X25519 on the coordinator: one key pair per session, at a limited rate.
//!
//! Two multiplications of a point are by far the most expensive computation that a stranger's frame
//! can cause. A Hello must therefore have both of its tags right, which only a device's Hello has,
//! or a recorded one under the device's current chain key. Each connection may do a few of them at
//! once, and then one per second, which no honest device needs. [`super::admission`] limits the
//! number of connections.

use std::time::Duration;

use smolfed_core::wire::greeting::{Greeting, Hello};
use smolfed_core::wire::handshake::Ephemeral;
use smolfed_core::wire::keys::{HandshakeKey, SessionKey};
use smolfed_core::wire::refusal::Refusal;

use smolfed_release::entropy::secret;

/// Maximum handshakes of a connection at once: of several devices behind a gateway, or of one that
/// restarts repeatedly.
const MAX_AT_ONCE: u32 = 8;

/// Time after which a connection may do one more.
const INTERVAL: Duration = Duration::from_secs(1);

/// The number of handshakes that a connection has left.
#[derive(Clone, Copy, Debug)]
pub struct HandshakeLimit {
    left: u32,
    /// Time of the last increase.
    since: Duration,
}

impl HandshakeLimit {
    /// Returns the limit of a new connection.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            left: MAX_AT_ONCE,
            since: Duration::ZERO,
        }
    }

    /// Takes one, if any is left.
    fn takes(&mut self, now: Duration) -> bool {
        let waited = now.saturating_sub(self.since);
        let more = waited.as_secs() / INTERVAL.as_secs();
        if more > 0 {
            let more = u32::try_from(more).unwrap_or(u32::MAX);
            self.left = self.left.saturating_add(more).min(MAX_AT_ONCE);
            self.since = now;
        }
        let has_one = self.left > 0;
        self.left = self.left.saturating_sub(1);
        has_one
    }

    /// Answers a Hello that begins a handshake. Also returns the key of the session, whose frames
    /// have this version.
    ///
    /// # Errors
    /// [`Refusal::Tag`] unless the device has this pre-shared key and a public key not of small
    /// order. [`Refusal::Replayed`] if there were too many. [`Refusal::Unexpected`] if the
    /// operating system gives no random bytes.
    pub(super) fn answer(
        &mut self,
        hello: &Hello,
        psk: &HandshakeKey,
        version: u8,
        now: Duration,
    ) -> Result<(Greeting, SessionKey), Refusal> {
        let admitted = hello.admit(psk).ok_or(Refusal::Tag)?;
        if !self.takes(now) {
            return Err(Refusal::Replayed);
        }
        // Not from a stream: its key would reveal all sessions of this run.
        let secret = secret().map_err(|error| {
            tracing::error!(reason = "entropy", "no session is opened: {error}");
            Refusal::Unexpected
        })?;
        let answered = admitted.answer(&Ephemeral::from_secret(secret), version);
        let (second, key) = answered.ok_or(Refusal::Tag)?;
        Ok((Greeting::Second(second), key))
    }
}

impl Default for HandshakeLimit {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_has_a_few_handshakes_and_then_one_a_second() {
        let second = Duration::from_secs(1);
        let mut limit = HandshakeLimit::new();
        let mut taken = |now| (0..100).filter(|_| limit.takes(now)).count();
        assert_eq!(taken(Duration::ZERO), 8);
        assert_eq!(taken(second / 2), 0);
        assert_eq!(taken(second), 1);
        assert_eq!(taken(3 * second), 2);
        assert_eq!(taken(1_000 * second), 8);
    }
}
