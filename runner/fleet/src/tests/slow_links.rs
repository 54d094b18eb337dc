//! Rounds over links of few bytes per second or many seconds each way, in virtual time: the loops
//! of coordinator and device, and hidden buffers between them.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use smolfed_core::harness::data;
use smolfed_core::samples::SampleSlice;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf, duplex, split};
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::harness::*;
use crate::device::client::{Sleep, exchange};
use crate::device::pace::Pace;
use crate::exchange::ExchangeOutcome;
use crate::link::{Link, Preset};
use crate::lock::lock;
use crate::service::Service;
use crate::transport::{Accepted, Listener, Transport};

/// Accepts one connection.
struct One(Option<DuplexStream>);

impl Listener for One {
    fn poll_accept(&mut self, _: &mut Context<'_>) -> Poll<io::Result<Accepted>> {
        let Some(end) = self.0.take() else {
            return Poll::Pending;
        };
        let end: Box<dyn Transport> = Box::new(end);
        Poll::Ready(Ok(Accepted {
            opening: Box::pin(std::future::ready(Ok(end))),
            source: None,
        }))
    }
}

/// A link: its bytes per second and the time each way.
#[derive(Clone, Copy)]
struct Line {
    rate: u32,
    delay: Duration,
}

/// Carries bytes one way, one after the other. The sender sees no queue.
async fn carry(
    mut from: ReadHalf<DuplexStream>,
    mut to: WriteHalf<DuplexStream>,
    line: Line,
    carried: Arc<AtomicUsize>,
) {
    let (queue, mut queued) = unbounded_channel::<(Instant, u8)>();
    let read = async move {
        let mut free = Instant::now();
        while let Ok(byte) = from.read_u8().await {
            free = free.max(Instant::now()) + Duration::from_secs(1) / line.rate;
            carried.fetch_add(1, Ordering::Relaxed);
            if queue.send((free + line.delay, byte)).is_err() {
                return;
            }
        }
    };
    let write = async move {
        while let Some((at, byte)) = queued.recv().await {
            sleep_until(at).await;
            if to.write_u8(byte).await.is_err() {
                return;
            }
        }
    };
    tokio::join!(read, write);
}

/// Runs a round with one device. Returns its bytes and its time, or `None` if it takes over an
/// hour.
fn round(line: Line, link: Link) -> Option<(usize, Duration)> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    runtime.unwrap().block_on(async {
        let registry = Harness::on_link(&link).registry;
        let peer = registry.peer(0).unwrap();
        lock(&peer).offer(offer(1, None));
        let service = Arc::new(Service::new(registry, 8).on_link(link));
        let (coordinator, far) = duplex(1 << 16);
        let (mut device, near) = duplex(1 << 16);
        let ((from_far, to_far), (from_near, to_near)) = (split(far), split(near));
        let carried = Arc::new(AtomicUsize::new(0));
        tokio::spawn(carry(from_far, to_near, line, Arc::clone(&carried)));
        tokio::spawn(carry(from_near, to_far, line, Arc::clone(&carried)));
        let spawn = |task| drop(tokio::spawn(task));
        let listener = Box::new(One(Some(coordinator)));
        tokio::spawn(Arc::clone(&service).accept(listener, spawn));
        let (features, targets) = data();
        let samples = SampleSlice::new(&features, &targets, FEATURES).unwrap();
        let (mut board, mut pace) = (board(0), Pace::new(link));
        board.set_window(16);
        let (stop, mut sleeping) = (CancellationToken::new(), Sleep::default());
        let begin = Instant::now();
        let report = &mut |_| {};
        let taking_part = exchange(
            &mut board,
            &samples,
            &mut device,
            &mut sleeping,
            &mut pace,
            &stop,
            report,
        );
        let is_done = async {
            while !lock(&peer).is_settled() {
                sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            _ = taking_part => return None,
            () = is_done => {}
            () = sleep(Duration::from_secs(3_600)) => return None,
        }
        service.stop();
        let outcome = lock(&peer).close().unwrap();
        assert!(
            matches!(outcome, ExchangeOutcome::Answered(_)),
            "{outcome:?}"
        );
        Some((carried.load(Ordering::Relaxed), begin.elapsed()))
    })
}

/// Returns the bytes that a round needs: an immediate link needs no repetitions.
fn necessary() -> usize {
    let line = Line {
        rate: 100_000_000,
        delay: Duration::ZERO,
    };
    round(line, Link::default()).unwrap().0
}

#[test]
fn a_slow_link_carries_little_more_than_a_round_needs() {
    let necessary = necessary();
    for rate in [500, 100] {
        let ideal = necessary as f64 / f64::from(rate);
        let line = Line {
            rate,
            delay: Duration::ZERO,
        };
        for preset in [Preset::Fast, Preset::Slow] {
            let (bytes, time) = round(line, preset.link()).unwrap();
            let (more, longer) = (bytes as f64 / necessary as f64, time.as_secs_f64() / ideal);
            println!(
                "{rate} B/s, {preset:?}: {bytes} of {necessary} bytes, {:.1} of {ideal:.1} s",
                time.as_secs_f64()
            );
            if rate == 500 || preset == Preset::Slow {
                assert!(
                    more <= 1.3,
                    "{rate} B/s, {preset:?}: {more} times the bytes"
                );
                assert!(
                    longer <= 1.3,
                    "{rate} B/s, {preset:?}: {longer} times the time"
                );
            }
        }
    }
}

#[test]
fn a_link_of_six_seconds_each_way_completes_a_round() {
    let delay = Duration::from_secs(6);
    for rate in [500, 100] {
        let line = Line { rate, delay };
        // The greeting takes 18 s.
        assert_eq!(round(line, Preset::Fast.link()), None);
        for preset in [Preset::Slow, Preset::Lorawan] {
            let (bytes, time) = round(line, preset.link()).unwrap();
            println!(
                "{rate} B/s, 6 s each way, {preset:?}: {bytes} bytes, {:.1} s",
                time.as_secs_f64()
            );
        }
    }
}
