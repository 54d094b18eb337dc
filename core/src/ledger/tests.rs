//! The ledger on a flash that loses power at any moment, or fails.

use std::{format, vec, vec::Vec};

use embedded_storage::nor_flash::{
    ErrorType, NorFlash, NorFlashError, NorFlashErrorKind, ReadNorFlash,
};

use super::*;

const BUDGET: Budget = Budget(1_000);

/// The power is gone, or the flash does not work.
#[derive(Debug)]
pub(crate) struct Broken;

impl NorFlashError for Broken {
    fn kind(&self) -> NorFlashErrorKind {
        NorFlashErrorKind::Other
    }
}

/// NOR flash in memory: writing only clears bits, and after so many bytes the power fails.
#[derive(Clone)]
pub(crate) struct Ram<const WRITE: usize = 4, const ERASE: usize = 64> {
    pub(crate) bytes: Vec<u8>,
    /// Bytes that may still be erased or written.
    pub(crate) power: usize,
}

impl<const WRITE: usize, const ERASE: usize> Ram<WRITE, ERASE> {
    pub(crate) fn new() -> Self {
        Self {
            bytes: vec![0xff; 128],
            power: usize::MAX,
        }
    }

    fn change(
        &mut self,
        offset: usize,
        count: usize,
        byte: impl Fn(usize, u8) -> u8,
    ) -> Result<(), Broken> {
        for i in 0..count {
            self.power = self.power.checked_sub(1).ok_or(Broken)?;
            self.bytes[offset + i] = byte(i, self.bytes[offset + i]);
        }
        Ok(())
    }
}

impl<const WRITE: usize, const ERASE: usize> ErrorType for Ram<WRITE, ERASE> {
    type Error = Broken;
}

impl<const WRITE: usize, const ERASE: usize> ReadNorFlash for Ram<WRITE, ERASE> {
    const READ_SIZE: usize = 1;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), Broken> {
        let range = offset as usize..offset as usize + bytes.len();
        bytes.copy_from_slice(self.bytes.get(range).ok_or(Broken)?);
        Ok(())
    }

    fn capacity(&self) -> usize {
        self.bytes.len()
    }
}

impl<const WRITE: usize, const ERASE: usize> NorFlash for Ram<WRITE, ERASE> {
    const WRITE_SIZE: usize = WRITE;
    const ERASE_SIZE: usize = ERASE;

    fn erase(&mut self, from: u32, to: u32) -> Result<(), Broken> {
        assert!((from as usize).is_multiple_of(ERASE) && (to as usize).is_multiple_of(ERASE));
        self.change(from as usize, (to - from) as usize, |_, _| 0xff)
    }

    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Broken> {
        assert!(bytes.len().is_multiple_of(WRITE));
        self.change(offset as usize, bytes.len(), |i, old| old & bytes[i])
    }
}

fn new() -> Ledger<Ram> {
    Ledger::create(Ram::new()).unwrap()
}

#[test]
fn participations_count_and_rounds_only_go_up() {
    let mut ledger = new();
    assert_eq!(ledger.past(), Past::default());
    for round in [0, 1, 7] {
        assert_eq!(ledger.begin(round, BUDGET), Ok(()));
        assert_eq!(ledger.begin(round, BUDGET), Err(LedgerError::RoundUsed));
    }
    assert_eq!(ledger.begin(3, BUDGET), Err(LedgerError::RoundUsed));
    assert_eq!(ledger.begin(8, Budget(3)), Err(LedgerError::Spent));
    assert_eq!(ledger.begin(u32::MAX, BUDGET), Err(LedgerError::RoundUsed));
    let again = Ledger::open(ledger.into_flash()).unwrap();
    assert_eq!(
        format!("{again:?}"),
        "Ledger(Past { participations: 3, next_round: 8 })"
    );
    assert_eq!(again.check(8, BUDGET), Ok(()));
}

#[test]
fn only_flash_that_was_never_written_begins_anew() {
    let mut ledger = Ledger::open_or_create(Ram::<4, 64>::new()).unwrap();
    ledger.begin(4, BUDGET).unwrap();
    let mut flash = ledger.into_flash();
    let again = Ledger::open_or_create(flash.clone()).unwrap();
    assert_eq!(again.past().next_round, 5);
    for byte in &mut flash.bytes {
        *byte &= 0x7f;
    }
    let error = Ledger::open_or_create(flash).unwrap_err();
    assert_eq!(error, LedgerError::Corrupt, "the count is lost");
}

