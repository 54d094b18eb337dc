//! The client of smolfed: what a device runs.
#![no_std]
#![forbid(unsafe_code)]

pub mod noise;
pub mod smooth;
pub mod stream;
