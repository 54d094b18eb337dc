//! Why a received frame was skipped. Each reason is counted: nothing is dropped silently.

/// Why a received frame was skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Refusal {
    /// It is longer than any frame.
    TooLong,
    /// It is not COBS: a piece is cut.
    Stuffing,
    /// It is shorter than any frame.
    TooShort,
    /// The checksum does not match: the line has damaged it.
    Checksum,
    /// It has another version of the protocol.
    Version,
    /// Its kind is unknown or travels the other way.
    Kind,
    /// The tag does not match: another key, another session, or a modification.
    Tag,
    /// Its sequence number was used before: replayed or late.
    Replayed,
    /// The body does not match the kind: a wrong length, or an invalid value.
    Body,
    /// It belongs to another round.
    Round,
    /// It is valid but has no meaning in this state.
    Unexpected,
    /// It came while another frame waited to go out, and the buffer holds only one.
    Crossed,
    /// A Hello with an old key of its device: a copy of the device, or a recording.
    Stale,
}

impl Refusal {
    /// All reasons, in order.
    pub const ALL: [Self; 13] = [
        Self::TooLong,
        Self::Stuffing,
        Self::TooShort,
        Self::Checksum,
        Self::Version,
        Self::Kind,
        Self::Tag,
        Self::Replayed,
        Self::Body,
        Self::Round,
        Self::Unexpected,
        Self::Crossed,
        Self::Stale,
    ];
}

impl core::fmt::Display for Refusal {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::TooLong => "longer than any frame",
            Self::Stuffing => "not COBS",
            Self::TooShort => "shorter than any frame",
            Self::Checksum => "damaged on the line",
            Self::Version => "another version of the protocol",
            Self::Kind => "an unknown kind of message",
            Self::Tag => "not authentic",
            Self::Replayed => "replayed or late",
            Self::Body => "a malformed message",
            Self::Round => "another round",
            Self::Unexpected => "out of turn",
            Self::Crossed => "crossed a frame that waited to go out",
            Self::Stale => "under a key of before: a copy of the device, or recorded",
        })
    }
}

impl core::error::Error for Refusal {}

/// The number of skipped frames, by reason. The counts saturate at 2³² − 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals([u32; Refusal::ALL.len()]);

impl Refusals {
    /// Creates counts of zero.
    pub const fn new() -> Self {
        Self([0; Refusal::ALL.len()])
    }

    /// Counts one frame.
    pub fn count(&mut self, refusal: Refusal) {
        if let Some(count) = self.0.get_mut(refusal as usize) {
            *count = count.saturating_add(1);
        }
    }

    /// Adds other counts.
    pub fn add(&mut self, other: &Self) {
        for (count, more) in self.0.iter_mut().zip(other.0) {
            *count = count.saturating_add(more);
        }
    }

    /// Returns the number of frames skipped for this reason.
    pub fn get(&self, refusal: Refusal) -> u32 {
        self.0.get(refusal as usize).copied().unwrap_or(0)
    }

    /// Returns the total number of skipped frames.
    pub fn total(&self) -> u32 {
        self.0
            .iter()
            .fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Returns an iterator over the reasons that occurred, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (Refusal, u32)> {
        Refusal::ALL
            .into_iter()
            .zip(self.0)
            .filter(|(_, count)| *count > 0)
    }
}
