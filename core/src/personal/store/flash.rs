//! A personal model, the shared one, or a waiting update, in two slots of NOR flash, each in
//! separate erase blocks.
//!
//! A state is written to the slot without the previous state, its header last: a power cut at any
//! byte leaves the previous state intact, and the new one complete or missing. A slot, with values
//! in the byte order of the processor:
//!
//! | offset | bytes | content |
//! | --- | --- | --- |
//! | 0 | 3 | `sfM` |
//! | 3 | 1 | kind, 1 to 6 |
//! | 4 | 4 | round |
//! | 8 | 8 | nonce of the device's ledger |
//! | 16 | 4 | n |
//! | 20 | 4 | CRC-32 of the values |
//! | 24 | 4 | CRC-32 of the shape of a shared model or of a held update's invitation, or 0 |
//! | 28 | 4 | CRC-32 of everything before it |
//! | 32 | 4n | values, f32, or the parts of an update |

pub(crate) mod held;

use super::{BlockingStore, PersonalStore, StateId, StateKind, StoreError};
use crate::bytes::Writer;
use crate::crc32::crc32;
use crate::ledger::LedgerNonce;

/// Bytes of the header and of a write: a multiple of the write size of common flash.
const BLOCK: usize = 32;

const MAGIC: [u8; 3] = *b"sfM";

/// Bytes of the header before its checksum.
const COVERED: usize = 28;

/// A store for a personal model, the shared one, or a held update, on flash, which it owns.
pub struct FlashStore<F> {
    flash: F,
    /// Bytes of a slot: whole erase blocks.
    slot_bytes: usize,
}

/// Returns the bytes of flash for states of `values` values: two slots of whole erase blocks of
/// `erase_size` bytes.
pub const fn flash_bytes(values: usize, erase_size: usize) -> u32 {
    let bytes = (BLOCK + values * size_of::<f32>()).next_multiple_of(BLOCK);
    2 * bytes.next_multiple_of(erase_size) as u32
}

impl<F> FlashStore<F> {
    /// Creates the store on flash of `capacity` bytes, with these sizes of reads, writes and
    /// erases.
    fn of(flash: F, capacity: usize, [read, write, erase]: [usize; 3]) -> Result<Self, StoreError> {
        if write == 0 || !BLOCK.is_multiple_of(write) || !matches!(read, 1 | 2 | 4) {
            return Err(StoreError);
        }
        let half = capacity / 2;
        let slot_bytes = half - half.checked_rem(erase).unwrap_or(half);
        Ok(Self { flash, slot_bytes })
    }

    /// Returns the flash.
    pub fn into_flash(self) -> F {
        self.flash
    }

    /// Returns the address of an offset in a slot. Both slots lie within the flash, whose offsets
    /// are 32 bits.
    const fn at(&self, slot: u32, offset: usize) -> u32 {
        slot * self.slot_bytes as u32 + offset as u32
    }

    /// Returns whether a state of `values` values fits.
    fn has_room(&self, values: usize) -> bool {
        values <= self.capacity() && self.slot_bytes >= BLOCK
    }
}

const SLOTS: [u32; 2] = [0, 1];

/// Returns the last, partial block of a state.
fn last_block(rest: &[u8]) -> [u8; BLOCK] {
    let mut block = [0xff; BLOCK];
    for (to, from) in block.iter_mut().zip(rest) {
        *to = *from;
    }
    block
}

/// Splits the bytes of a state into whole blocks and the rest.
fn blocks(state: &[f32]) -> (&[u8], &[u8]) {
    let bytes: &[u8] = bytemuck::cast_slice(state);
    bytes.split_at(bytes.len() - bytes.len() % BLOCK)
}

/// The header of a slot.
struct Header([u8; BLOCK]);

impl Header {
    /// Creates the header of a state that fits, so its values are fewer than 2³².
    fn of(id: &StateId, state: &[f32]) -> Self {
        Self::new(id, state.len() as u32, crc32(bytemuck::cast_slice(state)))
    }

    fn new(id: &StateId, length: u32, checksum: u32) -> Self {
        let mut header = Self([0; BLOCK]);
        let (kind, shape) = id.kind.code();
        Writer::new(&mut header.0)
            .put(&MAGIC)
            .u8(kind)
            .u32(id.round)
            .put(&id.owner)
            .u32(length)
            .u32(checksum)
            .u32(shape)
            .u32(0);
        let sum = header.sum();
        let end = header.0.get_mut(COVERED..).unwrap_or_default();
        Writer::new(end).u32(sum);
        header
    }

