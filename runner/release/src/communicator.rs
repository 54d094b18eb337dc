//! Communication between the processes of a run, as the release path needs it. Exact sums that are
//! not yet private travel between processes as they travel between threads on one machine. All
//! processes belong to the server.

pub mod threads;

/// The ranks of a run, as seen by one of them. All ranks make the same calls in the same order, and
/// each call waits for the others.
pub trait Communicator: Sync {
    /// Returns the number of this rank, from 0.
    fn rank(&self) -> usize;

    /// Returns the number of ranks.
    fn count(&self) -> usize;

    /// Adds up the vectors of all ranks, which have equal lengths, entry by entry. Rank 0 gets the
    /// sum, and the vectors of the others are undefined afterwards. Sums wrap around, as sums of
    /// noisy updates may, so they are exact modulo 2^64 in any order.
    fn sum(&self, values: &mut [i64]);

    /// Collects the bytes of each rank, in the order of the ranks, on all ranks.
    fn gather(&self, bytes: Vec<u8>) -> Vec<Vec<u8>>;

    /// Sends the bytes of rank 0 to all ranks. The arguments of the others are ignored.
    fn broadcast(&self, bytes: Vec<u8>) -> Vec<u8>;

    /// Sends a message to one other rank.
    fn send(&self, to: usize, bytes: Vec<u8>);

    /// Waits for a message from any rank. Returns the rank and the message.
    fn receive(&self) -> (usize, Vec<u8>);
}

/// A single process.
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

    /// Returns an empty message: there is no other rank to send one.
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
