//! Desktop kernels of [`smolfed_core`]: the same source, also compiled for wider vectors and
//! selected at run time. The bits are the same for all of them, except in [`span`], which is for
//! simulations that do not need the same bits.
//!
//! A separate crate, in one codegen unit, because the kernels are generic: they are compiled where
//! they are first named with all types, and must be fully inlined there. It rarely changes, so a
//! change of the runner does not recompile them.
//!
//! | module | contents |
//! | --- | --- |
//! | [`aligned`] | numbers aligned to a cache line |
//! | [`bytes`] | bytes as numbers |
//! | [`rows`] | a device's samples: some rows of data shared by many devices |
//! | [`kernels`] | local training and scores of each model on them |
//! | [`fixed_point`] | local training in integers |
//! | [`span`] | local training in the span of a device's samples: `fast` arithmetic |
//! | [`quantize`] | rounding to the grid, its check and the sum |
//! | [`network`] | encoders trained without labels |
//! | [`masks`] | sums of the masks of many updates |
//! | [`mixture`] | filtered vectors: sums over them, and their mixtures |
//! | [`words`] | random streams, several blocks at a time |
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::float_cmp, reason = "tests compare exact results"))]

pub mod aligned;
mod apart;
pub mod bytes;
pub mod fixed_point;
pub mod kernels;
pub mod masks;
pub mod mixture;
pub mod network;
pub mod quantize;
pub mod rows;
pub mod span;
pub mod words;

pub use aligned::Aligned;
pub use kernels::{GradientRelease, Kernels, Steps, distil};
pub use masks::MaskSum;
pub use network::Network;
pub use rows::Rows;
pub use words::Words;

#[cfg(test)]
mod tests;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
