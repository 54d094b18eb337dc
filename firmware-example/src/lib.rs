//! Firmware around `smolfed-core`, in small modules to copy into your own project.
//!
//! | module | contents |
//! | --- | --- |
//! | [`board`] | one file per family: serial line, ticks, sleep, entropy, the provisioning page |
//! | [`backbone`] | a frozen network in 8-bit integers, from an image to features |
//! | [`camera`] | images and their features |
//! | [`gradients`] | gradient features of an image |
//! | [`client`] | the client: its model and its loop |
//! | [`local_data`] | training data of a device |
//! | [`features`] | features of a sensor's windows |
//! | `infer` | with the feature `delivery`: a device that only infers |
//! | [`link`] | received bytes from the interrupt to the main loop, and the line as a byte stream |
//! | `handshake` | with the feature `x25519`: sessions with a Diffie-Hellman handshake |
//! | `element` | with the feature `element`: a secure element on the second line |
//! | [`host`] | host facilities of an emulated board: console, and a file for the ledger's flash |
//! | [`monitor`] | a product that uses the model |
//! | [`network`] | networks for windows of six channels |
//! | [`nonces`] | session nonces that never repeat |
//! | [`number`] | numbers in the build environment |
//! | [`product`] | a product around the client |
//! | [`refused`] | reasons why a board does not take part |
//! | [`forgetful`] | RAM instead of flash, for a board without a host |
//! | [`ring`] | a ring buffer of a sensor's samples, and the features of its windows |
//! | `shapes` | with the feature `hazmat`: devices with shapes from a seed |
//! | `root` | without `element`: secrets in the provisioning record and the ledger |
//! | [`sensor`] | a ring buffer of sensor windows, to train on |
//! | `data` | with the feature `hazmat`: the data of the self-test |
//! | `quantised` | with `hazmat`: a network in 8 bits, written by `smolfed export --format rust` |
//!
//! `src/bin/client.rs` is the program. Variants are `src/bin/network.rs` with a network,
//! `src/bin/monitor.rs` in a product that uses the model, `src/bin/features.rs` with features of
//! windows, `src/bin/gradients.rs` with gradients of images, and `src/bin/backbone.rs` with the
//! features of a frozen network. `src/bin/infer.rs` only infers. Only the board files, `link` and
//! the code that takes the line use `unsafe`. The compiler's copies and fills are in the crate
//! `smolfed-memory`.
#![no_std]
#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod backbone;
pub mod board;
pub mod camera;
pub mod client;
#[cfg(feature = "hazmat")]
pub mod data;
#[cfg(feature = "element")]
pub mod element;
pub mod features;
pub mod forgetful;
pub mod gradients;
#[cfg(feature = "x25519")]
pub mod handshake;
pub mod host;
#[cfg(feature = "delivery")]
pub mod infer;
pub mod link;
pub mod local_data;
pub mod monitor;
pub mod network;
pub mod nonces;
pub mod number;
pub mod product;
#[cfg(feature = "hazmat")]
pub mod quantised;
pub mod refused;
pub mod ring;
#[cfg(not(feature = "element"))]
pub mod root;
pub mod sensor;
#[cfg(feature = "hazmat")]
pub mod shapes;

mod panic;

use smolfed_memory as _;
