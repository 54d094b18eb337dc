//! Rounds in which something happens: from one on, every so many.

/// From round `from` on, every `every` rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The first round.
    pub from: u32,
    /// At least 1.
    pub every: u32,
}

impl Schedule {
    /// Whether it is due in this round.
    #[must_use]
    pub const fn is_in(&self, round: u32) -> bool {
        round >= self.from && (round - self.from).is_multiple_of(self.every)
    }

    /// How often it is due in the first `rounds` rounds.
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
