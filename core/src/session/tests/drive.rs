//! The session on `embedded-io-async` streams, which break at every byte.

use core::{
    cell::RefCell,
    future::{Future, poll_fn},
    pin::pin,
    task::{Context, Poll, Waker},
};
use embedded_io_async::{ErrorKind, ErrorType, Read, Write};

use std::collections::VecDeque;

use super::*;
use crate::{
    session::{Clock, LinkLost, Pace},
    wire::{FRAME_BYTES, round_trip::RoundTrip},
};

/// A link in memory.
struct Wire {
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
    /// Bytes that the device may still write before the link breaks.
    left: usize,
    /// The time in ticks: one per poll of the driver, plus those of reads.
    now: u32,
    ticks_of_read: u32,
    /// Ticks until an answer arrives once a session is open, and the answers on their way.
    delay: u32,
    late: VecDeque<(u32, Vec<u8>)>,
}

impl Wire {
    fn new(left: usize) -> RefCell<Self> {
        RefCell::new(Self {
            incoming: vec![],
            outgoing: vec![],
            left,
            now: 0,
            ticks_of_read: 0,
            delay: 0,
            late: VecDeque::new(),
        })
    }
}

/// The device's end of the link.
struct End<'a>(&'a RefCell<Wire>);

impl ErrorType for End<'_> {
    type Error = ErrorKind;
}

impl Read for End<'_> {
    /// Reads at most seven bytes. Returns the end of the stream once the link is broken.
    async fn read(&mut self, bytes: &mut [u8]) -> Result<usize, ErrorKind> {
        poll_fn(|_| {
            let mut wire = self.0.borrow_mut();
            let count = wire.incoming.len().min(bytes.len()).min(7);
            if wire.left == 0 {
                return Poll::Ready(Ok(0));
            }
            if count == 0 {
                return Poll::Pending;
            }
            for (place, byte) in bytes.iter_mut().zip(wire.incoming.drain(..count)) {
                *place = byte;
            }
            wire.now += wire.ticks_of_read;
            Poll::Ready(Ok(count))
        })
        .await
    }
}

impl Write for End<'_> {
    /// Writes at most five bytes. Returns an error once the link is broken.
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, ErrorKind> {
        let mut wire = self.0.borrow_mut();
        let count = bytes.len().min(5).min(wire.left);
        wire.left -= count;
        wire.outgoing.extend(&bytes[..count]);
        match count {
            0 => Err(ErrorKind::BrokenPipe),
            _ => Ok(count),
        }
    }

    async fn flush(&mut self) -> Result<(), ErrorKind> {
        Ok(())
    }
}

/// Ticks of silence.
const PATIENCE: u32 = 8;

fn pace() -> Pace {
    Pace::new(RoundTrip::new(PATIENCE))
}

/// A tick of the wire is a millisecond.
impl Clock for RefCell<Wire> {
    fn now_ms(&self) -> u32 {
        self.borrow().now
    }

    fn wait(&self, ms: u32) -> impl Future<Output = ()> {
        let end = self.borrow().now + ms;
        poll_fn(move |_| match self.borrow().now < end {
            true => Poll::Pending,
            false => Poll::Ready(()),
        })
    }
}

/// Polls the driver and lets the coordinator answer, until the driver returns. `None` once the
/// coordinator has the update.
fn poll_drive(
    board: &mut Board,
    other: &mut Coordinator,
    pace: &mut Pace,
    wire: &RefCell<Wire>,
) -> Option<Result<(), LinkLost<ErrorKind>>> {
    let mut end = End(wire);
    let mut drive = pin!(board.drive(&mut end, pace, wire));
    let mut context = Context::from_waker(Waker::noop());
    for turn in 1..20_000 {
        let result = drive.as_mut().poll(&mut context);
        let mut wire = wire.borrow_mut();
        wire.now += 1;
        other.receive(&core::mem::take(&mut wire.outgoing));
        if let Poll::Ready(result) = result {
            return Some(result);
        }
        if other.done {
            return None;
        }
        // On a slow link an answered invitation is not repeated.
        if turn % (4 * PATIENCE) == 0 && (wire.delay == 0 || other.requests == 0) {
            other.invite();
        }
        let answers = core::mem::take(&mut other.outgoing);
        let delay = match other.connected() {
            true => wire.delay,
            false => 0,
        };
        let due = wire.now + delay;
        wire.late.push_back((due, answers.concat()));
        while wire.late.front().is_some_and(|(due, _)| *due <= wire.now) {
            let answer = wire.late.pop_front().map(|(_, bytes)| bytes);
            wire.incoming.extend(answer.unwrap_or_default());
        }
    }
    panic!("no end");
}

