//! The flash of the models of a device that only infers, by functions of the firmware: page sizes,
//! and waiting for asynchronous flash.

use embedded_storage::nor_flash::{ErrorType, NorFlash, ReadNorFlash};

use crate::{
    config::{SF_FLASH_PENDING, sf_flash},
    flash::{Failed, done},
    status::sf_status,
};

/// The bytes of a page are a multiple of this.
const BLOCK: usize = 64;

/// Flash for two files in whole pages, whose size is known only at run time. It waits for
/// asynchronous flash.
pub(super) struct Pages {
    flash: sf_flash,
    capacity: usize,
}

impl Pages {
    /// The first pages of the flash. Others are not used, so that a larger flash keeps its models.
    pub(super) fn new(flash: sf_flash, pages: u32) -> Result<Self, sf_status> {
        if flash.read.is_none() || flash.write.is_none() || flash.erase.is_none() {
            return Err(sf_status::SF_POINTER);
        }
        if flash.page_bytes == 0 || !flash.page_bytes.is_multiple_of(BLOCK as u32) {
            return Err(sf_status::SF_CONFIG);
        }
        if flash.pages < pages {
            return Err(sf_status::SF_FLASH);
        }
        let capacity = flash.page_bytes.checked_mul(pages);
        let capacity = capacity.and_then(|bytes| usize::try_from(bytes).ok());
        let capacity = capacity.ok_or(sf_status::SF_CONFIG)?;
        Ok(Self { flash, capacity })
    }

    /// Waits until the flash is done with an operation.
    fn finish(&self, begun: Result<i32, Failed>) -> Result<(), Failed> {
        let mut answer = begun?;
        while let (Some(poll), SF_FLASH_PENDING) = (self.flash.poll, answer) {
            // SAFETY: the firmware promises `sf_infer_open` that it may be called with this context
            // as long as the device is open.
            answer = unsafe { poll(self.flash.context) };
        }
        done(answer)
    }
}

impl ErrorType for Pages {
    type Error = Failed;
}

impl ReadNorFlash for Pages {
    const READ_SIZE: usize = 1;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), Failed> {
        self.finish(self.flash.begin_read(offset, bytes))
    }

    fn capacity(&self) -> usize {
        self.capacity
    }
}

impl NorFlash for Pages {
    const WRITE_SIZE: usize = 8;
    /// An erase begins at a half, which is at a page.
    const ERASE_SIZE: usize = BLOCK;

    fn erase(&mut self, from: u32, to: u32) -> Result<(), Failed> {
        let bytes = (to - from).next_multiple_of(self.flash.page_bytes);
        self.finish(self.flash.begin_erase(from, bytes as usize))
    }

    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Failed> {
        self.finish(self.flash.begin_write(offset, bytes))
    }
}
