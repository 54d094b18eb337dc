//! The ranks of a run: processes that share it, on one machine or on many, and their messages.
//!
//! Ranks over MPI belong to the program, which alone is compiled with it. Tests have ranks that are
//! threads of one process.
//!
//! Sums are of integers, and lists are concatenated in the order of the ranks, so nothing depends
//! on arrival order. Rank 0 leads: it alone releases, prints and writes ([`crate::source::ranks`]).

pub use smolfed_release::communicator::{Alone, Communicator};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Failure of another rank.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("rank {rank}: {reason}")]
pub struct RankError {
    /// The rank.
    pub rank: usize,
    /// Reason, in a sentence.
    pub reason: String,
}

impl From<RankError> for String {
    fn from(error: RankError) -> Self {
        error.to_string()
    }
}

/// Why this process cannot take part in a run over several ranks.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The MPI library was built for one thread. A thread pool must not call it.
    #[error(
        "this MPI library supports threads only at level {level}, but ranks train on several: it \
         must provide MPI_THREAD_SERIALIZED"
    )]
    Threads {
        /// The supported level.
        level: String,
    },
    /// MPI was already started in this process.
    #[error("MPI was already initialised in this process")]
    Twice,
}

/// Concatenates the lists of all ranks, on each of them.
///
/// A rank that failed also takes part, so nobody waits for it, and all ranks fail.
///
/// # Errors
/// Its own error on a rank that failed, and on the others the [`RankError`] of the first failure.
pub fn gather_parts<T, E>(ranks: &dyn Communicator, mine: Result<Vec<T>, E>) -> Result<Vec<T>, E>
where
    T: Serialize + DeserializeOwned,
    E: std::fmt::Display + From<RankError>,
{
    if ranks.count() == 1 {
        return mine;
    }
    let shared = mine.as_ref().map_err(E::to_string);
    let parts = ranks.gather(encode(&shared));
    mine?;
    let mut all = Vec::new();
    for (rank, part) in parts.iter().enumerate() {
        let fail = |reason| RankError { rank, reason };
        let part: Result<Vec<T>, String> = decode(part).map_err(fail)?;
        all.extend(part.map_err(fail)?);
    }
    Ok(all)
}

/// Returns the part of `items` for this rank: consecutive items, with as much work as every other
/// part. Parts may be empty.
///
/// The concatenated parts of all ranks are the items.
pub fn part<'a>(
    ranks: &dyn Communicator,
    items: &'a [u32],
    work: impl Fn(u32) -> usize,
) -> &'a [u32] {
    share(items, ranks.rank(), ranks.count(), work)
}

fn share(items: &[u32], rank: usize, count: usize, work: impl Fn(u32) -> usize) -> &[u32] {
    // Every item has a cost. Otherwise items without samples would all fall to one rank.
    let work: Vec<u64> = items.iter().map(|item| 1 + work(*item) as u64).collect();
    let total: u64 = work.iter().sum();
    // An item belongs to the rank whose share of the work contains its middle.
    let mut before = 0;
    let owner = |work: &u64| {
        let middle = u128::from(2 * before + work);
        before += work;
        (middle * count as u128 / (2 * u128::from(total))) as usize
    };
    let owners: Vec<usize> = work.iter().map(owner).collect();
    let [start, end] = [rank, rank + 1].map(|rank| owners.partition_point(|owner| *owner < rank));
    items.get(start..end).unwrap_or_default()
}

/// Encodes a message between ranks as JSON. Large data travel separately, as bytes.
pub fn encode(message: &impl Serialize) -> Vec<u8> {
    // Messages have no maps with keys other than strings, and no failing writes.
    serde_json::to_vec(message).unwrap_or_default()
}

/// Decodes a message of another rank.
///
/// # Errors
/// A description of the problem.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    serde_json::from_slice(bytes).map_err(|error| format!("a message is not readable: {error}"))
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};
    use smolfed_release::communicator::threads;

    use super::*;

    proptest! {
        /// Every item belongs to one rank, in order, and no rank exceeds its share by more than an
        /// item.
        #[test]
        fn parts_are_the_items_and_of_one_size(
            work in vec(0usize..50, 0..40),
            count in 1usize..10,
        ) {
            let items: Vec<u32> = (0..work.len() as u32).collect();
            let of = |item: u32| work[item as usize];
            let parts = (0..count).map(|rank| share(&items, rank, count, of));
            let parts: Vec<&[u32]> = parts.collect();
            prop_assert_eq!(&parts.concat(), &items);
            let weight = |part: &[u32]| part.iter().map(|item| of(*item) + 1).sum::<usize>();
            let total = weight(&parts.concat());
            let largest = work.iter().max().map_or(0, |most| most + 1);
            for part in parts {
                // Half of the first and of the last item may belong to another share.
                prop_assert!(weight(part) <= total.div_ceil(count) + largest);
            }
        }
    }

    #[test]
    fn a_rank_that_failed_fails_all() {
        let results = threads::run(3, |ranks| {
            let mine = match ranks.rank() {
                1 => Err(RankError {
                    rank: 9,
                    reason: "mine".to_owned(),
                }),
                rank => Ok(vec![rank]),
            };
            gather_parts(ranks, mine)
        });
        let error = |rank| {
            Err(RankError {
                rank,
                reason: "rank 9: mine".to_owned(),
            })
        };
        let own = Err(RankError {
            rank: 9,
            reason: "mine".to_owned(),
        });
        assert_eq!(results, [error(1), own, error(1)]);
        let parts = threads::run(3, |ranks| {
            gather_parts::<_, RankError>(ranks, Ok(vec![ranks.rank(); ranks.rank()]))
        });
        assert!(parts.iter().all(|all| *all == Ok(vec![1, 2, 2])));
    }

    #[test]
    fn sums_wrap_around_and_rank_0_has_them() {
        let sums = threads::run(3, |ranks| {
            let mut values = [i64::MAX, ranks.rank() as i64];
            ranks.sum(&mut values);
            values
        });
        assert_eq!(sums[0], [i64::MAX.wrapping_mul(3), 3]);
    }
}
