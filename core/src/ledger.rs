//! A device's own record of the rounds that it took part in, which survives power loss and damage.
//!
//! Rules that hold whatever a coordinator asks for ([`Limits`]): a device takes part at most
//! [`Budget`] times in its life, never twice under one round number, since that names its random
//! streams (noise from one stream position on two updates could be subtracted), never less than
//! [`Separation`] round numbers after its last one, and never in a round more than [`MaxJump`]
//! numbers ahead, so that no single message can use up the round numbers. A participation is
//! therefore on the flash **before** anything is drawn from the round's streams, and rounds only go
//! up. A round that was begun and not finished is spent.
//!
//! **Nonce.** A ledger has a nonce, drawn when it is created, from which the streams derive
//! ([`Identity`]): a device whose flash was erased gets a new ledger, and with it new
//! streams. It comes from the hardware's generator ([`Ledger::open_or_create`]), or from
//! provisioning, which writes the ledger once; firmware without a generator uses [`Ledger::open`]
//! and refuses a blank flash.
//!
//! **Chain key.** The record holds the key under which the device greets its coordinator: the first
//! one is that of the provisioning record, and [`Ledger::begin`] writes the next one, once in a
//! session, with the participation. It costs no write of its own. The slot that does not count has
//! the record before: who reads the flash finds the chain key of the last session in which the
//! device took part, and none of those before.
//!
//! # Format 3
//!
//! Two slots, each in separate erase blocks, are written in turn; the record with the higher
//! sequence number counts. A slot holds the record twice, one copy after the other. A copy has 64
//! bytes, numbers are little-endian:
//!
//! | offset | bytes | content |
//! | --- | --- | --- |
//! | 0 | 4 | `sfL3` |
//! | 4 | 4 | sequence number, from 1 |
//! | 8 | 4 | participations |
//! | 12 | 4 | lowest round number that may still begin |
//! | 16 | 32 | chain key |
//! | 48 | 8 | nonce |
//! | 56 | 4 | CRC-32 of everything before it |
//! | 60 | 4 | 0: written last |
//!
//! # Why no round is repeated
//!
//! The faults are power cuts, any number of them and each at any byte of an erase or of a write,
//! and one flipped bit anywhere, before or after. A copy is *readable* if at most one bit differs
//! from a record's encoding; the checksum tells which one, since no two bits of so short a message
//! change it alike.
//!
//! 1. [`Ledger::begin`] erases the slot that does not count, writes the first copy, reads it back,
//!    does the same with the second, and returns. So after it has returned, the slot has a readable
//!    copy, with one flipped bit and indeed with any three.
//! 2. A slot without a readable copy is therefore a write whose `begin` never returned. None of
//!    that round's streams were used, and the other slot counts: falling back to it repeats
//!    nothing.
//! 3. A slot is erased only while the other one counts, whose first copy is then complete and stays
//!    readable. So there is always a readable copy, and what it says never goes back behind a
//!    `begin` that has returned. A torn write with a readable copy counts as a participation that
//!    never was, which is safe.
//! 4. Damage beyond this is refused ([`LedgerError::Corrupt`]): where both copies of a slot are
//!    written from their first word to their last and neither is readable, four or more bits have
//!    flipped, and what was lost may be the newest record.
//!
//! **Separation.** The last round that the device began is the next round less 1, as soon as there
//! is a participation: [`Ledger::begin`] is all that writes either. So the limit needs nothing on
//! the flash but that, and (1) to (4) hold for it too: what a readable copy says of the last round
//! is never below that of a `begin` that has returned, and rounds that begin are above it by the
//! separation. A torn write that counts only moves the next round further away.
//!
//! **The first start.** The first record goes to slot 0. A cut before its first copy is complete
//! leaves the second copy and slot 1 blank, up to a flipped bit, which by (3) no later state does.
//! The flash then counts as blank: nothing was begun, and the ledger is created again, with a fresh
//! nonce.
//!
//! What the ledger cannot see: flash that is put back to an earlier state as a whole, by somebody
//! who holds the board in their hands. The coordinator sees it, by the chain key, once the device
//! has taken part in a later session than that.
//!
//! [`Identity`]: crate::identity::Identity
//! [`Policy`]: crate::session::Policy

