//! The order of the coordinator's locks.

use std::sync::mpsc::channel;
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use super::harness::*;
use crate::coordinator::wait;
use crate::lock::lock;
use crate::service::Service;
use crate::stopping::Stopping;
use crate::turns::Turns;

/// A device takes the lock of the ledgers under its own lock. A round that held the ledgers while
/// it waited for the device would wait for ever.
#[test]
fn a_round_that_waits_for_a_device_leaves_the_ledgers_free() {
    let mut harness = Harness::new(None);
    let mut board = board(1);
    while !harness.peer(1).is_reachable() {
        turn(&mut board, &mut harness, &mut |bytes| bytes);
    }
    let (service, stopping) = (Service::new(harness.registry, 8), Stopping::default());
    let registry = service.registry();
    let offer = offer(1, None);
    let turns = Turns::new(registry, &offer, &[1], 1);
    let peer = registry.peer(1).unwrap();
    let (begins, begun) = channel();
    let (takes, taken) = channel();
    scope(|scope| {
        let busy = lock(&peer);
        scope.spawn(|| {
            let deadline = Instant::now() + Duration::from_millis(100);
            let mut take_over = || begins.send(()).unwrap();
            wait(&service, turns, deadline, &stopping, &mut take_over);
        });
        begun.recv().unwrap();
        // It takes microseconds to get to the device. A slower thread only misses a fault.
        sleep(Duration::from_millis(50));
        scope.spawn(|| {
            drop(registry.ledgers());
            takes.send(()).unwrap();
        });
        let are_free = taken.recv_timeout(Duration::from_secs(10));
        drop(busy);
        are_free.expect("the lock of the ledgers is free");
    });
}
