//! Volatile RAM instead of flash, for the ledger of a board without a host. On your own board, use
//! the flash of your HAL.

use core::convert::Infallible;

use embedded_storage::nor_flash::{ErrorType, NorFlash, ReadNorFlash};

/// Four pages of 64 bytes.
pub struct Forgetful([u8; 256]);

impl Forgetful {
    /// Creates erased pages.
    pub const fn new() -> Self {
        Self([0xff; 256])
    }

    fn part(&mut self, offset: u32, length: usize) -> &mut [u8] {
        let rest = self.0.get_mut(offset as usize..).unwrap_or_default();
        rest.get_mut(..length).unwrap_or_default()
    }
}

impl Default for Forgetful {
    fn default() -> Self {
        Self::new()
    }
}

impl ErrorType for Forgetful {
    type Error = Infallible;
}

impl ReadNorFlash for Forgetful {
    const READ_SIZE: usize = 1;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), Infallible> {
        let part = self.part(offset, bytes.len());
        bytes
            .iter_mut()
            .zip(part)
            .for_each(|(byte, stored)| *byte = *stored);
        Ok(())
    }

    fn capacity(&self) -> usize {
        self.0.len()
    }
}

impl NorFlash for Forgetful {
    const WRITE_SIZE: usize = 4;
    const ERASE_SIZE: usize = 64;

    fn erase(&mut self, from: u32, to: u32) -> Result<(), Infallible> {
        self.part(from, to.saturating_sub(from) as usize).fill(0xff);
        Ok(())
    }

    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Infallible> {
        let part = self.part(offset, bytes.len());
        part.iter_mut()
            .zip(bytes)
            .for_each(|(stored, byte)| *stored &= byte);
        Ok(())
    }
}