use embedded_storage::nor_flash::NorFlash;

use crate::{
    crypto::Key, identity::Identity, participation::Participation, wipe::wipe, wire::keys::ChainKey,
};

mod error;
mod record;
#[cfg(test)]
pub(crate) mod tests;

pub use crate::identity::LedgerNonce;
pub use error::LedgerError;
pub use record::{Past, RECORD_BYTES, SLOT_BYTES};

use record::{Record, is_blank, is_whole};

/// Participations of a device in its whole life, at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Budget(pub u32);

/// Round numbers that two participations of a device are apart, at least: b of correlated noise,
/// whose proof lets a device in every b-th round at most. 1, and 0, let it in every round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Separation(pub u32);

impl Separation {
    /// Any two rounds are as far apart.
    pub const NONE: Self = Self(1);
}

/// Round numbers that a round may be ahead of the lowest one that may begin, at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct MaxJump(pub u32);

impl MaxJump {
    /// 2¹⁶: a device may miss 65,536 rounds of its fleet in a row. With a budget of up to 65,534 no
    /// sequence of rounds can then use up the round numbers before the budget is spent.
    pub const DEFAULT: Self = Self(1 << 16);
}

/// What a device agrees to in all of its life: whatever is asked for, it takes part no more often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Limits {
    /// Participations, at most.
    pub budget: Budget,
    /// How far two participations are apart, at least.
    pub separation: Separation,
    /// How far a round may be ahead of the ledger, at most.
    pub max_jump: MaxJump,
}

/// The ledger on a piece of flash that it owns.
pub struct Ledger<F> {
    flash: F,
    /// The record that counts; its sequence number is 0 while there is none.
    record: Record,
    /// Which slot holds it: 0 or 1.
    slot: u32,
    /// Whether a session has begun under its chain key.
    is_in_use: bool,
}

impl<F: NorFlash> Ledger<F> {
    /// Writes the first record: part of provisioning a device, once, with a nonce that was never
    /// used before and the key that its coordinator knows.
    ///
    /// # Errors
    /// [`LedgerError::NotBlank`] unless the flash is erased or an earlier creation was cut short;
    /// [`LedgerError::Geometry`], [`LedgerError::Flash`].
    pub fn create(flash: F, nonce: LedgerNonce, key: Key) -> Result<Self, LedgerError> {
        Self::check_geometry(&flash)?;
        let mut ledger = Self::unread(flash);
        match ledger.find() {
            Ok(false) => ledger.begin_life(nonce, key)?,
            Ok(true) | Err(LedgerError::Corrupt) => return Err(LedgerError::NotBlank),
            Err(error) => return Err(error),
        }
        Ok(ledger)
    }

    /// Reads the record that counts, after every start.
    ///
    /// # Errors
    /// [`LedgerError::Blank`], [`LedgerError::Corrupt`], [`LedgerError::Geometry`],
    /// [`LedgerError::Flash`]. Without its ledger a device must not take part.
    pub fn open(flash: F) -> Result<Self, LedgerError> {
        Self::open_or(flash, None)
    }

    /// [`Self::open`], or [`Self::create`] on blank flash with the key of the provisioning record
    /// and this nonce, which the hardware's random number generator has drawn at this start.
    /// Without such a generator, use [`Self::open`]: a nonce that comes twice would repeat the
    /// streams of a ledger that was erased.
    ///
    /// Flash that is erased as a whole counts from 0 again, with other streams; the coordinator
    /// refuses the device until it is provisioned again.
    ///
    /// # Errors
    /// Those of [`Self::open`]; [`LedgerError::Blank`] only without a key, which a provisioning
    /// record loses at the first start.
    pub fn open_or_create(
        flash: F,
        fresh: LedgerNonce,
        key: Option<Key>,
    ) -> Result<Self, LedgerError> {
        Self::open_or(flash, key.map(|key| (fresh, key)))
    }

