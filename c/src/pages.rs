//! Flash besides that of the ledger, by functions of the firmware: the models of a device that only
//! infers, and the update of one that sleeps. Page sizes, and waiting for asynchronous flash.

use embedded_storage::nor_flash::{ErrorType, NorFlash, ReadNorFlash};

use crate::{
    callbacks::{SF_FLASH_PENDING, sf_flash},
    flash::{Failed, done},
    status::sf_status,
};

/// The bytes of a page are a multiple of this.
pub(crate) const PAGE_BYTES: u32 = 64;

/// Flash for two slots of whole pages, whose size is known only at run time. It waits for
/// asynchronous flash.
pub(crate) struct Pages {
    flash: sf_flash,
    capacity: usize,
}

impl Pages {
    /// The first pages of the flash, an even number. Others are not used, so that a larger flash
    /// keeps its content.
    pub(crate) fn new(flash: sf_flash, pages: u32) -> Result<Self, sf_status> {
        if flash.read.is_none() || flash.write.is_none() || flash.erase.is_none() {
            return Err(sf_status::SF_POINTER);
        }
        if flash.page_bytes == 0 || !flash.page_bytes.is_multiple_of(PAGE_BYTES) {
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
            // SAFETY: the firmware promises `sf_infer_open` and `sf_hold` that it may be called
            // with this context.
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
    const ERASE_SIZE: usize = PAGE_BYTES as usize;

    /// Erases the pages that begin in this range. A slot begins at a page, so the blocks of a page
    /// are erased together with its first one.
    fn erase(&mut self, from: u32, to: u32) -> Result<(), Failed> {
        let [from, to] = [from, to].map(|at| at.next_multiple_of(self.flash.page_bytes));
        if from == to {
            return Ok(());
        }
        self.finish(self.flash.begin_erase(from, (to - from) as usize))
    }

    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Failed> {
        self.finish(self.flash.begin_write(offset, bytes))
    }
}
