//! Citations in comments: a page must be a file of the repository, and a decision on a paper,
//! cited by letter and number after the name of [`PAPERS`], must have an anchor on that page.

use std::error::Error;
use std::path::Path;

use super::finding::Finding;
use super::pages::Pages;
use super::repository::Repository;

/// The page of the decisions, each with an anchor: `f9`.
const PAPERS: &str = "docs/papers.md";

/// Finds citations in comments of Rust and TOML files without a target.
///
/// # Errors
/// A file cannot be read.
pub fn check(repository: &Repository, pages: &Pages) -> Result<Vec<Finding>, Box<dyn Error>> {
    let mut findings = Vec::new();
    for (extension, marker) in [("rs", "//"), ("toml", "#")] {
        for file in repository.with_extension(extension) {
            let text = repository.read(file)?;
            for (line, words) in (1..).zip(text.lines()) {
                let Some((_, comment)) = words.split_once(marker) else {
                    continue;
                };
                let messages =
                    unknown_pages(comment, pages).chain(unknown_decisions(comment, pages));
                findings.extend(messages.map(|message| Finding {
                    file: file.to_path_buf(),
                    line,
                    message,
                }));
            }
        }
    }
    Ok(findings)
}

fn unknown_pages(line: &str, pages: &Pages) -> impl Iterator<Item = String> {
    let in_path = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    let words = line
        .split(move |c| !in_path(c))
        .map(|word| word.trim_matches(['.', '/']));
    let cited = words.filter(|word| word.len() > 3 && word.ends_with(".md"));
    let unknown = cited.filter(|path| !pages.keys().any(|page| page.ends_with(Path::new(path))));
    unknown.map(|path| format!("`{path}` is not in the repository"))
}

fn unknown_decisions(line: &str, pages: &Pages) -> impl Iterator<Item = String> {
    let anchors = pages.get(Path::new(PAPERS)).map(|page| &page.anchors);
    let cited = line.split("papers.md").skip(1).flat_map(|rest| {
        let words = rest.split([' ', ',', ';']).filter(|word| !word.is_empty());
        words.map_while(decision)
    });
    cited
        .filter(move |tag| !anchors.is_some_and(|known| known.contains(&tag.to_lowercase())))
        .map(|tag| format!("{PAPERS} has no decision {tag}"))
}

/// Returns the letter and number at the start of a word, if any.
fn decision(word: &str) -> Option<&str> {
    let tag = word.split(|c: char| !c.is_ascii_alphanumeric()).next()?;
    let digits = tag.strip_prefix(|c: char| c.is_ascii_uppercase())?;
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some(tag)
}

#[cfg(test)]
mod tests {
    use super::super::pages::Page;
    use super::*;

    fn messages(line: &str) -> Vec<String> {
        let page = Page::parse("<a id=\"d1\"></a>D1\n\n<a id=\"d8\"></a>D8\n");
        let pages = Pages::from([(PAPERS.into(), page)]);
        unknown_pages(line, &pages)
            .chain(unknown_decisions(line, &pages))
            .collect()
    }

    #[test]
    fn what_is_there_may_be_cited() {
        assert_eq!(
            messages("/// (papers.md D1, D8). See [docs/papers.md]"),
            [""; 0]
        );
    }

    #[test]
    fn what_is_not_there_is_named() {
        let page = concat!("nowhere", ".md");
        assert_eq!(messages(page), ["`nowhere.md` is not in the repository"]);
        let decision = concat!("papers", ".md D1, D9; F1");
        let expected = ["D9", "F1"].map(|tag| format!("docs/papers.md has no decision {tag}"));
        assert_eq!(messages(decision), expected);
    }
}
