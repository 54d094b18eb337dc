//! An update waiting to be sent, in one slot of a [`FlashStore`].
//!
//! The slot has three parts, each in whole blocks: the details of the round, the lower halves of
//! the integers and the upper ones. Its header has kind 6 and the checksum of the invitation
//! instead of a shape. Its n counts the values of all parts with their padding, and its checksum
//! covers the CRC-32 of each part. The header is written last.
//!
//! There is at most one such state: the previous one is erased before a new one is written. The
//! previous update is then superseded, and no restart may find two states of one round.

use super::{BLOCK, FlashStore, Header, SLOTS, last_block};
use crate::{
    bytes::Writer,
    crc32::crc32,
    personal::store::{StateId, StateKind, StoreError},
};

/// Details, lower halves and upper halves.
const PARTS: usize = 3;

/// Returns the number of values for parts of these lengths in a slot.
pub(crate) const fn values_of(lengths: [usize; PARTS]) -> usize {
    let [details, low, high] = lengths;
    (padded(details) + padded(low) + padded(high)) / size_of::<f32>()
}

/// Rounds a length up to whole blocks.
const fn padded(length: usize) -> usize {
    length.next_multiple_of(BLOCK)
}

/// A slot with the undamaged header of a held update.
pub(crate) struct HeldSlot {
    slot: u32,
    header: Header,
    id: StateId,
}

impl HeldSlot {
    /// Returns the round, the ledger and the checksum of the invitation.
    pub(crate) const fn id(&self) -> &StateId {
        &self.id
    }

    /// Returns whether the slot was written with these parts.
    pub(crate) fn has_parts(&self, parts: [&[u8]; PARTS]) -> bool {
        self.header.0 == header_of(&self.id, parts).0
    }
}

/// Returns the header of an update with these parts, which fit, so their values are fewer than 2³².
fn header_of(id: &StateId, parts: [&[u8]; PARTS]) -> Header {
    let mut sums = [0; PARTS * size_of::<u32>()];
    let mut writer = Writer::new(&mut sums);
    for part in parts {
        writer.u32(crc32(part));
    }
    let values = values_of(parts.map(<[u8]>::len));
    Header::new(id, values as u32, crc32(&sums))
}

impl Header {
    /// Returns the state, if the header is undamaged and of a held update.
    fn held(&self) -> Option<StateId> {
        let owner = self.0.get(8..).and_then(|bytes| bytes.first_chunk());
        self.state_of(StateKind::Held(self.word(24)), *owner?)
    }
}

