//! Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s: a handshake of two messages with forward secrecy, even if
//! the pre-shared key is revealed (The Noise Protocol Framework, revision 34, sections 5, 7.5 and
//! 9).
//!
//! ```text
//! -> psk, e        Opening: the tag is under psk and e alone
//! <- e, ee         Closing: and under the Diffie-Hellman of both
//! ```
//!
//! The state of a handshake is the same on both sides after each message, so most of this code
//! serves both sides. A key encrypts one payload, so the nonce is always 0. Keys of Noise that
//! encrypt nothing are not computed.

use blake2::{Blake2s256, Digest};
use ctutils::CtEq;
use curve25519_dalek::montgomery::MontgomeryPoint;
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use super::{
    KEY_BYTES, Key,
    aead::{self, TAG_BYTES},
};

/// Bytes of a public key, and of a shared secret.
pub const DH_BYTES: usize = 32;

/// Name of the protocol, the start of its first hash.
const NAME: &[u8] = b"Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";

/// Bytes of a block of BLAKE2s, to which HMAC pads its key.
const BLOCK_BYTES: usize = 64;

/// The first and only nonce of each key.
const NONCE: aead::Nonce = [0; 3];

/// The base point of public keys (RFC 7748, section 4.1).
const BASE_POINT: [u8; DH_BYTES] = {
    let mut point = [0; DH_BYTES];
    point[0] = 9;
    point
};

/// A hash, or a key of something other than ChaCha20, overwritten on drop.
type Secret = Zeroizing<[u8; KEY_BYTES]>;

/// A key pair of X25519 for one handshake. The secret half is overwritten on drop.
pub struct Ephemeral {
    secret: Secret,
    public: [u8; DH_BYTES],
}

impl Ephemeral {
    /// Generates a pair from 32 bytes of a generator whose past and future output nobody can
    /// predict.
    pub fn generate<R: CryptoRng>(rng: &mut R) -> Self {
        let mut secret = Zeroizing::new([0; KEY_BYTES]);
        rng.fill_bytes(&mut *secret);
        Self::from_secret(secret)
    }

    /// Creates the pair of this secret, which must be uniformly random, used in one handshake, and
    /// stored nowhere.
    pub fn from_secret(secret: Zeroizing<[u8; KEY_BYTES]>) -> Self {
        let public = x25519(&secret, &BASE_POINT);
        Self {
            secret,
            public: *public,
        }
    }

    /// Returns the public half.
    pub const fn public(&self) -> &[u8; DH_BYTES] {
        &self.public
    }

    /// Computes the shared secret with the owner of that public key.
    ///
    /// Returns `None` if it is zero. The public key is then one of the few points of small order,
    /// and the result would not depend on the secret (RFC 7748, section 6.1).
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

/// Computes X25519 (RFC 7748, section 5). Uses the Montgomery ladder for both multiplications,
/// because faster methods for the base point need more code.
#[inline(never)]
fn x25519(secret: &[u8; KEY_BYTES], point: &[u8; DH_BYTES]) -> Secret {
    Zeroizing::new(MontgomeryPoint(*point).mul_clamped(*secret).to_bytes())
}

/// A handshake after its first message, the same on both sides.
pub struct Opening {
    chaining: Secret,
    hash: [u8; KEY_BYTES],
}

/// The result of a handshake on both sides.
pub struct Closing {
    /// The keys of the initiator's and the responder's direction.
    pub keys: [Key; 2],
    /// Hash of all messages and of the prologue.
    pub hash: [u8; KEY_BYTES],
}

impl Opening {
    /// Returns the handshake after `-> psk, e` with an empty payload, and the tag of the payload.
    ///
    /// Anyone who knows the pre-shared key can compute it from the initiator's public key. The
    /// responder compares the tag before any multiplication.
    pub fn new(psk: &Key, prologue: &[u8], initiator: &[u8; DH_BYTES]) -> (Self, [u8; TAG_BYTES]) {
        // The name is longer than a hash, so it is hashed: section 5.2, `InitializeSymmetric`.
        let hash = blake2s([NAME, &[], &[]]);
        let mut state = Self {
            chaining: Zeroizing::new(hash),
            hash,
        };
        state.mix_hash(prologue, &[]);
        // psk: `MixKeyAndHash`. The next key replaces its third output.
        let [chaining, hash] = expand(&state.chaining, psk.secret());
        state.chaining = chaining;
        state.mix_hash(&*hash, &[]);
        // e, in a handshake with a pre-shared key: section 9.2.
        state.mix_hash(initiator, &[]);
        let key = state.mix_key(initiator);
        let tag = state.encrypt(&key, &mut []);
        (state, tag)
    }

    /// Creates the responder's message, `<- e, ee`: encrypts the payload in place, and returns its
    /// tag.
    ///
    /// Returns `None` if the initiator's public key is of small order.
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

    /// Reads the responder's message on the initiator's side: decrypts the payload in place.
    ///
    /// Returns `None` if the tag is wrong, or the responder's public key is of small order.
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

    /// Mixes e and ee.
    fn mix_shared(&mut self, responder: &[u8; DH_BYTES], shared: &Secret) -> Key {
        self.mix_hash(responder, &[]);
        // The next key replaces this one.
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

/// Returns the first two outputs of HKDF as in Noise (section 4.3).
#[inline(never)]
fn expand(chaining: &[u8; KEY_BYTES], input: &[u8]) -> [Secret; 2] {
    let key = hmac(chaining, input, &[]);
    let first = hmac(&key, &[1], &[]);
    let second = hmac(&key, &*first, &[2]);
    [first, second]
}

/// Computes HMAC-BLAKE2s under a key shorter than a block (RFC 2104).
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

/// Hashes the concatenation of three slices.
#[inline(never)]
fn blake2s(data: [&[u8]; 3]) -> [u8; KEY_BYTES] {
    let mut hash = Blake2s256::new();
    data.into_iter().for_each(|data| hash.update(data));
    hash.finalize().into()
}

#[cfg(test)]
mod tests;
