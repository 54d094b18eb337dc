//! No cell of a table exceeds 80 characters as displayed. Longer text belongs below the table.
//! Tables that a program prints are exempt: those after a comment such as `<!-- keys of train -->`,
//! or between `<!-- begin .. -->` and `<!-- end -->`.

use std::error::Error;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::finding::Finding;
use super::lines::GENERATED;
use super::repository::Repository;

const MAX_CHARACTERS: usize = 80;

/// Finds long cells in all pages.
///
/// # Errors
/// A file cannot be read.
pub fn check(repository: &Repository) -> Result<Vec<Finding>, Box<dyn Error>> {
    let mut findings = Vec::new();
    for file in repository.with_extension("md") {
        if GENERATED.iter().any(|name| file.ends_with(name)) {
            continue;
        }
        let long = long(&repository.read(file)?).into_iter();
        findings.extend(long.map(|(line, characters)| Finding {
            file: file.to_path_buf(),
            line,
            message: format!("a cell of {characters} characters: at most {MAX_CHARACTERS}"),
        }));
    }
    Ok(findings)
}

/// The table that a comment announces as printed by a program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Printed {
    No,
    Next,
    UntilEnd,
}

/// Returns the line and the characters of each long cell of a page.
fn long(text: &str) -> Vec<(usize, usize)> {
    let (mut found, mut printed) = (Vec::new(), Printed::No);
    let mut characters = 0;
    for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        match event {
            Event::Html(html) if html.starts_with("<!-- end") => printed = Printed::No,
            Event::Html(html) if html.starts_with("<!-- begin") => printed = Printed::UntilEnd,
            Event::Html(_) if printed == Printed::No => printed = Printed::Next,
            Event::End(TagEnd::Table) if printed == Printed::Next => printed = Printed::No,
            Event::Start(Tag::TableCell) => characters = 0,
            Event::Text(words) | Event::Code(words) => characters += words.chars().count(),
            Event::End(TagEnd::TableCell)
                if printed == Printed::No && characters > MAX_CHARACTERS =>
            {
                let line = 1 + text[..range.start].matches('\n').count();
                found.push((line, characters));
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a table with one cell of this text.
    fn table(cell: &str) -> String {
        format!("| head |\n| --- |\n| {cell} |\n\n")
    }

    #[test]
    fn cells_are_measured_as_they_are_displayed() {
        let link = format!("[{}]({}) `ε`", "x".repeat(78), "y".repeat(99));
        assert_eq!(long(&table(&link)), []);
        let page = table("short") + &table(&"ε".repeat(81));
        assert_eq!(long(&page), [(7, 81)]);
    }

    #[test]
    fn printed_tables_are_exempt() {
        let cell = table(&"x".repeat(99));
        assert_eq!(long(&format!("<!-- keys of a -->\n\n{cell}")), []);
        assert_eq!(long(&format!("<!-- keys -->\n\n{cell}{cell}")), [(9, 99)]);
        let page = format!("<!-- begin: a -->\n\n{cell}{cell}<!-- end -->\n\n{cell}");
        assert_eq!(long(&page), [(15, 99)]);
    }
}
