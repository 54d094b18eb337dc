//! A device's own record of the rounds that it took part in, which survives power loss.
//!
//! Two rules, whatever a coordinator asks for: a device takes part at most [`Budget`] times in its
//! life, and never twice under one round number, since that names its random streams: noise from
//! one stream position on two updates could be subtracted. So a participation is on the flash
//! **before** anything is drawn from the round's streams, and rounds only go up. A round that was
//! begun and not finished is spent.
//!
//! **How.** Two slots, each in separate erase blocks, are written in turn. A record has a
//! sequence number and a CRC-32; the valid one with the higher number counts. The slot that counts
//! is never touched, so that a power loss at any moment leaves the old record or the new one. A
//! record is read back before it counts.
//!
//! What it cannot see: flash that is put back to an earlier state as a whole, by somebody who holds
//! the board in their hands.

use embedded_storage::nor_flash::NorFlash;

use crate::wire::crc32::crc32;

#[cfg(test)]
pub(crate) mod tests;

/// Bytes of a record, a multiple of the write size of usual flash.
pub const RECORD_BYTES: usize = 32;

/// First bytes of a record: format 1.
const MAGIC: [u8; 4] = *b"sfL1";

/// Participations of a device in its whole life, at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget(pub u32);

/// Why a ledger does not let a round begin, or is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LedgerError {
    /// All participations of the budget are spent.
    Spent,
    /// This round, or a later one, is recorded already.
    RoundUsed,
    /// The flash is blank: the device was not provisioned ([`Ledger::create`]).
    Blank,
    /// There is a ledger already, or something else: [`Ledger::create`] overwrites nothing.
    NotBlank,
    /// Neither slot has a valid record, but the flash is not blank: the count is lost.
    Corrupt,
    /// The flash could not be read, erased or written, or what was written is not there.
    Flash,
    /// The flash has no room for two slots, or cannot be read or written 32 bytes at a time.
    Geometry,
}

impl core::fmt::Display for LedgerError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Spent => "the device's budget of participations is spent",
            Self::RoundUsed => "this round or a later one was used before",
            Self::Blank => "the flash of the ledger is blank: the device was not provisioned",
            Self::NotBlank => "the flash of the ledger is not blank",
            Self::Corrupt => "the ledger has no valid record, and the count is lost",
            Self::Flash => "the flash of the ledger failed",
            Self::Geometry => "the flash of the ledger has no two slots of 32 bytes",
        })
    }
}

impl core::error::Error for LedgerError {}

/// What a device knows of its past.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Past {
    /// Rounds that it began.
    pub participations: u32,
    /// Lowest round number that it may still begin.
    pub next_round: u32,
}

/// The ledger on a piece of flash that it owns.
pub struct Ledger<F> {
    flash: F,
    past: Past,
    sequence: u32,
    /// Which slot holds the record that counts: 0 or 1.
    slot: u32,
}

impl<F: NorFlash> Ledger<F> {
    /// Writes the first record: part of provisioning a device, once.
    ///
    /// # Errors
    /// [`LedgerError::NotBlank`] unless both slots are erased, [`LedgerError::Geometry`],
    /// [`LedgerError::Flash`].
    pub fn create(flash: F) -> Result<Self, LedgerError> {
        let mut ledger = Self::unread(flash)?;
        for slot in [0, 1] {
            if ledger.read(slot)? != Slot::Blank {
                return Err(LedgerError::NotBlank);
            }
        }
        ledger.append(Past::default())?;
        Ok(ledger)
    }

    /// Reads the record that counts, after every start.
    ///
    /// # Errors
    /// [`LedgerError::Blank`], [`LedgerError::Corrupt`], [`LedgerError::Geometry`],
    /// [`LedgerError::Flash`]. Without its ledger a device must not take part.
    pub fn open(flash: F) -> Result<Self, LedgerError> {
        let mut ledger = Self::unread(flash)?;
        ledger.latest()?;
        Ok(ledger)
    }

    /// [`Self::open`], or [`Self::create`] on flash that was never written: for firmware that is
    /// provisioned without a separate step for the ledger.
    ///
    /// Flash that is erased as a whole counts from 0 again. Whoever can do that holds the board in
    /// their hands.
    ///
    /// # Errors
    /// Those of [`Self::open`] but [`LedgerError::Blank`].
    pub fn open_or_create(flash: F) -> Result<Self, LedgerError> {
        let mut ledger = Self::unread(flash)?;
        match ledger.latest() {
            Err(LedgerError::Blank) => ledger.append(Past::default())?,
            result => result?,
        }
        Ok(ledger)
    }

    /// Finds the record that counts.
    fn latest(&mut self) -> Result<(), LedgerError> {
        let mut found = false;
        let mut blank = true;
        for slot in [0, 1] {
            match self.read(slot)? {
                Slot::Blank => {}
                Slot::Damaged => blank = false,
                Slot::Record { sequence, past } => {
                    blank = false;
                    if !found || sequence > self.sequence {
                        (self.past, self.sequence, self.slot) = (past, sequence, slot);
                        found = true;
                    }
                }
            }
        }
        match (found, blank) {
            (true, _) => Ok(()),
            (false, true) => Err(LedgerError::Blank),
            (false, false) => Err(LedgerError::Corrupt),
        }
    }

