//! Handshakes with X25519, as the coordinator computes them: a key pair of one session, and at most
//! so many in a time.
//!
//! Two multiplications of a point are by far the most that a frame of a stranger can make the
//! coordinator compute. A Hello must therefore have both of its tags right, which only a device's
//! Hello has, or one that was recorded under the chain key that the device still has. Each
//! connection has a few of them at once, and then one a second, which no honest device needs; how
//! many connections there are is a matter of [`super::admission`].

use std::time::Duration;

use smolfed_core::wire::greeting::{Greeting, Hello};
use smolfed_core::wire::handshake::Ephemeral;
use smolfed_core::wire::keys::{HandshakeKey, SessionKey};
use smolfed_core::wire::refusal::Refusal;

use smolfed_release::entropy::secret;

/// Handshakes of a connection at once: of several devices behind a gateway, or of one that has
/// restarted again and again.
const MAX_AT_ONCE: u32 = 8;

/// Time after which a connection has one more.
const INTERVAL: Duration = Duration::from_secs(1);

/// How many handshakes a connection has left.
#[derive(Clone, Copy, Debug)]
pub struct HandshakeLimit {
    left: u32,
    /// When it last had one more.
    since: Duration,
}

impl HandshakeLimit {
    /// That of a new connection.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            left: MAX_AT_ONCE,
            since: Duration::ZERO,
        }
    }

    /// Takes one, if there is one left.
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

    /// The answer to a Hello that begins a handshake, and the key of the session, in which frames
    /// have this version.
    ///
    /// # Errors
    /// [`Refusal::Tag`] unless the device has this pre-shared key, and a public key that is none of
    /// those of small order; [`Refusal::Replayed`] if there were too many; [`Refusal::Unexpected`]
    /// if the operating system gives no random bytes.
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
        // Not of a stream: its key would give away all sessions of this run.
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