/// Implements held updates on the `NorFlash` of the module.
macro_rules! on_flash {
    (
        [$($async:tt $await:tt)?]
        $held:ident $read_held:ident $write_held:ident $erase_held:ident
    ) => {
        impl<F: NorFlash> FlashStore<F> {
            /// Returns the held update, by its header.
            ///
            /// # Errors
            /// [`StoreError`] if the memory fails.
            pub(crate) $($async)? fn $held(&mut self) -> Result<Option<HeldSlot>, StoreError> {
                for slot in SLOTS {
                    if let Some(held) = find_in(self, slot)$(.$await)?? {
                        return Ok(Some(held));
                    }
                }
                Ok(None)
            }

            /// Reads a part of a held update after parts of the lengths in `before`, and returns
            /// whether the slot is long enough.
            ///
            /// # Errors
            /// [`StoreError`] if the memory fails.
            pub(crate) $($async)? fn $read_held(
                &mut self,
                held: &HeldSlot,
                before: &[usize],
                to: &mut [u8],
            ) -> Result<bool, StoreError> {
                let before: usize = before.iter().map(|length| padded(*length)).sum();
                if BLOCK + before + to.len() > self.slot_bytes {
                    return Ok(false);
                }
                read(self, held.slot, BLOCK + before, to)$(.$await)??;
                Ok(true)
            }

            /// Writes an update to the slot of this number, modulo 2. Everything else is erased
            /// first, and the slot again even if it reads as blank: an interrupted erase may leave
            /// bits that are not stable.
            ///
            /// # Errors
            /// [`StoreError`] if the memory fails or has no room.
            pub(crate) $($async)? fn $write_held(
                &mut self,
                id: &StateId,
                slot: u32,
                parts: [&[u8]; PARTS],
            ) -> Result<(), StoreError> {
                if !self.has_room(values_of(parts.map(<[u8]>::len))) {
                    return Err(StoreError);
                }
                self.$erase_held()$(.$await)??;
                let (slot, mut at) = (slot % 2, BLOCK);
                erase(self, slot)$(.$await)??;
                for part in parts {
                    let (blocks, rest) = part.split_at(part.len() - part.len() % BLOCK);
                    if !blocks.is_empty() {
                        write(self, slot, at, blocks)$(.$await)??;
                    }
                    if !rest.is_empty() {
                        write(self, slot, at + blocks.len(), &last_block(rest))$(.$await)??;
                    }
                    at += padded(part.len());
                }
                write(self, slot, 0, &header_of(id, parts).0)$(.$await)?
            }

            /// Erases the held update, and parts of one whose write or erase was interrupted.
            /// Returns whether there was anything.
            ///
            /// # Errors
            /// [`StoreError`] if the memory fails.
            pub(crate) $($async)? fn $erase_held(&mut self) -> Result<bool, StoreError> {
                let mut has_erased = false;
                for slot in SLOTS {
                    if !is_blank(self, slot)$(.$await)?? {
                        erase(self, slot)$(.$await)??;
                        has_erased = true;
                    }
                }
                Ok(has_erased)
            }
        }

        /// Returns the held update in a slot.
        $($async)? fn find_in<F: NorFlash>(
            store: &mut FlashStore<F>,
            slot: u32,
        ) -> Result<Option<HeldSlot>, StoreError> {
            if !store.has_room(0) {
                return Ok(None);
            }
            let mut header = Header([0; BLOCK]);
            read(store, slot, 0, &mut header.0)$(.$await)??;
            let id = header.held();
            Ok(id.map(|id| HeldSlot { slot, header, id }))
        }

        /// Whether a slot has nothing but erased bytes.
        $($async)? fn is_blank<F: NorFlash>(
            store: &mut FlashStore<F>,
            slot: u32,
        ) -> Result<bool, StoreError> {
            let mut at = 0;
            while at < store.slot_bytes {
                let mut block = [0; BLOCK];
                let count = BLOCK.min(store.slot_bytes - at);
                let bytes = block.get_mut(..count).unwrap_or_default();
                read(store, slot, at, bytes)$(.$await)??;
                if bytes.iter().any(|byte| *byte != 0xff) {
                    return Ok(false);
                }
                at += count;
            }
            Ok(true)
        }

        /// Erases a slot, the block with its header last, so that an interrupted erase is found
        /// again.
        $($async)? fn erase<F: NorFlash>(
            store: &mut FlashStore<F>,
            slot: u32,
        ) -> Result<(), StoreError> {
            let (from, to) = (store.at(slot, 0), store.at(slot, store.slot_bytes));
            let second = from + F::ERASE_SIZE as u32;
            if second < to {
                let erased = store.flash.erase(second, to)$(.$await)?;
                erased.map_err(|_| StoreError)?;
            }
            let erased = store.flash.erase(from, second)$(.$await)?;
            erased.map_err(|_| StoreError)
        }
    };
}

/// Blocking flash.
mod blocking {
    use super::{
        super::blocking::{read, write},
        *,
    };
    use embedded_storage::nor_flash::NorFlash;

    on_flash!([] held read_held write_held erase_held);
}

/// Async flash.
#[cfg(feature = "async")]
mod awaited {
    use super::{
        super::awaited::{read, write},
        *,
    };
    use embedded_storage_async::nor_flash::NorFlash;

    on_flash!([async await] held_async read_held_async write_held_async erase_held_async);
}
