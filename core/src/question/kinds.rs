//! Kinds of questions, with the numbers used in messages and provisioning records.

/// A set of kinds of questions, such as those that a device answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Kinds(u8);

impl Kinds {
    /// No kind.
    pub const NONE: Self = Self(0);
    /// [`Question::Evaluate`](super::Question::Evaluate).
    pub const EVALUATE: Self = Self(1);
    /// [`Question::Confusion`](super::Question::Confusion).
    pub const CONFUSION: Self = Self(1 << 1);
    /// [`Question::Histogram`](super::Question::Histogram).
    pub const HISTOGRAM: Self = Self(1 << 2);
    /// [`Question::Moments`](super::Question::Moments).
    pub const MOMENTS: Self = Self(1 << 3);
    /// [`Question::Presence`](super::Question::Presence).
    pub const PRESENCE: Self = Self(1 << 4);
    /// [`Question::Count`](super::Question::Count).
    pub const COUNT: Self = Self(1 << 5);
    /// All kinds.
    pub const ALL: Self = Self((1 << 6) - 1);

    /// Returns the kinds of these bits, kind k at bit k − 1, or `None` for an unknown kind.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Option<Self> {
        match bits & !Self::ALL.0 {
            0 => Some(Self(bits)),
            _ => None,
        }
    }

    /// Returns the bits.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Returns the union with other kinds.
    #[must_use]
    pub const fn with(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }
}
