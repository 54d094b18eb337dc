//! The ledger of a device: the record of its participations, which survives power loss and damage,
//! and their limits (budget for its life, separation, largest jump of round numbers).
//!
//! The following rules hold for all requests of a coordinator ([`Limits`]). A device takes part at
//! most [`Budget`] times in its life. It never takes part twice under one round number, because the
//! number names its random streams (noise from one stream position on two updates could be
//! subtracted). It never takes part less than [`Separation`] round numbers after its last round,
//! and never in a round more than [`MaxJump`] numbers ahead, so no single message can use up the
//! round numbers. A participation is therefore on the flash **before** anything is drawn from the
//! round's streams, and rounds only increase. A round that began and did not finish is spent.
//!
//! **Nonce.** A ledger has a nonce, drawn at its creation, from which the streams derive
//! ([`Identity`]). A device with erased flash gets a new ledger, and with it new streams. The nonce
//! comes from the hardware's generator ([`Ledger::open_or_create`]), or from provisioning, which
//! writes the ledger once. Firmware without a generator uses [`Ledger::open`] and refuses blank
//! flash.
//!
//! **Chain key.** The record holds the key with which the device greets its coordinator. The first
//! one comes from the provisioning record, and [`Ledger::begin`] writes the next one, once per
//! session, with the participation, without an extra write. The inactive slot holds the previous
//! record, so the flash reveals the chain key of the last session in which the device took part,
//! but no earlier one.
//!
//! # Format 3
//!
//! Two slots, each in separate erase blocks, are written in turn. The record with the higher
//! sequence number is current. A slot holds two copies of the record, one after the other. A copy
//! has 64 bytes. Numbers are little-endian:
//!
//! | offset | bytes | content |
//! | --- | --- | --- |
//! | 0 | 4 | `sfL3` |
//! | 4 | 4 | sequence number, from 1 |
//! | 8 | 4 | participations |
//! | 12 | 4 | lowest round number that can still begin |
//! | 16 | 32 | chain key |
//! | 48 | 8 | nonce |
//! | 56 | 4 | CRC-32 of everything before it |
//! | 60 | 4 | 0: written last |
//!
//! # Why no round is repeated
//!
//! The fault model is any number of power cuts, each at any byte of an erase or of a write, and one
//! flipped bit anywhere, before or after. A copy is *readable* if at most one bit differs from a
//! record's encoding. The checksum identifies the bit, because no two bits of such a short message
//! change it in the same way.
//!
//! 1. [`Ledger::begin`] erases the inactive slot, writes the first copy, reads it back, does the
//!    same with the second, and returns. So once it has returned, the slot has a readable copy,
//!    even after one flipped bit, and in fact after any three.
//! 2. A slot without a readable copy is therefore a write whose `begin` never returned. None of the
//!    round's streams were used, and the other slot is current: falling back to it repeats nothing.
//! 3. A slot is erased only while the other one is current, whose first copy is then complete and
//!    stays readable. So there is always a readable copy, and its contents are never older than a
//!    `begin` that has returned. A torn write with a readable copy counts as a participation that
//!    never happened, which is safe.
//! 4. Damage beyond this is refused ([`LedgerError::Corrupt`]): if both copies of a slot are
//!    written from their first word to their last and neither is readable, four or more bits have
//!    flipped, and the lost record may be the newest one.
//!
//! **Separation.** Once there is a participation, the device's last round is the next round minus
//! 1, because only [`Ledger::begin`] writes either. So the limit needs no other field on the flash,
//! and (1) to (4) hold for it too: the last round in a readable copy is never below that of a
//! `begin` that has returned, and new rounds are above it by the separation. A torn write that
//! counts only moves the next round further away.
//!
//! **The first start.** The first record goes to slot 0. A cut before its first copy is complete
//! leaves the second copy and slot 1 blank, up to a flipped bit, and by (3) no later state does.
//! The flash then counts as blank: no round began, and the ledger is created again, with a fresh
//! nonce.
//!
//! **Answers.** A participation that answers a question raises the sequence number by 2, and every
//! other one by 1. So a device with a limit on its answers can count them as sequence number − 1 −
//! participations. The record needs no field for it, firmware without questions can still read it,
//! and (1) to (4) hold for both numbers of a record or for neither.
//!
//! The ledger cannot detect a rollback of the whole flash to an earlier state, by someone with
//! physical access to the board. The coordinator detects it by the chain key, if the device has
//! taken part in a later session than that state.
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

