//! No line of a Rust file exceeds 100 columns. `rustfmt` does not check comments and strings.

use std::error::Error;

use super::finding::Finding;
use super::repository::Repository;

const MAX_COLUMNS: usize = 100;

/// Finds long lines in all Rust files.
///
/// # Errors
/// A file cannot be read.
pub fn check(repository: &Repository) -> Result<Vec<Finding>, Box<dyn Error>> {
    let mut findings = Vec::new();
    for file in repository.with_extension("rs") {
        let text = repository.read(file)?;
        findings.extend(long_lines(&text).map(|(line, columns)| Finding {
            file: file.to_path_buf(),
            line,
            message: format!("{columns} columns: at most {MAX_COLUMNS}"),
        }));
    }
    Ok(findings)
}

/// Returns the numbers, from 1, and the columns of long lines.
fn long_lines(text: &str) -> impl Iterator<Item = (usize, usize)> {
    let columns = text.lines().map(|line| line.chars().count());
    (1..)
        .zip(columns)
        .filter(|&(_, columns)| columns > MAX_COLUMNS)
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
        assert_eq!(long_lines(&text).collect::<Vec<_>>(), [(2, 101)]);
    }
}
