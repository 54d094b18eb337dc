//! Colours of warnings and errors, where standard error is a terminal and `--color` or NO_COLOR do
//! not forbid them.

use std::fmt::Display;

use anstyle::{AnsiColor, Style};

/// A sentence on standard error that a person should read before the result.
pub(super) fn warn(sentence: impl Display) {
    say("warning", AnsiColor::Yellow, sentence);
}

/// Why a command failed, on standard error.
pub(super) fn fail(sentence: impl Display) {
    say("error", AnsiColor::Red, sentence);
}

fn say(kind: &str, color: AnsiColor, sentence: impl Display) {
    let style = Style::new().bold().fg_color(Some(color.into()));
    anstream::eprintln!("{style}{kind}:{style:#} {sentence}");
}
