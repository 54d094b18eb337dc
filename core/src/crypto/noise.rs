//! Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s: a handshake of two messages whose keys nobody finds
//! later, not even with the pre-shared key (The Noise Protocol Framework, revision 34, sections 5,
//! 7.5 and 9).
//!
//! ```text
//! -> psk, e        Opening: the tag is under psk and e alone
//! <- e, ee         Closing: and under the Diffie-Hellman of both
//! ```
//!
//! The state of a handshake is the same on both sides after each message, so that most of this has
//! no sides. A key encrypts one payload: the nonce is 0 throughout. Of the keys that Noise derives
//! only those are computed that encrypt something.

use blake2::{Blake2s256, Digest};
use ctutils::CtEq;
use curve25519_dalek::montgomery::MontgomeryPoint;
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use super::{
    KEY_BYTES, Key,
    aead::{self, TAG_BYTES},
};

/// Bytes of a public key, and of what two sides compute together.
pub const DH_BYTES: usize = 32;

/// The name of the protocol, from which its first hash is made.
const NAME: &[u8] = b"Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";

/// Bytes of a block of BLAKE2s, which HMAC pads its key to.
const BLOCK_BYTES: usize = 64;

/// The first nonce, and the only one of each key.
const NONCE: aead::Nonce = [0; 3];

/// The point that public keys are multiples of (RFC 7748, section 4.1).
const BASE_POINT: [u8; DH_BYTES] = {
    let mut point = [0; DH_BYTES];
    point[0] = 9;
    point
};

/// A hash, or a key that is not one of ChaCha20; overwritten when it is dropped.
type Secret = Zeroizing<[u8; KEY_BYTES]>;

/// A key pair of X25519 for one handshake. The secret half is overwritten when it is dropped.
pub struct Ephemeral {
    secret: Secret,
    public: [u8; DH_BYTES],
}

impl Ephemeral {
    /// A new pair: 32 bytes of a generator that nobody can predict, neither before nor after.
    pub fn generate<R: CryptoRng>(rng: &mut R) -> Self {
        let mut secret = Zeroizing::new([0; KEY_BYTES]);
        rng.fill_bytes(&mut *secret);
        Self::from_secret(secret)
    }

    /// The pair of this secret: uniformly random, of one handshake, and kept by nobody.
    pub fn from_secret(secret: Zeroizing<[u8; KEY_BYTES]>) -> Self {
        let public = x25519(&secret, &BASE_POINT);
        Self {
            secret,
            public: *public,
        }
    }

    /// The half that is sent.
    pub const fn public(&self) -> &[u8; DH_BYTES] {
        &self.public
    }

    /// What this side and the one with that public key compute together.
    ///
    /// `None` if it is zero. Then the public key is one of the few points of small order, and the
    /// result would be the same whatever the secret is (RFC 7748, section 6.1).
    fn shared(&self, public: &[u8; DH_BYTES]) -> Option<Secret> {
        let shared = x25519(&self.secret, public);
        let is_zero: bool = shared.ct_eq(&[0; DH_BYTES]).into();
        (!is_zero).then_some(shared)
    }
}

impl core::fmt::Debug for Ephemeral {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Ephemeral(..)")
    }
}

/// RFC 7748, section 5. The Montgomery ladder for both multiplications: that of the base point has
/// faster ways, which are more code.
#[inline(never)]
fn x25519(secret: &[u8; KEY_BYTES], point: &[u8; DH_BYTES]) -> Secret {
    Zeroizing::new(MontgomeryPoint(*point).mul_clamped(*secret).to_bytes())
}

/// A handshake after its first message: what both sides have seen.
pub struct Opening {
    chaining: Secret,
    hash: [u8; KEY_BYTES],
}

/// What both sides have at the end.
pub struct Closing {
    /// The key of the initiator's direction, and that of the responder's.
    pub keys: [Key; 2],
    /// The hash of all that was sent, and of the prologue.
    pub hash: [u8; KEY_BYTES],
}

