//! The greeting, which starts a session. Its frames are not encrypted, and have the same layout in
//! all versions of the protocol.
//!
//! | message | to | body |
//! | --- | --- | --- |
//! | Call | device | empty |
//! | Hello | coordinator | hidden u8, name (8), nonce (16), lowest u8, highest u8, tag (16) |
//! | Welcome | device | nonce (16), version u8, version u8, tag (16) |
//! | Incompatible | device | nonce (16), lowest u8, highest u8, tag (16) |
//!
//! The feature `x25519` adds another Hello and another Welcome, in the module `handshake`.

#[cfg(feature = "x25519")]
use super::noise::{First, Second};
use super::{
    Direction, VERSION,
    frame::{Encoded, Frame},
    keys::{Covered, GreetingKey, Nonce, Pseudonym, SessionKeys, is_same},
    refusal::Refusal,
};
use crate::bytes::{Reader, Writer};
use crate::crypto::aead::TAG_BYTES;

/// Codes of the kinds.
pub(super) mod kind {
    pub(super) const CALL: u8 = 1;
    pub(super) const HELLO: u8 = 2;
    pub(super) const WELCOME: u8 = 3;
    pub(super) const INCOMPATIBLE: u8 = 4;
    #[cfg(feature = "x25519")]
    pub(in crate::wire) const HELLO_X25519: u8 = 5;
    #[cfg(feature = "x25519")]
    pub(in crate::wire) const WELCOME_X25519: u8 = 6;
}

/// The identity that a Hello claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// The device's number.
    Number(u32),
    /// A name that only the coordinator can map to the device. It differs for each chain key.
    Pseudonym(Pseudonym),
}

impl Name {
    const fn bytes(&self) -> (u8, [u8; 8]) {
        match self {
            Self::Number(number) => (0, (*number as u64).to_le_bytes()),
            Self::Pseudonym(bytes) => (1, *bytes),
        }
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        match (reader.u8()?, reader.array()?) {
            (0, bytes) => {
                let number = u64::from_le_bytes(bytes);
                u32::try_from(number).ok().map(Self::Number)
            }
            (1, bytes) => Some(Self::Pseudonym(bytes)),
            _ => None,
        }
    }
}

/// The protocol versions that one side supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// The lowest version.
    pub lowest: u8,
    /// The highest version.
    pub highest: u8,
}

impl Versions {
    /// The versions of this crate.
    pub const OURS: Self = Self {
        lowest: VERSION,
        highest: VERSION,
    };

    /// Returns the highest version that both sides support.
    pub fn common(&self) -> Option<u8> {
        (self.lowest..=self.highest)
            .contains(&VERSION)
            .then_some(VERSION)
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            lowest: reader.u8()?,
            highest: reader.u8()?,
        })
    }
}

/// A device's request for a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The name of the device.
    pub name: Name,
    /// Nonce that this device has never used before.
    pub nonce: Nonce,
    /// The versions that it supports.
    pub versions: Versions,
    tag: [u8; TAG_BYTES],
    /// The first message of its handshake, if it begins one.
    #[cfg(feature = "x25519")]
    pub(super) first: Option<First>,
}

impl Hello {
    /// Creates a Hello of the device with this key.
    pub fn new(key: &GreetingKey, name: Name, nonce: Nonce, versions: Versions) -> Self {
        let mut hello = Self {
            name,
            nonce,
            versions,
            tag: [0; TAG_BYTES],
            #[cfg(feature = "x25519")]
            first: None,
        };
        hello.tag = key.tag(&nonce, &hello.covered());
        hello
    }

    /// Computes the tag again.
    #[cfg(feature = "x25519")]
    pub(super) fn sign(&mut self, key: &GreetingKey) {
        self.tag = key.tag(&self.nonce, &self.covered());
    }

    /// Whether it comes from a device with this key, now or earlier.
    pub fn is_authentic(&self, key: &GreetingKey) -> bool {
        is_same(&key.tag(&self.nonce, &self.covered()), &self.tag)
    }

    fn covered(&self) -> Covered {
        let (hidden, [a, b, c, d, e, f, g, h]) = self.name.bytes();
        let Versions { lowest, highest } = self.versions;
        #[cfg(feature = "x25519")]
        let has_handshake = u8::from(self.first.is_some());
        #[cfg(not(feature = "x25519"))]
        let has_handshake = 0;
        [
            hidden,
            a,
            b,
            c,
            d,
            e,
            f,
            g,
            h,
            lowest,
            highest,
            has_handshake,
            0,
            0,
            0,
            0,
        ]
    }
}

/// The coordinator's answer to a Hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// Fresh random nonce.
    pub nonce: Nonce,
    /// The version of all later frames, or the coordinator's versions if there is no common one.
    pub offer: Result<u8, Versions>,
    tag: [u8; TAG_BYTES],
}

impl Welcome {
    /// Creates the answer in the session with these keys, which depend on this nonce.
    pub fn new(session: &SessionKeys, nonce: Nonce, offer: Result<u8, Versions>) -> Self {
        let mut welcome = Self {
            nonce,
            offer,
            tag: [0; TAG_BYTES],
        };
        welcome.tag = session.tag(&welcome.covered());
        welcome
    }

    /// Whether it comes from a holder of the device's chain key, in answer to this device's nonce.
    pub fn is_authentic(&self, session: &SessionKeys) -> bool {
        is_same(&session.tag(&self.covered()), &self.tag)
    }