    #[inline(never)]
    fn open_or(flash: F, fresh: Option<(LedgerNonce, Key)>) -> Result<Self, LedgerError> {
        Self::check_geometry(&flash)?;
        let mut ledger = Self::unread(flash);
        if !ledger.find()? {
            let (nonce, key) = fresh.ok_or(LedgerError::Blank)?;
            ledger.begin_life(nonce, key)?;
        }
        Ok(ledger)
    }

    /// Finds the record that counts; whether there is one. The flash stays as it is.
    #[inline(never)]
    fn find(&mut self) -> Result<bool, LedgerError> {
        let mut bytes = [0; RECORD_BYTES];
        let mut blank = true;
        for slot in 0..2 {
            let mut lost = true;
            for copy in 0..2 {
                let offset = self.offset(slot) + copy * RECORD_BYTES as u32;
                self.read(offset, &mut bytes)?;
                lost &= self.is_lost(slot, &bytes);
                // A first record may have been begun.
                blank &= slot + copy == 0 || is_blank(&bytes);
                wipe(&mut bytes);
            }
            if lost {
                return Err(LedgerError::Corrupt);
            }
        }
        match (self.record.sequence, blank) {
            (1.., _) => Ok(true),
            (0, true) => Ok(false),
            (0, false) => Err(LedgerError::Corrupt),
        }
    }

    /// Whether a copy was completed and is not readable. One that is readable counts from now on,
    /// if no newer one does.
    fn is_lost(&mut self, slot: u32, bytes: &[u8; RECORD_BYTES]) -> bool {
        let mut found = Record::of(bytes);
        let Some(record) = &mut found else {
            return is_whole(bytes);
        };
        if record.sequence > self.record.sequence {
            // No third place for one: what is overwritten is wiped with what was found.
            core::mem::swap(&mut self.record, record);
            self.slot = slot;
        }
        false
    }

    /// Whether the flash is of a use.
    fn check_geometry(flash: &F) -> Result<(), LedgerError> {
        let usable = |size: usize| RECORD_BYTES.is_multiple_of(size);
        let room = flash.capacity() >= 2 * Self::slot_bytes();
        match usable(F::READ_SIZE) && usable(F::WRITE_SIZE) && room {
            true => Ok(()),
            false => Err(LedgerError::Geometry),
        }
    }

    const fn unread(flash: F) -> Self {
        Self {
            flash,
            record: Record::first(ChainKey::new(Key::from_secret([0; 32])), [0; 8]),
            // The first record goes to slot 0.
            slot: 1,
            is_in_use: false,
        }
    }

    /// Whole erase blocks that hold a slot. Blocks of no bytes hold none: no flash is as large.
    const fn slot_bytes() -> usize {
        match SLOT_BYTES.checked_next_multiple_of(F::ERASE_SIZE) {
            Some(bytes) => bytes,
            None => usize::MAX / 2,
        }
    }

    /// What the device knows of its past.
    pub const fn past(&self) -> Past {
        self.record.past
    }

    /// What tells this ledger from all others of the device.
    pub const fn nonce(&self) -> &LedgerNonce {
        &self.record.nonce
    }

    /// The key that the device shares with its coordinator until it takes part in a session under
    /// it.
    pub const fn chain(&self) -> &ChainKey {
        &self.record.chain
    }

    /// A session begins under the chain key: the next participation uses it up.
    pub const fn session_begins(&mut self) {
        self.is_in_use = true;
    }