impl Opening {
    /// The handshake after `-> psk, e` with an empty payload, and the tag of that.
    ///
    /// Whoever knows the pre-shared key computes it from the initiator's public key: the responder
    /// compares the tag before it multiplies anything.
    pub fn new(psk: &Key, prologue: &[u8], initiator: &[u8; DH_BYTES]) -> (Self, [u8; TAG_BYTES]) {
        // The name is longer than a hash: section 5.2, `InitializeSymmetric`.
        let hash = blake2s([NAME, &[], &[]]);
        let mut state = Self {
            chaining: Zeroizing::new(hash),
            hash,
        };
        state.mix_hash(prologue, &[]);
        // psk: `MixKeyAndHash`, whose third output the next key replaces.
        let [chaining, hash] = expand(&state.chaining, psk.secret());
        state.chaining = chaining;
        state.mix_hash(&*hash, &[]);
        // e, in a handshake with a pre-shared key: section 9.2.
        state.mix_hash(initiator, &[]);
        let key = state.mix_key(initiator);
        let tag = state.encrypt(&key, &mut []);
        (state, tag)
    }

    /// The responder's message, `<- e, ee`: encrypts the payload where it lies. Returns its tag.
    ///
    /// `None` if the initiator's public key is of small order.
    pub fn respond(
        mut self,
        responder: &Ephemeral,
        initiator: &[u8; DH_BYTES],
        payload: &mut [u8],
    ) -> Option<([u8; TAG_BYTES], Closing)> {
        let shared = responder.shared(initiator)?;
        let key = self.mix_shared(responder.public(), &shared);
        let tag = self.encrypt(&key, payload);
        Some((tag, self.split()))
    }

    /// The initiator reads that message: decrypts the payload where it lies.
    ///
    /// `None` if the tag is wrong, or the responder's public key is of small order.
    pub fn conclude(
        mut self,
        initiator: &Ephemeral,
        responder: &[u8; DH_BYTES],
        payload: &mut [u8],
        tag: &[u8; TAG_BYTES],
    ) -> Option<Closing> {
        let shared = initiator.shared(responder)?;
        let key = self.mix_shared(responder, &shared);
        let hash = self.hash;
        self.mix_hash(payload, tag);
        aead::open(&key, &NONCE, &hash, payload, tag).then(|| self.split())
    }

    /// e, ee.
    fn mix_shared(&mut self, responder: &[u8; DH_BYTES], shared: &Secret) -> Key {
        self.mix_hash(responder, &[]);
        // Its key is replaced by the next one.
        self.mix_key(responder);
        self.mix_key(shared)
    }

    fn mix_hash(&mut self, data: &[u8], more: &[u8]) {
        self.hash = blake2s([&self.hash, data, more]);
    }

    fn mix_key(&mut self, input: &[u8; KEY_BYTES]) -> Key {
        let [chaining, key] = expand(&self.chaining, input);
        self.chaining = chaining;
        Key::from_secret(*key)
    }

    fn encrypt(&mut self, key: &Key, payload: &mut [u8]) -> [u8; TAG_BYTES] {
        let tag = aead::seal(key, &NONCE, &self.hash, payload);
        self.mix_hash(payload, &tag);
        tag
    }

    fn split(self) -> Closing {
        let keys = expand(&self.chaining, &[]);
        Closing {
            keys: keys.map(|key| Key::from_secret(*key)),
            hash: self.hash,
        }
    }
}

/// The first two outputs of HKDF as Noise has it (section 4.3).
#[inline(never)]
fn expand(chaining: &[u8; KEY_BYTES], input: &[u8]) -> [Secret; 2] {
    let key = hmac(chaining, input, &[]);
    let first = hmac(&key, &[1], &[]);
    let second = hmac(&key, &*first, &[2]);
    [first, second]
}

/// HMAC-BLAKE2s under a key that is shorter than a block (RFC 2104).
#[inline(never)]
fn hmac(key: &[u8; KEY_BYTES], data: &[u8], more: &[u8]) -> Secret {
    let mut padded = Zeroizing::new([0x36; BLOCK_BYTES]);
    for (place, byte) in padded.iter_mut().zip(key) {
        *place ^= byte;
    }
    let inner = Zeroizing::new(blake2s([&*padded, data, more]));
    padded.iter_mut().for_each(|byte| *byte ^= 0x36 ^ 0x5c);
    Zeroizing::new(blake2s([&*padded, &*inner, &[]]))
}

/// One after the other.
#[inline(never)]
fn blake2s(data: [&[u8]; 3]) -> [u8; KEY_BYTES] {
    let mut hash = Blake2s256::new();
    data.into_iter().for_each(|data| hash.update(data));
    hash.finalize().into()
}

#[cfg(test)]
mod tests;
