//! A Nucleo-F429ZI, with the second bank of its flash, the hardware random number generator, and
//! the debugger's serial port.

use core::{cell::RefCell, convert::Infallible};

use embassy_embedded_hal::flash::partition::BlockingPartition;
use embassy_executor::Spawner;
use embassy_stm32::{
    Config, bind_interrupts,
    flash::{Bank2Region1, Blocking, Flash},
    peripherals, rcc, rng,
    time::Hertz,
    usart::{self, BufferedUart},
};
use embassy_sync::blocking_mutex::{Mutex, raw::NoopRawMutex};
use embedded_storage::nor_flash::{ErrorType, MultiwriteNorFlash, NorFlash, ReadNorFlash};
use panic_halt as _;
use smolfed_core::generator::Rng09;

use crate::{client::take_part, sensor::sample};

/// Sectors of the second bank, left free by `memory/stm32f429.x`.
const RECORD: u32 = 0;
const LEDGER: u32 = SECTOR;
const SECTOR: u32 = 16 << 10;

bind_interrupts!(struct Interrupts {
    HASH_RNG => rng::InterruptHandler<peripherals::RNG>;
    USART3 => usart::BufferedInterruptHandler<peripherals::USART3>;
});

/// Starts the sensor, and takes part.
pub async fn start(spawner: Spawner) -> Result<Infallible, &'static str> {
    let p = embassy_stm32::init(clocks());
    let mut random = rng::Rng::new(p.RNG, Interrupts);
    let mut ledger_nonce = [0; 8];
    random.fill_bytes(&mut ledger_nonce);
    // Pass your sensor's pins from `p` to `sample`.
    spawner.spawn(sample().map_err(|_| "the sensor runs already")?);

    let flash = Flash::new_blocking(p.FLASH).into_blocking_regions();
    let flash = Mutex::<NoopRawMutex, _>::new(RefCell::new(Bank(flash.bank2_region1)));
    let record = BlockingPartition::new(&flash, RECORD, SECTOR);
    let ledger = BlockingPartition::new(&flash, LEDGER, 2 * SECTOR);
    let (mut received, mut sent) = ([0; 512], [0; 256]);
    let line = BufferedUart::new(
        p.USART3,
        p.PD9,
        p.PD8,
        &mut sent,
        &mut received,
        Interrupts,
        usart::Config::default(),
    );
    let line = line.map_err(|_| "the serial line")?;
    take_part(record, ledger, Some(ledger_nonce), Rng09(random), line).await
}

/// Returns clocks of 168 MHz, and 48 MHz for the generator, from the debugger's 8 MHz.
fn clocks() -> Config {
    let mut config = Config::default();
    config.rcc.hse = Some(rcc::Hse {
        freq: Hertz(8_000_000),
        mode: rcc::HseMode::Bypass,
    });
    config.rcc.pll_src = rcc::PllSource::HSE;
    config.rcc.pll = Some(rcc::Pll {
        prediv: rcc::PllPreDiv::DIV4,
        mul: rcc::PllMul::MUL168,
        divp: Some(rcc::PllPDiv::DIV2),
        divq: Some(rcc::PllQDiv::DIV7),
        divr: None,
    });
    config.rcc.apb1_pre = rcc::APBPrescaler::DIV4;
    config.rcc.apb2_pre = rcc::APBPrescaler::DIV2;
    config.rcc.sys = rcc::Sysclk::PLL1_P;
    config.rcc.mux.clk48sel = rcc::mux::Clk48sel::PLL1_Q;
    config
}

/// Words can be rewritten to clear bits (reference manual, "Programming"), which the HAL does not
/// declare.
struct Bank(Bank2Region1<'static, Blocking>);

impl MultiwriteNorFlash for Bank {}

impl ErrorType for Bank {
    type Error = embassy_stm32::flash::Error;
}

impl ReadNorFlash for Bank {
    const READ_SIZE: usize = 1;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), Self::Error> {
        self.0.read(offset, bytes)
    }

    fn capacity(&self) -> usize {
        self.0.capacity()
    }
}

impl NorFlash for Bank {
    const WRITE_SIZE: usize = <Bank2Region1<'static, Blocking> as NorFlash>::WRITE_SIZE;
    const ERASE_SIZE: usize = <Bank2Region1<'static, Blocking> as NorFlash>::ERASE_SIZE;

    fn erase(&mut self, from: u32, to: u32) -> Result<(), Self::Error> {
        self.0.erase(from, to)
    }

    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Self::Error> {
        self.0.write(offset, bytes)
    }
}
