//! A round over LoRaWAN class A in the European band (EU868): airtime, pauses, downlinks.
//!
//! With T = 2^SF / 125 kHz, the time of a symbol, a packet of n bytes takes
//!
//! ```text
//! T · (8 + 4.25 + 8 + max(⌈(8n − 4 SF + 28 + 16) / (4 (SF − 2 DE))⌉, 0) · 5)
//! ```
//!
//! with a preamble of 8 symbols, an explicit header, a CRC, the code rate 4/5, and DE = 1 for SF11
//! and SF12, else 0. Source: Semtech, LoRa Modem Designer's Guide, AN1200.13 (2013), section 4.
//! The sizes of packets are those of LoRaWAN Regional Parameters, RP002-1.0.5, EU863-870, maximum
//! payload size N, not repeater compatible.

use smolfed_core::wire::fragment::PacketSize;
use smolfed_fleet::traffic::Traffic;

use super::packets::{self, packet_count, packet_lengths};

/// Bytes of LoRaWAN around a payload: MHDR, FHDR without options, `FPort` and MIC.
const OVERHEAD_BYTES: usize = 13;

/// Bytes of an uplink without a payload, which has no `FPort`.
const EMPTY_BYTES: usize = OVERHEAD_BYTES - 1;

/// The part of the time in which a device may send: 1 in so many.
const DUTY_CYCLE: u64 = 100;

/// A spreading factor with the packets that it allows.
#[derive(Clone, Copy, Debug)]
pub struct SpreadingFactor {
    /// Bits of a symbol, 7 to 12.
    pub bits: u32,
    /// Bytes of a payload at most.
    pub payload: PacketSize,
}

/// Those of EU868 at 125 kHz.
pub const SPREADING_FACTORS: [SpreadingFactor; 6] = [
    spreading_factor(7, 242),
    spreading_factor(8, 242),
    spreading_factor(9, 115),
    spreading_factor(10, 51),
    spreading_factor(11, 51),
    spreading_factor(12, 51),
];

const fn spreading_factor(bits: u32, payload: u8) -> SpreadingFactor {
    SpreadingFactor {
        bits,
        payload: packets::of(payload),
    }
}

impl SpreadingFactor {
    /// Microseconds on the air of a packet of so many bytes, those of LoRaWAN included.
    #[must_use]
    pub const fn airtime_us(self, bytes: usize) -> u64 {
        let bits = self.bits as u64;
        let reduction = if self.bits >= 11 { 2 } else { 0 };
        let coded = (8 * bytes as u64 + 28 + 16).saturating_sub(4 * bits);
        let symbols = 8 + 5 * coded.div_ceil(4 * (bits - reduction));
        // A quarter of a symbol takes 2^(SF + 1) µs, and 12.25 symbols are 49 quarters.
        (49 + 4 * symbols) << (bits + 1)
    }
}

/// A round over LoRaWAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoRaWan {
    /// Bits of a symbol, 7 to 12.
    pub spreading_factor: u32,
    /// Bytes of a payload at most.
    pub payload: PacketSize,
    /// Uplinks with a part of a frame.
    pub uplinks: usize,
    /// Downlinks, each of which needs an uplink before it.
    pub downlinks: usize,
    /// Uplinks without a payload, for downlinks that have no other one: so many at least. A device
    /// waits for the answer to each message, so only the last uplink of a message precedes a
    /// downlink.
    pub empty_uplinks: usize,
    /// Microseconds on the air of all uplinks.
    pub airtime_us: u64,
}

impl LoRaWan {
    /// A round with these frames.
    #[must_use]
    pub fn of(factor: SpreadingFactor, traffic: &Traffic) -> Self {
        let sent = traffic.up.iter();
        let airtime = |payload| factor.airtime_us(payload + OVERHEAD_BYTES);
        let airtime_us: u64 = sent
            .flat_map(|frame| packet_lengths(*frame, factor.payload))
            .map(airtime)
            .sum();
        let uplinks = packet_count(&traffic.up, factor.payload);
        let downlinks = packet_count(&traffic.down, factor.payload);
        let empty_uplinks = downlinks.saturating_sub(traffic.up.len());
        Self {
            spreading_factor: factor.bits,
            payload: factor.payload,
            uplinks,
            downlinks,
            empty_uplinks,
            airtime_us: airtime_us + empty_uplinks as u64 * factor.airtime_us(EMPTY_BYTES),
        }
    }

    /// Seconds on the air.
    #[must_use]
    pub fn airtime_s(&self) -> f64 {
        self.airtime_us as f64 / 1e6
    }

    /// Seconds that the uplinks take at a duty cycle of 1 %.
    #[must_use]
    pub fn duty_cycle_s(&self) -> f64 {
        self.airtime_s() * DUTY_CYCLE as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a spreadsheet by the designer's guide (SF9, 13 bytes), of a calculator of RF Wireless
    /// World (SF7 and SF11, 10 bytes), and of the calculator for The Things Network: 51 bytes in
    /// all at SF12, and payloads of 115 bytes at SF9 and of 222 at SF7.
    #[test]
    fn airtime_is_as_published() {
        for (bits, bytes, expected) in [
            (9, 13, 164_864),
            (7, 10, 41_216),
            (11, 10, 577_536),
            (12, 51, 2_465_792),
            (9, 128, 676_864),
            (7, 235, 368_896),
        ] {
            let factor = spreading_factor(bits, 51);
            assert_eq!(factor.airtime_us(bytes), expected, "SF{bits}, {bytes}");
        }
    }

    /// A packet may need no symbol beyond the first eight.
    #[test]
    fn no_airtime_is_below_that_of_preamble_and_header() {
        assert_eq!(spreading_factor(12, 51).airtime_us(0), (49 + 32) << 13);
    }

    #[test]
    fn each_downlink_needs_an_uplink() {
        let traffic = Traffic {
            up: vec![50, 51, 3],
            down: vec![101; 3],
        };
        let found = LoRaWan::of(spreading_factor(10, 51), &traffic);
        assert_eq!(
            (found.uplinks, found.downlinks, found.empty_uplinks),
            (4, 9, 6)
        );
        let of = |bytes| spreading_factor(10, 51).airtime_us(bytes);
        let expected = 2 * of(51 + 13) + of(2 + 13) + of(4 + 13) + 6 * of(12);
        assert_eq!(found.airtime_us, expected);
        assert_eq!(found.duty_cycle_s(), expected as f64 / 1e4);
    }

    #[test]
    fn slower_factors_are_dearer() {
        let traffic = Traffic {
            up: vec![220; 9],
            down: vec![256; 3],
        };
        let times = SPREADING_FACTORS.map(|factor| LoRaWan::of(factor, &traffic).airtime_us);
        assert!(times.is_sorted(), "{times:?}");
    }
}
