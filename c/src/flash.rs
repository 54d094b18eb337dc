//! The ledger's flash, by functions of the firmware (`sf_flash`): pages, the bytes that are erased
//! together, and waiting for asynchronous flash.

use embedded_storage::nor_flash::{ErrorType, NorFlashError, NorFlashErrorKind};
#[cfg(not(feature = "requested"))]
use embedded_storage::nor_flash::{NorFlash, ReadNorFlash};
#[cfg(feature = "requested")]
use embedded_storage_async::nor_flash::{NorFlash, ReadNorFlash};

use smolfed_core::ledger::SLOT_BYTES;

use crate::callbacks::sf_flash;
#[cfg(feature = "requested")]
use {crate::callbacks::SF_FLASH_PENDING, core::task::Poll};

/// Bytes that are erased together, as the ledger sees it: one of its two slots, at the beginning of
/// a page. Where pages are smaller, a slot has several.
const BLOCK: usize = SLOT_BYTES;

/// Flash whose sizes are known at run time alone. Its functions are in the memory of the device.
pub(crate) struct Flash(pub(crate) &'static sf_flash);

/// A function of the firmware failed, or is missing.
#[derive(Debug)]
pub(crate) struct Failed;

impl NorFlashError for Failed {
    fn kind(&self) -> NorFlashErrorKind {
        NorFlashErrorKind::Other
    }
}

impl Flash {
    /// Bytes from one block to the next: whole pages.
    fn stride(&self) -> u32 {
        (BLOCK as u32).next_multiple_of(self.0.page_bytes.max(1))
    }

    /// Where an address of the ledger is.
    fn place(&self, address: u32) -> u32 {
        address / BLOCK as u32 * self.stride() + address % BLOCK as u32
    }
}

impl Flash {
    /// The bytes of the blocks, or 0 for flash that 32 bits do not address. It divides 32 bits: a
    /// division of 64 takes 900 bytes on an Arm.
    fn slot_bytes(&self) -> usize {
        let (page, pages) = (self.0.page_bytes.max(1), self.0.pages);
        let is_addressed = page.checked_mul(pages).is_some();
        let blocks = pages / (self.stride() / page);
        match usize::try_from(blocks) {
            Ok(blocks) if is_addressed => blocks.saturating_mul(BLOCK),
            _ => 0,
        }
    }

    fn begin_read(&self, offset: u32, bytes: &mut [u8]) -> Result<i32, Failed> {
        self.0.begin_read(self.place(offset), bytes)
    }

    fn begin_write(&self, offset: u32, bytes: &[u8]) -> Result<i32, Failed> {
        self.0.begin_write(self.place(offset), bytes)
    }

    /// Begins to erase the pages of a block, which `slot_bytes` has counted.
    fn begin_erase(&self, block: u32) -> Result<i32, Failed> {
        self.0
            .begin_erase(self.place(block), self.stride() as usize)
    }
}

impl sf_flash {
    /// Begins to read.
    pub(crate) fn begin_read(&self, at: u32, bytes: &mut [u8]) -> Result<i32, Failed> {
        let read = self.read.ok_or(Failed)?;
        // SAFETY: the firmware promises `sf_open` that this function writes as many bytes there,
        // and that it may be called with this context as long as the device is open.
        Ok(unsafe { read(self.context, at, bytes.as_mut_ptr(), bytes.len()) })
    }

    /// Begins to write.
    pub(crate) fn begin_write(&self, at: u32, bytes: &[u8]) -> Result<i32, Failed> {
        let write = self.write.ok_or(Failed)?;
        // SAFETY: as for `begin_read`. This one reads as many bytes there.
        Ok(unsafe { write(self.context, at, bytes.as_ptr(), bytes.len()) })
    }

    /// Begins to erase whole pages of the flash.
    pub(crate) fn begin_erase(&self, at: u32, bytes: usize) -> Result<i32, Failed> {
        let erase = self.erase.ok_or(Failed)?;
        // SAFETY: as for `begin_read`.
        Ok(unsafe { erase(self.context, at, bytes) })
    }
}

/// The number of a function of the firmware as a result.
pub(crate) const fn done(answer: i32) -> Result<(), Failed> {
    match answer {
        0 => Ok(()),
        _ => Err(Failed),
    }
}

#[cfg(feature = "requested")]
impl Flash {
    /// Waits until the flash is done with an operation.
    async fn finish(&self, begun: Result<i32, Failed>) -> Result<(), Failed> {
        let begun = begun?;
        let (Some(poll), SF_FLASH_PENDING) = (self.0.poll, begun) else {
            return done(begun);
        };
        // SAFETY: as for `begin_read`. This one has no pointers but the context.
        let ask = || unsafe { poll(self.0.context) };
        done(
            core::future::poll_fn(|_| match ask() {
                SF_FLASH_PENDING => Poll::Pending,
                answer => Poll::Ready(answer),
            })
            .await,
        )
    }
}

/// Flash on the traits of the module.
macro_rules! on_traits {
    ([$($async:tt)?] $flash:ident, $begun:ident => $finish:expr) => {
        impl ReadNorFlash for Flash {
            const READ_SIZE: usize = 1;

            $($async)? fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), Failed> {
                let ($flash, $begun) = (&*self, self.begin_read(offset, bytes));
                $finish
            }

            fn capacity(&self) -> usize {
                self.slot_bytes()
            }
        }

        impl NorFlash for Flash {
            const WRITE_SIZE: usize = 8;
            const ERASE_SIZE: usize = BLOCK;

            $($async)? fn erase(&mut self, from: u32, to: u32) -> Result<(), Failed> {
                for block in (from..to).step_by(BLOCK) {
                    let ($flash, $begun) = (&*self, self.begin_erase(block));
                    $finish?;
                }
                Ok(())
            }

            $($async)? fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Failed> {
                let ($flash, $begun) = (&*self, self.begin_write(offset, bytes));
                $finish
            }
        }
    };
}

#[cfg(not(feature = "requested"))]
on_traits!([] _flash, begun => begun.and_then(done));
#[cfg(feature = "requested")]
on_traits!([async] flash, begun => flash.finish(begun).await);

impl ErrorType for Flash {
    type Error = Failed;
}
