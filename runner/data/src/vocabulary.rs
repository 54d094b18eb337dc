//! Repeated names of rows, such as class labels and devices, as numbers.

use std::collections::HashMap;

/// Rows of names, each stored once, numbered by first occurrence.
#[derive(Clone, Debug, Default)]
pub(super) struct Vocabulary {
    numbers: HashMap<String, u32>,
    names: Vec<String>,
    rows: Vec<u32>,
}

impl Vocabulary {
    /// The number of a row without a known name.
    pub(super) const NONE: u32 = u32::MAX;

    /// Adds one row.
    pub(super) fn push(&mut self, name: &str) {
        let number = self.number(name);
        self.rows.push(number);
    }

    /// Returns the number of a name, which need not have a row.
    pub(super) fn number(&mut self, name: &str) -> u32 {
        match self.numbers.get(name) {
            Some(&number) => number,
            None => {
                // Rows are numbered by u32, and there are at most as many names.
                let number = self.names.len() as u32;
                self.numbers.insert(name.to_owned(), number);
                self.names.push(name.to_owned());
                number
            }
        }
    }

    /// Returns the names, by first occurrence.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the number of each row's name.
    pub(super) fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// Adds the rows of another vocabulary.
    pub(super) fn extend(&mut self, other: &Self) {
        for &row in &other.rows {
            self.push(&other.names[row as usize]);
        }
    }

    /// Adds the rows of another vocabulary, but no name: rows of other names get [`Self::NONE`].
    /// Returns these names.
    pub(super) fn extend_known(&mut self, other: &Self) -> Vec<String> {
        let number = |name: &String| self.numbers.get(name).copied().unwrap_or(Self::NONE);
        let numbers: Vec<u32> = other.names.iter().map(number).collect();
        let rows = other.rows.iter().map(|&row| numbers[row as usize]);
        self.rows.extend(rows);
        let named = other.names.iter().zip(&numbers);
        let unknown = named.filter(|(_, number)| **number == Self::NONE);
        unknown.map(|(name, _)| name.clone()).collect()
    }

    /// Returns the number of each row and the names, in order: by value if all are integers,
    /// otherwise as text. Numbers are therefore independent of the order of rows.
    pub(super) fn into_sorted(self) -> (Vec<u32>, Vec<String>) {
        let values: Option<Vec<i64>> = self.names.iter().map(|name| name.parse().ok()).collect();
        let mut order: Vec<usize> = (0..self.names.len()).collect();
        match values {
            // Two spellings of one number (7 and 07) stay two names, in the order of their text.
            Some(values) => order.sort_by_key(|&at| (values[at], &self.names[at])),
            None => order.sort_by_key(|&at| &self.names[at]),
        }
        let mut rank = vec![0; order.len()];
        for (position, &at) in order.iter().enumerate() {
            rank[at] = position as u32;
        }
        let rank_of = |row: &u32| rank.get(*row as usize).copied().unwrap_or(Self::NONE);
        let rows = self.rows.iter().map(rank_of).collect();
        let names = order.iter().map(|&at| self.names[at].clone()).collect();
        (rows, names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(rows: &[&str]) -> (Vec<u32>, Vec<String>) {
        let mut vocabulary = Vocabulary::default();
        rows.iter().for_each(|row| vocabulary.push(row));
        vocabulary.into_sorted()
    }

    #[test]
    fn numbers_sort_by_value_and_names_as_text() {
        assert_eq!(
            sorted(&["10", "9", "10"]),
            (vec![1, 0, 1], vec!["9".into(), "10".into()])
        );
        assert_eq!(sorted(&["b", "10", "9"]).1, ["10", "9", "b"]);
        assert_eq!(
            sorted(&["7", "07"]),
            (vec![1, 0], vec!["07".into(), "7".into()])
        );
        assert_eq!(sorted(&[]), (vec![], vec![]));
    }
}
