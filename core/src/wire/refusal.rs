//! Why a received frame was left out. Each reason is counted: nothing is dropped in silence.

/// Why a received frame was left out.
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
    /// The checksum does not fit: the line has damaged it.
    Checksum,
    /// It is of another version of the protocol.
    Version,
    /// Its kind is unknown or travels the other way.
    Kind,
    /// The tag does not fit: another key, another session, or somebody has changed it.
    Tag,
    /// Its sequence number was used before: replayed or late.
    Replayed,
    /// The body does not fit the kind: a wrong length, or an invalid value.
    Body,
    /// It belongs to another round.
    Round,
    /// It is well-formed but means nothing in this state.
    Unexpected,
    /// It came while a frame waited to go out, and there is one place for both.
    Crossed,
    /// A Hello under a key that its device had before: a copy of it, or a recording.
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

/// How many frames were left out, by reason. The counts stop at 2³² − 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals([u32; Refusal::ALL.len()]);

impl Refusals {
    /// None so far.
    pub const fn new() -> Self {
        Self([0; Refusal::ALL.len()])
    }

    /// Counts one more.
    pub fn count(&mut self, refusal: Refusal) {
        if let Some(count) = self.0.get_mut(refusal as usize) {
            *count = count.saturating_add(1);
        }
    }

    /// Adds the counts of another place.
    pub fn add(&mut self, other: &Self) {
        for (count, more) in self.0.iter_mut().zip(other.0) {
            *count = count.saturating_add(more);
        }
    }

    /// Frames left out for this reason.
    pub fn get(&self, refusal: Refusal) -> u32 {
        self.0.get(refusal as usize).copied().unwrap_or(0)
    }

    /// Frames left out for whatever reason.
    pub fn total(&self) -> u32 {
        self.0
            .iter()
            .fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The reasons that occurred, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (Refusal, u32)> {
        Refusal::ALL
            .into_iter()
            .zip(self.0)
            .filter(|(_, count)| *count > 0)
    }
}
