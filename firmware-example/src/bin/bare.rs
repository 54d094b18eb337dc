//! The client without a host: nothing but what a real board needs. `tests/firmware.rs` shows that
//! no panic can happen in it, and `docs/targets.md` has its size.
//!
//! Its flash is two pieces of RAM, which forget: on a board of yours, take the flash of your HAL.
#![no_std]
#![no_main]

use core::convert::Infallible;

#[cfg(target_arch = "arm")]
use cortex_m_rt::entry;
use embedded_storage::nor_flash::{ErrorType, NorFlash, ReadNorFlash};
#[cfg(target_arch = "riscv32")]
use riscv_rt::entry;
use smolfed_core::personal::store::NoStore;
use smolfed_firmware::{
    board,
    client::{self, Storage},
};

#[entry]
fn main() -> ! {
    let Err(_why) = client::run_regression(Storage {
        ledger: Forgetful::new(),
        starts: Forgetful::new(),
        store: NoStore,
    });
    loop {
        board::sleep_unless(|| false);
    }
}

/// RAM in the place of flash.
struct Forgetful([u8; 256]);

impl Forgetful {
    const fn new() -> Self {
        Self([0xff; 256])
    }

    fn part(&mut self, offset: u32, length: usize) -> &mut [u8] {
        let rest = self.0.get_mut(offset as usize..).unwrap_or_default();
        rest.get_mut(..length).unwrap_or_default()
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
