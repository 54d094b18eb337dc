//! Taking a lock (mutex) in memory, even after a panic of a thread that held it.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes a lock, even after a panic of a thread that held it. Such a thread leaves no invalid
/// state: all state behind the locks of a fleet changes by single assignments.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
