//! NOR flash in memory, with a power failure after a number of bytes.

use embedded_storage::nor_flash::{
    ErrorType, NorFlash, NorFlashError, NorFlashErrorKind, ReadNorFlash,
};

/// Error if the power is gone, or the address is outside the flash.
#[derive(Debug)]
pub struct Broken;

impl NorFlashError for Broken {
    fn kind(&self) -> NorFlashErrorKind {
        NorFlashErrorKind::Other
    }
}

/// Flash in these bytes. Writes can only clear bits.
#[derive(Clone, Debug)]
pub struct Ram<B = [u8; 256], const WRITE: usize = 4, const ERASE: usize = 64> {
    /// Contents of the flash.
    pub bytes: B,
    /// Number of bytes that can still be erased or written.
    pub power: usize,
    /// Whether a block is erased from its end.
    pub is_backward: bool,
}

impl Ram {
    /// Creates erased flash for a ledger or a small store.
    pub const fn blank() -> Self {
        Self::new([0xff; 256])
    }
}

impl<B, const WRITE: usize, const ERASE: usize> Ram<B, WRITE, ERASE> {
    /// Creates flash with this content.
    pub const fn new(bytes: B) -> Self {
        Self {
            bytes,
            power: usize::MAX,
            is_backward: false,
        }
    }
}

impl<B: AsMut<[u8]>, const WRITE: usize, const ERASE: usize> Ram<B, WRITE, ERASE> {
    fn change(
        &mut self,
        offset: usize,
        count: usize,
        byte: impl Fn(usize, u8) -> u8,
    ) -> Result<(), Broken> {
        let places = self.bytes.as_mut().get_mut(offset..offset + count);
        for (i, place) in places.ok_or(Broken)?.iter_mut().enumerate() {
            self.power = self.power.checked_sub(1).ok_or(Broken)?;
            *place = byte(i, *place);
        }
        Ok(())
    }
}

impl<B, const WRITE: usize, const ERASE: usize> ErrorType for Ram<B, WRITE, ERASE> {
    type Error = Broken;
}

impl<B, const WRITE: usize, const ERASE: usize> ReadNorFlash for Ram<B, WRITE, ERASE>
where
    B: AsRef<[u8]>,
{
    const READ_SIZE: usize = 1;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), Broken> {
        let range = offset as usize..offset as usize + bytes.len();
        bytes.copy_from_slice(self.bytes.as_ref().get(range).ok_or(Broken)?);
        Ok(())
    }

    fn capacity(&self) -> usize {
        self.bytes.as_ref().len()
    }
}

impl<B, const WRITE: usize, const ERASE: usize> NorFlash for Ram<B, WRITE, ERASE>
where
    B: AsRef<[u8]> + AsMut<[u8]>,
{
    const WRITE_SIZE: usize = WRITE;
    const ERASE_SIZE: usize = ERASE;

    fn erase(&mut self, from: u32, to: u32) -> Result<(), Broken> {
        assert!((from as usize).is_multiple_of(ERASE) && (to as usize).is_multiple_of(ERASE));
        let (from, to) = (from as usize, to as usize);
        if !self.is_backward {
            return self.change(from, to - from, |_, _| 0xff);
        }
        for offset in (from..to).rev() {
            self.change(offset, 1, |_, _| 0xff)?;
        }
        Ok(())
    }

    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Broken> {
        assert!(bytes.len().is_multiple_of(WRITE));
        self.change(offset as usize, bytes.len(), |i, old| old & bytes[i])
    }
}
