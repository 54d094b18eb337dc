//! The settings of an experiment that exclude each other. Each part declares its [`Settings`]: the
//! tables of the configuration, the method by its properties, the origin of the devices. The table
//! [`RULES`] lists the pairs that exclude each other, with the reason, and [`Settings::agree`]
//! checks them. A test prints docs/combinations.md from the table.
//!
//! Pairs of values that only a calculation can refuse are checked in the calculation.

pub mod rules;
mod settings;

pub use rules::{RULES, Rule};
pub use settings::{Setting, Settings};

use Setting::{RealDevices, Recorded};

/// A rule that an experiment breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.sentence())]
pub struct Conflict {
    rule: &'static Rule,
    method: &'static str,
}

impl Conflict {
    /// Creates a conflict with a rule of two keys after a calculation found it broken.
    #[must_use]
    pub const fn of(rule: &'static Rule) -> Self {
        Self { rule, method: "" }
    }

    fn sentence(&self) -> String {
        let Rule {
            first,
            second,
            third,
            advice,
        } = self.rule;
        let second_of_method = || {
            let second = second.of_method(self.method);
            let third = third.map(|third| third.of_method(self.method));
            match third.filter(|third| *third != second) {
                None => second,
                Some(third) => format!("{second} with {third}"),
            }
        };
        match first {
            RealDevices => format!(
                "{} is supported only in simulations: {advice}",
                second_of_method()
            ),
            Recorded => format!(
                "{} cannot repeat a recorded participation: {advice}",
                second_of_method()
            ),
            _ => format!(
                "`{}` and `{}` contradict each other: {advice}",
                first.key(),
                second.key()
            ),
        }
    }
}

impl Settings {
    /// Refuses settings that exclude each other, in an experiment with this method.
    ///
    /// # Errors
    /// [`Conflict`] with the first broken rule.
    pub fn agree(&self, method: &'static str) -> Result<(), Conflict> {
        let is_broken = |rule: &&Rule| {
            let Rule { first, second, .. } = rule;
            self.has(*first) && self.has(*second) && rule.third.is_none_or(|third| self.has(third))
        };
        match RULES.iter().find(is_broken) {
            None => Ok(()),
            Some(rule) => Err(Conflict { rule, method }),
        }
    }
}

#[cfg(test)]
mod tests;
