//! Advice for a command line that the parser refuses: unknown commands, flags and words, wrong
//! values.

use std::error::Error;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use smolfed_engine::config::Config;

/// Commands whose experiments have keys.
const WITH_KEYS: [&str; 6] = ["run", "serve", "provision", "sweep", "audit", "data"];

/// Names of commands in other programs of the field, and ours.
const OTHER_NAMES: [(&str, &str); 5] = [
    ("train", "run"),
    ("fit", "run"),
    ("simulate", "run"),
    ("test", "evaluate"),
    ("new", "init"),
];

/// The error with advice of ours, and without words of the language that smolfed is written in.
pub(super) fn explained(error: clap::Error, command: &clap::Command) -> clap::Error {
    let words: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let explained = match error.kind() {
        ErrorKind::UnknownArgument => unknown_argument(error, &words),
        ErrorKind::InvalidSubcommand => unknown_command(error, command, &words),
        ErrorKind::ValueValidation => wrong_value(error),
        ErrorKind::InvalidValue => none_of_many(error, &words),
        _ => error,
    };
    explained.with_cmd(command)
}

/// Values that an error lists, at most: more are a page that nobody reads.
const MAX_VALUES: usize = 20;

/// A value that is none of many: the help has their list.
fn none_of_many(mut error: clap::Error, words: &[String]) -> clap::Error {
    let valid = error.get(ContextKind::ValidValue);
    let is_long = matches!(valid, Some(ContextValue::Strings(values)) if values.len() > MAX_VALUES);
    if is_long {
        error.remove(ContextKind::ValidValue);
        let command = words.first().map_or("", String::as_str);
        advise(
            &mut error,
            Some(format!("`smolfed {command} --help` lists the values")),
        );
    }
    error
}

/// A flag or a word that has no place. The advice of clap, to pass it as a value, is never right
/// here.
fn unknown_argument(mut error: clap::Error, words: &[String]) -> clap::Error {
    let Some(word) = text(&error, ContextKind::InvalidArg) else {
        return error;
    };
    let negative = word.strip_prefix('-').unwrap_or_default();
    if negative.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return not_negative(&word, words).unwrap_or(error);
    }
    error.remove(ContextKind::Suggested);
    let command = words.first().map_or("", String::as_str);
    let tip = match word.starts_with('-') {
        true => key_of_flag(&word, command),
        false => place_of_word(&word, command),
    };
    advise(&mut error, tip);
    error
}

/// What a flag would set in the experiment of a command.
fn key_of_flag(flag: &str, command: &str) -> Option<String> {
    if !WITH_KEYS.contains(&command) {
        return None;
    }
    let key = Config::key_named(&flag.trim_start_matches('-').replace('-', "_"))?;
    Some(format!(
        "{key} is a key of the experiment: --set {key}=VALUE"
    ))
}

/// Where a word belongs that a command has no place for.
fn place_of_word(word: &str, command: &str) -> Option<String> {
    match command {
        "plan" | "account" => Some(
            "`smolfed run FILE --dry-run` prints the epsilon of an experiment, and `smolfed \
             account --ledger RUN/ledger.jsonl` prints a run's"
                .to_owned(),
        ),
        "init" => Some("the experiment goes to standard output: > mine.toml".to_owned()),
        "predict" | "evaluate" => Some(format!("rows are given by --data {word}")),
        _ => None,
    }
}

/// A negative number, which clap takes for a flag.
fn not_negative(word: &str, words: &[String]) -> Option<clap::Error> {
    let place = words.iter().position(|other| other.starts_with(word))?;
    let flag = words.get(place.checked_sub(1)?)?;
    let sentence = format!("`{flag} {}`: it must not be negative\n", words[place]);
    Some(clap::Error::raw(ErrorKind::ValueValidation, sentence))
}

/// A command that does not exist: perhaps below another one, or it is a file.
fn unknown_command(
    mut error: clap::Error,
    command: &clap::Command,
    words: &[String],
) -> clap::Error {
    let Some(word) = text(&error, ContextKind::InvalidSubcommand) else {
        return error;
    };
    let above = command.find_subcommand(words.first().map_or("", String::as_str));
    let (name, known) = match above.filter(|above| above.has_subcommands()) {
        Some(above) => (format!("smolfed {}", above.get_name()), above),
        None => ("smolfed".to_owned(), command),
    };
    let below: Vec<String> = command
        .get_subcommands()
        .filter(|command| command.find_subcommand(&word).is_some())
        .map(|below| format!("smolfed {} {word}", below.get_name()))
        .collect();
    let other = OTHER_NAMES.iter().find(|(name, _)| *name == word);
    let tip = if !below.is_empty() {
        below.join(", ")
    } else if let Some((_, ours)) = other {
        format!("smolfed {ours}")
    } else if Path::new(&word).is_file() {
        let verb = match word.ends_with(".toml") {
            true => "run",
            false => "data inspect",
        };
        format!("smolfed {verb} {word}")
    } else if error.get(ContextKind::SuggestedSubcommand).is_none() {
        let names = known.get_subcommands().map(clap::Command::get_name);
        let names = names.collect::<Vec<_>>().join(", ");
        format!("the commands of {name} are {names}")
    } else {
        return error;
    };
    error.remove(ContextKind::SuggestedSubcommand);
    advise(&mut error, Some(tip));
    error
}

/// A value that is not of the kind of its flag: the parsers of numbers name types.
fn wrong_value(error: clap::Error) -> clap::Error {
    let said = error.source().map(ToString::to_string).unwrap_or_default();
    let expected = match said.as_str() {
        "invalid digit found in string" => "a whole number".to_owned(),
        "number would be zero for non-zero type" => "a whole number, 1 or more".to_owned(),
        "number too large to fit in target type" => "a smaller number".to_owned(),
        "invalid float literal" => "a number such as 5, 0.05 or 1e-5".to_owned(),
        _ => match said.split_once(" is not in ") {
            Some((_, range)) => {
                let range = range.replace("..=", "..").replace("..", " to ");
                format!("a whole number from {range}")
            }
            None => return error,
        },
    };
    let (Some(flag), Some(value)) = (
        text(&error, ContextKind::InvalidArg),
        text(&error, ContextKind::InvalidValue),
    ) else {
        return error;
    };
    let sentence = format!("invalid value '{value}' for '{flag}': expected {expected}\n");
    clap::Error::raw(ErrorKind::ValueValidation, sentence)
}

fn text(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    }
}

fn advise(error: &mut clap::Error, tip: Option<String>) {
    if let Some(tip) = tip {
        let tips = ContextValue::StyledStrs(vec![tip.into()]);
        error.insert(ContextKind::Suggested, tips);
    }
}