    fn sum(&self) -> u32 {
        crc32(self.0.get(..COVERED).unwrap_or_default())
    }

    fn word(&self, offset: usize) -> u32 {
        let word = self.0.get(offset..).and_then(|bytes| bytes.first_chunk());
        word.map_or(0, |word| u32::from_le_bytes(*word))
    }

    /// Returns whether the state has `values` values.
    fn has_length(&self, values: usize) -> bool {
        self.word(16) as usize == values
    }

    /// Returns whether the checksum matches these bytes.
    fn has_checksum(&self, bytes: &[u8]) -> bool {
        crc32(bytes) == self.word(20)
    }

    /// Returns the state, if the header is undamaged and of this kind and owner.
    fn state_of(&self, kind: StateKind, owner: LedgerNonce) -> Option<StateId> {
        let round = self.word(4);
        let id = StateId { kind, owner, round };
        self.is_of(&id).then_some(id)
    }

    /// Returns whether the header is undamaged and belongs to this state.
    fn is_of(&self, id: &StateId) -> bool {
        let expected = Self::new(id, self.word(16), self.word(20));
        self.0 == expected.0
    }
}

impl<F> PersonalStore for FlashStore<F> {
    fn capacity(&self) -> usize {
        // Values are written in whole blocks.
        let bytes = self.slot_bytes.saturating_sub(BLOCK);
        (bytes - bytes % BLOCK) / size_of::<f32>()
    }
}

/// Implements the store on the `NorFlash` of the module, with its trait and these names of its
/// functions.
macro_rules! on_flash {
    ([$($async:tt $await:tt)?] $new:ident $newest:ident, $Store:ident: $load:ident $save:ident) => {
        impl<F: NorFlash> FlashStore<F> {
            /// Creates the store on this flash, which may be blank.
            ///
            /// # Errors
            /// [`StoreError`] if the flash's words do not fit the format.
            pub fn $new(flash: F) -> Result<Self, StoreError> {
                let capacity = flash.capacity();
                Self::of(
                    flash,
                    capacity,
                    [F::READ_SIZE, F::WRITE_SIZE, F::ERASE_SIZE],
                )
            }

            /// Returns the newest state of this kind and owner from a round before `end`, by its
            /// header.
            ///
            /// # Errors
            /// [`StoreError`] if the memory fails.
            pub(crate) $($async)? fn $newest(
                &mut self,
                kind: StateKind,
                owner: LedgerNonce,
                end: u32,
            ) -> Result<Option<StateId>, StoreError> {
                let mut newest: Option<StateId> = None;
                if !self.has_room(0) {
                    return Ok(None);
                }
                for slot in SLOTS {
                    let mut header = Header([0; BLOCK]);
                    read(self, slot, 0, &mut header.0)$(.$await)??;
                    let state = header.state_of(kind, owner).filter(|id| id.round < end);
                    let is_newer = |id: &StateId| newest.is_none_or(|held| held.round < id.round);
                    newest = state.filter(is_newer).or(newest);
                }
                Ok(newest)
            }
        }

        impl<F: NorFlash> $Store for FlashStore<F> {
            $($async)? fn $load(
                &mut self,
                id: &StateId,
                to: &mut [f32],
            ) -> Result<bool, StoreError> {
                let Some((slot, header)) = find(self, id)$(.$await)?? else {
                    return Ok(false);
                };
                if !header.has_length(to.len()) || !self.has_room(to.len()) {
                    return Ok(false);
                }
                let bytes = bytemuck::cast_slice_mut(to);
                read(self, slot, BLOCK, bytes)$(.$await)??;
                Ok(header.has_checksum(bytes))
            }

            $($async)? fn $save(
                &mut self,
                id: &StateId,
                state: &[f32],
                before: Option<&StateId>,
            ) -> Result<(), StoreError> {
                if !self.has_room(state.len()) {
                    return Err(StoreError);
                }
                let slot = match before {
                    None => 0,
                    Some(before) => {
                        let found = find(self, before)$(.$await)??;
                        found.map_or(0, |(slot, _)| 1 - slot)
                    }
                };
                let (from, to) = (self.at(slot, 0), self.at(slot, self.slot_bytes));
                let erased = self.flash.erase(from, to)$(.$await)?;
                erased.map_err(|_| StoreError)?;
                let (blocks, rest) = blocks(state);
                if !blocks.is_empty() {
                    write(self, slot, BLOCK, blocks)$(.$await)??;
                }
                if !rest.is_empty() {
                    write(self, slot, BLOCK + blocks.len(), &last_block(rest))$(.$await)??;
                }
                write(self, slot, 0, &Header::of(id, state).0)$(.$await)?
            }
        }

        /// Returns the slot of this state, if its header is undamaged.
        $($async)? fn find<F: NorFlash>(
            store: &mut FlashStore<F>,
            id: &StateId,
        ) -> Result<Option<(u32, Header)>, StoreError> {
            if !store.has_room(0) {
                return Ok(None);
            }
            for slot in SLOTS {
                let mut header = Header([0; BLOCK]);
                read(store, slot, 0, &mut header.0)$(.$await)??;
                if header.is_of(id) {
                    return Ok(Some((slot, header)));
                }
            }
            Ok(None)
        }

        pub(super) $($async)? fn read<F: NorFlash>(
            store: &mut FlashStore<F>,
            slot: u32,
            offset: usize,
            to: &mut [u8],
        ) -> Result<(), StoreError> {
            let at = store.at(slot, offset);
            store.flash.read(at, to)$(.$await)?.map_err(|_| StoreError)
        }

        pub(super) $($async)? fn write<F: NorFlash>(
            store: &mut FlashStore<F>,
            slot: u32,
            offset: usize,
            bytes: &[u8],
        ) -> Result<(), StoreError> {
            let at = store.at(slot, offset);
            store.flash.write(at, bytes)$(.$await)?.map_err(|_| StoreError)
        }
    };
}