    /// Whether [`Self::begin`] would let this round begin, flash permitting.
    ///
    /// # Errors
    /// [`LedgerError::Spent`], [`LedgerError::RoundUsed`], [`LedgerError::TooSoon`] and
    /// [`LedgerError::TooFar`].
    #[inline(never)]
    pub const fn check(&self, round: u32, limits: &Limits) -> Result<(), LedgerError> {
        let Past {
            participations,
            next_round,
        } = self.record.past;
        if participations >= limits.budget.0 {
            return Err(LedgerError::Spent);
        }
        // The very last number could not be followed by another.
        if round < next_round || round == u32::MAX {
            return Err(LedgerError::RoundUsed);
        }
        let ahead = round - next_round;
        // The last round is the next one less 1, if there was one.
        if participations > 0 && ahead < limits.separation.0.saturating_sub(1) {
            return Err(LedgerError::TooSoon);
        }
        if ahead > limits.max_jump.0 {
            return Err(LedgerError::TooFar);
        }
        Ok(())
    }

    /// Records that the device takes part in `round`, and gives what it takes part with: once.
    ///
    /// Its streams are those of `identity` with this ledger ([`Identity`]).
    ///
    /// # Errors
    /// Those of [`Self::check`], and [`LedgerError::Flash`]: the round must then not begin, and
    /// may count as used.
    pub fn begin(
        &mut self,
        round: u32,
        identity: &Identity,
        limits: &Limits,
    ) -> Result<Participation, LedgerError> {
        self.record(round, limits)?;
        let mut bound = identity.clone();
        bound.bind(self.nonce());
        Ok(Participation::new(&bound, round))
    }

    /// [`Self::begin`] without anything to take part with: of a ledger that counts something else,
    /// such as a board's starts.
    ///
    /// # Errors
    /// As there.
    pub fn record(&mut self, round: u32, limits: &Limits) -> Result<(), LedgerError> {
        self.check(round, limits)?;
        let mut record = self.record.clone();
        // Below the budget, and below u32::MAX: no overflow.
        record.past.participations += 1;
        record.past.next_round = round + 1;
        if self.is_in_use {
            record.chain = record.chain.next();
        }
        self.append(record)?;
        self.is_in_use = false;
        Ok(())
    }

    fn begin_life(&mut self, nonce: LedgerNonce, key: Key) -> Result<(), LedgerError> {
        self.append(Record::first(ChainKey::new(key), nonce))
    }

    /// Writes the record with the sequence number that follows its own, twice, to the slot that
    /// does not count, which counts from then on.
    #[inline(never)]
    fn append(&mut self, mut record: Record) -> Result<(), LedgerError> {
        // 2³² − 1 records wear out any flash.
        let sequence = record.sequence.checked_add(1).ok_or(LedgerError::Flash)?;
        record.sequence = sequence;
        let mut bytes = record.to_bytes();
        let slot = 1 - self.slot;
        let start = self.offset(slot);
        let end = start + Self::slot_bytes() as u32;
        let flash = |_| LedgerError::Flash;
        self.flash.erase(start, end).map_err(flash)?;
        let places = [start, start + RECORD_BYTES as u32];
        let mut again = [0; RECORD_BYTES];
        for place in places {
            self.flash.write(place, &bytes).map_err(flash)?;
            self.read(place, &mut again)?;
            if again != bytes {
                return Err(LedgerError::Flash);
            }
        }
        wipe(&mut bytes);
        wipe(&mut again);
        (self.record, self.slot) = (record, slot);
        Ok(())
    }

    fn offset(&self, slot: u32) -> u32 {
        // Both slots lie within the flash, whose offsets are 32 bits.
        slot * Self::slot_bytes() as u32
    }

    /// Reads a copy of the record, into memory of the caller that is wiped there: a result would be
    /// on the stack twice.
    #[inline(never)]
    fn read(&mut self, offset: u32, bytes: &mut [u8; RECORD_BYTES]) -> Result<(), LedgerError> {
        self.flash
            .read(offset, bytes)
            .map_err(|_| LedgerError::Flash)
    }

    /// Gives the flash back.
    pub fn into_flash(self) -> F {
        self.flash
    }
}

impl<F> core::fmt::Debug for Ledger<F> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Ledger({:?})", self.record.past)
    }
}
