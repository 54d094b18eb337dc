//! Windows of time of a live run: updates by the age of their model, and wasted participations.

use serde::Serialize;
use smolfed_engine::round::{RoundRecord, WindowTally};

/// The windows of a run so far, including the ones before a restart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WindowFigures {
    /// The last window that ended.
    pub last: WindowTally,
    /// All windows.
    pub total: WindowTally,
}

impl WindowFigures {
    /// Adds the window of a record, if its round is one. The first window creates the figures.
    pub(super) fn add(figures: &mut Option<Self>, record: &RoundRecord) {
        if let Some(last) = WindowTally::of_record(record) {
            let figures = figures.get_or_insert_default();
            figures.total.add(&last);
            figures.last = last;
        }
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

    fn tally(ages: &[u64], wasted: u64) -> WindowTally {
        WindowTally {
            ages: ages.to_vec(),
            wasted,
        }
    }

    #[test]
    fn windows_add_up_by_age() {
        let mut figures = None;
        WindowFigures::add(&mut figures, &record(&[5, 1], Some(1)));
        WindowFigures::add(&mut figures, &record(&[4, 0, 2], Some(3)));
        let expected = WindowFigures {
            last: tally(&[4, 0, 2], 3),
            total: tally(&[9, 1, 2], 4),
        };
        assert_eq!(figures, Some(expected));
    }

    #[test]
    fn other_rounds_have_no_figures_of_windows() {
        let mut figures = None;
        WindowFigures::add(&mut figures, &record(&[], None));
        assert_eq!(figures, None);
    }
}
