//! The kernels of [`smolfed_core`] for desktops: the same source, compiled for AVX2 and AVX-512 as
//! well and chosen at run time. The bits are the same with each.
//!
//! A separate crate, in one codegen unit, because the kernels are generic: they are
//! compiled where they are first named with all types, and must be inlined whole there. It changes
//! rarely, so that a change of the runner does not compile them again.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`rows`] | a device's samples: some rows of data that many devices share |
//! | [`kernels`] | local training and scores of each model on them |
//! | [`network`] | encoders that learn without labels |
//! | [`grid`] | updates on the integer grid |
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::float_cmp, reason = "tests compare exact results"))]

pub mod grid;
pub mod kernels;
pub mod network;
pub mod rows;

pub use grid::quantize_and_check;
pub use kernels::{Kernels, Release, Steps, distil};
pub use network::Network;
pub use rows::Rows;

#[cfg(test)]
mod tests;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
