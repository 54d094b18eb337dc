//! Firmware around `smolfed-core`, in small modules to copy into a project of your own.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`board`] | one file a family: serial line, ticks, sleep, entropy, the provisioning page |
//! | [`backbone`] | a frozen network of 8-bit integers, from an image to features |
//! | [`camera`] | images, of which features are computed |
//! | [`gradients`] | which gradients of an image are computed |
//! | [`client`] | the client: its model and its loop |
//! | [`local_data`] | what a device trains on |
//! | [`features`] | which features of a sensor's windows are computed |
//! | [`link`] | received bytes from the interrupt to the main loop, and the line as a byte stream |
//! | `handshake` | with the feature `x25519`: sessions that begin with a Diffie-Hellman |
//! | `element` | with the feature `element`: a secure element on the second line |
//! | [`host`] | what an emulated board borrows: console, and a file that keeps the ledger's flash |
//! | [`monitor`] | a product that uses the model |
//! | [`network`] | networks for windows of six channels |
//! | [`nonces`] | nonces of sessions that never come again |
//! | [`number`] | numbers in the environment of the build |
//! | [`product`] | what a product does around the client |
//! | [`refused`] | why a board does not take part |
//! | [`forgetful`] | RAM in the place of flash, for a board without a host |
//! | [`ring`] | a ring buffer of a sensor's samples, and the features of its windows |
//! | `shapes` | with the feature `hazmat`: devices of shapes that follow from a seed |
//! | `root` | without it: secrets in the provisioning record and the ledger |
//! | [`sensor`] | a ring buffer of sensor windows, to train on |
//! | `data` | with the feature `hazmat`: the data of the self-test |
//! | `quantised` | with it: a network in 8 bits, as `smolfed export --format rust` writes it |
//!
//! `src/bin/client.rs` is the program. `src/bin/network.rs` is the same with a network,
//! `src/bin/monitor.rs` in a product that uses the model, `src/bin/features.rs` with features of
//! windows, `src/bin/gradients.rs` with gradients of images,
//! and `src/bin/backbone.rs` with the features of a frozen network. Only the board files and `link`
//! use `unsafe`, and those who take the line. Copies and fills of the compiler are in the crate
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
