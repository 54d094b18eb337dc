//! Runs: prepared, trained on a thread of their own, and what they leave.
//!
//! The thread that called waits without the interpreter and looks for signals, so that Ctrl-C stops
//! a run after its round, and so that several runs can go on at once.

mod config;
mod job;
mod outcome;
mod step;

pub(crate) use config::{complete, suggested};
pub(crate) use job::run_job;
pub(crate) use outcome::{Outcome, load};
