//! Invalid input of all kinds: the answer says what is wrong, and nothing is written.
//!
//! This file tests typical input of newcomers, operators and researchers. Each answer has one or
//! two sentences that say what to type, in words that need no knowledge of Rust. The inputs are in
//! `wrong_inputs/*.txt`, with one file per topic and one input per line: the arguments, then the
//! required parts of the answer, separated by ` | `. A text in single quotes is one argument.
//!
//! `config` has invalid experiments, `data` invalid data sets, `calls` invalid calls of a fleet.
//! `tables` has real-world tables, and `fuzzed` has inputs found by fuzzing.

mod calls;
mod config;
pub(crate) mod data;
mod files;
mod fuzzed;
mod tables;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use crate::program::{Outcome, Place, program};

/// Inputs by topic.
const TOPICS: [(&str, &str); 8] = [
    ("commands", include_str!("wrong_inputs/commands.txt")),
    ("keys", include_str!("wrong_inputs/keys.txt")),
    ("experiments", include_str!("wrong_inputs/experiments.txt")),
    ("sweeps", include_str!("wrong_inputs/sweeps.txt")),
    ("accounting", include_str!("wrong_inputs/accounting.txt")),
    ("models", include_str!("wrong_inputs/models.txt")),
    ("fleet", include_str!("wrong_inputs/fleet.txt")),
    ("delivery", include_str!("wrong_inputs/delivery.txt")),
];

/// Arguments shared by many lines.
const SHARED: [(&str, &str); 9] = [
    ("$TARGET", "--epsilon 2 --devices 1000"),
    ("$CORRELATED", "--epsilon 2 --mechanism correlated"),
    ("$PLAN", "--devices 1000 --cohort 50 --sampling uniform"),
    ("$LEDGER", "--ledger fleet/device-0.ledger"),
    ("$LISTEN", "--listen tcp:127.0.0.1:0"),
    ("$HTTP", "--http 127.0.0.1:0 --http-token-file"),
    ("$CONNECT", "--connect tcp:127.0.0.1:1"),
    ("$MODEL", "--model softmax:64x10"),
    (
        "$DEVICE",
        "--provision fleet/device-0.bin --ledger fleet/device-0.ledger",
    ),
];

/// Words of Rust, its libraries and its runtime. None helps users to type the right thing.
#[rustfmt::skip]
const WORDS_OF_RUST: [&str; 41] = [
    "u8",
    "u16",
    "u32",
    "u64",
    "u128",
    "usize",
    "i8",
    "i16",
    "i32",
    "i64",
    "i128",
    "isize",
    "f32",
    "f64",
    "bool",
    "str",
    "struct",
    "enum",
    "variant",
    "trait",
    "tuple",
    "newtype",
    "Option",
    "Some",
    "None",
    "Result",
    "Ok",
    "Err",
    "Vec",
    "String",
    "PathBuf",
    "OsStr",
    "NonZero",
    "nonzero",
    "serde",
    "unwrap",
    "expect",
    "panicked",
    "backtrace",
    "RUST_BACKTRACE",
    "thread",
];

/// Phrases of the standard library and of parsers.
const PHRASES_OF_RUST: [&str; 13] = [
    "invalid digit",
    "float literal",
    "literal string",
    "target type",
    "non-zero type",
    "found in string",
    "invalid type",
    "missing field",
    "unknown field",
    "at line ",
    "valid UTF-8",
    "EOF while",
    "src/",
];

/// A list of 28 values is the longest answer.
const MAX_CHARACTERS: usize = 800;
const MAX_LINES: usize = 12;
/// Nothing is trained: seconds are enough even on a busy machine.
const MAX_TIME: Duration = Duration::from_secs(20);

/// A line of a topic.
#[derive(Clone, Copy)]
struct Input {
    line: &'static str,
}

impl Input {
    fn of_topic(text: &'static str) -> impl Iterator<Item = Self> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(|line| Self { line })
    }

    fn arguments(self) -> Vec<String> {
        let mut line = self.line.split(" | ").next().unwrap_or_default().to_owned();
        for (name, arguments) in SHARED {
            line = line.replace(name, arguments);
        }
        let mut arguments = Vec::new();
        for (index, part) in line.split('\'').enumerate() {
            match index % 2 {
                0 => arguments.extend(part.split_whitespace().map(str::to_owned)),
                _ => arguments.push(part.to_owned()),
            }
        }
        arguments
    }

