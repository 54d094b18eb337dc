//! Admission of devices to a round with correlated noise, or with a limited number of
//! participations: the cost covers devices that take part at most k times, in rounds at least b
//! apart.
//!
//! Devices enforce this themselves, and so do schedules. The release path relies on neither: it
//! records the rounds of every device, and replaces the update of a device that comes too early or
//! too often by zero in the sum.

use std::collections::BTreeMap;

use smolfed_accounting::correlated::Participation;

use crate::saved::Saved;

/// Why a device is left out.
pub const REASON: &str = "it took part too recently or too often for what epsilon counts on";

/// The name of the tensor in checkpoints.
const SAVED: &str = "mechanism.participations";

/// The rounds in which each device took part so far.
#[derive(Clone, Debug)]
pub struct Admissions {
    allowed: Participation,
    /// The last round and the number of rounds of each device that took part.
    devices: BTreeMap<u32, (u32, u32)>,
}

/// The devices whose updates may enter the sum of a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admitted {
    /// All devices: the noise is independent and covers each round by itself.
    All,
    /// These devices, in ascending order.
    Only(Vec<u32>),
}

impl Admitted {
    /// Returns whether the update of `device` may enter the sum.
    #[must_use]
    pub fn has(&self, device: u32) -> bool {
        match self {
            Self::All => true,
            Self::Only(devices) => devices.binary_search(&device).is_ok(),
        }
    }
}

impl Admissions {
    /// Creates the record before the first round.
    #[must_use]
    pub const fn new(allowed: Participation) -> Self {
        Self {
            allowed,
            devices: BTreeMap::new(),
        }
    }

    /// Admits the devices of a cohort that may take part in `round`. The round counts for them even
    /// if their updates are lost.
    pub fn admit(&mut self, round: u32, cohort: &[u32]) -> Admitted {
        let mut admitted: Vec<u32> = cohort.to_vec();
        admitted.sort_unstable();
        admitted.retain(|device| self.admit_device(round, *device));
        Admitted::Only(admitted)
    }

    fn admit_device(&mut self, round: u32, device: u32) -> bool {
        let (last, count) = match self.devices.get(&device) {
            None => (None, 0),
            Some((last, count)) => (Some(*last), *count),
        };
        // The difference from an earlier round is `None`, and `None < Some(b)`.
        let is_apart = last.is_none_or(|last| {
            let apart = round.checked_sub(last);
            apart >= Some(self.allowed.separation())
        });
        let is_allowed = is_apart && count < self.allowed.participations();
        if is_allowed {
            self.devices.insert(device, (round, count + 1));
        }
        is_allowed
    }

    /// Returns the first device of a schedule that takes part too early or too often, with the
    /// round, as (round, device). The schedule has one cohort for each round from 0.
    #[must_use]
    pub fn first_breach<'a>(
        allowed: Participation,
        cohorts: impl Iterator<Item = &'a [u32]>,
    ) -> Option<(u32, u32)> {
        let mut admissions = Self::new(allowed);
        (0..).zip(cohorts).find_map(|(round, cohort)| {
            let admitted = admissions.admit(round, cohort);
            let refused = cohort.iter().find(|device| !admitted.has(**device));
            refused.map(|device| (round, *device))
        })
    }

    /// Adds the record to a checkpoint. It reveals who took part, as `participation.jsonl` does,
    /// and nothing else.
    pub(super) fn save(&self, saved: &mut Saved) {
        let rows = self.devices.iter();
        let rows = rows.flat_map(|(device, (last, count))| [*device, *last, *count]);
        saved.put(SAVED, [self.devices.len(), 3], rows);
    }

    /// Restores the record of a checkpoint.
    ///
    /// # Errors
    /// The reason, if the checkpoint has no valid record.
    pub(super) fn restore(&mut self, saved: &Saved) -> Result<(), String> {
        let words = saved.get::<u32>(SAVED)?;
        let (rows, odd) = words.as_chunks::<3>();
        if !odd.is_empty() {
            return Err(format!("`{SAVED}` is not a table of three columns"));
        }
        let rows = rows.iter();
        self.devices = rows
            .map(|[device, last, k]| (*device, (*last, *k)))
            .collect();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;
    use crate::saved::{Dtype, SavedTensor};

    fn allowed(rounds: u32, separation: u32, participations: u32) -> Participation {
        Participation::new(rounds, separation, participations).unwrap()
    }

    #[test]
    fn whoever_comes_too_early_or_too_often_is_left_out() {
        let mut admissions = Admissions::new(allowed(100, 3, 2));
        let mut has = |round, device| admissions.admit(round, &[device]).has(device);
        assert!(has(0, 7) && !has(2, 7) && has(2, 8));
        assert!(has(3, 7), "a refusal does not count");
        assert!(!has(90, 7), "its third time");
        assert!(has(5, 8) && !has(4, 8), "rounds go forward only");
        assert_eq!(admissions.admit(6, &[9, 9]), Admitted::Only(vec![9]));
        assert!(!Admitted::Only(vec![9]).has(8) && Admitted::All.has(8));
    }

    #[test]
    fn a_breach_of_a_schedule_is_found() {
        let breach = |cohorts: &[&[u32]]| {
            Admissions::first_breach(allowed(4, 2, 2), cohorts.iter().copied())
        };
        assert_eq!(breach(&[&[0, 1], &[2], &[0], &[2, 3]]), None);
        assert_eq!(breach(&[&[0, 1], &[2], &[0], &[0]]), Some((3, 0)));
        assert_eq!(breach(&[&[0], &[], &[0], &[], &[0]]), Some((4, 0)));
    }

    #[test]
    fn a_checkpoint_restores_the_record() {
        let mut admissions = Admissions::new(allowed(100, 3, 2));
        admissions.admit(0, &[1, 2]);
        admissions.admit(4, &[2, 5]);
        let mut saved = Saved::default();
        admissions.save(&mut saved);
        let mut restored = Admissions::new(allowed(100, 3, 2));
        restored.restore(&saved).unwrap();
        assert_eq!(restored.devices, admissions.devices);
        assert!(!restored.admit(7, &[2]).has(2) && restored.admit(7, &[5]).has(5));
        assert!(restored.restore(&Saved::default()).is_err());
        let damages: [fn(&mut SavedTensor); 3] = [
            |tensor| tensor.dtype = Dtype::I64,
            |tensor| tensor.bytes.extend([0; 1]),
            |tensor| tensor.bytes.extend([0; 4]),
        ];
        for damage in damages {
            let mut damaged = saved.clone();
            damaged.tensors.values_mut().for_each(damage);
            assert!(restored.restore(&damaged).is_err());
        }
    }

    proptest! {
        /// For all cohorts, the admitted rounds of every device satisfy (k, b).
        #[test]
        fn admitted_rounds_keep_to_the_bound(
            cohorts in vec(vec(0u32..5, 0..6), 0..24),
            (separation, participations) in (1u32..6, 1u32..5),
        ) {
            let allowed = allowed(24, separation, participations);
            let mut admissions = Admissions::new(allowed);
            let rounds = (0..).zip(&cohorts);
            let admitted = rounds.map(|(round, cohort)| admissions.admit(round, cohort));
            let admitted: Vec<Admitted> = admitted.collect();
            for device in 0..5 {
                let rounds = (0u32..).zip(&admitted).filter(|(_, admitted)| admitted.has(device));
                let rounds: Vec<u32> = rounds.map(|(round, _)| round).collect();
                prop_assert!(rounds.len() <= allowed.participations() as usize);
                prop_assert!(rounds.windows(2).all(|pair| pair[1] - pair[0] >= separation));
            }
        }
    }
}
