//! What to type in the place of a flag that does not exist.

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::config::Config;

/// Commands whose experiments have keys.
const WITH_KEYS: [&str; 4] = ["run", "serve", "sweep", "audit"];

/// The error with advice of ours: that of clap, to pass the flag as a value, is never right here.
pub(super) fn explained(mut error: clap::Error, command: &clap::Command) -> clap::Error {
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg).cloned() else {
        return error;
    };
    error.remove(ContextKind::Suggested);
    let name = std::env::args().nth(1).unwrap_or_default();
    if WITH_KEYS.contains(&name.as_str())
        && let Some(key) = Config::key_named(&flag.trim_start_matches('-').replace('-', "_"))
    {
        let tip = format!("{key} is a key of the experiment: --set {key}=VALUE");
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![tip.into()]),
        );
    }
    error.with_cmd(command)
}
