//! Messages to and from a device that only infers. The round of a frame is the version of a model.

use super::super::{BODY_BYTES, Direction};
use super::chunks::window;
use super::shape::ModelShape;
use crate::bytes::{Reader, Writer};

/// Bytes of a model file in a full chunk. A multiple of the write size of common flash.
pub const FILE_CHUNK: usize = 192;

const _: () = assert!(
    FILE_CHUNK <= BODY_BYTES - size_of::<u32>(),
    "a chunk fits in a frame behind its offset"
);

/// Codes of the kinds.
mod kind {
    pub(super) const INSTALLED: u8 = 29;
    pub(super) const OFFERED: u8 = 30;
    pub(super) const WANT_FILE: u8 = 31;
    pub(super) const FILE_CHUNK: u8 = 32;
}

/// A device's description of its model in an open session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Installed<'a> {
    /// The version that it uses, or 0 without a model.
    pub version: u32,
    /// The model that it can use.
    pub shape: ModelShape,
    /// The encoded [`Recipe`](crate::recipe::Recipe) of the features that it computes from its
    /// samples. Empty if it computes none.
    pub recipe: &'a [u8],
}

/// A message of the delivery of model files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery<'a> {
    /// To the coordinator: the session is open.
    Installed(Installed<'a>),
    /// To the device: there is a file of this many bytes with the version of the frame.
    Offered(u32),
    /// To the coordinator: send chunks of the version of the frame.
    WantFile {
        /// Offset of the first byte.
        offset: u32,
        /// Number of chunks, at most [`MAX_WINDOW`](super::MAX_WINDOW). Fewer are sent at the end
        /// of the file.
        count: u8,
    },
    /// To the device: [`FILE_CHUNK`] bytes, or the remaining ones.
    FileChunk {
        /// Offset of the first byte.
        offset: u32,
        /// The bytes.
        bytes: &'a [u8],
    },
}

/// Returns the direction of a kind, or `None` for an unknown kind.
pub(super) const fn way(kind: u8) -> Option<Direction> {
    match kind {
        kind::OFFERED | kind::FILE_CHUNK => Some(Direction::ToDevice),
        kind::INSTALLED | kind::WANT_FILE => Some(Direction::ToCoordinator),
        _ => None,
    }
}

impl<'a> Delivery<'a> {
    pub(super) const fn kind(&self) -> u8 {
        match self {
            Self::Installed(_) => kind::INSTALLED,
            Self::Offered(_) => kind::OFFERED,
            Self::WantFile { .. } => kind::WANT_FILE,
            Self::FileChunk { .. } => kind::FILE_CHUNK,
        }
    }

    pub(super) fn read_by_device(kind: u8, reader: &mut Reader<'a>) -> Option<Self> {
        match kind {
            kind::OFFERED => reader.u32().map(Self::Offered),
            kind::FILE_CHUNK => {
                let (offset, bytes) = (reader.u32()?, reader.rest());
                let is_chunk = (1..=FILE_CHUNK).contains(&bytes.len());
                is_chunk.then_some(Self::FileChunk { offset, bytes })
            }
            _ => None,
        }
    }

    pub(super) fn read_by_coordinator(kind: u8, reader: &mut Reader<'a>) -> Option<Self> {
        match kind {
            kind::INSTALLED => Some(Self::Installed(Installed {
                version: reader.u32()?,
                shape: ModelShape::take(reader)?,
                recipe: reader.rest(),
            })),
            kind::WANT_FILE => Some(Self::WantFile {
                offset: reader.u32()?,
                count: window(reader)?,
            }),
            _ => None,
        }
    }

    pub(super) fn write_by_device(&self, writer: &mut Writer<'_>) -> Option<()> {
        match self {
            Self::Installed(installed) => {
                writer.u32(installed.version);
                installed.shape.put(writer).put(installed.recipe);
            }
            Self::WantFile { offset, count } => {
                writer.u32(*offset).u8(*count);
            }
            Self::Offered(_) | Self::FileChunk { .. } => return None,
        }
        Some(())
    }

    pub(super) fn write_by_coordinator(&self, writer: &mut Writer<'_>) -> Option<()> {
        match self {
            Self::Offered(length) => {
                writer.u32(*length);
            }
            Self::FileChunk { offset, bytes } => {
                writer.u32(*offset).put(bytes);
            }
            Self::Installed(_) | Self::WantFile { .. } => return None,
        }
        Some(())
    }
}
