//! End-to-end tests: each runs the real program in an empty directory.
//!
//! | question | file, and the folder next to it |
//! | --- | --- |
//! | how a test runs the program and reads its output | [`program`], [`run_dir`] |
//! | stdout and stderr, exit codes, `--set` | [`command_line`] |
//! | methods, models and data, and how well they learn | [`experiments`] |
//! | stopped, resumed, repeated, distributed and listed runs | [`runs`] |
//! | predictions for new rows, and exported models | [`inference`] |
//! | ε, statements, ledgers, correlated noise, masked sums, audits | [`privacy`] |
//! | real devices among simulated ones: lines, keys, attackers, operation | [`fleet`] |
//! | firmware on emulated boards: bits, rounds, sizes, panics, fleets of boards | [`boards`] |
//! | invalid input of any kind | [`wrong_inputs`] |
//!
//! `README.md` lists the contents of each folder, and when tests are skipped.

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