    fn unread(flash: F) -> Result<Self, LedgerError> {
        let usable = |size: usize| size > 0 && RECORD_BYTES.is_multiple_of(size);
        let room = flash.capacity() >= 2 * Self::slot_bytes();
        if !(usable(F::READ_SIZE) && usable(F::WRITE_SIZE) && F::ERASE_SIZE > 0 && room) {
            return Err(LedgerError::Geometry);
        }
        Ok(Self {
            flash,
            past: Past::default(),
            sequence: 0,
            // The first record goes to slot 0.
            slot: 1,
        })
    }

    /// Whole erase blocks that hold a record.
    const fn slot_bytes() -> usize {
        match RECORD_BYTES.checked_next_multiple_of(F::ERASE_SIZE) {
            Some(bytes) => bytes,
            None => usize::MAX / 2,
        }
    }

    /// What the device knows of its past.
    pub const fn past(&self) -> Past {
        self.past
    }

    /// Whether [`Self::begin`] would let this round begin, flash permitting.
    ///
    /// # Errors
    /// [`LedgerError::Spent`] and [`LedgerError::RoundUsed`].
    pub const fn check(&self, round: u32, budget: Budget) -> Result<(), LedgerError> {
        if self.past.participations >= budget.0 {
            return Err(LedgerError::Spent);
        }
        // The very last number could not be followed by another.
        if round < self.past.next_round || round == u32::MAX {
            return Err(LedgerError::RoundUsed);
        }
        Ok(())
    }

    /// Records that the device takes part in `round`. Only then may its streams be used.
    ///
    /// # Errors
    /// Those of [`Self::check`], and [`LedgerError::Flash`]: the round must then not begin, and
    /// may count as used.
    pub fn begin(&mut self, round: u32, budget: Budget) -> Result<(), LedgerError> {
        self.check(round, budget)?;
        self.append(Past {
            // Below the budget, and below u32::MAX: no overflow.
            participations: self.past.participations + 1,
            next_round: round + 1,
        })
    }

    fn append(&mut self, past: Past) -> Result<(), LedgerError> {
        // 2³² − 1 records wear out any flash.
        let sequence = self.sequence.checked_add(1).ok_or(LedgerError::Flash)?;
        let slot = 1 - self.slot;
        let start = self.offset(slot);
        let end = start + Self::slot_bytes() as u32;
        let flash = |_| LedgerError::Flash;
        self.flash.erase(start, end).map_err(flash)?;
        self.flash
            .write(start, &record(sequence, past))
            .map_err(flash)?;
        if self.read(slot)? != (Slot::Record { sequence, past }) {
            return Err(LedgerError::Flash);
        }
        (self.past, self.sequence, self.slot) = (past, sequence, slot);
        Ok(())
    }

    fn offset(&self, slot: u32) -> u32 {
        // Both slots lie within the flash, whose offsets are 32 bits.
        slot * Self::slot_bytes() as u32
    }

    fn read(&mut self, slot: u32) -> Result<Slot, LedgerError> {
        let mut bytes = [0; RECORD_BYTES];
        let offset = self.offset(slot);
        self.flash
            .read(offset, &mut bytes)
            .map_err(|_| LedgerError::Flash)?;
        Ok(Slot::of(&bytes))
    }

    /// Gives the flash back.
    pub fn into_flash(self) -> F {
        self.flash
    }
}

impl<F> core::fmt::Debug for Ledger<F> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Ledger({:?})", self.past)
    }
}

/// What is in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    Blank,
    Damaged,
    Record { sequence: u32, past: Past },
}

impl Slot {
    fn of(bytes: &[u8; RECORD_BYTES]) -> Self {
        if bytes.iter().all(|byte| *byte == 0xff) {
            return Self::Blank;
        }
        let mut words = bytes.as_chunks().0.iter().copied().map(u32::from_le_bytes);
        let mut word = || words.next().unwrap_or_default();
        let (_, sequence, participations, next_round) = (word(), word(), word(), word());
        let past = Past {
            participations,
            next_round,
        };
        // Also the magic, the checksum and the filling, bit for bit.
        if record(sequence, past) == *bytes {
            Self::Record { sequence, past }
        } else {
            Self::Damaged
        }
    }
}

/// Magic, sequence, participations, next round, CRC-32 of these, and zeros.
fn record(sequence: u32, past: Past) -> [u8; RECORD_BYTES] {
    let mut bytes = [0; RECORD_BYTES];
    let mut words = bytes.as_chunks_mut().0.iter_mut();
    let numbers = [sequence, past.participations, past.next_round];
    let mut put = |word: [u8; 4]| {
        if let Some(place) = words.next() {
            *place = word;
        }
    };
    put(MAGIC);
    for number in numbers {
        put(number.to_le_bytes());
    }
    let crc = crc32(bytes.get(..16).unwrap_or_default());
    if let Some(place) = bytes.get_mut(16..20) {
        place.copy_from_slice(&crc.to_le_bytes());
    }
    bytes
}
