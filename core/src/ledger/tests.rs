//! The ledger on flash with power cuts at any byte, bit flips, and failures.

use std::{format, vec, vec::Vec};

use embedded_storage::nor_flash::{ErrorType, NorFlash, ReadNorFlash};

use proptest::{collection::vec, prelude::*};

use super::{
    flash::blocking::{begin_life, find},
    *,
};
use crate::harness::{self, Broken};

#[cfg(feature = "async")]
pub(crate) mod awaited;

const LIMITS: Limits = Limits {
    budget: Budget(1_000),
    separation: Separation::NONE,
    max_jump: MaxJump(10),
};
const NONCE: LedgerNonce = *b"nonce 1.";
const OTHER: LedgerNonce = *b"nonce 2.";

/// Bits of the flash.
const BITS: usize = 8 * 256;

/// Bytes erased and written for a record.
const STEPS: usize = 256;

/// Flash of any length.
pub(crate) type Ram<const WRITE: usize = 4, const ERASE: usize = 64> =
    harness::Ram<Vec<u8>, WRITE, ERASE>;

/// Erased flash for a ledger.
pub(crate) fn erased<const WRITE: usize, const ERASE: usize>() -> Ram<WRITE, ERASE> {
    Ram::new(vec![0xff; 256])
}

fn key() -> Key {
    Key::from_secret(*b"the first chain key of a device.")
}

fn new() -> Ledger<Ram> {
    Ledger::create(erased(), NONCE, key()).unwrap()
}

fn flip(bytes: &mut [u8], bit: usize) {
    bytes[bit / 8] ^= 1 << (bit % 8);
}

/// Runs `work` on the flash until the power fails, and returns the flash and whether `work`
/// succeeded.
fn cut<const E: usize>(
    flash: &Ram<4, E>,
    power: usize,
    work: impl FnOnce(Ram<4, E>) -> Result<Ram<4, E>, Ram<4, E>>,
) -> (Ram<4, E>, bool) {
    let mut flash = flash.clone();
    flash.power = power;
    let (mut flash, is_done) = match work(flash) {
        Ok(flash) => (flash, true),
        Err(flash) => (flash, false),
    };
    flash.power = usize::MAX;
    (flash, is_done)
}

/// Opens the ledger and begins `round`.
fn begin<const E: usize>(flash: Ram<4, E>, round: u32) -> Result<Ram<4, E>, Ram<4, E>> {
    let mut ledger = Ledger::open(flash).unwrap();
    let begun = ledger.record(round, &LIMITS);
    let flash = ledger.into_flash();
    if begun.is_ok() { Ok(flash) } else { Err(flash) }
}

/// A ledger with `rounds` participations, in rounds 0, 1, ..
fn life<const E: usize>(rounds: u32) -> Ram<4, E> {
    let ledger = Ledger::create(erased::<4, E>(), NONCE, key()).unwrap();
    (0..rounds).fold(ledger.into_flash(), |flash, round| {
        begin(flash, round).unwrap_or_else(|_| panic!("round {round}"))
    })
}

/// Opens a ledger with `rounds` rounds, and perhaps one more that never returned: none of them
/// begins again, none is forgotten, the nonce is the same, and the next one can begin.
fn assert_goes_on<const E: usize>(flash: &Ram<4, E>, rounds: u32, context: &[usize]) {
    let mut ledger = match Ledger::open(flash.clone()) {
        Ok(ledger) => ledger,
        Err(error) => panic!("{error}: {context:?}"),
    };
    let past = ledger.past();
    assert!(past.participations >= rounds, "{past:?} {context:?}");
    assert!(past.participations <= rounds + 1, "{past:?} {context:?}");
    assert_eq!(past.next_round, past.participations, "{context:?}");
    assert_eq!(*ledger.nonce(), NONCE, "{context:?}");
    if let Some(last) = rounds.checked_sub(1) {
        let again = ledger.record(last, &LIMITS);
        assert_eq!(again, Err(LedgerError::RoundUsed), "{context:?}");
        // Round `last + 2` is less than three after the last one.
        let apart = Limits {
            separation: Separation(3),
            ..LIMITS
        };
        let soon = ledger.check(last + 2, &apart);
        assert_eq!(soon, Err(LedgerError::TooSoon), "{context:?}");
    }
    if context.iter().sum::<usize>().is_multiple_of(8) {
        ledger.record(past.next_round, &LIMITS).unwrap();
        let after = Ledger::open(ledger.into_flash()).unwrap();
        assert_eq!(after.past().participations, past.participations + 1);
    }
}

