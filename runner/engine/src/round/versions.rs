//! The models of earlier windows (versions) from which late updates may still arrive.

use std::collections::VecDeque;

use smolfed_release::saved::Saved;

/// Names in checkpoints.
const ROUNDS: &str = "versions.rounds";
const MODELS: &str = "versions.models";

/// A model that devices may have trained from.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Version {
    /// The round that started with it as the newest model.
    pub round: u32,
    /// The number that names the random streams of devices that train from it.
    pub number: u32,
    /// Its shared parameters.
    pub model: Vec<f32>,
}

/// The models of the last rounds, the latest last.
#[derive(Debug)]
pub(super) struct Versions {
    /// s: the number of earlier models that a window may need.
    staleness: u32,
    kept: VecDeque<Version>,
}

impl Versions {
    /// Creates an empty set before the first round.
    pub const fn new(staleness: u32) -> Self {
        Self {
            staleness,
            kept: VecDeque::new(),
        }
    }

    /// Keeps the model of a finished round, if its updates may still arrive.
    pub fn keep(&mut self, version: Version) {
        let next = version.round.saturating_add(1);
        self.kept.push_back(version);
        let staleness = self.staleness;
        self.kept.retain(|kept| next - kept.round <= staleness);
    }

    /// Returns the model of version `wanted`, if its updates count in `round`.
    pub fn find(&self, wanted: u32, round: u32) -> Option<&Version> {
        let is_in_time = round.checked_sub(wanted)? <= self.staleness;
        let mut kept = self.kept.iter().filter(|_| is_in_time);
        kept.find(|version| version.round == wanted)
    }

    /// Adds the models to a checkpoint.
    pub fn save(&self, saved: &mut Saved) {
        if self.staleness == 0 {
            return;
        }
        let rounds = self.kept.iter().flat_map(|kept| [kept.round, kept.number]);
        saved.put(ROUNDS, [self.kept.len(), 2], rounds);
        let length = self.kept.front().map_or(0, |kept| kept.model.len());
        let values = self.kept.iter().flat_map(|kept| kept.model.iter().copied());
        saved.put(MODELS, [self.kept.len(), length], values);
    }

    /// Restores the models of a checkpoint after `round` rounds. Each has `length` parameters.
    ///
    /// # Errors
    /// A description of the problem.
    pub fn restore(&mut self, saved: &Saved, round: u32, length: usize) -> Result<(), String> {
        if self.staleness == 0 {
            return Ok(());
        }
        let (rounds, models) = (saved.get::<u32>(ROUNDS)?, saved.get::<f32>(MODELS)?);
        let (rounds, odd) = rounds.as_chunks::<2>();
        let is_whole = odd.is_empty() && models.len() == rounds.len() * length;
        let is_past = rounds.iter().all(|[kept, _]| *kept < round);
        if !is_whole || !is_past {
            return Err(format!("`{MODELS}` does not contain the models of rounds"));
        }
        let models = models.chunks(length.max(1));
        let versions = rounds.iter().zip(models);
        self.kept = versions
            .map(|([round, number], model)| Version {
                round: *round,
                number: *number,
                model: model.to_vec(),
            })
            .collect();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(round: u32) -> Version {
        Version {
            round,
            number: round + 100,
            model: vec![round as f32, 1.0],
        }
    }

    #[test]
    fn so_many_models_are_kept_as_updates_may_need() {
        let mut versions = Versions::new(2);
        (0..5).for_each(|round| versions.keep(version(round)));
        let rounds = |versions: &Versions, now| -> Vec<u32> {
            (0..now)
                .filter(|round| versions.find(*round, now).is_some())
                .collect()
        };
        assert_eq!(rounds(&versions, 5), [3, 4]);
        assert_eq!(versions.find(4, 5), Some(&version(4)));
        // A failed round has kept no model, and time passes.
        assert_eq!(rounds(&versions, 6), [4]);
        assert_eq!(versions.find(4, 3), None, "from the future");
        let mut none = Versions::new(0);
        none.keep(version(0));
        assert_eq!(none.find(0, 1), None);
    }

    #[test]
    fn a_checkpoint_restores_them() {
        let mut versions = Versions::new(2);
        (0..5).for_each(|round| versions.keep(version(round)));
        let mut saved = Saved::default();
        versions.save(&mut saved);
        let mut restored = Versions::new(2);
        restored.restore(&saved, 5, 2).unwrap();
        assert_eq!(restored.kept, versions.kept);
        assert!(
            restored.restore(&saved, 4, 2).is_err(),
            "a model of the future"
        );
        assert!(restored.restore(&saved, 5, 3).is_err());
        assert!(restored.restore(&Saved::default(), 5, 2).is_err());
    }
}
