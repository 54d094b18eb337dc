//! Counts of updates in time windows by the age (staleness) of their model, and of wasted
//! participations.

use serde::Serialize;

use super::record::RoundRecord;

/// The counts of one or more windows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WindowTally {
    /// Updates by the age of their model in windows. Index 0 has the updates from the model of the
    /// window in which they counted.
    pub ages: Vec<u64>,
    /// Number of participations without an update that counts.
    pub wasted: u64,
}

impl WindowTally {
    /// Returns the counts of a round, or `None` if it is not a time window.
    #[must_use]
    pub fn of_record(record: &RoundRecord) -> Option<Self> {
        let ages = record.ages.iter().map(|count| u64::from(*count));
        Some(Self {
            ages: ages.collect(),
            wasted: record.wasted?.into(),
        })
    }

    /// Returns the totals of several windows, or `None` without a window.
    #[must_use]
    pub fn total(windows: impl IntoIterator<Item = Self>) -> Option<Self> {
        windows.into_iter().reduce(|mut total, window| {
            total.add(&window);
            total
        })
    }

    /// Returns the totals of the windows among these rounds, or `None` without a window.
    #[must_use]
    pub fn of_records(records: &[RoundRecord]) -> Option<Self> {
        Self::total(records.iter().filter_map(Self::of_record))
    }

    /// Adds the counts of other windows.
    pub fn add(&mut self, other: &Self) {
        let count = self.ages.len().max(other.ages.len());
        self.ages.resize(count, 0);
        for (total, count) in self.ages.iter_mut().zip(&other.ages) {
            *total += count;
        }
        self.wasted += other.wasted;
    }

    /// Returns the number of updates of all ages.
    #[must_use]
    pub fn arrived(&self) -> u64 {
        self.ages.iter().sum()
    }

    /// Returns the share of each age among all updates. It is empty without an update.
    #[must_use]
    pub fn shares(&self) -> Vec<f64> {
        let arrived = self.arrived();
        let ages = self.ages.iter().filter(|_| arrived > 0);
        ages.map(|count| *count as f64 / arrived as f64).collect()
    }

    /// Returns the wasted share of all participations, or `None` without a participation.
    #[must_use]
    pub fn wasted_share(&self) -> Option<f64> {
        let spent = self.arrived() + self.wasted;
        (spent > 0).then(|| self.wasted as f64 / spent as f64)
    }
}

#[cfg(test)]
mod tests {
    use smolfed_core::params::LearningRate;

    use super::*;

    fn record(ages: &[u32], wasted: Option<u32>) -> RoundRecord {
        RoundRecord {
            ages: ages.to_vec(),
            wasted,
            ..RoundRecord::new(0, LearningRate::new(0.1).unwrap())
        }
    }

    #[test]
    fn windows_add_up_by_age_and_other_rounds_do_not_count() {
        let windows = [
            record(&[5, 1], Some(1)),
            record(&[], None),
            record(&[], Some(2)),
            record(&[1, 2, 3], Some(0)),
        ];
        let found = WindowTally::of_records(&windows).unwrap();
        assert_eq!((found.ages.as_slice(), found.wasted), (&[6, 3, 3][..], 3));
        assert_eq!(found.arrived(), 12);
        assert_eq!(found.shares(), [0.5, 0.25, 0.25]);
        assert_eq!(found.wasted_share(), Some(0.2));
        assert_eq!(WindowTally::of_records(&windows[1..2]), None);
        let nobody = WindowTally::default();
        assert_eq!((nobody.shares(), nobody.wasted_share()), (vec![], None));
    }
}
