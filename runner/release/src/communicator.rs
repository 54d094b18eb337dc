//! The processes that share a run, as the release path needs them: exact sums that are not yet
//! private travel between them, as on one machine they travel between threads. They belong to the
//! server.

pub mod threads;

/// The ranks of a run, as one of them sees them. All of them make the same calls in the same order,
/// and each call waits for the others.
pub trait Communicator: Sync {
    /// The number of this rank, from 0.
    fn rank(&self) -> usize;

    /// How many there are.
    fn count(&self) -> usize;

    /// Adds up the vectors of all ranks, of one length, entry by entry; the sum is rank 0's, and
    /// the vectors of the others are undefined afterwards. Sums wrap around, as those of noisy
    /// updates may: so they are exact modulo 2^64 in any order.
    fn sum(&self, values: &mut [i64]);

    /// What each rank gives, in their order, on all of them.
    fn gather(&self, bytes: Vec<u8>) -> Vec<Vec<u8>>;

    /// What rank 0 gives, on all of them; what the others give is ignored.
    fn broadcast(&self, bytes: Vec<u8>) -> Vec<u8>;

    /// Sends a message to one other rank.
    fn send(&self, to: usize, bytes: Vec<u8>);

    /// Waits for a message of any rank; gives the rank and the message.
    fn receive(&self) -> (usize, Vec<u8>);
}

/// A process by itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alone;

impl Communicator for Alone {
    fn rank(&self) -> usize {
        0
    }

    fn count(&self) -> usize {
        1
    }

    fn sum(&self, _: &mut [i64]) {}

    fn gather(&self, bytes: Vec<u8>) -> Vec<Vec<u8>> {
        vec![bytes]
    }

    fn broadcast(&self, bytes: Vec<u8>) -> Vec<u8> {
        bytes
    }

    fn send(&self, _: usize, _: Vec<u8>) {}

    /// Nobody sends anything: an empty message.
    fn receive(&self) -> (usize, Vec<u8>) {
        (0, Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_by_itself_has_what_it_gives() {
        assert_eq!((Alone.rank(), Alone.count()), (0, 1));
        let mut values = [5, -7];
        Alone.sum(&mut values);
        assert_eq!(values, [5, -7]);
        assert_eq!(Alone.gather(vec![3, 4]), [[3, 4]]);
        assert_eq!(Alone.broadcast(vec![3, 4]), [3, 4]);
        Alone.send(1, vec![3, 4]);
        assert_eq!(Alone.receive(), (0, Vec::new()));
    }
}
