//! The client of smolfed: what a device runs.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod client;
pub mod clip;
pub mod lanes;
pub mod math;
pub mod model;
pub mod noise;
pub mod params;
pub mod quantize;
pub mod samples;
pub mod smooth;
pub mod stream;
pub mod train;
