//! An encrypted connection between a coordinator and a helper:
//! Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s under a key shared only by the two.
//!
//! ```text
//! prologue = "smolfed helper 1" | number of the helper u8
//! -> version u8 = 1 | public key (32) | tag (16)      psk, e
//! <- public key (32) | tag (16)                       e, ee
//! ```
//!
//! Then come the frames of [`cipher`](super::cipher). The key identifies a coordinator of this
//! fleet or this helper. A later thief of the key cannot decrypt recorded traffic. A replayed first
//! message leads to keys that nobody has.

use smolfed_core::crypto::Key;
use smolfed_core::crypto::aead::TAG_BYTES;
use smolfed_core::crypto::noise::{Closing, DH_BYTES, Ephemeral, Opening};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::cipher::{Cipher, LENGTH_BYTES, MAX_TEXT};
use crate::transport::Transport;
use smolfed_release::entropy::{EntropyError, secret};

/// Version of the handshake and of everything after it.
const VERSION: u8 = 1;

/// Label of the handshake. The number of the helper follows it.
const LABEL: &[u8; 16] = b"smolfed helper 1";

/// Maximum bytes of a message: a model of 50 million parameters with its list of devices.
const MAX_MESSAGE: usize = 1 << 28;

/// Error when a link cannot be opened, or breaks.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The connection failed.
    #[error("the connection broke: {0}")]
    Io(#[from] std::io::Error),
    /// The other side has another key.
    #[error(
        "the other side has another link key: the helper's file and the coordinator's keys.toml \
         must come from the same `smolfed provision`"
    )]
    Key,
    /// The other side speaks another version.
    #[error("the other side speaks version {0} of the link, but this one version {VERSION}")]
    Version(u8),
    /// A frame was damaged, or was not the next one.
    #[error("a frame was damaged, or was not the next one")]
    Frame,
    /// A message is malformed or unexpected.
    #[error("a message was malformed")]
    Message,
    /// A message is too long.
    #[error("a message has more than {MAX_MESSAGE} bytes")]
    TooLong,
    /// No random bytes for a handshake.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
}

/// The secret that only a coordinator and a helper share.
#[derive(Clone, Debug)]
pub struct LinkKey {
    /// The pre-shared key.
    pub key: Key,
    /// The number of the helper, from 0.
    pub helper: u8,
}

impl LinkKey {
    fn opening(&self, initiator: &[u8; DH_BYTES]) -> (Opening, [u8; TAG_BYTES]) {
        let mut prologue = LABEL.to_vec();
        prologue.push(self.helper);
        Opening::new(&self.key, &prologue, initiator)
    }
}

/// Returns a key pair for one handshake.
///
/// # Errors
/// [`EntropyError`].
pub fn ephemeral() -> Result<Ephemeral, EntropyError> {
    secret().map(Ephemeral::from_secret)
}

/// One end of a link.
pub struct Link {
    stream: Box<dyn Transport>,
    outgoing: Cipher,
    incoming: Cipher,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Link(..)")
    }
}

impl Link {
    /// Opens the coordinator's end, which begins the handshake.
    ///
    /// # Errors
    /// [`LinkError`].
    pub async fn begin(
        mut stream: Box<dyn Transport>,
        key: &LinkKey,
        own: Ephemeral,
    ) -> Result<Self, LinkError> {
        let (opening, tag) = key.opening(own.public());
        let first = [&[VERSION], own.public().as_slice(), &tag].concat();
        stream.write_all(&first).await?;
        stream.flush().await?;
        let public: [u8; DH_BYTES] = read(&mut stream).await?;
        let tag: [u8; TAG_BYTES] = read(&mut stream).await?;
        let closing = opening.conclude(&own, &public, &mut [], &tag);
        let Closing { keys, .. } = closing.ok_or(LinkError::Key)?;
        let [outgoing, incoming] = keys.map(Cipher::new);
        Ok(Self {
            stream,
            outgoing,
            incoming,
        })
    }

    /// Opens the helper's end, which answers the handshake only to owners of the key.
    ///
    /// # Errors
    /// [`LinkError`]. A stranger gets no byte.
    pub async fn answer(
        mut stream: Box<dyn Transport>,
        key: &LinkKey,
        own: Ephemeral,
    ) -> Result<Self, LinkError> {
        let [version] = read(&mut stream).await?;
        if version != VERSION {
            return Err(LinkError::Version(version));
        }
        let public: [u8; DH_BYTES] = read(&mut stream).await?;
        let found: [u8; TAG_BYTES] = read(&mut stream).await?;
        let (opening, tag) = key.opening(&public);
        if !smolfed_core::wire::keys::is_same(&found, &tag) {
            return Err(LinkError::Key);
        }
        let answered = opening.respond(&own, &public, &mut []);
        let (tag, Closing { keys, .. }) = answered.ok_or(LinkError::Key)?;
        let second = [own.public().as_slice(), &tag].concat();
        stream.write_all(&second).await?;
        stream.flush().await?;
        let [incoming, outgoing] = keys.map(Cipher::new);
        Ok(Self {
            stream,
            outgoing,
            incoming,
        })
    }

    /// Sends a message.
    ///
    /// # Errors
    /// [`LinkError::Io`].
    pub async fn send(&mut self, message: &[u8]) -> Result<(), LinkError> {
        let frames = self.outgoing.seal(message);
        self.stream.write_all(&frames).await?;
        Ok(self.stream.flush().await?)
    }

    /// Receives the next message. Cancelling this makes the link unusable.
    ///
    /// # Errors
    /// [`LinkError`].
    pub async fn receive(&mut self) -> Result<Vec<u8>, LinkError> {
        let mut message = Vec::new();
        loop {
            let length: [u8; LENGTH_BYTES] = read(&mut self.stream).await?;
            let mut frame = vec![0; u16::from_le_bytes(length).into()];
            self.stream.read_exact(&mut frame).await?;
            let text = self.incoming.open(frame).ok_or(LinkError::Frame)?;
            message.extend(&text);
            if text.len() < MAX_TEXT {
                return Ok(message);
            }
            if message.len() > MAX_MESSAGE {
                return Err(LinkError::TooLong);
            }
        }
    }
}

async fn read<const N: usize>(stream: &mut Box<dyn Transport>) -> Result<[u8; N], LinkError> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
