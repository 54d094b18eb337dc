//! Text for terminals: wrapped lines, tables with aligned columns, and words in quotes.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};

/// Columns of a line of running text.
const WIDTH: usize = 96;

/// Running text broken at spaces for a terminal. Elsewhere it is unchanged, for tools to read.
pub(super) fn wrapped(text: &str, is_terminal: bool) -> String {
    if !is_terminal {
        return text.to_owned();
    }
    let options = textwrap::Options::new(WIDTH)
        .break_words(false)
        .word_splitter(textwrap::WordSplitter::NoHyphenation);
    textwrap::fill(text, options)
}

/// A table whose columns are as wide as their content: rows of cells, the first being the head.
/// Columns of numbers are aligned right, others left.
pub(super) fn aligned(rows: &[Vec<String>]) -> String {
    let is_number =
        |cell: &String| cell.is_empty() || cell.starts_with(|c: char| c.is_ascii_digit());
    let mut table = Table::new();
    table.load_preset(NOTHING).add_rows(rows);
    for (index, column) in table.column_iter_mut().enumerate() {
        let mut cells = rows.iter().skip(1).filter_map(|row| row.get(index));
        if cells.all(is_number) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        column.set_padding((0, 2));
    }
    table.trim_fmt() + "\n"
}

/// A word of a command line, in quotes where a shell would change it.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_quoted_words_as_they_are() {
        assert_eq!(quoted("privacy.epsilon=.5"), "privacy.epsilon=.5");
        for word in [
            "",
            "a b",
            "it's",
            "cohort={ sampling = \"full\" }",
            "$HOME",
            "'",
        ] {
            let call = format!("printf %s {}", quoted(word));
            let output = std::process::Command::new("sh")
                .args(["-c", &call])
                .output();
            assert_eq!(output.unwrap().stdout, word.as_bytes(), "{call}");
        }
    }

    #[test]
    fn numbers_stand_right_and_words_left() {
        let rows = [["name", "size"], ["a", "10"], ["long name", "9"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        let expected = "name       size\na            10\nlong name     9\n";
        assert_eq!(aligned(&rows), expected);
    }

    #[test]
    fn lines_break_at_spaces_and_only_on_terminals() {
        let text = "word ".repeat(60);
        assert_eq!(wrapped(&text, false), text);
        let lines = wrapped(&text, true);
        assert!(
            lines
                .lines()
                .all(|line| line.len() <= WIDTH && !line.starts_with(' '))
        );
        assert_eq!(lines.split_whitespace().count(), 60);
        assert_eq!(
            wrapped(&"x".repeat(200), true).len(),
            200,
            "a long word stays whole"
        );
    }
}
