//! The ledger on async flash, compared with blocking flash.

use core::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

use super::*;
use embedded_storage_async::nor_flash;

/// Flash whose calls are each pending once.
pub(crate) struct Awaited<'a>(pub(crate) &'a mut Ram);

impl ErrorType for Awaited<'_> {
    type Error = Broken;
}

/// Pending once.
async fn turn() {
    let mut is_first = true;
    core::future::poll_fn(|_| match core::mem::take(&mut is_first) {
        true => Poll::Pending,
        false => Poll::Ready(()),
    })
    .await;
}

impl nor_flash::ReadNorFlash for Awaited<'_> {
    const READ_SIZE: usize = 1;

    async fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), Broken> {
        turn().await;
        ReadNorFlash::read(self.0, offset, bytes)
    }

    fn capacity(&self) -> usize {
        self.0.bytes.len()
    }
}

impl nor_flash::NorFlash for Awaited<'_> {
    const WRITE_SIZE: usize = 4;
    const ERASE_SIZE: usize = 64;

    async fn erase(&mut self, from: u32, to: u32) -> Result<(), Broken> {
        turn().await;
        NorFlash::erase(self.0, from, to)
    }

    async fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Broken> {
        turn().await;
        NorFlash::write(self.0, offset, bytes)
    }
}

/// Polls a future up to `polls` times, then drops it, and returns its result, if any.
pub(crate) fn polled<T>(future: impl Future<Output = T>, polls: usize) -> Option<T> {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    (0..polls).find_map(|_| match future.as_mut().poll(&mut context) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    })
}

pub(crate) const ENOUGH: usize = 1_000;

#[test]
fn flash_that_is_awaited_gets_the_same_bytes() {
    let (mut blocking, mut awaited) = (erased::<4, 64>(), erased::<4, 64>());
    let mut ledger = Ledger::create(blocking.clone(), NONCE, key()).unwrap();
    let created = polled(
        Ledger::create_async(Awaited(&mut awaited), NONCE, key()),
        ENOUGH,
    );
    assert!(created.unwrap().is_ok());
    for round in [0, 3, 4] {
        ledger.session_begins();
        ledger.record(round, &LIMITS).unwrap();
        let opened = polled(Ledger::open_async(Awaited(&mut awaited)), ENOUGH).unwrap();
        let mut opened = opened.unwrap();
        opened.session_begins();
        assert_eq!(
            polled(opened.record_async(round, &LIMITS), ENOUGH),
            Some(Ok(()))
        );
        let again = polled(opened.record_async(round, &LIMITS), ENOUGH);
        assert_eq!(again, Some(Err(LedgerError::RoundUsed)));
        assert_eq!(opened.past(), ledger.past());
    }
    blocking = ledger.into_flash();
    assert_eq!(awaited.bytes, blocking.bytes);
    let again = polled(
        Ledger::create_async(Awaited(&mut awaited), OTHER, key()),
        ENOUGH,
    );
    assert_eq!(again.unwrap().err(), Some(LedgerError::NotBlank));
    let opened = Ledger::open_or_create_async(Awaited(&mut awaited), OTHER, Some(key()));
    assert_eq!(polled(opened, ENOUGH).unwrap().unwrap().nonce(), &NONCE);
}

/// After a drop at any await, or a power cut at any byte, recorded rounds stay, and a round whose
/// `begin` did not return may be used up, but is returned at most once.
#[test]
fn a_future_that_is_dropped_is_a_power_cut() {
    let mut before = erased::<4, 64>();
    let mut ledger = Ledger::create(before, NONCE, key()).unwrap();
    ledger.record(0, &LIMITS).unwrap();
    before = ledger.into_flash();
    let begin = |flash: &mut Ram, polls| {
        let opened = polled(Ledger::open_async(Awaited(flash)), ENOUGH).unwrap();
        let mut ledger = opened.unwrap();
        let mut identity = crate::identity::Identity {
            device: 1,
            root: crate::stream::Root::from_seed(1),
        };
        let begun = polled(ledger.begin_async(1, &mut identity, &LIMITS), polls);
        begun.map(|begun| begun.map(|participation| participation.round()))
    };
    let mut ways = std::collections::BTreeSet::new();
    for polls in 0.. {
        let mut flash = before.clone();
        let first = begin(&mut flash, polls);
        let past = Ledger::open(flash.clone()).unwrap().past();
        assert!((1..=2).contains(&past.participations), "{past:?}");
        let second = begin(&mut flash, ENOUGH).unwrap();
        let given = [first == Some(Ok(1)), second == Ok(1)];
        ways.insert(given);
        if given[0] {
            assert_eq!(second, Err(LedgerError::RoundUsed));
            break;
        }
    }
    for power in 0..STEPS {
        let mut flash = before.clone();
        flash.power = power;
        assert_eq!(begin(&mut flash, ENOUGH), Some(Err(LedgerError::Flash)));
        flash.power = usize::MAX;
        let second = begin(&mut flash, ENOUGH).unwrap();
        ways.insert([false, second == Ok(1)]);
    }
    let expected = [[false, false], [false, true], [true, false]];
    assert!(ways.into_iter().eq(expected));
}