/// Blocking flash.
mod blocking {
    use super::*;
    use embedded_storage::nor_flash::NorFlash;

    on_flash!([] new newest, BlockingStore: load save);
}

/// Async flash.
#[cfg(feature = "async")]
mod awaited {
    use super::{super::AsyncStore, *};
    use embedded_storage_async::nor_flash::NorFlash;

    on_flash!([async await] new_async newest_async, AsyncStore: load_async save_async);
}

impl<F> core::fmt::Debug for FlashStore<F> {
    /// Does not show the model.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("FlashStore")
    }
}

#[cfg(test)]
mod tests {
    use std::{vec, vec::Vec};

    use embedded_storage::nor_flash::NorFlash;

    use super::*;
    use crate::{
        ledger::tests::{Ram, erased},
        personal::store::StateKind,
    };

    type Flash = Ram<8, 128>;

    const VALUES: usize = 37;

    fn flash() -> Flash {
        // Two blocks for each slot.
        Flash::new(vec![0xff; 512])
    }

    fn id(round: u32) -> StateId {
        StateId {
            kind: StateKind::Model,
            owner: [7; 8],
            round,
        }
    }

    fn state(round: u32) -> Vec<f32> {
        (0..VALUES).map(|i| (i * i) as f32 - round as f32).collect()
    }

    fn loaded(store: &mut FlashStore<Flash>, id: &StateId) -> Option<Vec<f32>> {
        let mut to = vec![f32::NAN; VALUES];
        let has_state = store.load(id, &mut to).unwrap();
        has_state.then_some(to)
    }

    #[test]
    fn the_newest_state_and_the_one_before_are_there() {
        let mut store = FlashStore::new(flash()).unwrap();
        assert_eq!(store.capacity(), 56);
        assert_eq!(flash_bytes(56, Flash::ERASE_SIZE), 512);
        assert_eq!(flash_bytes(57, Flash::ERASE_SIZE), 768);
        assert_eq!(loaded(&mut store, &id(3)), None);
        store.save(&id(3), &state(3), None).unwrap();
        for round in 4..9 {
            let before = id(round - 1);
            store
                .save(&id(round), &state(round), Some(&before))
                .unwrap();
            store = FlashStore::new(store.into_flash()).unwrap();
            for round in [round - 1, round] {
                assert_eq!(loaded(&mut store, &id(round)), Some(state(round)));
            }
            assert_eq!(loaded(&mut store, &id(round - 2)), None);
        }
        // Again from the previous state, as after an update that did not count.
        store.save(&id(9), &state(9), Some(&id(7))).unwrap();
        assert_eq!(loaded(&mut store, &id(7)), Some(state(7)));
        assert_eq!(loaded(&mut store, &id(8)), None);

        let other = |kind, owner| StateId {
            kind,
            owner: [owner; 8],
            round: 9,
        };
        assert!(loaded(&mut store, &other(StateKind::Model, 7)).is_some());
        assert_eq!(loaded(&mut store, &other(StateKind::Offset, 7)), None);
        assert_eq!(loaded(&mut store, &other(StateKind::Model, 8)), None);
        assert_eq!(store.load(&id(9), &mut [0.0; 36]), Ok(false));
        assert_eq!(store.save(&id(9), &[0.0; 57], None), Err(StoreError));
        assert_eq!(loaded(&mut store, &id(9)), Some(state(9)), "as it was");
    }

