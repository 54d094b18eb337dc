//! The greeting with a Diffie-Hellman handshake: Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s, whose
//! messages travel in a Hello and a Welcome of separate kinds. `docs/protocol.md`, "A greeting with
//! X25519".
//!
//! | message | to | body |
//! | --- | --- | --- |
//! | Hello | coordinator | body of the plain Hello, then Noise's first: key (32), tag (16) |
//! | Welcome | device | Noise's second: key (32), encrypted version u8 twice (2), tag (16) |
//!
//! The prologue is the Hello's frame up to Noise's first message, so that the handshake covers all
//! unencrypted bytes.

use super::{
    GREETING_VERSION,
    greeting::{Hello, Name, Versions, kind},
    keys::{GreetingKey, HandshakeKey, Nonce, SessionKey, is_same},
    noise::First,
};
use crate::bytes::Writer;
use crate::crypto::{
    aead::TAG_BYTES,
    noise::{Closing, DH_BYTES, Opening},
};

pub use super::noise::Second;
pub use crate::crypto::noise::Ephemeral;

/// Bytes of a Hello's frame before Noise's first message.
const PROLOGUE_BYTES: usize = 2 + 9 + 16 + 2 + TAG_BYTES;

impl Hello {
    /// Creates a Hello of the device with these keys, which begins a handshake.
    pub fn with_handshake(
        key: &GreetingKey,
        psk: &HandshakeKey,
        name: Name,
        nonce: Nonce,
        versions: Versions,
        ephemeral: &Ephemeral,
    ) -> Self {
        let mut hello = Self::new(key, name, nonce, versions);
        let mut first = First {
            public: *ephemeral.public(),
            tag: [0; TAG_BYTES],
        };
        // The tag covers the presence of a handshake.
        hello.first = Some(first);
        hello.sign(key);
        (_, first.tag) = hello.opening(psk, &first.public);
        hello.first = Some(first);
        hello
    }

    /// Whether it begins a handshake.
    pub const fn has_handshake(&self) -> bool {
        self.first.is_some()
    }

    /// Returns the handshake that it begins, if the device has this pre-shared key. The check needs
    /// no curve multiplication.
    pub fn admit(&self, psk: &HandshakeKey) -> Option<Admitted> {
        let First { public, tag } = self.first?;
        let (opening, expected) = self.opening(psk, &public);
        is_same(&tag, &expected).then_some(Admitted { opening, public })
    }

    fn opening(&self, psk: &HandshakeKey, public: &[u8; DH_BYTES]) -> (Opening, [u8; TAG_BYTES]) {
        let mut prologue = [0; PROLOGUE_BYTES];
        let mut writer = Writer::new(&mut prologue);
        writer.u8(GREETING_VERSION).u8(kind::HELLO_X25519);
        self.write(&mut writer);
        Opening::new(&psk.0, &prologue, public)
    }
}

/// A handshake from a device with the right pre-shared key, now or earlier.
pub struct Admitted {
    opening: Opening,
    /// The device's public key.
    public: [u8; DH_BYTES],
}

impl Admitted {
    /// Returns the coordinator's answer, which confirms the version, and the key of the session.
    ///
    /// `None` if the device's public key has small order.
    pub fn answer(self, ephemeral: &Ephemeral, version: u8) -> Option<(Second, SessionKey)> {
        let mut payload = [version; 2];
        let answered = self.opening.respond(ephemeral, &self.public, &mut payload);
        let (tag, closing) = answered?;
        let second = Second {
            public: *ephemeral.public(),
            payload,
            tag,
        };
        Some((second, session_key(&closing)))
    }
}

impl Second {
    /// Returns the version of all later frames and the key of the session, on the device that sent
    /// the Hello and holds its ephemeral key.
    ///
    /// `None` unless the answer is from a holder of the device's pre-shared key, for this Hello.
    pub fn open(
        &self,
        psk: &HandshakeKey,
        hello: &Hello,
        ephemeral: &Ephemeral,
    ) -> Option<(u8, SessionKey)> {
        let (opening, _) = hello.opening(psk, ephemeral.public());
        let mut payload = self.payload;
        let closing = opening.conclude(ephemeral, &self.public, &mut payload, &self.tag)?;
        let [version, again] = payload;
        (version == again).then(|| (version, session_key(&closing)))
    }
}

/// Returns the key of the session's frames. Noise has one key per direction and counts from 0. Our
/// frames have one key, and the direction in the nonce. The key is therefore derived from Noise's
/// first key, which encrypts nothing, and the second one is discarded.
fn session_key(closing: &Closing) -> SessionKey {
    let [key, _] = &closing.keys;
    SessionKey(key.derive(b"smolfed cipher  "))
}
