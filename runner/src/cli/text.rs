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

#[cfg(test)]
mod tests {
    use super::*;

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
