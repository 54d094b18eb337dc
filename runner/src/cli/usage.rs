//! What to type in the place of a flag that does not exist.

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::Cli;
use crate::config::Config;

/// Commands whose experiments have keys.
const WITH_KEYS: [&str; 4] = ["run", "serve", "sweep", "audit"];

/// The error with advice of ours: that of clap, to pass the flag as a value, is never right here.
pub(super) fn explained(mut error: clap::Error) -> clap::Error {
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg).cloned() else {
        return error;
    };
    error.remove(ContextKind::Suggested);
    let command = std::env::args().nth(1).unwrap_or_default();
    if WITH_KEYS.contains(&command.as_str())
        && let Some(key) = key_of(&flag)
    {
        let tip = format!("{key} is a key of the experiment: --set {key}=VALUE");
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![tip.into()]),
        );
    }
    error.with_cmd(&Cli::command())
}

/// The key of the built-in experiment that is called like a flag.
fn key_of(flag: &str) -> Option<String> {
    let name = flag.trim_start_matches('-').replace('-', "_");
    Config::keys()
        .into_iter()
        .find(|key| key.rsplit('.').next() == Some(name.as_str()))
}
