//! A personal model in two slots of NOR flash.
//!
//! The slots, each in separate erase blocks, are written in turn. The one that counts stays as it
//! is until the other one is committed, so that a power cut at any byte leaves a state: the old one
//! or the new one. A slot, with the numbers as the processor has them:
//!
//! | offset | bytes | content |
//! | --- | --- | --- |
//! | 0 | 4 | `sfM1` |
//! | 4 | 4 | sequence number, from 1 |
//! | 8 | 4 | kind |
//! | 12 | 4 | round |
//! | 16 | 4 | n |
//! | 20 | 4 | CRC-32 of the values |
//! | 24 | 4 | 0 |
//! | 28 | 4 | CRC-32 of everything before it |
//! | 32 | 32 | erased; 0 once the state is committed |
//! | 64 | 4n | values, f32 |

use embedded_storage::nor_flash::NorFlash;

use super::{PersonalStore, StateKind, StoreError};
use crate::wire::{
    bytes::{Reader, Writer},
    crc32::crc32,
};

/// Bytes of the header, and of the mark of a committed state: a multiple of the write size of usual
/// flash.
const BLOCK: usize = 32;

/// Bytes of a slot before its values.
const VALUES: usize = 2 * BLOCK;

const MAGIC: [u8; 4] = *b"sfM1";

/// Bytes of the header before its checksum.
const COVERED: usize = 28;

/// A personal model on a piece of flash that it owns.
pub struct FlashStore<F> {
    flash: F,
    /// The slot that counts, or the other one's turn if there is none.
    slot: u32,
    /// The sequence number of the state that counts; 0 without one.
    sequence: u32,
    /// Whether the other slot holds a staged state.
    is_staged: bool,
}

/// Bytes of flash that a state of so many values takes: two slots of whole erase blocks.
pub const fn flash_bytes<F: NorFlash>(values: usize) -> u32 {
    let bytes = (VALUES + values * size_of::<f32>()).next_multiple_of(BLOCK);
    2 * bytes.next_multiple_of(F::ERASE_SIZE) as u32
}

/// What a slot says of its values.
struct Header {
    sequence: u32,
    kind: u32,
    round: u32,
    length: u32,
    checksum: u32,
}

impl<F: NorFlash> FlashStore<F> {
    /// Finds the state that counts. Blank flash has none.
    ///
    /// # Errors
    /// [`StoreError`] if the flash cannot be read, or its words or blocks do not fit the format.
    pub fn open(flash: F) -> Result<Self, StoreError> {
        let fits = |size: usize| size > 0 && BLOCK.is_multiple_of(size);
        if !(fits(F::WRITE_SIZE) && matches!(F::READ_SIZE, 1 | 2 | 4)) {
            return Err(StoreError);
        }
        let mut store = Self {
            flash,
            slot: 1,
            sequence: 0,
            is_staged: false,
        };
        for slot in [0, 1] {
            if let Some(header) = store.header(slot)?
                && header.sequence > store.sequence
                && store.is_committed(slot)?
            {
                (store.slot, store.sequence) = (slot, header.sequence);
            }
        }
        Ok(store)
    }

    /// Gives the flash back.
    pub fn into_flash(self) -> F {
        self.flash
    }

    /// Bytes of a slot: whole erase blocks.
    fn slot_bytes(&self) -> usize {
        let half = self.flash.capacity() / 2;
        half - half.checked_rem(F::ERASE_SIZE).unwrap_or(half)
    }

    /// An offset in a slot. Both slots lie within the flash, whose offsets are 32 bits.
    fn at(&self, slot: u32, offset: usize) -> u32 {
        slot * self.slot_bytes() as u32 + offset as u32
    }

    fn read(&mut self, slot: u32, offset: usize, to: &mut [u8]) -> Result<(), StoreError> {
        let at = self.at(slot, offset);
        self.flash.read(at, to).map_err(|_| StoreError)
    }

    fn write(&mut self, slot: u32, offset: usize, bytes: &[u8]) -> Result<(), StoreError> {
        let at = self.at(slot, offset);
        self.flash.write(at, bytes).map_err(|_| StoreError)
    }

    fn header(&mut self, slot: u32) -> Result<Option<Header>, StoreError> {
        if self.slot_bytes() < VALUES {
            return Ok(None);
        }
        let mut bytes = [0; BLOCK];
        self.read(slot, 0, &mut bytes)?;
        Ok(Header::parse(&bytes))
    }

