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
//! **Answers.** A participation that answers a question raises the sequence number by 2, and every
//! other one by 1. So a device that is provisioned to answer so many questions counts them by what
//! it has: sequence number − 1 − participations. The record has no field for it, firmware without
//! questions reads it as before, and (1) to (4) hold for both numbers of a record or for neither.
//!
//! What the ledger cannot see: flash that is put back to an earlier state as a whole, by somebody
//! who holds the board in their hands. The coordinator sees it, by the chain key, once the device
//! has taken part in a later session than that.
//!
//! [`Identity`]: crate::identity::Identity
//! [`Policy`]: crate::session::Policy

use crate::{
    crypto::Key,
    identity::Identity,
    participation::Participation,
    secrets::{Held, Secrets},
    wipe::wipe,
    wire::keys::ChainKey,
};

mod error;
pub(crate) mod flash;
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
    /// Whether the next participation is an answer.
    #[cfg(feature = "questions")]
    is_answer: bool,
}

impl<F> Ledger<F> {
    /// What the device knows of its past.
    pub const fn past(&self) -> Past {
        self.record.past
    }

    /// How many of the participations were answers to questions.
    #[cfg(feature = "questions")]
    pub const fn answers(&self) -> u32 {
        let Record { sequence, past, .. } = &self.record;
        // The first record has the number 1 and no participation.
        sequence
            .saturating_sub(1)
            .saturating_sub(past.participations)
    }

    /// Whether the participation that is recorded next is an answer to a question.
    #[cfg(feature = "questions")]
    pub(crate) const fn set_answer(&mut self, is_answer: bool) {
        self.is_answer = is_answer;
    }

    /// What tells this ledger from all others of the device.
    pub const fn nonce(&self) -> &LedgerNonce {
        &self.record.nonce
    }

    /// The key that the device shares with its coordinator until it takes part in a session under
    /// it. With a secure element it is no key but names one: what derives from it comes from
    /// [`Self::chain_of`].
    pub const fn chain(&self) -> &ChainKey {
        &self.record.chain
    }

    /// [`Self::chain`], from which keys derive wherever `identity` has its secrets. Whether an
    /// element has the key that is named is seen by [`Self::begin`], and by a session at its start.
    pub const fn chain_of<'a, S>(&'a self, identity: &'a mut Identity<S>) -> Held<'a, S> {
        Held {
            secrets: &mut identity.root,
            chain: &self.record.chain,
        }
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

    /// Gives the flash back.
    pub fn into_flash(self) -> F {
        self.flash
    }

    const fn unread(flash: F) -> Self {
        Self {
            flash,
            record: Record::first(ChainKey::new(Key::from_secret([0; 32])), [0; 8]),
            // The first record goes to slot 0.
            slot: 1,
            is_in_use: false,
            #[cfg(feature = "questions")]
            is_answer: false,
        }
    }

    /// Looks at a copy of a record, slot by slot and copy by copy.
    fn look(&mut self, search: &mut Search, bytes: &[u8; RECORD_BYTES]) -> Result<(), LedgerError> {
        let (slot, copy) = (search.next / 2, search.next % 2);
        // One that was completed and is not readable.
        let is_lost = !self.adopt(slot, bytes) && is_whole(bytes);
        // A first record may have been begun.
        search.blank &= search.next == 0 || is_blank(bytes);
        if copy == 1 && is_lost && search.lost {
            return Err(LedgerError::Corrupt);
        }
        search.lost = is_lost;
        search.next += 1;
        Ok(())
    }

    /// Whether there is a record that counts, once all copies were looked at.
    const fn is_found(&self, search: &Search) -> Result<bool, LedgerError> {
        match (self.record.sequence, search.blank) {
            (1.., _) => Ok(true),
            (0, true) => Ok(false),
            (0, false) => Err(LedgerError::Corrupt),
        }
    }

    /// Whether a copy is readable. Its record counts from now on, if no newer one does.
    #[inline(never)]
    fn adopt(&mut self, slot: u32, bytes: &[u8; RECORD_BYTES]) -> bool {
        let mut found = Record::of(bytes);
        let Some(record) = &mut found else {
            return false;
        };
        if record.sequence > self.record.sequence {
            // No third place for one: what is overwritten is wiped with what was found.
            core::mem::swap(&mut self.record, record);
            self.slot = slot;
        }
        true
    }

    /// What the record of a participation has in the place of the next chain key, if that is not in
    /// the ledger.
    #[inline(always)]
    pub(crate) fn step<S: Secrets>(
        &self,
        secrets: &mut S,
    ) -> Result<Option<ChainKey>, LedgerError> {
        match self.is_in_use {
            true => {
                let next = secrets.next(&self.record.chain);
                next.map_err(|_| LedgerError::Element)
            }
            false => Ok(None),
        }
    }

    /// The record of a participation in `round`, with the next chain key if a session has begun
    /// under this one.
    fn next(
        &self,
        round: u32,
        limits: &Limits,
        step: Option<&ChainKey>,
        append: &mut Append,
    ) -> Result<(), LedgerError> {
        self.check(round, limits)?;
        let mut record = self.record.clone();
        // Below the budget, and below u32::MAX: no overflow.
        record.past.participations += 1;
        record.past.next_round = round + 1;
        if self.is_in_use {
            record.chain = step.map_or_else(|| record.chain.next(), Clone::clone);
        }
        self.prepare(&mut record, append)
    }

    /// A record with the sequence number that follows, for the slot that does not count.
    fn prepare(&self, record: &mut Record, append: &mut Append) -> Result<(), LedgerError> {
        // 2³² − 1 records wear out any flash.
        let sequence = self.record.sequence.checked_add(self.step_of_sequence());
        record.sequence = sequence.ok_or(LedgerError::Flash)?;
        let [written, _] = &mut append.copies;
        record.write(written);
        append.slot = 1 - self.slot;
        Ok(())
    }

    /// By how much sequence numbers rise: an answer leaves one out.
    #[inline(always)]
    const fn step_of_sequence(&self) -> u32 {
        #[cfg(feature = "questions")]
        if self.is_answer {
            return 2;
        }
        1
    }

    /// Both copies of a record are in the flash: it counts from now on.
    fn appended(&mut self, append: &Append) -> Result<(), LedgerError> {
        // From its bytes, as at a start, and not from a second copy of it.
        let [written, _] = &append.copies;
        self.adopt(append.slot, written);
        if self.slot != append.slot {
            return Err(LedgerError::Flash);
        }
        self.is_in_use = false;
        #[cfg(feature = "questions")]
        self.set_answer(false);
        Ok(())
    }

    /// What the device takes part in a round with, once that is recorded.
    fn participation<S: Secrets>(
        &self,
        round: u32,
        identity: &mut Identity<S>,
    ) -> Result<Participation, LedgerError> {
        let recognised = identity.root.recognise(self.chain());
        recognised.map_err(|_| LedgerError::Element)?;
        let root = identity.root.streams(self.nonce(), round);
        let root = root.map_err(|_| LedgerError::Element)?;
        Ok(Participation::new(identity.device, root, round))
    }
}

/// The search for the record that counts.
struct Search {
    /// The copy that is read next.
    next: u32,
    /// Whether all that was read may be flash on which no first record was completed.
    blank: bool,
    /// Whether the copy before was completed and is not readable.
    lost: bool,
}

impl Search {
    /// Copies of records.
    const COPIES: u32 = 4;

