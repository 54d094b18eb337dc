//! Regular schedules of rounds: from one round on, at a fixed interval.

/// From round `from` on, every `every` rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The first round.
    pub from: u32,
    /// The interval in rounds, at least 1.
    pub every: u32,
}

impl Schedule {
    /// Returns whether `round` is scheduled.
    #[must_use]
    pub const fn is_in(&self, round: u32) -> bool {
        round >= self.from && (round - self.from).is_multiple_of(self.every)
    }

    /// Returns the number of scheduled rounds among the first `rounds` rounds.
    #[must_use]
    pub const fn count(&self, rounds: u32) -> u32 {
        rounds.saturating_sub(self.from).div_ceil(self.every)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn due_rounds_are_counted() {
        for (from, every) in [(0, 1), (2, 3), (5, 1), (3, 10)] {
            let schedule = Schedule { from, every };
            for rounds in 0..20 {
                let found = (0..rounds).filter(|round| schedule.is_in(*round)).count();
                let counted = schedule.count(rounds) as usize;
                assert_eq!(found, counted, "{from} {every} {rounds}");
            }
        }
    }
}
