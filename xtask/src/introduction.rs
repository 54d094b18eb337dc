//! The introduction of a file: the comment or the paragraph with which it begins.

use std::path::Path;

/// Returns the introduction of a file in one line. It is empty if the file begins with code.
pub fn of(file: &Path, text: &str) -> String {
    let text = text.trim_start();
    let lines = text.lines().skip_while(|line| line.starts_with("#!"));
    let lines: Vec<&str> = match file.extension().and_then(|name| name.to_str()) {
        Some("rs") => lines.map_while(|line| line.strip_prefix("//!")).collect(),
        Some("c" | "cpp" | "h" | "hpp" | "ino" | "ld" | "overlay" | "x") => {
            match text.strip_prefix("/*") {
                Some(comment) => until(comment, "*/").lines().collect(),
                None => lines.map_while(|line| line.strip_prefix("//")).collect(),
            }
        }
        // After the document type.
        Some("html") => {
            let comment = text.split_once("<!--").map(|(_, comment)| comment);
            until(comment.unwrap_or_default(), "-->").lines().collect()
        }
        Some("py") => {
            let comment = text.strip_prefix("\"\"\"").unwrap_or_default();
            until(comment, "\"\"\"").lines().collect()
        }
        Some("md") => {
            let mut parts = text.trim_start_matches("# ").split("\n\n");
            let mut next = || parts.next().unwrap_or_default();
            return format!("{}: {}", one_line(next()), one_line(next()));
        }
        _ => lines.map_while(|line| line.strip_prefix('#')).collect(),
    };
    one_line(&lines.join("\n"))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the first sentence of an introduction.
pub fn first_sentence(introduction: &str) -> &str {
    let mut ends = introduction.match_indices(". ");
    match ends.find(|(end, _)| !introduction[..*end].ends_with("et al")) {
        Some((end, _)) => &introduction[..=end],
        None => introduction,
    }
}

fn until<'a>(text: &'a str, end: &str) -> &'a str {
    text.split(end).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn introductions_of_each_language_are_read() {
        for (file, text) in [
            ("a.rs", "//! Adds\n//! numbers. Twice.\n\nuse std;"),
            ("a.c", "// Adds\n// numbers. Twice.\n#include <a.h>"),
            ("a.ld", "/* Adds\n   numbers. Twice. */\nMEMORY"),
            ("a.py", "\"\"\"Adds numbers. Twice.\n\"\"\"\nimport a"),
            ("a", "#!/bin/sh\n# Adds numbers.\n# Twice.\nset -e"),
            ("a.html", "<!doctype html>\n<!-- Adds numbers. Twice. -->\n"),
        ] {
            let introduction = of(Path::new(file), text);
            assert_eq!(introduction, "Adds numbers. Twice.", "{file}");
            assert_eq!(first_sentence(&introduction), "Adds numbers.");
        }
        let page = of(Path::new("a.md"), "# Sums\n\nAdds numbers.\n\nMore.");
        assert_eq!(page, "Sums: Adds numbers.");
        assert_eq!(of(Path::new("a.rs"), "use std;"), "");
    }
}
