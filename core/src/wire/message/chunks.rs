//! Division of models and updates into chunks that fit a frame: their sizes, and the largest number
//! per request.

use core::ops::Range;

use super::super::BODY_BYTES;
use crate::bytes::Reader;
use crate::pack;

/// Parameters in a full [`Message::ModelChunk`](super::Message::ModelChunk).
pub const MODEL_CHUNK: usize = (BODY_BYTES - 2) / 4;

/// Bytes of packed values in a full [`Message::UpdateChunk`](super::Message::UpdateChunk).
pub const UPDATE_CHUNK_BYTES: usize = BODY_BYTES - 3;

/// Maximum number of chunks per request, which bounds its cost.
pub const MAX_WINDOW: u8 = 32;

/// The content of an update chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpdatePart {
    /// These entries, of [`Invitation::width`](super::Invitation::width) bits each. Empty if
    /// nothing is sent.
    Entries(Range<usize>),
    /// The bit of adaptive clipping, of [`Invitation::bit_width`](super::Invitation::bit_width)
    /// bits.
    Bit,
    /// The tag for the helper with this number.
    Tag(u8),
}

/// Returns the number of chunks of a model with `parameters` parameters.
pub const fn model_chunks(parameters: usize) -> usize {
    parameters.div_ceil(MODEL_CHUNK)
}

/// Returns the number of chunks of an update with `parameters` entries of `width` bits.
pub const fn update_chunks(parameters: usize, width: u32) -> usize {
    match pack::capacity(width, UPDATE_CHUNK_BYTES) {
        0 => 0,
        capacity => parameters.div_ceil(capacity),
    }
}

/// Reads a valid number of requested chunks.
pub(super) fn window(reader: &mut Reader<'_>) -> Option<u8> {
    reader.u8().filter(|count| (1..=MAX_WINDOW).contains(count))
}
