//! `smolfed completions`: the script with which a shell completes commands and options.

use std::io::Write;

use clap_complete::{Shell, generate};

use super::CliError;

/// Print the completion script for a shell.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  smolfed completions bash > ~/.local/share/bash-completion/completions/smolfed
  smolfed completions zsh > ~/.zfunc/_smolfed
  smolfed completions fish > ~/.config/fish/completions/smolfed.fish")]
pub(super) struct Args {
    /// Shell that reads the script.
    shell: Shell,
}

/// Runs the command. `commands` describes the whole command line.
pub(super) fn run(
    args: &Args,
    mut commands: clap::Command,
    out: &mut impl Write,
) -> Result<(), CliError> {
    let name = commands.get_name().to_owned();
    // Into memory first: the generator panics where it cannot write.
    let mut script = Vec::new();
    generate(args.shell, &mut commands, name, &mut script);
    Ok(out.write_all(&script)?)
}