    const START: Self = Self {
        next: 0,
        blank: true,
        lost: false,
    };
}

/// A record on its way to the flash: [`flash`] erases its slot, writes each copy and reads it back.
struct Append {
    /// As it is written, and as it was read back.
    copies: [[u8; RECORD_BYTES]; 2],
    slot: u32,
}

impl Append {
    /// Nothing yet: it is filled in where it is.
    const EMPTY: Self = Self {
        copies: [[0; RECORD_BYTES]; 2],
        slot: 0,
    };

    /// The erase blocks of the slot.
    const fn range(&self, erase_size: usize) -> (u32, u32) {
        let start = place(2 * self.slot, erase_size);
        (start, start + slot_bytes(erase_size) as u32)
    }

    /// The copies of the slot, counted through both slots.
    const fn places(&self) -> [u32; 2] {
        [2 * self.slot, 2 * self.slot + 1]
    }

    /// Whether a copy reads as it was written.
    fn check(&self) -> Result<(), LedgerError> {
        let [written, read] = &self.copies;
        match read == written {
            true => Ok(()),
            false => Err(LedgerError::Flash),
        }
    }
}

/// It has the chain key.
impl Drop for Append {
    fn drop(&mut self) {
        wipe(&mut self.copies);
    }
}

/// The bytes of a copy that is looked at, with a chain key.
struct CopyBytes([u8; RECORD_BYTES]);

impl CopyBytes {
    const ZEROS: Self = Self([0; RECORD_BYTES]);
}

impl Drop for CopyBytes {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

/// Whole erase blocks that hold a slot. Blocks of no bytes hold none: no flash is as large.
const fn slot_bytes(erase_size: usize) -> usize {
    match SLOT_BYTES.checked_next_multiple_of(erase_size) {
        Some(bytes) => bytes,
        None => usize::MAX / 2,
    }
}

/// Where a copy is, counted through both slots. They lie within the flash, whose offsets are 32
/// bits.
const fn place(copy: u32, erase_size: usize) -> u32 {
    copy / 2 * slot_bytes(erase_size) as u32 + copy % 2 * RECORD_BYTES as u32
}

/// Whether flash of these sizes is of a use.
const fn check_geometry(
    [read, write, erase]: [usize; 3],
    capacity: usize,
) -> Result<(), LedgerError> {
    let is_usable = RECORD_BYTES.is_multiple_of(read) && RECORD_BYTES.is_multiple_of(write);
    match is_usable && capacity >= 2 * slot_bytes(erase) {
        true => Ok(()),
        false => Err(LedgerError::Geometry),
    }
}

impl<F> core::fmt::Debug for Ledger<F> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Ledger({:?})", self.record.past)
    }
}