/// No flipped bit, or each one in turn.
fn each_flip() -> impl Iterator<Item = Option<usize>> {
    some_flips(0, 1)
}

/// No flipped bit, or one in every `step`, different for each `cut`.
fn some_flips(cut: usize, step: usize) -> impl Iterator<Item = Option<usize>> {
    let bits = (cut % step..BITS).step_by(step).map(Some);
    [None].into_iter().chain(bits)
}

fn flipped<const E: usize>(flash: &Ram<4, E>, bit: Option<usize>) -> Ram<4, E> {
    let mut flash = flash.clone();
    if let Some(bit) = bit {
        flip(&mut flash.bytes, bit);
    }
    flash
}

/// Every bit of both slots after every state of a short life, and any two of the current slot.
#[test]
fn flipped_bit_repeats_no_round() {
    for rounds in 0..5 {
        let (small, large) = (life::<64>(rounds), life::<128>(rounds));
        for bit in 0..BITS {
            let mut flash = small.clone();
            flip(&mut flash.bytes, bit);
            let ledger = Ledger::open(flash.clone()).unwrap();
            assert_eq!(ledger.past().participations, rounds, "bit {bit}");
            assert_goes_on(&flash, rounds, &[bit]);
            assert_goes_on(&flipped(&large, Some(bit)), rounds, &[bit]);
            if rounds > 0 {
                let spent = Limits {
                    budget: Budget(rounds),
                    ..LIMITS
                };
                let again = ledger.check(rounds, &spent);
                assert_eq!(again, Err(LedgerError::Spent), "bit {bit}");
            }
        }
    }
    // Record 4 is in slot 1, and three participations.
    let flash = life::<64>(3);
    for first in BITS / 2..BITS {
        let once = flipped(&flash, Some(first));
        for second in first + 1..BITS {
            let ledger = Ledger::open(flipped(&once, Some(second))).unwrap();
            assert_eq!(ledger.past().participations, 3, "bits {first}, {second}");
        }
    }
}

/// Every byte of every erase and write, with every bit flipped after that, in both slots.
#[test]
fn torn_write_and_flipped_bit_repeat_no_round() {
    for rounds in [1, 2] {
        for is_backward in [false, true] {
            let mut flash = life::<64>(rounds);
            flash.is_backward = is_backward;
            // Blocks erased from their ends differ during the erase.
            let last = if is_backward { SLOT_BYTES } else { STEPS };
            for power in 0..=last {
                let (torn, is_done) = cut(&flash, power, |flash| begin(flash, rounds));
                assert_eq!(is_done, power == STEPS);
                let begun = rounds + u32::from(is_done);
                for bit in each_flip() {
                    let context = [power, bit.unwrap_or(0)];
                    assert_goes_on(&flipped(&torn, bit), begun, &context);
                }
            }
        }
    }
}

/// A second write is cut after a first one, at each pair of bytes, and then a bit flips. The
/// remains of the first one are current, or the record before it.
#[test]
fn two_torn_writes_and_a_flipped_bit_repeat_no_round() {
    for rounds in [1, 2] {
        let flash = life::<64>(rounds);
        for first in 0..STEPS {
            let (torn, _) = cut(&flash, first, |flash| begin(flash, rounds));
            let past = Ledger::open(torn.clone()).unwrap().past();
            // More flips where the first cut is around the end of a copy.
            let is_edge = [128, 191, 192, 193, 255].contains(&first);
            let step = if is_edge { 31 } else { BITS };
            for second in 0..=STEPS {
                let next = past.next_round;
                let (torn, is_done) = cut(&torn, second, |flash| begin(flash, next));
                let begun = if is_done {
                    past.participations + 1
                } else {
                    rounds
                };
                for bit in some_flips(first + second, step) {
                    let ledger = Ledger::open(flipped(&torn, bit)).unwrap();
                    let now = ledger.past();
                    assert!(now.participations >= begun, "{first} {second} {bit:?}");
                    assert!(now.next_round >= begun, "{first} {second} {bit:?}");
                    assert_eq!(*ledger.nonce(), NONCE);
                }
            }
        }
    }
}

