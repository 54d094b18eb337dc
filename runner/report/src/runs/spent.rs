//! ε in a table: the figure in its cell, and its qualifications in notes below, once for all rows
//! that share them.

use smolfed_accounting::event::PrivacyUnit;

use super::figures;
use super::record::Run;
use smolfed_release::number::upper;
use smolfed_release::statement::{PrivacyStatement, Subject};

/// Numbered notes below a table.
#[derive(Clone, Debug, Default)]
pub(super) struct Notes(Vec<String>);

impl Notes {
    /// Returns `figure` with the number of its note.
    pub(super) fn mark(&mut self, figure: &str, note: String) -> String {
        let known = self.0.iter().position(|known| *known == note);
        let number = known.unwrap_or_else(|| {
            self.0.push(note);
            self.0.len() - 1
        });
        format!("{figure} [{}]", number + 1)
    }

    /// Returns the notes with their numbers.
    pub(super) fn lines(&self) -> Vec<String> {
        let notes = (1..).zip(&self.0);
        notes
            .map(|(number, note)| format!("[{number}] {note}"))
            .collect()
    }
}

/// Returns the privacy spent by a run, on each subject.
pub(super) fn words(run: &Run, notes: &mut Notes) -> String {
    let Some(first) = run.statements.first() else {
        return so_far(run, notes);
    };
    let matrices = run.statements.iter().find(|s| s.subject != first.subject);
    let statements = [Some(first), matrices].into_iter().flatten();
    let cells = statements.map(|statement| {
        let about = match statement.subject {
            Subject::Updates => String::new(),
            subject => format!("{}: ", subject.words()),
        };
        about + &notes.mark(&figure(statement), meaning(statement))
    });
    cells.collect::<Vec<_>>().join(", ")
}

/// Returns the privacy spent by a run without a statement.
fn so_far(run: &Run, notes: &mut Notes) -> String {
    let note = "of the rounds so far, without a statement: `smolfed run` writes one, with delta \
                and assumptions, when it ends or stops";
    match figures::last(figures::EPSILON, &run.rounds) {
        None => "–".to_owned(),
        Some((_, epsilon)) if epsilon.is_finite() => {
            notes.mark(&format!("{} so far", upper(epsilon, 4)), note.to_owned())
        }
        Some(_) => notes.mark("no bound so far", note.to_owned()),
    }
}

/// Returns ε with its unit.
fn figure(statement: &PrivacyStatement) -> String {
    if statement.epsilon.is_infinite() {
        return "no bound".to_owned();
    }
    let epsilon = upper(statement.epsilon, 4);
    match (statement.unit, statement.devices_per_user) {
        (PrivacyUnit::Device, None) => format!("{epsilon} per device"),
        (PrivacyUnit::Device, Some(k)) => format!("{epsilon} per user of {k} devices"),
        (PrivacyUnit::Example, _) => format!("{epsilon} per example"),
    }
}

/// Returns the strength of the figure, and its assumptions.
fn meaning(statement: &PrivacyStatement) -> String {
    let worth = match statement.epsilon.is_infinite() {
        true => "no privacy guarantee at all".to_owned(),
        false => format!("{}{}", statement.worth(), statement.conditions_in_brief()),
    };
    let planned = statement.epsilon_planned;
    let planned = planned.filter(|_| statement.is_bound_of_schedule());
    let planned = planned.map_or(String::new(), |planned| {
        format!(", {} for the whole plan", upper(planned, 4))
    });
    let trust = statement.trust;
    format!(
        "{worth}{planned}; delta = {}, {}, trust: {trust}, sampling: {}, `{}`",
        upper(statement.delta.get(), 4),
        statement.adjacency.name(),
        statement.sampling,
        statement.accountant,
    )
}

#[cfg(test)]
mod tests {
    use smolfed_accounting::accountant::{Accountant, Estimate, EstimateKind};
    use smolfed_accounting::event::{Mechanism, PrivacyEvent, Sampling};
    use smolfed_accounting::params::{Delta, NoiseMultiplier};
    use smolfed_release::condition::{Condition, Randomness};

    use super::super::export::fixture::run;
    use super::*;

    fn statement(kind: EstimateKind, epsilon: f64) -> PrivacyStatement {
        let mechanism = Mechanism::Gaussian {
            noise_multiplier: NoiseMultiplier::new(2.0).unwrap(),
        };
        let event = PrivacyEvent::new(mechanism, Sampling::uniform(40, 10).unwrap(), 2);
        let estimate = Estimate {
            epsilon,
            delta: Delta::new(1e-3).unwrap(),
            kind,
            epsilon_low: None,
            accountant: Accountant::Rdp,
            notes: Vec::new(),
        };
        PrivacyStatement::new(&estimate, &[event], None).unwrap()
    }

    #[test]
    fn every_epsilon_has_its_worth_and_its_assumptions() {
        let mut notes = Notes::default();
        let mut words = |kind, epsilon| {
            let mut of = run("a", &[]).run;
            of.statements = vec![statement(kind, epsilon)];
            super::words(&of, &mut notes)
        };
        // Rounded up, as a bound must be.
        assert_eq!(
            words(EstimateKind::UpperBound, 1.00001),
            "1.001 per device [1]"
        );
        assert_eq!(words(EstimateKind::Approximation, 2.0), "2 per device [2]");
        assert_eq!(words(EstimateKind::UpperBound, 3.0), "3 per device [1]");
        assert_eq!(
            words(EstimateKind::UpperBound, f64::INFINITY),
            "no bound [3]"
        );
        let lines = notes.lines();
        let rest = "delta = 0.001, replace-one, trust: central, sampling: uniform, `rdp`";
        assert_eq!(lines[0], format!("[1] a proved upper bound; {rest}"));
        assert_eq!(
            lines[1],
            format!("[2] an approximation and NOT a guarantee; {rest}")
        );
        assert_eq!(lines[2], format!("[3] no privacy guarantee at all; {rest}"));
    }

    #[test]
    fn a_bound_is_printed_with_its_conditions() {
        let mut notes = Notes::default();
        let mut of = run("a", &[]).run;
        let seed = Condition::KnownSeed {
            seed: 7,
            of: Randomness::Simulation,
        };
        of.statements = vec![statement(EstimateKind::UpperBound, 1.0).with_note(seed)];
        super::words(&of, &mut notes);
        let bound = "[1] a proved upper bound if the seed 7 is secret; delta";
        assert!(notes.lines()[0].starts_with(bound), "{:?}", notes.lines());
    }

    #[test]
    fn a_run_without_a_statement_has_what_its_rounds_spent() {
        let mut notes = Notes::default();
        let words = |lines: &[&str], notes: &mut Notes| super::words(&run("a", lines).run, notes);
        let spent = words(&[r#"{"round":0,"epsilon":0.5}"#], &mut notes);
        assert_eq!(spent, "0.5 so far [1]");
        let infinite = words(&[r#"{"round":0,"epsilon":null}"#], &mut notes);
        assert_eq!(infinite, "no bound so far [1]");
        assert_eq!(words(&[], &mut notes), "–");
        assert!(notes.lines()[0].contains("without a statement"));
    }
}
