//! Runs: their preparation, their training on a separate thread, and their results.
//!
//! The calling thread waits without the interpreter and polls for signals, so that Ctrl-C stops a
//! run after its round, and so that several runs can proceed at once.

mod config;
mod job;
mod outcome;
mod step;

pub(crate) use config::{complete, suggested};
pub(crate) use job::run_job;
pub(crate) use outcome::{Outcome, load};
