//! Common parts of `smolfed keys`: the file of keys, its passphrase, and the notification of a
//! running coordinator.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use humantime::format_rfc3339_seconds;

use smolfed_fleet::keys::KeysError;
use smolfed_fleet::keys::edit::Edit;
use smolfed_fleet::keys::lock::Holder;
use smolfed_fleet::keys::passphrase::PassphraseSource;
use smolfed_fleet::keys::stored::real_path;

/// Keys file and its passphrase.
#[derive(Debug, clap::Args)]
pub(super) struct KeysArgs {
    /// Use the fleet's keys in this file, written by `smolfed provision`.
    ///
    /// `smolfed keys revoke` and `smolfed keys add` also accept the keys of a helper.
    #[arg(long, value_name = "FILE", default_value = "keys.toml")]
    keys: PathBuf,
    /// Read the passphrase of encrypted keys from the first line of this file.
    ///
    /// By default, the passphrase comes from the file named by SMOLFED_KEYS_PASSPHRASE_FILE, from
    /// the systemd credential smolfed-keys-passphrase, or from the terminal.
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
}

impl KeysArgs {
    pub(super) fn passphrase(&self) -> PassphraseSource {
        PassphraseSource::find(self.passphrase_file.as_deref())
    }

    pub(super) fn edit(&self) -> Result<Edit, KeysError> {
        Edit::begin(&self.keys, &self.passphrase())
    }

    /// The file, without symbolic links: what belongs to it is beside it.
    pub(super) fn real_path(&self) -> Result<PathBuf, KeysError> {
        real_path(&self.keys)
    }

    /// The file, as it was given.
    pub(super) fn path(&self) -> &Path {
        &self.keys
    }
}

/// Notification of a running coordinator.
#[derive(Debug, clap::Args)]
pub(super) struct SignalArgs {
    /// Do not send SIGHUP to a running coordinator.
    ///
    /// The coordinator then applies the change at the next SIGHUP or at its next start.
    #[arg(long)]
    no_signal: bool,
}

impl SignalArgs {
    /// Notifies a coordinator, and returns a sentence about it. The sentence is empty without one.
    pub(super) fn notify_coordinator(&self, holder: Holder) -> String {
        self.notify(holder, "coordinator")
    }

    /// The same for a helper.
    pub(super) fn notify_helper(&self, holder: Holder) -> String {
        self.notify(holder, "helper")
    }

    fn notify(&self, holder: Holder, who: &str) -> String {
        match holder {
            Holder::Absent => String::new(),
            Holder::Process(_) if !self.no_signal && holder.signal() => {
                format!("The running {who} was notified and applies this now.\n")
            }
            Holder::Process(_) => {
                format!("A {who} is running: it applies this when it gets SIGHUP.\n")
            }
            Holder::Unreachable => {
                format!("A {who} is running: it applies this when it is restarted.\n")
            }
        }
    }
}

/// The date of a change, in UTC.
pub(super) fn now() -> String {
    format_rfc3339_seconds(SystemTime::now()).to_string()
}

/// Numbers in words: ranges of those in a row.
pub(super) fn in_ranges(numbers: impl IntoIterator<Item = u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let text = ranges.iter().map(|(first, last)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first} to {last}"),
    });
    text.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_a_row_are_a_range() {
        assert_eq!(in_ranges([]), "");
        assert_eq!(in_ranges([7]), "7");
        assert_eq!(
            in_ranges([0, 1, 2, 5, 6, u32::MAX]),
            "0 to 2, 5, 6, 4294967295"
        );
    }
}
