//! Taking a lock.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes a lock. A thread that panicked while it held it left nothing half done that matters: what
/// is behind the locks of a fleet is changed by single assignments.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