#[test]
fn power_cut_in_the_first_start_bricks_nothing() {
    let create = |flash| {
        let mut ledger = Ledger::unread(flash);
        let created = begin_life(&mut ledger, NONCE, key());
        let flash = ledger.into_flash();
        if created.is_ok() {
            Ok(flash)
        } else {
            Err(flash)
        }
    };
    for power in 0..=STEPS {
        let (torn, is_done) = cut(&erased::<4, 64>(), power, create);
        for bit in each_flip() {
            let flash = flipped(&torn, bit);
            // Without entropy, the ledger is there, or must be written again.
            match Ledger::open(flash.clone()) {
                Ok(ledger) => assert_eq!(*ledger.nonce(), NONCE),
                Err(error) => assert_eq!((error, is_done), (LedgerError::Blank, false)),
            }
            let mut ledger = match Ledger::open_or_create(flash, OTHER, Some(key())) {
                Ok(ledger) => ledger,
                Err(error) => panic!("{error}: cut at {power}, bit {bit:?}"),
            };
            assert!(!is_done || *ledger.nonce() == NONCE, "{power} {bit:?}");
            assert_eq!(ledger.past(), Past::default());
            let nonce = *ledger.nonce();
            ledger.record(0, &LIMITS).unwrap();
            let again = Ledger::open_or_create(ledger.into_flash(), OTHER, Some(key())).unwrap();
            assert_eq!(again.past().participations, 1);
            assert_eq!(*again.nonce(), nonce);
        }
        // A second cut.
        for second in 0..STEPS {
            let (torn, _) = cut(&torn, second, |flash| {
                let mut ledger = Ledger::unread(flash);
                if matches!(find(&mut ledger), Ok(false)) {
                    let _ = begin_life(&mut ledger, NONCE, key());
                }
                Ok(ledger.into_flash())
            });
            assert!(Ledger::open_or_create(torn, OTHER, Some(key())).is_ok());
        }
    }
}

/// The key advances once per session, with the participation: not before, not twice, and not
/// without a session.
#[test]
fn the_chain_key_goes_on_once_in_a_session() {
    let chain = |steps| (0..steps).fold(ChainKey::new(key()), |chain, _| chain.next());
    let mut ledger = new();
    ledger.record(0, &LIMITS).unwrap();
    assert_eq!(*ledger.chain(), chain(0), "no session");
    for (round, steps) in [(1, 1), (2, 1), (3, 2)] {
        if round != 2 {
            ledger.session_begins();
            ledger.session_begins();
        }
        assert_eq!(ledger.record(round, &LIMITS), Ok(()));
        assert!(ledger.record(round, &LIMITS).is_err());
        assert_eq!(*ledger.chain(), chain(steps), "round {round}");
        // After a restart as well.
        let flash = ledger.flash.clone();
        assert!(!holds(&flash, chain(steps + 1).secret()));
        assert!(steps < 2 || !holds(&flash, chain(0).secret()), "it is gone");
        let again = Ledger::open(flash).unwrap();
        assert_eq!(*again.chain(), chain(steps), "round {round}");
    }
    // A session from before a restart is over.
    ledger.session_begins();
    let mut again = Ledger::open(ledger.into_flash()).unwrap();
    again.record(4, &LIMITS).unwrap();
    assert_eq!(*again.chain(), chain(2));
}

/// Returns whether these bytes are anywhere on the flash.
fn holds(flash: &Ram, secret: &[u8; 32]) -> bool {
    flash.bytes.windows(32).any(|bytes| bytes == secret)
}

#[test]
fn a_blank_flash_without_a_key_stays_blank() {
    let error = Ledger::open_or_create(erased::<4, 64>(), NONCE, None).unwrap_err();
    assert_eq!(error, LedgerError::Blank);
}

#[test]
fn participations_count_and_rounds_only_go_up() {
    let mut ledger = new();
    assert_eq!(ledger.past(), Past::default());
    let apart = Limits {
        separation: Separation(4),
        ..LIMITS
    };
    assert_eq!(
        ledger.check(0, &apart),
        Ok(()),
        "the first one is far from any"
    );
    for round in [0, 1, 7] {
        assert_eq!(ledger.record(round, &LIMITS), Ok(()));
        let again = ledger.record(round, &LIMITS);
        assert_eq!(again, Err(LedgerError::RoundUsed));
    }
    let mut refused = |round, limits: Limits| ledger.record(round, &limits).unwrap_err();
    let spent = Limits {
        budget: Budget(3),
        ..LIMITS
    };
    assert_eq!(refused(3, LIMITS), LedgerError::RoundUsed);
    assert_eq!(refused(8, spent), LedgerError::Spent);
    assert_eq!(refused(u32::MAX, LIMITS), LedgerError::RoundUsed);
    assert_eq!(refused(19, LIMITS), LedgerError::TooFar);
    assert_eq!(refused(7, apart), LedgerError::RoundUsed);
    assert_eq!(refused(8, apart), LedgerError::TooSoon);
    assert_eq!(refused(10, apart), LedgerError::TooSoon);
    let again = Ledger::open(ledger.into_flash()).unwrap();
    assert_eq!(
        format!("{again:?}"),
        "Ledger(Past { participations: 3, next_round: 8 })"
    );
    assert_eq!(again.check(18, &LIMITS), Ok(()));
    assert_eq!(again.check(11, &apart), Ok(()), "four after round 7");
}