/// Kills the power at every byte of every erase and write of five rounds, starts again, and again.
#[test]
fn a_power_loss_at_any_byte_never_goes_back() {
    let mut flash = new().into_flash();
    let mut begun = Past::default();
    for round in 0..5 {
        for power in 0..200 {
            let mut cut = flash.clone();
            cut.power = power;
            let mut ledger = Ledger::open(cut).unwrap();
            let started = ledger.begin(round, BUDGET).is_ok();
            let mut cut = ledger.into_flash();
            cut.power = usize::MAX;
            let mut after = Ledger::open(cut).unwrap();
            let past = after.past();
            if started {
                assert_eq!(after.begin(round, BUDGET), Err(LedgerError::RoundUsed));
            }
            assert!(
                past.participations >= begun.participations,
                "cut after {power}"
            );
            assert!(past.next_round >= begun.next_round, "cut after {power}");
            // And once more, at another byte, before it works.
            let mut twice = after.into_flash();
            twice.power = power / 2;
            let mut ledger = Ledger::open(twice).unwrap();
            let _ = ledger.begin(round + 1, BUDGET);
            let mut flash = ledger.into_flash();
            flash.power = usize::MAX;
            assert!(Ledger::open(flash).unwrap().past().next_round >= past.next_round);
        }
        let mut ledger = Ledger::open(flash).unwrap();
        ledger.begin(round, BUDGET).unwrap();
        begun = ledger.past();
        flash = ledger.into_flash();
    }
}

#[test]
fn a_write_that_does_not_stick_is_no_participation() {
    /// Flash whose second block is worn out.
    struct Worn(Ram);
    impl ErrorType for Worn {
        type Error = Broken;
    }
    impl ReadNorFlash for Worn {
        const READ_SIZE: usize = 1;
        fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), Broken> {
            self.0.read(offset, bytes)
        }
        fn capacity(&self) -> usize {
            self.0.capacity()
        }
    }
    impl NorFlash for Worn {
        const WRITE_SIZE: usize = 4;
        const ERASE_SIZE: usize = 64;
        fn erase(&mut self, from: u32, to: u32) -> Result<(), Broken> {
            self.0.erase(from, to)
        }
        fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Broken> {
            self.0.write(offset, bytes)?;
            if offset > 0 {
                self.0.bytes[offset as usize + 8] &= 0xfe;
                self.0.bytes[offset as usize + 9] &= 0x00;
                self.0.bytes[offset as usize + 16] ^= 0x01;
            }
            Ok(())
        }
    }
    let mut ledger = Ledger::create(Worn(Ram::new())).unwrap();
    assert_eq!(ledger.begin(0, BUDGET), Err(LedgerError::Flash));
    assert_eq!(ledger.past(), Past::default());
}

#[test]
fn what_is_no_ledger_is_refused() {
    assert_eq!(
        Ledger::open(Ram::<4, 64>::new()).unwrap_err(),
        LedgerError::Blank
    );
    assert_eq!(
        Ledger::create(new().into_flash()).unwrap_err(),
        LedgerError::NotBlank
    );
    // A provisioning that was cut: start it again on erased flash.
    let mut torn = Ram::<4, 64>::new();
    torn.power = 64 + 10;
    assert_eq!(Ledger::create(torn).unwrap_err(), LedgerError::Flash);
    // Both records damaged: the count is lost, and the device must not start from zero.
    let mut ledger = new();
    ledger.begin(4, BUDGET).unwrap();
    let whole = ledger.into_flash();
    for bit in 0..8 * RECORD_BYTES {
        let mut flash = whole.clone();
        for slot in [0, 64] {
            flash.bytes[slot + bit / 8] ^= 1 << (bit % 8);
        }
        assert_eq!(
            Ledger::open(flash).unwrap_err(),
            LedgerError::Corrupt,
            "bit {bit}"
        );
    }
    assert_eq!(
        Ledger::open(Ram::<4, 128>::new()).unwrap_err(),
        LedgerError::Geometry
    );
    assert_eq!(
        Ledger::open(Ram::<5, 64>::new()).unwrap_err(),
        LedgerError::Geometry
    );
    let dead = Ram::<4, 64> {
        bytes: Vec::new(),
        power: 0,
    };
    assert_eq!(Ledger::open(dead).unwrap_err(), LedgerError::Geometry);
}

#[test]
fn small_and_large_blocks_work() {
    fn three_rounds<const WRITE: usize, const ERASE: usize>() {
        let mut ledger = Ledger::create(Ram::<WRITE, ERASE>::new()).unwrap();
        for round in 1..=3 {
            ledger.begin(round, BUDGET).unwrap();
        }
        assert_eq!(
            Ledger::open(ledger.into_flash())
                .unwrap()
                .past()
                .participations,
            3
        );
    }
    three_rounds::<1, 1>();
    three_rounds::<8, 16>();
    three_rounds::<32, 64>();
}