    #[test]
    fn a_power_cut_at_any_byte_leaves_the_state_before() {
        for is_backward in [false, true] {
            let mut store = FlashStore::new(flash()).unwrap();
            store.save(&id(1), &state(1), None).unwrap();
            store.save(&id(2), &state(2), Some(&id(1))).unwrap();
            let before = store.into_flash();
            for power in 0.. {
                let mut cut = before.clone();
                (cut.power, cut.is_backward) = (power, is_backward);
                let mut store = FlashStore::new(cut).unwrap();
                let saved = store.save(&id(3), &state(3), Some(&id(2)));
                let mut flash = store.into_flash();
                flash.power = usize::MAX;
                let mut store = FlashStore::new(flash).unwrap();
                assert_eq!(loaded(&mut store, &id(2)), Some(state(2)), "{power}");
                let new = loaded(&mut store, &id(3));
                assert!(new.is_none() || new == Some(state(3)), "{power}");
                if saved.is_ok() {
                    assert!(new.is_some());
                    break;
                }
            }
        }
    }

    /// Async flash gets the same bytes, and a drop at any await is equivalent to a power cut.
    #[cfg(feature = "async")]
    #[test]
    fn flash_that_is_awaited_gets_the_same_bytes() {
        use super::super::AsyncStore;
        use crate::ledger::tests::awaited::{Awaited, ENOUGH, polled};

        let flash = || Ram::<4, 64>::new(vec![0xff; 512]);
        let (mut store, mut awaited) = (FlashStore::new(flash()).unwrap(), flash());
        for round in 1..5 {
            let before = id(round - 1);
            store
                .save(&id(round), &state(round), Some(&before))
                .unwrap();
            let mut is_saved = false;
            for polls in 1.. {
                let whole = awaited.clone();
                let mut other = FlashStore::new_async(Awaited(&mut awaited)).unwrap();
                let (new, values) = (id(round), state(round));
                let saving = other.save_async(&new, &values, Some(&before));
                is_saved |= polled(saving, polls) == Some(Ok(()));
                let mut to = [0.0; VALUES];
                let loaded = polled(other.load_async(&before, &mut to), ENOUGH);
                assert_eq!(loaded, Some(Ok(round > 1)), "{polls}");
                let loaded = polled(other.load_async(&id(round), &mut to), ENOUGH);
                assert_eq!(loaded, Some(Ok(is_saved)), "{polls}");
                if is_saved {
                    assert_eq!(to[..], values);
                    break;
                }
                awaited = whole;
            }
        }
        assert_eq!(awaited.bytes, store.into_flash().bytes);
    }

    #[test]
    fn damage_is_no_state() {
        let mut store = FlashStore::new(flash()).unwrap();
        store.save(&id(1), &state(1), None).unwrap();
        let whole = store.into_flash();
        for byte in 0..BLOCK + 4 * VALUES {
            let mut flash = whole.clone();
            flash.bytes[byte] ^= 1;
            let mut store = FlashStore::new(flash).unwrap();
            assert_eq!(loaded(&mut store, &id(1)), None, "byte {byte}");
        }
    }

    #[test]
    fn flash_that_is_too_small_has_no_room() {
        let mut tiny = flash();
        tiny.bytes.truncate(128);
        let mut store = FlashStore::new(tiny).unwrap();
        assert_eq!(store.capacity(), 0);
        assert_eq!(loaded(&mut store, &id(1)), None);
        for state in [&[][..], &[1.0]] {
            assert_eq!(store.save(&id(1), state, None), Err(StoreError));
        }
        assert!(FlashStore::new(erased::<64, 128>()).is_err(), "words");
    }
}
