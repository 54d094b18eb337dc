//! The characters of texts, as symbols: public, and known before any text is read.

use std::collections::HashMap;

use serde::{Serialize, Serializer};

/// The default characters: a line end, a space, and the characters of English plays. They are those
/// of LEAF's Shakespeare (Caldas et al. 2018, arXiv:1812.01097), with `$` instead of `}`.
const USUAL: &str =
    "\n !\"$&'(),-.0123456789:;>?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]abcdefghijklmnopqrstuvwxyz";

/// Maximum number of characters: symbols are bytes, and one may represent all others.
const MAX_CHARACTERS: usize = 255;

/// Characters in the order of their symbols, and optionally a last symbol for all others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alphabet {
    characters: Vec<char>,
    has_unknown: bool,
}

/// The two keys of `[data]`.
impl Serialize for Alphabet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let unknown = if self.has_unknown { "replace" } else { "error" };
        serializer.collect_map([
            ("alphabet", self.text().as_str()),
            ("unknown_characters", unknown),
        ])
    }
}

impl Alphabet {
    /// Creates an alphabet of the characters of `text`, in order. `None` for the default ones. With
    /// `has_unknown`, one more symbol represents all other characters.
    ///
    /// # Errors
    /// The reason: fewer than two characters, more than 255, or a duplicate.
    pub fn new(text: Option<&str>, has_unknown: bool) -> Result<Self, String> {
        let characters: Vec<char> = text.unwrap_or(USUAL).chars().collect();
        let mut sorted = characters.clone();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("a text in which {:?} occurs twice", pair[0]));
        }
        match characters.len() {
            2..=MAX_CHARACTERS => Ok(Self {
                characters,
                has_unknown,
            }),
            count => Err(format!("a text of {count} characters")),
        }
    }

    /// Returns its characters, in order.
    #[must_use]
    pub fn text(&self) -> String {
        self.characters.iter().collect()
    }

    /// Returns whether a symbol represents all other characters.
    #[must_use]
    pub const fn has_unknown(&self) -> bool {
        self.has_unknown
    }

    /// Returns the number of symbols, from 2 to 256.
    #[must_use]
    pub const fn symbol_count(&self) -> u16 {
        // At most 255 characters.
        self.characters.len() as u16 + self.has_unknown as u16
    }

    /// Returns the name of each symbol: its character, or a word for an invisible one.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let name = |character: &char| match character {
            ' ' => "space".to_owned(),
            '\n' => "newline".to_owned(),
            '\t' => "tab".to_owned(),
            character => character.to_string(),
        };
        let unknown = self.has_unknown.then(|| "other".to_owned());
        self.characters.iter().map(name).chain(unknown).collect()
    }

    /// Returns the text of symbols.
    #[must_use]
    pub fn decode(&self, symbols: &[f32]) -> String {
        let character = |symbol: &f32| self.characters.get(*symbol as usize).copied();
        let unknown = char::REPLACEMENT_CHARACTER;
        let characters = symbols.iter().map(|at| character(at).unwrap_or(unknown));
        characters.collect()
    }

    /// Returns the symbols by character.
    #[must_use]
    pub(super) fn symbols(&self) -> Symbols {
        let numbered = self.characters.iter().copied().zip(0u8..=u8::MAX);
        Symbols {
            of_character: numbered.collect(),
            // The last symbol, if there is one: at most 255.
            unknown: self.has_unknown.then_some(self.characters.len() as u8),
        }
    }
}

/// The symbols of an alphabet by character.
pub(super) struct Symbols {
    of_character: HashMap<char, u8>,
    unknown: Option<u8>,
}

impl Symbols {
    /// Returns the symbol of a character. `None` if it has none.
    pub(super) fn symbol(&self, character: char) -> Option<u8> {
        self.of_character.get(&character).copied().or(self.unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_alphabet_has_eighty_characters() {
        let usual = Alphabet::new(None, false).unwrap();
        assert_eq!(usual.symbol_count(), 80);
        assert_eq!(usual.text(), USUAL);
        assert_eq!(usual.names()[..3], ["newline", "space", "!"]);
        assert_eq!(usual.decode(&[54.0, 55.0, 1.0, 200.0]), "ab \u{fffd}");
        assert_eq!(Alphabet::new(Some(USUAL), false), Ok(usual));
    }

    #[test]
    fn other_characters_have_a_symbol_if_that_is_asked_for() {
        let strict = Alphabet::new(Some("ab"), false).unwrap();
        assert_eq!(strict.symbols().symbol('b'), Some(1));
        assert_eq!(strict.symbols().symbol('é'), None);
        let mapped = Alphabet::new(Some("ab"), true).unwrap();
        assert_eq!(mapped.symbols().symbol('é'), Some(2));
        assert_eq!(mapped.symbol_count(), 3);
        assert_eq!(mapped.names(), ["a", "b", "other"]);
    }

    #[test]
    fn alphabets_that_number_nothing_are_refused() {
        let many: String = (0u8..=255).map(char::from).collect();
        for (text, words) in [("", "0"), ("a", "1"), ("aba", "'a'"), (&many, "256")] {
            let fault = Alphabet::new(Some(text), false).unwrap_err();
            assert!(fault.contains(words), "{fault}");
        }
    }
}