proptest! {
    /// Rounds are requested in any order, from a device with restarts, power cuts at any byte and a
    /// flipped bit in its flash: the rounds that begin are within the budget, and at least as far
    /// apart as the separation.
    #[test]
    fn no_two_participations_are_closer_than_the_separation(
        separation in 0_u32..6, budget in 0_u32..8,
        calls in vec((0_u32..8, 0_usize..2 * STEPS, prop::option::of(0..BITS)), 0..40),
    ) {
        let limits = Limits {
            budget: Budget(budget),
            separation: Separation(separation),
            ..LIMITS
        };
        let mut begun: Vec<u32> = vec![];
        let mut ledger = new();
        let mut is_damaged = false;
        for (ahead, power, flip) in calls {
            // Rounds in the past, used, too close, or free.
            let round = (ledger.past().next_round + ahead).saturating_sub(2);
            let mut flash = ledger.into_flash();
            flash.power = power;
            ledger = Ledger::open(flash).unwrap();
            if ledger.record(round, &limits).is_ok() {
                let last = begun.last().copied();
                let gap = last.map_or(u32::MAX, |last| round - last);
                prop_assert!(gap >= separation.max(1), "{round} after {last:?}");
                begun.push(round);
            }
            let mut flash = ledger.into_flash();
            flash.power = usize::MAX;
            // Once in its life, as the argument allows.
            if let Some(bit) = flip.filter(|_| !is_damaged) {
                flash = flipped(&flash, Some(bit));
                is_damaged = true;
            }
            ledger = Ledger::open(flash).unwrap();
        }
        prop_assert!(begun.len() <= budget as usize, "{begun:?}");
    }
}

/// For any requested rounds, the numbers outlast the budget with the default jump.
#[test]
fn round_numbers_outlast_the_budget() {
    let budget = Budget(65_534);
    assert_eq!(MaxJump::DEFAULT, MaxJump(65_536), "as documented");
    let steps = u64::from(budget.0) * (u64::from(MaxJump::DEFAULT.0) + 1);
    assert!(steps < u64::from(u32::MAX));
}

#[test]
fn only_blank_flash_begins_anew() {
    let mut ledger = Ledger::open_or_create(erased::<4, 64>(), NONCE, Some(key())).unwrap();
    ledger.record(4, &LIMITS).unwrap();
    let mut flash = ledger.into_flash();
    let again = Ledger::open_or_create(flash.clone(), OTHER, Some(key())).unwrap();
    assert_eq!((again.past().next_round, *again.nonce()), (5, NONCE));
    for byte in &mut flash.bytes {
        *byte &= 0x5f;
    }
    let error = Ledger::open_or_create(flash, OTHER, Some(key())).unwrap_err();
    assert_eq!(error, LedgerError::Corrupt, "the count is lost");
}

/// The same ledger continues after a record that failed at any byte: it repeats no round, and
/// neither skips nor repeats a step of the chain key.
#[test]
fn a_ledger_whose_write_failed_records_again() {
    for power in 0..STEPS {
        let mut ledger = Ledger::create(erased::<4, 64>(), NONCE, key()).unwrap();
        let before = ledger.chain().clone();
        ledger.session_begins();
        ledger.flash.power = power;
        assert_eq!(
            ledger.record(3, &LIMITS),
            Err(LedgerError::Flash),
            "{power}"
        );
        assert_eq!(ledger.past(), Past::default());
        ledger.flash.power = usize::MAX;
        ledger.record(3, &LIMITS).unwrap();
        let again = ledger.record(3, &LIMITS);
        assert_eq!(again, Err(LedgerError::RoundUsed), "{power}");
        assert!(*ledger.chain() == before.next());
        let past = ledger.past();
        assert_eq!((past.participations, past.next_round), (1, 4));

        let mut opened = Ledger::open(ledger.into_flash()).unwrap();
        assert_eq!(opened.past(), past);
        assert!(*opened.chain() == before.next());
        opened.record(4, &LIMITS).unwrap();
        assert!(*opened.chain() == before.next(), "no session has begun");
    }
}

/// A first record may be incomplete in the first of the four places. Data in another place is not a
/// ledger, and flash with other data does not count as blank.
#[test]
fn only_the_place_of_the_first_copy_may_be_written_on_blank_flash() {
    for place in 0..4 {
        let mut flash = erased::<4, 64>();
        flash.bytes[place * RECORD_BYTES..][..8].fill(0x55);
        let opened = Ledger::open_or_create(flash, NONCE, Some(key()));
        let expected = (place > 0).then_some(LedgerError::Corrupt);
        assert_eq!(opened.err(), expected, "place {place}");
    }
}

