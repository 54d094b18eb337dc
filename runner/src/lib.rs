//! Simulator, coordinator and privacy accountant of smolfed.
#![forbid(unsafe_code)]

pub mod cli;
pub mod config;
pub mod data;
pub mod experiment;
pub mod privacy;
pub mod report;
pub mod rounds;
pub mod run;
pub mod run_dir;
pub mod sampling;
pub mod server;
pub mod simulate;
pub mod task;
