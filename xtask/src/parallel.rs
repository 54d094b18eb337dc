//! Work on all processors.

use std::num::NonZero;
use std::sync::Mutex;
use std::thread;

/// Runs a function on each item, on as many threads as there are processors, and returns the
/// results in the order of the items.
pub fn map<T: Sync, R: Send>(items: &[T], run: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let queue = Mutex::new(items.iter().enumerate());
    let next = || queue.lock().map_or(None, |mut queue| queue.next());
    let work = || {
        let mut done = Vec::new();
        while let Some((index, item)) = next() {
            done.push((index, run(item)));
        }
        done
    };
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let mut results: Vec<(usize, R)> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let results = threads.into_iter().map(|thread| match thread.join() {
            Ok(results) => results,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        results.flatten().collect()
    });
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::map;

    #[test]
    fn results_are_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..100).collect();
        let expected: Vec<u64> = items.iter().map(|x| x * x).collect();
        assert_eq!(map(&items, |x| x * x), expected);
        assert!(map(&[], |(): &()| ()).is_empty());
    }
}