#[test]
fn a_write_that_does_not_stick_is_no_participation() {
    /// Flash with a worn-out bit in the last copy.
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
            if offset == 192 {
                self.0.bytes[200] ^= 0x01;
            }
            Ok(())
        }
    }
    let mut ledger = Ledger::create(Worn(erased()), NONCE, key()).unwrap();
    assert_eq!(ledger.record(0, &LIMITS), Err(LedgerError::Flash));
    assert_eq!(ledger.past(), Past::default());
}

#[test]
fn what_is_no_ledger_is_refused() {
    assert_eq!(
        Ledger::open(erased::<4, 64>()).unwrap_err(),
        LedgerError::Blank
    );
    assert_eq!(
        Ledger::create(new().into_flash(), OTHER, key()).unwrap_err(),
        LedgerError::NotBlank
    );
    let mut torn = erased::<4, 64>();
    torn.power = 128 + 10;
    let error = Ledger::create(torn, NONCE, key()).unwrap_err();
    assert_eq!(error, LedgerError::Flash);
    for (capacity, expected) in [(256, None), (255, Some(LedgerError::Geometry))] {
        let mut flash = erased::<4, 64>();
        flash.bytes.truncate(capacity);
        assert_eq!(Ledger::create(flash, NONCE, key()).err(), expected);
    }
    let sizes = [
        Ledger::open(erased::<4, 256>()).unwrap_err(),
        Ledger::open(erased::<5, 64>()).unwrap_err(),
        Ledger::open(erased::<0, 64>()).unwrap_err(),
        Ledger::open(erased::<4, 0>()).unwrap_err(),
    ];
    assert_eq!(sizes, [LedgerError::Geometry; 4]);
}

/// For any state of the other one.
#[test]
fn either_copy_of_the_newest_record_is_enough() {
    for rounds in [2, 3] {
        let newest = if rounds == 2 { 0 } else { SLOT_BYTES };
        for copy in [0, RECORD_BYTES] {
            let mut flash = life::<64>(rounds);
            flash.bytes[newest + copy..][..RECORD_BYTES].fill(0x55);
            let past = Ledger::open(flash).map(|ledger| ledger.past());
            assert_eq!(past.map(|past| past.participations), Ok(rounds), "{copy}");
        }
    }
}

/// More damage than the faults of the argument: both copies of the newer slot, or of the older one,
/// which look the same.
#[test]
fn damage_to_both_copies_of_a_slot_is_refused() {
    let whole = life::<64>(3);
    for slot in [0, 128] {
        for bit in 0..8 * RECORD_BYTES {
            let mut flash = whole.clone();
            for copy in [0, RECORD_BYTES] {
                flip(&mut flash.bytes[slot + copy..], bit);
                flip(&mut flash.bytes[slot + copy..], (bit + 77) % 480);
            }
            let error = Ledger::open(flash.clone()).unwrap_err();
            assert_eq!(error, LedgerError::Corrupt, "bit {bit}");
            let error = Ledger::create(flash, OTHER, key()).unwrap_err();
            assert_eq!(error, LedgerError::NotBlank, "bit {bit}");
        }
    }
}

#[test]
fn small_and_large_blocks_work() {
    fn three_rounds<const WRITE: usize, const ERASE: usize>() {
        let mut ledger = Ledger::create(erased::<WRITE, ERASE>(), NONCE, key()).unwrap();
        for round in 1..=3 {
            ledger.record(round, &LIMITS).unwrap();
        }
        let ledger = Ledger::open(ledger.into_flash()).unwrap();
        assert_eq!(ledger.past().participations, 3);
    }
    three_rounds::<1, 1>();
    three_rounds::<8, 16>();
    three_rounds::<64, 128>();
}

/// The bytes of the layout in the module's documentation.
#[test]
fn a_record_is_as_it_is_written_down() {
    let mut ledger = new();
    ledger.record(5, &LIMITS).unwrap();
    let mut expected = b"sfL3".to_vec();
    for number in [2u32, 1, 6] {
        expected.extend(number.to_le_bytes());
    }
    expected.extend(key().secret());
    expected.extend(NONCE);
    expected.extend(crate::crc32::crc32(&expected).to_le_bytes());
    expected.extend([0; 4]);
    let bytes = ledger.into_flash().bytes;
    assert_eq!(bytes[128..192], expected);
    assert_eq!(bytes[192..], expected);
}
