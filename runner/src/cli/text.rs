//! Text for terminals.

/// Columns of a line of running text.
const WIDTH: usize = 96;

/// Running text broken at spaces for a terminal; elsewhere as it is, for tools to read.
pub(super) fn wrapped(text: &str, is_terminal: bool) -> String {
    if !is_terminal {
        return text.to_owned();
    }
    let mut lines = String::new();
    let mut column = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > WIDTH {
            lines.push('\n');
            column = 0;
        } else if column > 0 {
            lines.push(' ');
            column += 1;
        }
        lines.push_str(word);
        column += length;
    }
    lines
}

/// A table whose columns are as wide as their content: rows of cells, the first being the head.
/// Columns of numbers stand right, others left.
pub(super) fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let column = |index: usize| rows.iter().filter_map(move |row| row.get(index));
    let is_number =
        |cell: &String| cell.is_empty() || cell.starts_with(|c: char| c.is_ascii_digit());
    let forms: Vec<(usize, bool)> = (0..columns)
        .map(|index| {
            let width = column(index).map(|cell| cell.chars().count()).max();
            (width.unwrap_or(0), column(index).skip(1).all(is_number))
        })
        .collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&forms);
        let line: Vec<String> = cells
            .map(|(cell, (width, is_number))| match is_number {
                true => format!("{cell:>width$}"),
                false => format!("{cell:<width$}"),
            })
            .collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

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
