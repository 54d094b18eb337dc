//! Reasons why an experiment file or `--set` is refused: a missing file, data or a run
//! directory instead, errors in the text, an empty file.

/// Why an experiment file was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the experiment {path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// Data instead of an experiment.
    #[error(
        "{path} is data, not an experiment: write one with `smolfed init {path} > mine.toml`, then \
         run it with `smolfed run mine.toml`"
    )]
    IsData {
        /// The given path.
        path: String,
    },
    /// The directory of a run instead of an experiment.
    #[error(
        "{path} is the directory of a run: `smolfed run {path}/config.toml` repeats it, `smolfed \
         run --resume {path}` continues it"
    )]
    IsRun {
        /// The directory.
        path: String,
    },
    /// No file of this name.
    #[error("there is no experiment {path}: `smolfed init DATA > {path}` writes one for your data")]
    Missing {
        /// The file.
        path: String,
    },
    /// Bytes instead of an experiment.
    #[error("{path} is not UTF-8 text, so it is not an experiment: `smolfed init DATA` writes one")]
    NotText {
        /// The file.
        path: String,
    },
    /// The text is not TOML, or a key is unknown, missing or of the wrong type.
    #[error("{origin}: {message}")]
    Parse {
        /// The file or other origin of the text.
        origin: String,
        /// The parser's message, with the line.
        message: String,
    },
    /// A file without questions where they are needed.
    #[error(
        "{origin} asks nothing: it needs a table `[[questions]]`, like examples/ask-evaluate.toml"
    )]
    NoQuestions {
        /// The file.
        origin: String,
    },
    /// An empty file, as after a failed `smolfed init > file`.
    #[error("{origin} is empty: `smolfed init DATA > {origin}` writes an experiment for your data")]
    Empty {
        /// The file.
        origin: String,
    },
    /// A sweep where one experiment is expected.
    #[error(
        "{origin} has a table [sweep], so it describes several experiments: use smolfed sweep \
         {origin}"
    )]
    IsSweep {
        /// The file.
        origin: String,
    },
    /// `--set` without `key=value`.
    #[error("`--set {text}`: expected KEY=VALUE, for example `--set privacy.epsilon=6`")]
    Override {
        /// The given text.
        text: String,
    },
    /// `--set` reaches into something that is not a table.
    #[error("`--set {key}=..`: `{part}` is a value, not a table")]
    NotATable {
        /// The dotted key.
        key: String,
        /// The part of it without keys.
        part: String,
    },
}
