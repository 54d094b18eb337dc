//! Ranks as threads of this process: audits and all tests of ranks run without MPI.
//!
//! A rank whose thread has ended sends empty messages, which no rank takes for an order or a
//! result.

use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Alone, Communicator};

/// One rank.
struct Thread {
    rank: usize,
    /// Channels to and from each rank, including itself.
    to: Vec<Sender<Vec<u8>>>,
    from: Mutex<Vec<Receiver<Vec<u8>>>>,
}

fn threads(count: usize) -> impl Iterator<Item = Thread> {
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
    threads.map(|(rank, (to, from))| Thread {
        rank,
        to,
        from: Mutex::new(from),
    })
}

/// Returns the result of `lead` on rank 0, the calling thread, while `count` - 1 other ranks run
/// `follow`. It returns when all have ended.
pub fn lead<T>(
    count: usize,
    lead: impl FnOnce(&dyn Communicator) -> T,
    follow: impl Fn(&dyn Communicator) + Sync,
) -> T {
    let mut threads = threads(count);
    let first = threads.next();
    let follow = &follow;
    std::thread::scope(|scope| {
        for thread in threads {
            scope.spawn(move || follow(&thread));
        }
        match first {
            Some(first) => lead(&first),
            None => lead(&Alone),
        }
    })
}

/// Returns the results of `work` on each of `count` ranks, in their order.
#[cfg(any(test, feature = "faults"))]
pub fn run<T: Send>(count: usize, work: impl Fn(&dyn Communicator) -> T + Sync) -> Vec<T> {
    let work = &work;
    std::thread::scope(|scope| {
        let started: Vec<_> = threads(count)
            .map(|thread| scope.spawn(move || work(&thread)))
            .collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, T>| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        started.into_iter().map(join).collect()
    })
}

impl Thread {
    fn from(&self) -> MutexGuard<'_, Vec<Receiver<Vec<u8>>>> {
        self.from.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
            // A rank that has ended receives nothing.
            let _ = to.send(bytes.clone());
        }
        let from = self.from();
        let receive = |from: &Receiver<Vec<u8>>| from.recv().unwrap_or_default();
        from.iter().map(receive).collect()
    }

    fn broadcast(&self, bytes: Vec<u8>) -> Vec<u8> {
        self.gather(bytes).swap_remove(0)
    }

    fn send(&self, to: usize, bytes: Vec<u8>) {
        if let Some(to) = self.to.get(to) {
            let _ = to.send(bytes);
        }
    }

    fn receive(&self) -> (usize, Vec<u8>) {
        loop {
            // A rank sends itself nothing.
            let from = self.from();
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
            if !is_anyone_there {
                return (0, Vec::new());
            }
            std::thread::yield_now();
        }
    }
}
