//! Cache in memory for the ε of accountants, and its largest number of answers: each seed of a
//! sweep, and each round of a run, repeats the same questions.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};

use super::name::Accountant;
use crate::event::PrivacyEvent;
use crate::params::Delta;

/// Capacity of the cache. A full cache is cleared.
const MAX_ANSWERS: usize = 10_000;

/// A question, identified by the exact numbers.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Question {
    accountant: Accountant,
    events: String,
    delta: u64,
}

impl Question {
    pub(super) fn new(accountant: Accountant, events: &[PrivacyEvent], delta: Delta) -> Self {
        Self {
            accountant,
            // The text of a float identifies it exactly.
            events: format!("{events:?}"),
            delta: delta.get().to_bits(),
        }
    }
}

/// Answers by question.
pub(super) struct Memo<T>(Mutex<Option<HashMap<Question, T>>>);

impl<T: Clone> Memo<T> {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// Returns the answer, computing it if it is unknown. Use it only for expensive answers.
    pub(super) fn answer(&self, question: Question, compute: impl FnOnce() -> T) -> T {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lock()
            .as_ref()
            .and_then(|known| known.get(&question).cloned());
        known.unwrap_or_else(|| {
            let answer = compute();
            let mut known = lock();
            let known = known.get_or_insert_with(HashMap::new);
            if known.len() >= MAX_ANSWERS {
                known.clear();
            }
            known.insert(question, answer.clone());
            answer
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_answered_once_and_others_apart() {
        let memo = Memo::new();
        let ask = |delta, answer| {
            let question = Question::new(Accountant::Pld, &[], Delta::new(delta).unwrap());
            memo.answer(question, || answer)
        };
        assert_eq!((ask(0.1, 1), ask(0.1, 2), ask(0.2, 3)), (1, 1, 3));
    }
}
