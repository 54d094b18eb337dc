//! Data for many runs: each federation is built once and dropped after its last run.

use std::sync::{Arc, Mutex, PoisonError};

use super::SweepError;
use smolfed_data::config::DataConfig;
use smolfed_data::{DataFolders, Federation};
use smolfed_engine::config::Config;
use smolfed_engine::task::pretrained;

/// The federations of a sweep, one for each pair of `[data]` and seed.
pub(super) struct Federations<'a> {
    folders: &'a DataFolders,
    entries: Vec<Entry>,
}

struct Entry {
    data: DataConfig,
    seed: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    federation: Option<Arc<Federation>>,
    /// Number of runs that have not requested it yet.
    waiting: usize,
}

impl<'a> Federations<'a> {
    pub(super) const fn new(folders: &'a DataFolders) -> Self {
        Self {
            folders,
            entries: Vec::new(),
        }
    }

    /// Announces a run: resolves the paths of its data and returns the number of its federation.
    pub(super) fn announce(&mut self, config: &mut Config) -> Result<usize, SweepError> {
        config.data = self.folders.anchor(config.data.clone())?;
        pretrained::anchor(&mut config.model, self.folders)?;
        let known = |entry: &Entry| entry.seed == config.seed && entry.data == config.data;
        let number = self.entries.iter().position(known).unwrap_or_else(|| {
            self.entries.push(Entry {
                data: config.data.clone(),
                seed: config.seed,
                state: Mutex::default(),
            });
            self.entries.len() - 1
        });
        let state = self.entries[number].state.get_mut();
        state.unwrap_or_else(PoisonError::into_inner).waiting += 1;
        Ok(number)
    }

    /// Notes that another rank does an announced run. The last run of a federation drops it.
    pub(super) fn skip(&self, number: usize) {
        let Some(entry) = self.entries.get(number) else {
            return;
        };
        let mut state = entry.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.waiting = state.waiting.saturating_sub(1);
        if state.waiting == 0 {
            state.federation = None;
        }
    }

    /// Returns the federation of an announced run. For the last such run, also drops it here.
    pub(super) fn take(&self, number: usize) -> Result<Arc<Federation>, SweepError> {
        let entry = &self.entries[number];
        // A worker that asks during construction waits: two copies would need twice the memory.
        let mut state = entry.state.lock().unwrap_or_else(PoisonError::into_inner);
        let federation = match state.federation.take() {
            Some(federation) => federation,
            None => Arc::new(Federation::new(&entry.data, self.folders, entry.seed)?),
        };
        state.waiting = state.waiting.saturating_sub(1);
        if state.waiting > 0 {
            state.federation = Some(Arc::clone(&federation));
        }
        Ok(federation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smolfed_engine::config::DEFAULT;

    fn config(seed: u64, extra: &str) -> Config {
        let overrides = [extra.parse().unwrap()];
        let config = Config::parse(DEFAULT, "the built-in experiment", &overrides).unwrap();
        Config { seed, ..config }
    }

    #[test]
    fn equal_data_and_seed_share_a_federation_until_the_last_run() {
        let folders = DataFolders::new(Vec::new());
        let mut federations = Federations::new(&folders);
        let mut numbers = Vec::new();
        for (seed, extra) in [
            (1, "rounds=3"),
            (1, "rounds=4"),
            (2, "rounds=3"),
            (1, "data.devices=9"),
        ] {
            numbers.push(federations.announce(&mut config(seed, extra)).unwrap());
        }
        assert_eq!(numbers, [0, 0, 1, 2]);
        let first = federations.take(0).unwrap();
        let second = federations.take(0).unwrap();
        assert!(Arc::ptr_eq(&first, &second));
        drop(first);
        assert_eq!(
            Arc::strong_count(&second),
            1,
            "the last run has it to itself"
        );
        assert_eq!(federations.take(2).unwrap().device_count(), 9);

        for _ in 0..2 {
            federations.announce(&mut config(3, "rounds=3")).unwrap();
        }
        let only = federations.take(3).unwrap();
        federations.skip(3);
        assert_eq!(
            Arc::strong_count(&only),
            1,
            "the other run is done elsewhere"
        );
    }
}
