//! Flash as bytes in memory: the ledger of a new device, or the contents of a small file.

use embedded_storage::nor_flash::{
    ErrorType, NorFlash, NorFlashErrorKind, ReadNorFlash, check_erase, check_read, check_write,
};
use smolfed_core::crypto::Key;
use smolfed_core::ledger::{Ledger, LedgerError, LedgerNonce};

use super::flash::{PAGE, SIZE};

/// Returns the bytes of a new ledger with this nonce, for a device with this first key.
///
/// # Errors
/// No known error: the pages are blank, and large enough.
pub fn new_ledger(nonce: LedgerNonce, key: Key) -> Result<[u8; SIZE], LedgerError> {
    let mut image = Image([0xff; SIZE]);
    Ledger::create(&mut image, nonce, key)?;
    Ok(image.0)
}

/// Pages in memory.
pub struct Image<B>(pub(crate) B);

impl<B: AsRef<[u8]> + AsMut<[u8]>> Image<B> {
    fn part(&mut self, from: u32, length: usize) -> Result<&mut [u8], NorFlashErrorKind> {
        let from = from as usize;
        let part = self.0.as_mut().get_mut(from..from + length);
        part.ok_or(NorFlashErrorKind::OutOfBounds)
    }
}

impl<B> ErrorType for Image<B> {
    type Error = NorFlashErrorKind;
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> ReadNorFlash for Image<B> {
    const READ_SIZE: usize = 1;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), NorFlashErrorKind> {
        check_read(self, offset, bytes.len())?;
        bytes.copy_from_slice(self.part(offset, bytes.len())?);
        Ok(())
    }

    fn capacity(&self) -> usize {
        self.0.as_ref().len()
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> NorFlash for Image<B> {
    const WRITE_SIZE: usize = 1;
    const ERASE_SIZE: usize = PAGE;

    fn erase(&mut self, from: u32, to: u32) -> Result<(), NorFlashErrorKind> {
        check_erase(self, from, to)?;
        let length = to.saturating_sub(from) as usize;
        self.part(from, length)?.fill(0xff);
        Ok(())
    }

    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), NorFlashErrorKind> {
        check_write(self, offset, bytes.len())?;
        self.part(offset, bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::flash::FileFlash;

    #[test]
    fn it_is_the_file_of_a_new_ledger() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ledger");
        let key = Key::from_secret([6; 32]);
        Ledger::create(FileFlash::create(&path).unwrap(), [5; 8], key.clone()).unwrap();
        let image = new_ledger([5; 8], key).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), image);
    }
}
