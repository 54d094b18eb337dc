//! Windows of time in words: updates by the age of their model, and wasted participations.

use smolfed_engine::round::WindowTally;
use smolfed_release::number::{counted, fixed};

/// Returns the share of each age, youngest first, such as `61 %, 30 %, 9 %`.
#[must_use]
pub fn ages_in_words(tally: &WindowTally) -> String {
    let shares = tally.shares();
    let words = shares.iter().map(|share| percent(*share, 0));
    match shares.is_empty() {
        true => "–".to_owned(),
        false => words.collect::<Vec<_>>().join(", "),
    }
}

/// Returns the wasted share of all participations, such as `1.2 %`.
#[must_use]
pub fn wasted_in_words(tally: &WindowTally) -> String {
    let share = tally.wasted_share();
    share.map_or("–".to_owned(), |share| percent(share, 1))
}

/// Returns both in one line: `updates by age: 61 %, 30 %, 9 %; wasted participations 1.2 %`.
#[must_use]
pub fn in_one_line(tally: &WindowTally) -> String {
    let (ages, wasted) = (ages_in_words(tally), wasted_in_words(tally));
    format!("updates by age: {ages}; wasted participations {wasted}")
}

/// Returns an age in words: `0 windows`, `1 window`.
#[must_use]
pub fn age_in_words(age: usize) -> String {
    counted(age as u64, "window")
}

/// Returns a share in percent.
fn percent(share: f64, digits: usize) -> String {
    format!("{} %", fixed(100.0 * share, digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(ages: &[u64], wasted: u64) -> WindowTally {
        WindowTally {
            ages: ages.to_vec(),
            wasted,
        }
    }

    #[test]
    fn one_line_has_the_shares() {
        let line = in_one_line(&tally(&[610, 300, 90], 12));
        let expected = "updates by age: 61 %, 30 %, 9 %; wasted participations 1.2 %";
        assert_eq!(line, expected);
    }

    #[test]
    fn windows_without_participations_have_no_shares() {
        let line = in_one_line(&tally(&[0, 0], 0));
        assert_eq!(line, "updates by age: –; wasted participations –");
        assert_eq!(wasted_in_words(&tally(&[0, 0], 4)), "100.0 %");
    }

    #[test]
    fn ages_have_a_plural() {
        let ages = [0, 1, 2].map(age_in_words);
        assert_eq!(ages, ["0 windows", "1 window", "2 windows"]);
    }
}
