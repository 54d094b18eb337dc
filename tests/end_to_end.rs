//! End-to-end tests: each runs the real program in an empty directory.
//!
//! | question | file, and the folder beside it |
//! | --- | --- |
//! | how a test runs the program and reads what it wrote | [`program`], [`run_dir`] |
//! | what goes to stdout and stderr, exit codes, `--set` | [`command_line`] |
//! | which methods, models and data can be trained, and how well they learn | [`experiments`] |
//! | runs that are stopped, resumed, repeated, spread over processes, listed | [`runs`] |
//! | predictions for new rows, and exported models | [`inference`] |
//! | ε, statements, ledgers, correlated noise, masked sums, audits | [`privacy`] |
//! | real devices among simulated ones: lines, keys, attackers, operation | [`fleet`] |
//! | firmware on emulated boards: bits, rounds, sizes, panics, fleets of boards | [`boards`] |
//! | invalid input of any kind | [`wrong_inputs`] |
//!
//! `README.md` has what is in each folder, and what is skipped when.

mod boards;
mod command_line;
mod experiments;
mod fleet;
mod inference;
mod privacy;
mod program;
mod run_dir;
mod runs;
mod wrong_inputs;
