//! No line of a Rust file exceeds 100 columns, as `rustfmt` does not check comments and strings. No
//! line of a page exceeds 120 columns without the targets of its links. Tables, code blocks and
//! lines or items that begin with a code span are exempt.

use std::error::Error;
use std::path::Path;

use super::finding::Finding;
use super::repository::Repository;

const MAX_COLUMNS: usize = 100;
const MAX_PAGE_COLUMNS: usize = 120;

/// Pages that smolfed writes.
pub const GENERATED: [&str; 2] = ["table.md", "combinations.md"];

/// Finds long lines in all Rust files and pages.
///
/// # Errors
/// A file cannot be read.
pub fn check(repository: &Repository) -> Result<Vec<Finding>, Box<dyn Error>> {
    let mut findings = Vec::new();
    for file in repository.with_extension("rs") {
        let text = repository.read(file)?;
        let columns = text.lines().map(columns);
        findings.extend(long(file, columns, MAX_COLUMNS));
    }
    for file in repository.with_extension("md") {
        let text = repository.read(file)?;
        if !GENERATED.iter().any(|name| file.ends_with(name)) {
            findings.extend(long(file, page_columns(&text), MAX_PAGE_COLUMNS));
        }
    }
    Ok(findings)
}

fn columns(line: &str) -> usize {
    line.chars().count()
}

/// Returns the findings of a file whose lines have these columns.
fn long(
    file: &Path,
    columns: impl Iterator<Item = usize>,
    limit: usize,
) -> impl Iterator<Item = Finding> {
    let too_long = (1..)
        .zip(columns)
        .filter(move |(_, columns)| *columns > limit);
    too_long.map(move |(line, columns)| Finding {
        file: file.to_path_buf(),
        line,
        message: format!("{columns} columns: at most {limit}"),
    })
}

/// Returns the columns of each line of a page, and 0 for exempt lines.
fn page_columns(text: &str) -> impl Iterator<Item = usize> {
    let mut in_block = false;
    text.lines().map(move |line| {
        let begin = line.trim_start().trim_start_matches("- ");
        if begin.starts_with("```") {
            in_block = !in_block;
        }
        match in_block || begin.starts_with(['|', '`']) {
            true => 0,
            false => columns(&without_targets(line)),
        }
    })
}

/// Removes the targets of links.
fn without_targets(line: &str) -> String {
    let mut parts = line.split("](");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push(']');
        text += part.split_once(')').map_or(part, |(_, rest)| rest);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_measured_in_characters_not_in_bytes() {
        let text = format!(
            "{}\n{}\n{}\n",
            "x".repeat(100),
            "x".repeat(101),
            "ε".repeat(100)
        );
        let found = long(Path::new("a.rs"), text.lines().map(columns), 100);
        assert_eq!(found.map(|found| found.line).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn pages_are_measured_without_targets_tables_and_code() {
        let long = "x".repeat(121);
        let page = format!(
            "[{}]({long})\n| {long} |\n```\n{long}\n```\n`{long}`\n- `{long}`\n",
            "x".repeat(9)
        );
        assert_eq!(page_columns(&page).max(), Some(11));
        assert_eq!(page_columns(&long).max(), Some(121));
    }
}