/// Maximum number of participations in the life of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Budget(pub u32);

/// Minimum distance of two participations of a device, in round numbers: b of correlated noise,
/// whose proof allows a device at most every b-th round. 1 and 0 allow every round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Separation(pub u32);

impl Separation {
    /// No separation.
    pub const NONE: Self = Self(1);
}

/// Maximum distance of a round number from the lowest one that can begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct MaxJump(pub u32);

impl MaxJump {
    /// 2¹⁶: a device may miss 65,536 rounds of its fleet in a row. With a budget of up to 65,534,
    /// no sequence of rounds can then use up the round numbers before the budget.
    pub const DEFAULT: Self = Self(1 << 16);
}

/// Limits on the participations of a device, for its whole life and for all requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Limits {
    /// Maximum number of participations.
    pub budget: Budget,
    /// Minimum distance of two participations.
    pub separation: Separation,
    /// Maximum distance of a round from the ledger.
    pub max_jump: MaxJump,
}

/// A ledger on flash, which it owns.
pub struct Ledger<F> {
    flash: F,
    /// The current record. Its sequence number is 0 if there is none.
    record: Record,
    /// Slot of the current record: 0 or 1.
    slot: u32,
    /// Whether a session has begun with its chain key.
    is_in_use: bool,
    /// Whether the next participation answers a question.
    #[cfg(feature = "questions")]
    is_answer: bool,
}

impl<F> Ledger<F> {
    /// Returns the device's past.
    pub const fn past(&self) -> Past {
        self.record.past
    }

    /// Returns the number of participations that answered questions.
    #[cfg(feature = "questions")]
    pub const fn answers(&self) -> u32 {
        let Record { sequence, past, .. } = &self.record;
        // The first record has sequence number 1 and no participation.
        sequence
            .saturating_sub(1)
            .saturating_sub(past.participations)
    }

    /// Sets whether the next participation answers a question.
    #[cfg(feature = "questions")]
    pub(crate) const fn set_answer(&mut self, is_answer: bool) {
        self.is_answer = is_answer;
    }

    /// Returns the nonce, which distinguishes this ledger from all others of the device.
    pub const fn nonce(&self) -> &LedgerNonce {
        &self.record.nonce
    }

    /// Returns the key that the device shares with its coordinator until it takes part in a session
    /// with it. With a secure element it is only the name of a key, and [`Self::chain_of`] derives
    /// keys from it.
    pub const fn chain(&self) -> &ChainKey {
        &self.record.chain
    }

    /// Returns [`Self::chain`] for deriving keys, wherever `identity` keeps its secrets.
    /// [`Self::begin`], and a session at its start, check that an element has the named key.
    pub const fn chain_of<'a, S>(&'a self, identity: &'a mut Identity<S>) -> Held<'a, S> {
        Held {
            secrets: &mut identity.root,
            chain: &self.record.chain,
        }
    }

    /// Marks the chain key as used by a session, so that the next participation replaces it.
    pub const fn session_begins(&mut self) {
        self.is_in_use = true;
    }