    const fn kind(&self) -> u8 {
        match self.offer {
            Ok(_) => kind::WELCOME,
            Err(_) => kind::INCOMPATIBLE,
        }
    }

    const fn versions(&self) -> Versions {
        match self.offer {
            Ok(version) => Versions {
                lowest: version,
                highest: version,
            },
            Err(versions) => versions,
        }
    }

    const fn covered(&self) -> Covered {
        let Versions { lowest, highest } = self.versions();
        let mut covered = [0; 16];
        [covered[0], covered[1], covered[2]] = [self.kind(), lowest, highest];
        covered
    }
}

/// A message of the greeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Greeting {
    /// To the device, from a coordinator without a session on this connection: send a Hello. Its
    /// sender is not authenticated.
    Call,
    /// To the coordinator.
    Hello(Hello),
    /// To the device.
    Welcome(Welcome),
    /// To the device, the answer to a Hello with a handshake.
    #[cfg(feature = "x25519")]
    Second(Second),
}

impl Greeting {
    /// Reads a greeting frame that travels in this direction.
    ///
    /// # Errors
    /// Returns [`Refusal::Kind`] if this direction has no such kind, and [`Refusal::Body`] if the
    /// body has a wrong length or an invalid value.
    pub fn parse(kind: u8, body: &[u8], direction: Direction) -> Result<Self, Refusal> {
        let reader = &mut Reader(body);
        let message = match (direction, kind) {
            (Direction::ToDevice, kind::CALL) => Some(Self::Call),
            (Direction::ToDevice, kind::WELCOME | kind::INCOMPATIBLE) => Self::answer(kind, reader),
            (Direction::ToCoordinator, kind::HELLO) => Self::hello(reader),
            #[cfg(feature = "x25519")]
            (Direction::ToDevice, kind::WELCOME_X25519) => Second::read(reader).map(Self::Second),
            #[cfg(feature = "x25519")]
            (Direction::ToCoordinator, kind::HELLO_X25519) => Self::hello_with_handshake(reader),
            _ => return Err(Refusal::Kind),
        };
        let message = message.and_then(|message| reader.end().map(|()| message));
        message.ok_or(Refusal::Body)
    }

    fn hello(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Self::Hello(Hello {
            name: Name::read(reader)?,
            nonce: reader.array()?,
            versions: Versions::read(reader)?,
            tag: reader.array()?,
            #[cfg(feature = "x25519")]
            first: None,
        }))
    }

    /// Reads a Hello followed by Noise's first message.
    #[cfg(feature = "x25519")]
    fn hello_with_handshake(reader: &mut Reader<'_>) -> Option<Self> {
        let Self::Hello(mut hello) = Self::hello(reader)? else {
            return None;
        };
        hello.first = Some(First::read(reader)?);
        Some(Self::Hello(hello))
    }

    fn answer(kind: u8, reader: &mut Reader<'_>) -> Option<Self> {
        let nonce = reader.array()?;
        let versions = Versions::read(reader)?;
        let offer = match kind {
            kind::WELCOME if versions.lowest != versions.highest => return None,
            kind::WELCOME => Ok(versions.lowest),
            _ => Err(versions),
        };
        Some(Self::Welcome(Welcome {
            nonce,
            offer,
            tag: reader.array()?,
        }))
    }

    /// Returns the frame for the line.
    pub fn encoded(&self) -> Encoded {
        let mut encoded = Encoded::empty();
        self.encode(&mut encoded);
        encoded
    }

    /// Writes the frame over an older one.
    pub(crate) fn encode(&self, to: &mut Encoded) {
        match self {
            Self::Call => to.greet(kind::CALL, |_| {}),
            Self::Hello(hello) => hello.encode(to),
            Self::Welcome(welcome) => {
                let Versions { lowest, highest } = welcome.versions();
                to.greet(welcome.kind(), |writer| {
                    writer.put(&welcome.nonce).u8(lowest).u8(highest);
                    writer.put(&welcome.tag);
                });
            }
            #[cfg(feature = "x25519")]
            Self::Second(second) => {
                to.greet(kind::WELCOME_X25519, |writer| second.write(writer));
            }
        }
    }
}

impl Hello {
    /// Writes the frame over an older one. A device sends no other greeting.
    pub(crate) fn encode(&self, to: &mut Encoded) {
        #[cfg(feature = "x25519")]
        if let Some(first) = &self.first {
            return to.greet(kind::HELLO_X25519, |writer| {
                self.write(writer);
                first.write(writer);
            });
        }
        to.greet(kind::HELLO, |writer: &mut Writer<'_>| self.write(writer));
    }

    /// Writes the body, up to the handshake.
    #[inline(always)]
    pub(super) fn write(&self, writer: &mut Writer<'_>) {
        let Versions { lowest, highest } = self.versions;
        let (hidden, name) = self.name.bytes();
        writer.u8(hidden).put(&name).put(&self.nonce);
        writer.u8(lowest).u8(highest).put(&self.tag);
    }
}

/// Returns the greeting in a frame that travels in this direction.
///
/// # Errors
/// Returns [`Refusal::Unexpected`] for a session frame, and the errors of [`Greeting::parse`].
pub fn greeting(frame: &Frame<'_>, direction: Direction) -> Result<Greeting, Refusal> {
    match frame {
        Frame::Greeting { kind, body } => Greeting::parse(*kind, body, direction),
        Frame::Sealed(_) => Err(Refusal::Unexpected),
    }
}
