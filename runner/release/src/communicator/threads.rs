//! Ranks that are threads of this process: every test of ranks runs without MPI.
#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "only tests have these ranks, and a panic is how a test fails"
)]

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

use super::Communicator;

/// One of them. A thread that panics hangs up, and the others panic as well.
struct Thread {
    rank: usize,
    /// To each rank and from each, itself included.
    to: Vec<Sender<Vec<u8>>>,
    from: Mutex<Vec<Receiver<Vec<u8>>>>,
}

/// What `work` gives on each of `count` ranks, in their order.
pub fn run<T: Send>(count: usize, work: impl Fn(&dyn Communicator) -> T + Sync) -> Vec<T> {
    let mut to: Vec<Vec<Sender<Vec<u8>>>> = (0..count).map(|_| Vec::new()).collect();
    let mut from: Vec<Vec<Receiver<Vec<u8>>>> = (0..count).map(|_| Vec::new()).collect();
    for to in &mut to {
        for from in &mut from {
            let (sender, receiver) = channel();
            to.push(sender);
            from.push(receiver);
        }
    }
    let threads = to.into_iter().zip(from).enumerate();
    let threads = threads.map(|(rank, (to, from))| Thread {
        rank,
        to,
        from: Mutex::new(from),
    });
    let threads: Vec<Thread> = threads.collect();
    let work = &work;
    std::thread::scope(|scope| {
        let started: Vec<_> = threads
            .into_iter()
            .map(|thread| scope.spawn(move || work(&thread)))
            .collect();
        started
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    })
}

impl Communicator for Thread {
    fn rank(&self) -> usize {
        self.rank
    }

    fn count(&self) -> usize {
        self.to.len()
    }

    fn sum(&self, values: &mut [i64]) {
        let bytes = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        let all = self.gather(bytes);
        values.fill(0);
        for bytes in all {
            let words = bytes.as_chunks::<8>().0.iter();
            for (value, word) in values.iter_mut().zip(words) {
                *value = value.wrapping_add(i64::from_le_bytes(*word));
            }
        }
    }

    fn gather(&self, bytes: Vec<u8>) -> Vec<Vec<u8>> {
        for to in &self.to {
            to.send(bytes.clone()).unwrap();
        }
        let from = self.from.lock().unwrap();
        from.iter().map(|from| from.recv().unwrap()).collect()
    }

    fn broadcast(&self, bytes: Vec<u8>) -> Vec<u8> {
        self.gather(bytes).swap_remove(0)
    }

    fn send(&self, to: usize, bytes: Vec<u8>) {
        self.to[to].send(bytes).unwrap();
    }

    fn receive(&self) -> (usize, Vec<u8>) {
        loop {
            // Of the others: a rank sends itself nothing.
            let from = self.from.lock().unwrap();
            let others = from
                .iter()
                .enumerate()
                .filter(|(rank, _)| *rank != self.rank);
            let mut is_anyone_there = false;
            for (rank, from) in others {
                match from.try_recv() {
                    Ok(bytes) => return (rank, bytes),
                    Err(error) => is_anyone_there |= error == TryRecvError::Empty,
                }
            }
            drop(from);
            assert!(is_anyone_there, "all other ranks have left");
            std::thread::yield_now();
        }
    }
}
