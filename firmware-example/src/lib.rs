//! Firmware around `smolfed-core`, in small modules to copy into a project of your own.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`board`] | one file a family: serial line, ticks, sleep, entropy, the provisioning page |
//! | [`client`] | the client: its model, its data, and its loop |
//! | [`link`] | received bytes from the interrupt to the main loop, and the line as a byte stream |
//! | [`host`] | what an emulated board borrows: console, and a file that keeps the ledger's flash |
//! | [`network`] | networks for windows of six channels |
//! | [`nonces`] | nonces of sessions that never come again |
//! | [`number`] | numbers in the environment of the build |
//! | [`sensor`] | a ring buffer of sensor windows, to train on |
//! | [`data`] | the data of the self-test |
//!
//! `src/bin/client.rs` is the program, and `src/bin/network.rs` the same with a network. Only the
//! board files use `unsafe`.
#![no_std]
#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod board;
pub mod client;
pub mod data;
pub mod host;
pub mod link;
pub mod network;
pub mod nonces;
pub mod number;
pub mod sensor;

mod panic;
