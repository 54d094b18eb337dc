//! Simulator, coordinator and privacy accountant of smolfed.
#![forbid(unsafe_code)]

pub mod cli;
pub mod data;
pub mod privacy;
