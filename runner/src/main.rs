//! The `smolfed` command.

use std::process::ExitCode;

use smolfed::cli::Cli;

fn main() -> ExitCode {
    match Cli::of_this_process().run() {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads, as in `| head`, has read enough.
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            error.print();
            error.exit_code()
        }
    }
}