    /// Returns the required parts of the answer: the place, and what to type.
    fn words(self) -> impl Iterator<Item = &'static str> {
        self.line.split(" | ").skip(1)
    }

    /// Runs the input, and returns the faults of the answer.
    fn faults(self, place: &Place) -> Vec<String> {
        let before = content(place);
        let outcome = self.outcome(place);
        let mut faults = faults(&outcome);
        let missing = self.words().filter(|word| !outcome.stderr.contains(word));
        faults.extend(missing.map(|word| format!("does not say: {word}")));
        if content(place) != before {
            faults.push("writes".to_owned());
        }
        let described = |fault| format!("{fault}\n{outcome}");
        faults.into_iter().map(described).collect()
    }

    fn outcome(self, place: &Place) -> Outcome {
        let mut child = place
            .command(program())
            .args(self.arguments())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .expect("smolfed starts");
        let deadline = Instant::now() + MAX_TIME;
        while child.try_wait().expect("smolfed ends").is_none() {
            if Instant::now() > deadline {
                child.kill().expect("smolfed is ended");
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let output = child.wait_with_output().expect("smolfed has ended");
        Outcome::of(output, self.line)
    }
}

/// Returns the faults of an answer that do not depend on the input.
fn faults(outcome: &Outcome) -> Vec<String> {
    let answer = &outcome.stderr;
    let mut faults = Vec::new();
    if outcome.code != Some(2) {
        faults.push("the exit code is not 2".to_owned());
    }
    if !outcome.stdout.is_empty() {
        faults.push("prints to standard output".to_owned());
    }
    if !answer.starts_with("error: ") || answer.matches("error: ").count() != 1 {
        faults.push("is not one error".to_owned());
    }
    if answer.chars().count() > MAX_CHARACTERS || answer.trim_end().lines().count() > MAX_LINES {
        faults.push("is too long".to_owned());
    }
    // The name of an arithmetic in experiment files.
    let answer = answer.replace("`f32`", "");
    let is_of_word = |c: char| c.is_alphanumeric() || c == '_';
    let words: BTreeSet<&str> = answer.split(|c| !is_of_word(c)).collect();
    let of_rust = WORDS_OF_RUST.iter().filter(|word| words.contains(**word));
    let phrases = PHRASES_OF_RUST
        .iter()
        .filter(|part| answer.contains(**part));
    faults.extend(of_rust.chain(phrases).map(|word| format!("says `{word}`")));
    faults
}

/// Returns every file and folder, with its length and modification time.
fn content(place: &Place) -> BTreeMap<PathBuf, (u64, SystemTime)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![place.path("")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder of the test") {
            let path = entry.expect("an entry").path();
            let data = path.metadata().expect("a file of the test");
            if path.is_dir() {
                folders.push(path.clone());
            }
            found.insert(path, (data.len(), data.modified().expect("a time")));
        }
    }
    found
}

#[track_caller]
fn try_topic(name: &str) {
    let (_, text) = TOPICS.iter().find(|(topic, _)| *topic == name).unwrap();
    let place = files::prepared();
    let faults: Vec<String> = Input::of_topic(text)
        .flat_map(|input| input.faults(&place))
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn commands_and_flags() {
    try_topic("commands");
}

#[test]
fn keys() {
    try_topic("keys");
}

#[test]
fn experiments_and_data() {
    try_topic("experiments");
}

#[test]
fn sweeps() {
    try_topic("sweeps");
}

#[test]
fn accounting() {
    try_topic("accounting");
}

#[test]
fn models_and_runs() {
    try_topic("models");
}

#[test]
fn fleet() {
    try_topic("fleet");
}

#[test]
fn wrong_calls_around_delivered_models_are_answered() {
    try_topic("delivery");
}

#[test]
fn the_trial_has_at_least_130_different_inputs_over_all_commands() {
    let topics = TOPICS.iter().map(|(_, text)| Input::of_topic(text));
    let inputs: Vec<Input> = topics.flatten().collect();
    let different: BTreeSet<Vec<String>> = inputs.iter().map(|input| input.arguments()).collect();
    assert_eq!(different.len(), inputs.len(), "an input occurs twice");
    assert!(different.len() >= 130, "{}", different.len());
    for input in &inputs {
        assert!(
            input.words().count() > 0,
            "nothing is asked of: {}",
            input.line
        );
    }
    let help = Place::new().smolfed("help").success().stdout;
    let commands = help.split("Commands:").nth(1).unwrap();
    let commands = commands.split("Options:").next().unwrap();
    // Descriptions continue further right.
    let commands = commands
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    for command in commands.filter(|name| !name.is_empty() && *name != "help") {
        let is_tried = different.iter().any(|arguments| arguments[0] == command);
        assert!(is_tried, "no wrong input for: {command}");
    }
}

/// The checks detect poor answers.
#[test]
fn poor_answers_are_found() {
    let good = "error: `rounds` is 0: it must be at least 1\n";
    let answer = |code, stdout: &str, stderr: &str| faults(&Outcome::with(code, stdout, stderr));
    assert_eq!(answer(2, "", good), [""; 0]);
    for (code, stdout, stderr) in [
        (0, "", good),
        (1, "", good),
        (101, "", good),
        (2, "trained", good),
        (2, "", ""),
        (2, "", "`rounds` is 0"),
        (2, "", "error: `rounds` is \"ten\", expected usize"),
        (2, "", "error: invalid type: string, expected a number"),
        (2, "", "error: invalid digit found in string"),
        (2, "", "error: thread 'main' panicked at src/main.rs:1:1"),
        (2, "", "error: a\nerror: b"),
        (2, "", &format!("error: {}", "long ".repeat(200))),
        (2, "", &format!("error: a\n{}", "b\n".repeat(20))),
    ] {
        assert_ne!(
            answer(code, stdout, stderr),
            [""; 0],
            "{code} {stdout} {stderr}"
        );
    }
    let place = Place::new();
    let faults = |line| Input { line }.faults(&place);
    assert_eq!(faults("run --set rounds=0 | at least 1"), [""; 0]);
    assert_eq!(faults("run --set rounds=0 | at least 2").len(), 1);
    let trained = faults("run --set rounds=1 --out out | at least 1");
    assert!(
        trained.iter().any(|fault| fault.starts_with("writes")),
        "{trained:?}"
    );
}