    /// Checks whether [`Self::begin`] would let this round begin, if the flash works.
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
        // The largest number would have no successor.
        if round < next_round || round == u32::MAX {
            return Err(LedgerError::RoundUsed);
        }
        let ahead = round - next_round;
        // The last round, if any, is the next one minus 1.
        if participations > 0 && ahead < limits.separation.0.saturating_sub(1) {
            return Err(LedgerError::TooSoon);
        }
        if ahead > limits.max_jump.0 {
            return Err(LedgerError::TooFar);
        }
        Ok(())
    }

    /// Returns the flash.
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

    /// Examines one copy of a record, in the order of slots and copies.
    fn look(&mut self, search: &mut Search, bytes: &[u8; RECORD_BYTES]) -> Result<(), LedgerError> {
        let (slot, copy) = (search.next / 2, search.next % 2);
        // A completed copy that is not readable.
        let is_lost = !self.adopt(slot, bytes) && is_whole(bytes);
        // A first record may be incomplete.
        search.blank &= search.next == 0 || is_blank(bytes);
        if copy == 1 && is_lost && search.lost {
            return Err(LedgerError::Corrupt);
        }
        search.lost = is_lost;
        search.next += 1;
        Ok(())
    }

    /// Returns whether there is a current record, after all copies were examined.
    const fn is_found(&self, search: &Search) -> Result<bool, LedgerError> {
        match (self.record.sequence, search.blank) {
            (1.., _) => Ok(true),
            (0, true) => Ok(false),
            (0, false) => Err(LedgerError::Corrupt),
        }
    }

    /// Returns whether a copy is readable. Makes its record the current one unless there is a newer
    /// one.
    #[inline(never)]
    fn adopt(&mut self, slot: u32, bytes: &[u8; RECORD_BYTES]) -> bool {
        let mut found = Record::of(bytes);
        let Some(record) = &mut found else {
            return false;
        };
        if record.sequence > self.record.sequence {
            // Swaps, to avoid a third copy: the overwritten record is wiped with `found`.
            core::mem::swap(&mut self.record, record);
            self.slot = slot;
        }
        true
    }

    /// Returns the value that replaces the next chain key in the record of a participation, if the
    /// key itself is not in the ledger.
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

    /// Returns the record of a participation in `round`, with the next chain key if a session has
    /// begun with this one.
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

    /// Prepares a record with the next sequence number for the inactive slot.
    fn prepare(&self, record: &mut Record, append: &mut Append) -> Result<(), LedgerError> {
        // 2³² − 1 records wear out any flash.
        let sequence = self.record.sequence.checked_add(self.step_of_sequence());
        record.sequence = sequence.ok_or(LedgerError::Flash)?;
        let [written, _] = &mut append.copies;
        record.write(written);
        append.slot = 1 - self.slot;
        Ok(())
    }

    /// Returns the increment of the sequence number: an answer skips one.
    #[inline(always)]
    const fn step_of_sequence(&self) -> u32 {
        #[cfg(feature = "questions")]
        if self.is_answer {
            return 2;
        }
        1
    }

    /// Makes a record current once both copies are in the flash.
    fn appended(&mut self, append: &Append) -> Result<(), LedgerError> {
        // Reads it from its bytes, as at a start, and not from a second copy of it.
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

    /// Returns the participation in a round, once it is recorded.
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

/// The search for the current record.
struct Search {
    /// Number of the next copy.
    next: u32,
    /// Whether all copies so far may be flash without a completed first record.
    blank: bool,
    /// Whether the previous copy was completed and is not readable.
    lost: bool,
}

impl Search {
    /// Number of copies of records.
    const COPIES: u32 = 4;

    const START: Self = Self {
        next: 0,
        blank: true,
        lost: false,
    };
}

/// A record on its way to the flash: [`flash`] erases its slot, writes each copy and reads it back.
struct Append {
    /// The written copy, and the copy read back.
    copies: [[u8; RECORD_BYTES]; 2],
    slot: u32,
}

impl Append {
    /// An empty record, filled in place.
    const EMPTY: Self = Self {
        copies: [[0; RECORD_BYTES]; 2],
        slot: 0,
    };

    /// Returns the range of the slot's erase blocks.
    const fn range(&self, erase_size: usize) -> (u32, u32) {
        let start = place(2 * self.slot, erase_size);
        (start, start + slot_bytes(erase_size) as u32)
    }

    /// Returns the numbers of the slot's copies, counted across both slots.
    const fn places(&self) -> [u32; 2] {
        [2 * self.slot, 2 * self.slot + 1]
    }

    /// Checks that a copy reads as it was written.
    fn check(&self) -> Result<(), LedgerError> {
        let [written, read] = &self.copies;
        match read == written {
            true => Ok(()),
            false => Err(LedgerError::Flash),
        }
    }
}

/// Wipes the chain key.
impl Drop for Append {
    fn drop(&mut self) {
        wipe(&mut self.copies);
    }
}

/// The bytes of an examined copy, which contain a chain key.
struct CopyBytes([u8; RECORD_BYTES]);

impl CopyBytes {
    const ZEROS: Self = Self([0; RECORD_BYTES]);
}

impl Drop for CopyBytes {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

/// Returns the bytes of the whole erase blocks of a slot. Blocks of 0 bytes give a size that no
/// flash has.
const fn slot_bytes(erase_size: usize) -> usize {
    match SLOT_BYTES.checked_next_multiple_of(erase_size) {
        Some(bytes) => bytes,
        None => usize::MAX / 2,
    }
}

/// Returns the offset of a copy, counted across both slots. Copies lie within the flash, whose
/// offsets are 32 bits.
const fn place(copy: u32, erase_size: usize) -> u32 {
    copy / 2 * slot_bytes(erase_size) as u32 + copy % 2 * RECORD_BYTES as u32
}

/// Checks that flash of these sizes is usable.
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
