//! Errors of a ledger, with their texts: budget spent, round used, too soon or too far ahead, and
//! flash blank, not blank, damaged or too small.

/// Errors of a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum LedgerError {
    /// All participations of the budget are spent.
    Spent,
    /// This round, or a later one, is already recorded.
    RoundUsed,
    /// The round number is less than [`Separation`](super::Separation) after the last one.
    TooSoon,
    /// The round number is more than [`MaxJump`](super::MaxJump) ahead.
    TooFar,
    /// The flash is blank, or its first record is incomplete: the device is not provisioned
    /// ([`Ledger::create`](super::Ledger::create)).
    Blank,
    /// The flash already has a ledger or other data. [`Ledger::create`](super::Ledger::create) does
    /// not overwrite it.
    NotBlank,
    /// The flash is damaged by more than a power loss and a flipped bit: the count is lost.
    Corrupt,
    /// The flash could not be read, erased or written, or does not read as written.
    Flash,
    /// The secure element with the device's secrets did not answer, or does not have the chain key
    /// named by the ledger. No round is recorded.
    Element,
    /// The flash has no room for two slots, or cannot be read or written 64 bytes at a time.
    Geometry,
}

impl core::fmt::Display for LedgerError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Spent => "the device's budget of participations is spent",
            Self::RoundUsed => "this round or a later one was already used",
            Self::TooSoon => "the round is closer to the device's last one than it accepts",
            Self::TooFar => "the round number is further ahead than the device accepts",
            Self::Blank => "the flash of the ledger is blank: the device was not provisioned",
            Self::NotBlank => "the flash of the ledger is not blank",
            Self::Corrupt => "the ledger has no valid record: the count is lost",
            Self::Flash => "the flash of the ledger failed",
            Self::Element => "the secure element did not answer, or has other secrets",
            Self::Geometry => "the flash of the ledger does not have two slots of 128 bytes",
        })
    }
}

impl core::error::Error for LedgerError {}