    /// Whether most bits of the mark are 0: neither a flipped bit nor a write that was cut decides.
    fn is_committed(&mut self, slot: u32) -> Result<bool, StoreError> {
        let mut mark = [0; BLOCK];
        self.read(slot, BLOCK, &mut mark)?;
        let zeros: u32 = mark.iter().map(|byte| byte.count_zeros()).sum();
        Ok(zeros > u8::BITS * BLOCK as u32 / 2)
    }
}

impl Header {
    fn parse(bytes: &[u8; BLOCK]) -> Option<Self> {
        let checksum = crc32(bytes.get(..COVERED)?);
        let reader = &mut Reader(bytes);
        let is_header = reader.array()? == MAGIC;
        let header = Self {
            sequence: reader.u32()?,
            kind: reader.u32()?,
            round: reader.u32()?,
            length: reader.u32()?,
            checksum: reader.u32()?,
        };
        (is_header && reader.u32()? == 0 && reader.u32()? == checksum).then_some(header)
    }

    fn to_bytes(&self) -> [u8; BLOCK] {
        let mut bytes = [0; BLOCK];
        Writer::new(&mut bytes)
            .put(&MAGIC)
            .u32(self.sequence)
            .u32(self.kind)
            .u32(self.round)
            .u32(self.length)
            .u32(self.checksum);
        let checksum = crc32(bytes.get(..COVERED).unwrap_or_default());
        let end = bytes.get_mut(COVERED..).unwrap_or_default();
        Writer::new(end).u32(checksum);
        bytes
    }
}

impl<F: NorFlash> PersonalStore for FlashStore<F> {
    fn room(&self) -> usize {
        // Values are written in whole blocks.
        let bytes = self.slot_bytes().saturating_sub(VALUES);
        (bytes - bytes % BLOCK) / size_of::<f32>()
    }

    fn load(&mut self, kind: StateKind, since: u32, to: &mut [f32]) -> Result<bool, StoreError> {
        if self.sequence == 0 {
            return Ok(false);
        }
        let Some(header) = self.header(self.slot)? else {
            return Ok(false);
        };
        if header.kind != kind as u32
            || header.round < since
            || header.length as usize != to.len()
            || to.len() > self.room()
        {
            return Ok(false);
        }
        let bytes = bytemuck::cast_slice_mut(to);
        self.read(self.slot, VALUES, bytes)?;
        Ok(crc32(bytes) == header.checksum)
    }

    fn stage(&mut self, kind: StateKind, round: u32, state: &[f32]) -> Result<(), StoreError> {
        if state.len() > self.room() {
            return Err(StoreError);
        }
        // 2³² − 1 states wear out any flash.
        let sequence = self.sequence.checked_add(1).ok_or(StoreError)?;
        let slot = 1 - self.slot;
        let (from, to) = (self.at(slot, 0), self.at(slot, self.slot_bytes()));
        self.is_staged = false;
        self.flash.erase(from, to).map_err(|_| StoreError)?;
        let bytes: &[u8] = bytemuck::cast_slice(state);
        let (blocks, rest) = bytes.split_at(bytes.len() - bytes.len() % BLOCK);
        if !blocks.is_empty() {
            self.write(slot, VALUES, blocks)?;
        }
        if !rest.is_empty() {
            let mut block = [0xff; BLOCK];
            for (to, from) in block.iter_mut().zip(rest) {
                *to = *from;
            }
            self.write(slot, VALUES + blocks.len(), &block)?;
        }
        let header = Header {
            sequence,
            kind: kind as u32,
            round,
            // At most the room, which is less than 2³².
            length: state.len() as u32,
            checksum: crc32(bytes),
        };
        self.write(slot, 0, &header.to_bytes())?;
        self.is_staged = true;
        Ok(())
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        if !core::mem::take(&mut self.is_staged) {
            return Ok(());
        }
        let slot = 1 - self.slot;
        self.write(slot, BLOCK, &[0; BLOCK])?;
        (self.slot, self.sequence) = (slot, self.sequence + 1);
        Ok(())
    }

    fn discard(&mut self) {
        self.is_staged = false;
    }
}

impl<F> core::fmt::Debug for FlashStore<F> {
    /// Nothing of the model.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "FlashStore(state {})", self.sequence)
    }
}

#[cfg(test)]
mod tests {
    use std::{vec, vec::Vec};

