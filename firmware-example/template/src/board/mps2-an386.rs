//! QEMU's `mps2-an386`, a Cortex-M4F, to try a client without a board. Its flash is memory that is
//! lost when QEMU ends, and it has no random numbers, so provisioning creates the ledger.
//!
//! The memory map is in Arm's application note 386.

use core::{cell::RefCell, convert::Infallible, ptr, task::Waker};

use cortex_m::peripheral::{Peripherals, syst::SystClkSource};
use cortex_m_rt::exception;
use embassy_executor::Spawner;
use embassy_sync::{
    blocking_mutex::{Mutex, raw::CriticalSectionRawMutex},
    pipe::Pipe,
};
use embassy_time_driver::Driver;
use embassy_time_queue_utils::Queue;
use embedded_io_async::{ErrorType, Read, Write};
use embedded_storage::nor_flash::{self, MultiwriteNorFlash, NorFlash, ReadNorFlash};
use panic_halt as _;
use rand_core::{TryRng, utils::next_word_via_fill};
use semihosting::{println, process::ExitCode};

use crate::{client::take_part, sensor::sample};

/// Addresses of the record and the ledger in QEMU: `.cargo/config.toml`.
const RECORD: usize = 0x0030_0000;
const LEDGER: usize = 0x0031_0000;
const PAGE: usize = 4_096;

const CLOCK_HZ: u32 = 25_000_000;

/// Starts the sensor, and takes part.
pub async fn start(spawner: Spawner) -> Result<Infallible, &'static str> {
    let refused = match sample() {
        Ok(task) => {
            spawner.spawn(task);
            Clock::start();
            let (record, ledger) = (Memory::<1>(RECORD), Memory::<2>(LEDGER).erased());
            take_part(record, ledger, None, Counter(0), Uart::start()).await
        }
        Err(_) => Err("the sensor runs already"),
    };
    let Err(why) = refused;
    println!("refused: {why}");
    ExitCode::FAILURE.exit_process()
}

/// Returns a pointer to a register or a word of memory.
fn word(address: usize) -> *mut u32 {
    ptr::with_exposed_provenance_mut(address)
}

/// `N` pages of memory instead of flash.
struct Memory<const N: usize>(usize);

impl<const N: usize> Memory<N> {
    /// Erases a last page of zeros, since nothing was written to it.
    fn erased(mut self) -> Self {
        let (last, mut page) = (((N - 1) * PAGE) as u32, [0; PAGE]);
        let Ok(()) = self.read(last, &mut page);
        if page == [0; PAGE] {
            let Ok(()) = self.erase(last, (N * PAGE) as u32);
        }
        self
    }
}

impl<const N: usize> nor_flash::ErrorType for Memory<N> {
    type Error = Infallible;
}

impl<const N: usize> ReadNorFlash for Memory<N> {
    const READ_SIZE: usize = 1;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), Infallible> {
        for (address, byte) in (self.0 + offset as usize..).zip(bytes) {
            // SAFETY: memory that the linker does not assign.
            *byte = unsafe { word(address).cast::<u8>().read_volatile() };
        }
        Ok(())
    }

    fn capacity(&self) -> usize {
        N * PAGE
    }
}

impl<const N: usize> NorFlash for Memory<N> {
    const WRITE_SIZE: usize = 4;
    const ERASE_SIZE: usize = PAGE;

    fn erase(&mut self, from: u32, to: u32) -> Result<(), Infallible> {
        (from..to)
            .step_by(4)
            .try_for_each(|offset| self.write(offset, &[0xff; 4]))
    }

    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Infallible> {
        for (address, byte) in (self.0 + offset as usize..).zip(bytes) {
            // SAFETY: as above.
            unsafe { word(address).cast::<u8>().write_volatile(*byte) };
        }
        Ok(())
    }
}

impl<const N: usize> MultiwriteNorFlash for Memory<N> {}

/// CMSDK UART 0, with interrupts for received bytes.
struct Uart(());

const UART: usize = 0x4000_4000;
const STATE: usize = UART + 0x04;
const CONTROL: usize = UART + 0x08;
const INTERRUPT: usize = UART + 0x0c;
const BAUD_DIVIDER: usize = UART + 0x10;
const FULL_TO_SEND: u32 = 1;
const HAS_RECEIVED: u32 = 2;

static RECEIVED: Pipe<CriticalSectionRawMutex, 512> = Pipe::new();

impl Uart {
    /// Enables the line, and the interrupt for received bytes.
    fn start() -> Self {
        // SAFETY: registers of the UART and of the interrupt controller.
        unsafe {
            word(BAUD_DIVIDER).write_volatile(CLOCK_HZ / 115_200);
            word(CONTROL).write_volatile(0b1011);
            word(0xe000_e100).write_volatile(1);
        }
        Self(())
    }
}

/// Handles the interrupt of the UART.
#[exception]
unsafe fn DefaultHandler(_number: i16) {
    // SAFETY: registers of the UART.
    unsafe {
        word(INTERRUPT).write_volatile(0b10);
        while word(STATE).read_volatile() & HAS_RECEIVED != 0 {
            // Without room the byte is lost, and the frame is repeated.
            let _lost = RECEIVED.try_write(&[word(UART).read_volatile() as u8]);
        }
    }
}

impl ErrorType for Uart {
    type Error = Infallible;
}

impl Read for Uart {
    async fn read(&mut self, bytes: &mut [u8]) -> Result<usize, Infallible> {
        Ok(RECEIVED.read(bytes).await)
    }
}

impl Write for Uart {
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, Infallible> {
        for byte in bytes {
            // SAFETY: registers of the UART.
            unsafe {
                while word(STATE).read_volatile() & FULL_TO_SEND != 0 {}
                word(UART).write_volatile((*byte).into());
            }
        }
        Ok(bytes.len())
    }

    async fn flush(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

/// Milliseconds since the start, and the queue of waiting tasks.
struct Clock(Mutex<CriticalSectionRawMutex, RefCell<(u64, Queue)>>);

embassy_time_driver::time_driver_impl!(static CLOCK: Clock = Clock(
    Mutex::new(RefCell::new((0, Queue::new())))
));

impl Clock {
    /// Enables an interrupt every millisecond.
    fn start() {
        if let Some(mut p) = Peripherals::take() {
            p.SYST.set_clock_source(SystClkSource::Core);
            p.SYST.set_reload(CLOCK_HZ / 1_000 - 1);
            p.SYST.clear_current();
            p.SYST.enable_counter();
            p.SYST.enable_interrupt();
        }
    }
}

#[exception]
fn SysTick() {
    CLOCK.0.lock(|state| {
        let (now, queue) = &mut *state.borrow_mut();
        *now += 1;
        queue.next_expiration(*now);
    });
}

impl Driver for Clock {
    fn now(&self) -> u64 {
        self.0.lock(|state| state.borrow().0)
    }

    fn schedule_wake(&self, at: u64, waker: &Waker) {
        // A late task wakes in the next millisecond.
        self.0
            .lock(|state| state.borrow_mut().1.schedule_wake(at, waker));
    }
}

/// Session nonces from a counter that restarts at each start. For QEMU only, which has no flash to
/// count starts in: on a device, nonces must never repeat.
struct Counter(u64);

impl TryRng for Counter {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        next_word_via_fill(self)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        next_word_via_fill(self)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.0 += 1;
        for (byte, digit) in bytes
            .iter_mut()
            .zip(self.0.to_le_bytes().into_iter().chain([0; 8]))
        {
            *byte = digit;
        }
        Ok(())
    }
}