/// Runs a round on links that each break after this many bytes from the device, except the last
/// one. Returns the errors, and the bytes that the last link had left.
fn round(lengths: &[usize]) -> (Vec<LinkLost<ErrorKind>>, usize) {
    let mut board = board(policy(), ledger(), 0);
    let mut other = coordinator(3, noise());
    let (features, targets) = data();
    let samples = SampleSlice::new(&features, &targets, FEATURES).unwrap();
    let (mut losses, mut trainings) = (vec![], 0);
    let (mut lengths, mut pace) = (lengths.iter(), pace());
    let mut wire = Wire::new(*lengths.next().unwrap());
    loop {
        match poll_drive(&mut board, &mut other, &mut pace, &wire) {
            Some(Ok(())) => {
                assert_eq!(board.phase(), Phase::Training);
                board.train(&samples);
                trainings += 1;
            }
            Some(Err(lost)) => {
                // Bytes in transit are lost with the link.
                losses.push(lost);
                other.outgoing.clear();
                wire = Wire::new(*lengths.next().unwrap());
            }
            None => break,
        }
    }
    assert_eq!(other.integers, expected(3, &other.invitation));
    assert_eq!((trainings, other.declined), (1, None));
    assert_eq!(board.ledger().past().participations, 1);
    (losses, wire.into_inner().left)
}

const LONG: usize = 1 << 20;

/// Returns the messages of a round that the coordinator answers, on a link with `delay` ticks to an
/// answer.
fn requests(delay: u32) -> usize {
    let mut board = board(policy(), ledger(), 0);
    let mut other = coordinator(3, noise());
    let (features, targets) = data();
    let samples = SampleSlice::new(&features, &targets, FEATURES).unwrap();
    let (wire, mut pace) = (Wire::new(LONG), pace());
    wire.borrow_mut().delay = delay;
    while poll_drive(&mut board, &mut other, &mut pace, &wire).is_some() {
        board.train(&samples);
    }
    assert_eq!(other.integers, expected(3, &other.invitation));
    other.requests
}

/// The first request on a link that has become slow is repeated until it is answered. Later
/// requests wait as long as that took. A fixed patience would repeat each of them four or eleven
/// times.
#[test]
fn a_slow_link_gets_few_repetitions() {
    let necessary = requests(0);
    for (delay, repetitions) in [(PATIENCE / 2, 0), (5 * PATIENCE, 4), (12 * PATIENCE, 5)] {
        let sent = requests(delay);
        assert!(
            sent <= necessary + repetitions,
            "{sent} of {necessary} at {delay}"
        );
    }
}

/// The coordinator gets the one update of the round, whatever byte the link breaks after.
#[test]
fn a_lost_link_resumes_the_same_update() {
    let (losses, left) = round(&[LONG]);
    assert!(losses.is_empty());
    let mut ways = vec![];
    for length in 1..LONG - left {
        let (losses, _) = round(&[length, LONG]);
        assert_eq!(losses.len(), 1, "after {length} bytes");
        ways.extend(losses);
    }
    assert!(ways.contains(&LinkLost::Closed));
    assert!(ways.contains(&LinkLost::Failed(ErrorKind::BrokenPipe)));
}

/// Each link lasts for the longest frame, the zero before it and one byte.
#[test]
fn several_lost_links_resume_the_same_update() {
    let (losses, _) = round(&[FRAME_BYTES + 2; 40]);
    assert!(losses.len() >= 2, "{losses:?}");
}

#[test]
fn a_silent_coordinator_is_greeted_again() {
    let mut board = board(policy(), ledger(), 0);
    let wire = Wire::new(LONG);
    let (mut end, mut pace) = (End(&wire), pace());
    let mut drive = pin!(board.drive(&mut end, &mut pace, &wire));
    let mut context = Context::from_waker(Waker::noop());
    // Pauses double.
    for _ in 0..(1 + 2 + 4 + 8) * PATIENCE {
        assert!(drive.as_mut().poll(&mut context).is_pending());
        wire.borrow_mut().now += 1;
    }
    let written = wire.borrow().outgoing.clone();
    let frames: Vec<_> = written.split(|byte| *byte == 0).collect();
    // The zero that ends an interrupted frame, the greetings, and nothing after the last one.
    let [first, greetings @ .., last] = frames.as_slice() else {
        panic!("no frame");
    };
    assert!(first.is_empty() && last.is_empty());
    assert_eq!(greetings.len(), 4);
    assert!(greetings.iter().all(|frame| *frame == greetings[0]));
}

/// Flooding the link with bytes that form no frame does not stop the device from repeating.
#[test]
fn a_flood_holds_back_no_time_out() {
    let mut board = board(policy(), ledger(), 0);
    let wire = Wire::new(LONG);
    wire.borrow_mut().incoming = vec![0; 10_000];
    wire.borrow_mut().ticks_of_read = 1;
    let (mut end, mut pace) = (End(&wire), pace());
    let mut drive = pin!(board.drive(&mut end, &mut pace, &wire));
    let mut context = Context::from_waker(Waker::noop());
    assert!(drive.as_mut().poll(&mut context).is_pending());
    assert!(wire.borrow().incoming.is_empty());
    let written = wire.borrow().outgoing.clone();
    // Pauses double until the reads of 10,000 bytes are over.
    assert!(written.split(|byte| *byte == 0).count() > 8);
}

#[test]
fn each_loss_has_a_sentence() {
    let closed = LinkLost::<ErrorKind>::Closed.to_string();
    assert_eq!(closed, "the coordinator closed the link");
    let failed = LinkLost::Failed(ErrorKind::BrokenPipe).to_string();
    assert!(failed.starts_with("the link failed: "), "{failed}");
}