    use super::*;
    use crate::ledger::tests::Ram;

    type Flash = Ram<8, 128>;

    fn flash() -> Flash {
        let mut flash = Flash::new();
        // Two blocks a slot.
        flash.bytes = vec![0xff; 512];
        flash
    }

    fn state(round: u32) -> Vec<f32> {
        (0..37).map(|i| (i * i) as f32 - round as f32).collect()
    }

    fn loaded(store: &mut FlashStore<Flash>) -> Option<Vec<f32>> {
        let mut to = vec![f32::NAN; 37];
        let has_state = store.load(StateKind::Model, 0, &mut to).unwrap();
        has_state.then_some(to)
    }

    #[test]
    fn a_state_counts_once_it_is_committed() {
        let mut store = FlashStore::open(flash()).unwrap();
        assert_eq!(store.room(), 48);
        assert_eq!(
            (flash_bytes::<Flash>(48), flash_bytes::<Flash>(49)),
            (512, 768)
        );
        assert_eq!(loaded(&mut store), None);
        store.commit().unwrap();
        let mut before = None;
        for round in 3..9 {
            store.stage(StateKind::Model, round, &state(round)).unwrap();
            assert_eq!(loaded(&mut store), before, "staged only");
            if round == 5 {
                store.discard();
            }
            store.commit().unwrap();
            if round != 5 {
                before = Some(state(round));
            }
            assert_eq!(loaded(&mut store), before);
            store = FlashStore::open(store.into_flash()).unwrap();
            assert_eq!(loaded(&mut store), before, "after a restart");
        }
        // Another kind, length or run.
        let mut to = [0.0; 37];
        assert_eq!(store.load(StateKind::Offset, 0, &mut to), Ok(false));
        assert_eq!(store.load(StateKind::Model, 9, &mut to), Ok(false));
        assert_eq!(store.load(StateKind::Model, 8, &mut to), Ok(true));
        assert_eq!(store.load(StateKind::Model, 0, &mut to[..36]), Ok(false));
        let too_long = store.stage(StateKind::Model, 9, &[0.0; 49]);
        assert_eq!(too_long, Err(StoreError));
        assert_eq!(loaded(&mut store), before, "it is as it was");
    }

    #[test]
    fn a_power_cut_at_any_byte_leaves_the_old_state_or_the_new_one() {
        let mut store = FlashStore::open(flash()).unwrap();
        store.stage(StateKind::Model, 1, &state(1)).unwrap();
        store.commit().unwrap();
        store.stage(StateKind::Model, 2, &state(2)).unwrap();
        store.commit().unwrap();
        let before = store.into_flash();
        for power in 0.. {
            let mut cut = before.clone();
            cut.power = power;
            let mut store = FlashStore::open(cut).unwrap();
            let staged = store.stage(StateKind::Model, 3, &state(3));
            let committed = staged.and_then(|()| store.commit());
            let mut flash = store.into_flash();
            flash.power = usize::MAX;
            let found = loaded(&mut FlashStore::open(flash).unwrap()).unwrap();
            if committed.is_ok() {
                assert_eq!(found, state(3));
                return;
            }
            let is_whole = found == state(2) || found == state(3);
            assert!(is_whole, "after {power} bytes");
        }
    }

    #[test]
    fn damage_is_no_state() {
        let mut store = FlashStore::open(flash()).unwrap();
        store.stage(StateKind::Model, 1, &state(1)).unwrap();
        store.commit().unwrap();
        let whole = store.into_flash();
        for byte in 0..VALUES + 4 * 37 {
            let mut flash = whole.clone();
            flash.bytes[byte] ^= 1;
            let found = loaded(&mut FlashStore::open(flash).unwrap());
            // A bit of the mark decides nothing.
            let is_mark = (BLOCK..2 * BLOCK).contains(&byte);
            assert_eq!(found.is_some(), is_mark, "byte {byte}");
        }
    }

    #[test]
    fn flash_that_is_too_small_has_no_room() {
        let mut tiny = flash();
        tiny.bytes.truncate(128);
        let mut store = FlashStore::open(tiny).unwrap();
        assert_eq!(store.room(), 0);
        assert_eq!(loaded(&mut store), None);
        assert!(store.stage(StateKind::Model, 1, &[1.0]).is_err());
        assert!(FlashStore::open(Ram::<64, 128>::new()).is_err(), "words");
    }
}
