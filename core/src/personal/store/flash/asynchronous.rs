//! A personal model on flash that is awaited: what [`super`] does, in the same order.

use embedded_storage_async::nor_flash::NorFlash;

use super::{
    super::{AsyncStore, StateId, StoreError},
    BLOCK, FlashStore, Header, SLOTS, blocks, last_block,
};

impl<F: NorFlash> FlashStore<F> {
    /// [`Self::new`] on asynchronous flash.
    ///
    /// # Errors
    /// As there.
    pub fn new_async(flash: F) -> Result<Self, StoreError> {
        let capacity = flash.capacity();
        Self::of(
            flash,
            capacity,
            [F::READ_SIZE, F::WRITE_SIZE, F::ERASE_SIZE],
        )
    }

    async fn read_async(
        &mut self,
        slot: u32,
        offset: usize,
        to: &mut [u8],
    ) -> Result<(), StoreError> {
        let at = self.at(slot, offset);
        self.flash.read(at, to).await.map_err(|_| StoreError)
    }

    async fn write_async(
        &mut self,
        slot: u32,
        offset: usize,
        bytes: &[u8],
    ) -> Result<(), StoreError> {
        let at = self.at(slot, offset);
        self.flash.write(at, bytes).await.map_err(|_| StoreError)
    }

    async fn find_async(&mut self, id: &StateId) -> Result<Option<(u32, Header)>, StoreError> {
        if !self.has_room(0) {
            return Ok(None);
        }
        for slot in SLOTS {
            let mut header = Header([0; BLOCK]);
            self.read_async(slot, 0, &mut header.0).await?;
            if header.is_of(id) {
                return Ok(Some((slot, header)));
            }
        }
        Ok(None)
    }
}

impl<F: NorFlash> AsyncStore for FlashStore<F> {
    async fn load_async(&mut self, id: &StateId, to: &mut [f32]) -> Result<bool, StoreError> {
        let Some((slot, header)) = self.find_async(id).await? else {
            return Ok(false);
        };
        if !header.has_length(to.len()) || !self.has_room(to.len()) {
            return Ok(false);
        }
        let bytes = bytemuck::cast_slice_mut(to);
        self.read_async(slot, BLOCK, bytes).await?;
        Ok(header.has_checksum(bytes))
    }

    async fn save_async(
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
                let found = self.find_async(before).await?;
                found.map_or(0, |(slot, _)| 1 - slot)
            }
        };
        let (from, to) = (self.at(slot, 0), self.at(slot, self.slot_bytes));
        let erased = self.flash.erase(from, to).await;
        erased.map_err(|_| StoreError)?;
        let (blocks, rest) = blocks(state);
        if !blocks.is_empty() {
            self.write_async(slot, BLOCK, blocks).await?;
        }
        if !rest.is_empty() {
            let at = BLOCK + blocks.len();
            self.write_async(slot, at, &last_block(rest)).await?;
        }
        self.write_async(slot, 0, &Header::of(id, state).0).await
    }
}
