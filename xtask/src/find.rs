//! `cargo xtask find WORD...`: files by the words of their introductions and paths, for newcomers
//! who look for the place of a change.

use std::error::Error;
use std::io::Write as _;
use std::path::Path;

use crate::introduction::{self, first_sentence};
use crate::structure::Repository;

/// Prints the files that have all of these words, or words that begin with them, each with its
/// first sentence. Those with the words in their path or first sentence come first.
///
/// # Errors
/// No file has the words, or the output is closed.
pub fn run(words: &[&str]) -> Result<(), Box<dyn Error>> {
    let repository = Repository::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))?;
    let mut found = Vec::new();
    for file in &repository.files {
        // Others are not texts.
        let Ok(text) = repository.read(file) else {
            continue;
        };
        let introduction = introduction::of(file, &text);
        let sentence = first_sentence(&introduction).to_owned();
        let path = file.display().to_string();
        if has_all(&format!("{path} {sentence}"), words) {
            found.push((0, path, sentence));
        } else if has_all(&format!("{path} {introduction}"), words) {
            found.push((1, path, sentence));
        }
    }
    if found.is_empty() {
        let words = words.join(" ");
        return Err(
            format!("no path or introduction has: {words}. Try fewer or other words").into(),
        );
    }
    found.sort();
    let mut output = std::io::stdout().lock();
    for (_, path, sentence) in found {
        writeln!(output, "{path}: {sentence}")?;
    }
    Ok(())
}

/// Returns whether each word is the beginning of a word of the text, in upper or lower case. Words
/// such as `C++` may be anywhere.
fn has_all(text: &str, words: &[&str]) -> bool {
    let folded = |text: &str| {
        let text = text.to_lowercase();
        text.replace('ε', "epsilon").replace('δ', "delta")
    };
    let text = folded(text);
    let of_text = || text.split(|c: char| !c.is_alphanumeric());
    words.iter().all(|word| {
        let word = folded(word);
        match word.chars().all(char::is_alphanumeric) {
            true => of_text().any(|of_text| of_text.starts_with(&word)),
            false => text.contains(&word),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_by_their_beginning() {
        assert!(has_all(
            "runner/fleet/a.rs: Pauses grow.",
            &["pause", "FLEET"]
        ));
        assert!(has_all(
            "a.hpp: C++17, ε.",
            &["c++", "a.hpp", "epsilon", "ε"]
        ));
        assert!(!has_all("neighbouring pauses", &["ring"]));
        assert!(!has_all("pauses", &["pause", "fleet"]));
    }
}
