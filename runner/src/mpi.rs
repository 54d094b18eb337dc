//! Ranks over MPI: the only code that knows it. MPICH or Open MPI, through the crate `mpi`.
//!
//! Lengths of MPI are C `int`s, so longer messages travel in pieces. A rank that dies ends the job,
//! which is MPI's default. The files on disk at that point are a run that can be resumed.

use std::time::{Duration, Instant};

use ::mpi::Threading;
use ::mpi::collective::SystemOperation;
use ::mpi::datatype::PartitionMut;
use ::mpi::environment::{Universe, initialize_with_threading};
use ::mpi::topology::SimpleCommunicator;
use ::mpi::traits::{
    Communicator as _, CommunicatorCollectives as _, Destination as _, MatchedReceiveVec as _,
    Root as _, Source as _,
};

use smolfed_engine::ranks::{Communicator, ConnectError};

/// Bytes that travel together: with the lengths of all ranks far below 2^31.
const PIECE: usize = 1 << 28;
/// The exit code of a job in which a rank panicked: that of a Rust program that does.
const PANICKED: i32 = 101;
/// For how long a rank that waits does not leave its processor.
const SPIN: Duration = Duration::from_micros(200);
/// For how long it sleeps at most.
const MAX_SLEEP: Duration = Duration::from_millis(1);

/// All ranks of the job.
pub(super) struct World {
    // Finalises MPI when it is dropped.
    _universe: Universe,
    rank: usize,
    count: usize,
}

impl World {
    /// Initialises MPI, once a process.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub(super) fn new() -> Result<Self, ConnectError> {
        // Rounds run on a thread of a pool, one call at a time.
        let (universe, level) =
            initialize_with_threading(Threading::Serialized).ok_or(ConnectError::Twice)?;
        if level < Threading::Serialized {
            let level = format!("{level:?}");
            return Err(ConnectError::Threads { level });
        }
        let world = universe.world();
        // Both are counts, which are not negative.
        let [rank, count] = [world.rank(), world.size()].map(|x| usize::try_from(x).unwrap_or(0));
        Ok(Self {
            _universe: universe,
            rank,
            count,
        })
    }

    /// All ranks, when they are here.
    fn meet(&self) -> SimpleCommunicator {
        let world = SimpleCommunicator::world();
        let mut request = Some(world.immediate_barrier());
        wait(|| match request.take()?.test() {
            Ok(_) => Some(()),
            Err(unfinished) => {
                request = Some(unfinished);
                None
            }
        });
        world
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // The others would wait for this one for ever.
        if std::thread::panicking() {
            SimpleCommunicator::world().abort(PANICKED);
        }
    }
}

impl Communicator for World {
    fn rank(&self) -> usize {
        self.rank
    }

    fn count(&self) -> usize {
        self.count
    }

    fn sum(&self, values: &mut [i64]) {
        let world = self.meet();
        let root = world.process_at_rank(0);
        // In C, sums of unsigned integers wrap around. Overflow of signed ones is undefined.
        let own: Vec<u64> = values.iter().map(|value| value.cast_unsigned()).collect();
        let mut sums = vec![0u64; if self.rank == 0 { own.len() } else { 0 }];
        let length = PIECE / size_of::<u64>();
        for (piece, own) in own.chunks(length).enumerate() {
            let sum = SystemOperation::sum();
            match sums.get_mut(piece * length..piece * length + own.len()) {
                Some(sums) => root.reduce_into_root(own, sums, sum),
                None => root.reduce_into(own, sum),
            }
        }
        for (value, sum) in values.iter_mut().zip(sums) {
            *value = sum.cast_signed();
        }
    }

    fn gather(&self, bytes: Vec<u8>) -> Vec<Vec<u8>> {
        let world = self.meet();
        let mut lengths = vec![0u64; self.count];
        world.all_gather_into(&(bytes.len() as u64), &mut lengths[..]);
        let mut all = vec![Vec::new(); self.count];
        // As much of each in a pass that all of them fit.
        let piece = (PIECE / self.count.max(1)).max(1);
        let longest = lengths.iter().max().map_or(0, |longest| *longest as usize);
        for start in (0..longest).step_by(piece) {
            let counts = lengths.iter().map(|length| {
                let rest = (*length as usize).saturating_sub(start).min(piece);
                i32::try_from(rest).unwrap_or(i32::MAX)
            });
            let counts: Vec<i32> = counts.collect();
            let places = counts.iter().scan(0, |next, count| {
                let place = *next;
                *next += count;
                Some(place)
            });
            let places: Vec<i32> = places.collect();
            let total: i32 = counts.iter().sum();
            let mut received = vec![0u8; usize::try_from(total).unwrap_or(0)];
            let end = bytes.len().min(start + piece);
            let own = bytes.get(start..end).unwrap_or_default();
            let mut parts = PartitionMut::new(&mut received[..], &counts[..], &places[..]);
            world.all_gather_varcount_into(own, &mut parts);
            let mut rest = &received[..];
            for (all, count) in all.iter_mut().zip(counts) {
                let (part, after) = rest.split_at(usize::try_from(count).unwrap_or(0));
                all.extend_from_slice(part);
                rest = after;
            }
        }
        all
    }

    fn broadcast(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        let world = self.meet();
        let root = world.process_at_rank(0);
        let mut length = bytes.len() as u64;
        root.broadcast_into(&mut length);
        bytes.resize(length as usize, 0);
        for piece in bytes.chunks_mut(PIECE) {
            root.broadcast_into(piece);
        }
        bytes
    }

    fn send(&self, to: usize, bytes: Vec<u8>) {
        let to = i32::try_from(to).unwrap_or(i32::MAX);
        SimpleCommunicator::world()
            .process_at_rank(to)
            .send(&bytes[..]);
    }

    fn receive(&self) -> (usize, Vec<u8>) {
        let world = SimpleCommunicator::world();
        let found = wait(|| world.any_process().immediate_matched_probe());
        let (bytes, status) = found.matched_receive_vec();
        (usize::try_from(status.source_rank()).unwrap_or(0), bytes)
    }
}

/// Waits until `attempt` succeeds. MPI's calls keep a processor busy while they wait. This function
/// gives it to others, such as ranks that still train: it sleeps for a sixteenth of the time that
/// it has waited.
fn wait<T>(mut attempt: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = attempt() {
            return found;
        }
        let waited = started.elapsed();
        match waited < SPIN {
            true => std::thread::yield_now(),
            false => std::thread::sleep((waited / 16).min(MAX_SLEEP)),
        }
    }
}
