//! The currents of boards' processors and of a LoRa radio, by data sheets.
//!
//! `docs/cost.md` names the tables. Typical values at 25 °C, with the supply of the data sheet.

use super::processors::{CORTEX_M0, CORTEX_M4F, CORTEX_M33, Processor};

/// A board.
#[derive(Debug)]
pub struct Board {
    /// Its name.
    pub name: &'static str,
    /// Its processor, or one with the same instructions.
    pub processor: &'static Processor,
    /// Clock in MHz.
    pub clock: f64,
    /// Current in mA while the processor runs from flash and all else rests.
    pub current: f64,
    /// Where clock and current come from.
    pub source: &'static str,
}

/// Boards, from the slowest to the fastest.
pub const BOARDS: [Board; 5] = [
    Board {
        name: "micro:bit v1",
        processor: &CORTEX_M0,
        clock: 16.0,
        current: 4.4,
        source: "nRF51822 Product Specification v3.1: 275 µA/MHz from flash",
    },
    Board {
        name: "CC2340R2",
        processor: &CORTEX_M0,
        clock: 48.0,
        current: 2.6,
        source: "CC2340R2 data sheet SWRS282, CoreMark from flash at 48 MHz, DC/DC",
    },
    Board {
        name: "nRF52840 DK",
        processor: &CORTEX_M4F,
        clock: 64.0,
        current: 3.3,
        source: "nRF52840 Product Specification v1.1, CPU running, CoreMark from flash, DC/DC",
    },
    Board {
        name: "Nucleo-L476RG",
        processor: &CORTEX_M4F,
        clock: 80.0,
        current: 10.2,
        source: "STM32L476xx data sheet DS10198, run mode from flash, range 1, 80 MHz",
    },
    Board {
        name: "nRF54L15 DK",
        processor: &CORTEX_M33,
        clock: 128.0,
        current: 2.6,
        source: "nRF54L15 data sheet, CPU running, IAPPCPU0, CoreMark from NVM at 128 MHz",
    },
];

/// Current in mA of an SX1276 that sends with +13 dBm from its pin RFO: Semtech, SX1276/77/78/79
/// data sheet, table "Power Consumption Specification".
pub const RADIO_CURRENT: f64 = 29.0;

/// µAh of so many mA for so many seconds.
#[must_use]
pub fn charge(current: f64, seconds: f64) -> f64 {
    current * seconds / 3.6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_of_a_milliampere_is_a_milliampere_hour() {
        assert_eq!(charge(1.0, 3_600.0), 1_000.0);
    }

    /// The page of sources has each board with its clock and current.
    #[test]
    fn the_page_names_all_currents() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/cost.md");
        let page = std::fs::read_to_string(path).unwrap();
        for board in &BOARDS {
            let row = format!(
                "| {} | {} | {} | {:.1} |",
                board.name, board.processor.name, board.clock, board.current
            );
            assert!(page.contains(&row), "{row}");
        }
        assert!(page.contains(&format!("{RADIO_CURRENT} mA")));
    }
}
