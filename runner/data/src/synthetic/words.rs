//! Texts of a generated language, with the next character as the target.
//!
//! All devices share a lexicon of words with three to six letters. Words are separated by a space,
//! symbol 0, and drawn independently. A device has favourites: word w has weight
//! `exp(heterogeneity · n_kw) / rank_w` on device k, with a normal draw n. The share `noise` of
//! characters is replaced by symbols drawn at random. After the first letters of a word the next is
//! determined: to predict it, a model must remember where the word began.

use rand_core::Rng;
use serde::Serialize;

use crate::draw::{Normals, below, unit};

/// Settings of generated texts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WordsConfig {
    /// Scale of the differences between devices' favourites. 0 for equal devices.
    pub heterogeneity: f64,
    /// Number of characters of a sample, at least 1.
    pub length: u32,
    /// Number of symbols: a space and letters, at least 3.
    #[serde(skip)]
    pub classes: u16,
}

/// Number of words of the lexicon.
const WORDS: usize = 24;
const MIN_LETTERS: u32 = 3;
const MAX_LETTERS: u32 = 6;
const SPACE: u16 = 0;

/// The shared parameters of all devices.
#[derive(Clone, Debug)]
pub(super) struct Words {
    config: WordsConfig,
    noise: f64,
    /// The words, each with its space.
    lexicon: Vec<Vec<u16>>,
}

impl Words {
    pub(super) fn new(config: WordsConfig, noise: f64, rng: &mut impl Rng) -> Self {
        let letters = u32::from(config.classes) - 1;
        let mut word = || {
            let length = MIN_LETTERS + below(rng, MAX_LETTERS - MIN_LETTERS + 1);
            let mut word: Vec<u16> = (0..length)
                .map(|_| 1 + below(rng, letters) as u16)
                .collect();
            word.push(SPACE);
            word
        };
        Self {
            config,
            noise,
            lexicon: (0..WORDS).map(|_| word()).collect(),
        }
    }

    pub(super) fn feature_count(&self) -> usize {
        self.config.length as usize
    }

    /// Writes the cumulative probabilities of the words.
    pub(super) fn make_device(&self, rng: &mut impl Rng, own: &mut Vec<f64>) {
        let mut normals = Normals::default();
        let mut total = 0.0;
        for rank in 1..=WORDS {
            total += libm::exp(self.config.heterogeneity * normals.next(rng)) / rank as f64;
            own.push(total);
        }
        own.iter_mut().for_each(|sum| *sum /= total);
    }

    pub(super) fn append(
        &self,
        own: &[f64],
        rng: &mut impl Rng,
        count: u32,
        features: &mut Vec<f32>,
        labels: &mut Vec<u16>,
    ) {
        let length = self.config.length as usize;
        for _ in 0..count {
            // A sample begins anywhere in a word, and its class is the character after it.
            let skipped = below(rng, MAX_LETTERS + 1) as usize;
            let mut text = Vec::with_capacity(skipped + length + MAX_LETTERS as usize + 1);
            while text.len() <= skipped + length {
                let draw = unit(rng);
                let word = own.partition_point(|sum| *sum < draw).min(WORDS - 1);
                text.extend_from_slice(&self.lexicon[word]);
            }
            let mut next = SPACE;
            for (at, symbol) in text[skipped..=skipped + length].iter().enumerate() {
                next = match unit(rng) <= self.noise {
                    true => below(rng, self.config.classes.into()) as u16,
                    false => *symbol,
                };
                if at < length {
                    features.push(next.into());
                }
            }
            labels.push(next);
        }
    }
}

/// Returns a text in printed form: letters from a on.
pub(crate) fn printed(symbols: &[f32]) -> String {
    let letter = |symbol: &f32| match *symbol as u32 {
        0 => ' ',
        letter => char::from_u32(u32::from('a') + letter - 1).unwrap_or(' '),
    };
    symbols.iter().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::synthesis_stream;

    fn texts(heterogeneity: f64, noise: f64, device: u32) -> (Words, Vec<String>, Vec<u16>) {
        let config = WordsConfig {
            length: 20,
            classes: 11,
            heterogeneity,
        };
        let words = Words::new(config, noise, &mut synthesis_stream(1, 0, 0));
        let (mut own, mut features, mut labels) = (Vec::new(), Vec::new(), Vec::new());
        words.make_device(&mut synthesis_stream(1, 1, device), &mut own);
        assert!(own.is_sorted() && own.last() == Some(&1.0));
        let mut rng = synthesis_stream(1, 2, 0);
        words.append(&own, &mut rng, 30, &mut features, &mut labels);
        (words, features.chunks(20).map(printed).collect(), labels)
    }

    #[test]
    fn texts_are_made_of_the_lexicon() {
        let (words, texts, labels) = texts(0.5, 0.0, 0);
        let spell = |word: &Vec<u16>| {
            let symbols: Vec<f32> = word.iter().map(|letter| f32::from(*letter)).collect();
            printed(&symbols).trim_end().to_owned()
        };
        let lexicon: Vec<String> = words.lexicon.iter().map(spell).collect();
        assert!(lexicon.iter().all(|word| (3..=6).contains(&word.len())));
        for (text, label) in texts.iter().zip(labels) {
            // The first word may have lost its beginning, and the last one its end.
            let inner = text.split(' ').skip(1);
            let inner: Vec<&str> = inner.collect();
            let (last, whole) = inner.split_last().unwrap();
            assert!(
                whole
                    .iter()
                    .all(|word| lexicon.iter().any(|known| known == word)),
                "{text}"
            );
            let next = format!("{last}{}", printed(&[f32::from(label)]));
            let goes_on = |known: &String| format!("{known} ").starts_with(&next);
            assert!(lexicon.iter().any(goes_on), "{text}");
        }
    }

    #[test]
    fn devices_have_favourites_and_typing_errors() {
        assert_eq!(texts(0.0, 0.0, 0).1, texts(0.0, 0.0, 1).1);
        assert_ne!(texts(1.0, 0.0, 0).1, texts(1.0, 0.0, 1).1);
        assert_ne!(texts(0.0, 0.0, 0).1, texts(0.0, 0.3, 0).1);
    }
}
