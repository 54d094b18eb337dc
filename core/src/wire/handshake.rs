//! The greeting with a Diffie-Hellman: Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s, whose messages travel
//! in a Hello and a Welcome of other kinds. `docs/protocol.md`, "A greeting with X25519".
//!
//! | message | to | body |
//! | --- | --- | --- |
//! | Hello | coordinator | that of the other Hello; then Noise's first: key (32), tag (16) |
//! | Welcome | device | Noise's second: key (32), encrypted version u8 twice (2), tag (16) |
//!
//! The prologue is the Hello's frame up to Noise's first message, so that the handshake covers
//! everything that was sent in clear.

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

/// Bytes of the frame of a Hello before Noise's first message.
const PROLOGUE_BYTES: usize = 2 + 9 + 16 + 2 + TAG_BYTES;

impl Hello {
    /// A Hello of the device that has these keys; it begins a handshake.
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
        // Its tag covers that there is a handshake.
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

    /// The handshake that it begins, if the device has just this pre-shared key: for this nothing
    /// is multiplied.
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

/// A handshake that a device with the right pre-shared key has begun, now or once before.
pub struct Admitted {
    opening: Opening,
    /// The device's.
    public: [u8; DH_BYTES],
}

impl Admitted {
    /// The coordinator's answer, in which both agree on a version, and the key of the session.
    ///
    /// `None` if the device's public key is of small order.
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
    /// The version of all frames that follow, and the key of the session; to the device that has
    /// sent the Hello and has its ephemeral key.
    ///
    /// `None` unless it is from who knows the device's pre-shared key, in answer to this Hello.
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

/// The key of the session's frames. Noise has one key a direction and counts from 0; our frames
/// have one key and the direction in the nonce. So the first of Noise's keys, which encrypts
/// nothing, is derived from, and the second one is forgotten.
fn session_key(closing: &Closing) -> SessionKey {
    let [key, _] = &closing.keys;
    SessionKey(key.derive(b"smolfed cipher  "))
}
