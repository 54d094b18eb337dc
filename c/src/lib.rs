//! The client of smolfed for C and C++ firmware. `include/smolfed.h` comes from this crate.
//!
//! A device lies in memory of the caller. Its shape is chosen at run time, and nothing here
//! allocates. The caller passes bytes between the device and its line, adds samples, and lets the
//! device train in pieces. The ledger, its flash and the random streams stay behind this interface:
//! a participation gives one release, as in firmware in Rust.
//!
//! Every function checks its pointers for null, the device for its mark, and whether another call
//! is under way. Its safety section and the header name the rest.
//!
//! All unsafe code is here: pointers of the caller become slices in `pointer`, and its memory
//! becomes a device in `memory` and `device`.

#![no_std]
#![allow(
    non_camel_case_types,
    non_upper_case_globals,
    reason = "the names of C"
)]

// The panic handler of an operating system.
#[cfg(not(feature = "bare-metal"))]
extern crate std;

use smolfed_memory as _;

mod callbacks;
mod client;
mod config;
mod device;
mod flash;
mod image;
#[cfg(feature = "delivery")]
mod infer;
mod kind;
mod kinds;
mod line;
mod memory;
#[cfg(any(feature = "delivery", feature = "sleep"))]
mod pages;
#[cfg(feature = "bare-metal")]
mod panic;
mod piece;
mod pointer;
mod predict;
mod random;
mod recipe;
mod record;
mod round;
mod samples;
mod secrets;
mod session;
#[cfg(feature = "sleep")]
mod sleep;
mod status;
mod window;

pub use callbacks::*;
pub use config::{SF_FIRST_KEY_AT, SF_FIRST_KEY_BYTES, sf_config, sf_kind};
pub use device::*;
pub use image::*;
#[cfg(feature = "delivery")]
pub use infer::*;
pub use kinds::*;
pub use line::*;
pub use predict::*;
pub use recipe::{sf_range, sf_recipe, sf_scale};
pub use record::*;
pub use round::*;
pub use samples::*;
#[cfg(feature = "sleep")]
pub use sleep::*;
pub use status::{sf_status, sf_strerror};
pub use window::*;
