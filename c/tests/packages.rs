//! The packages: frameworks find their files, the examples compile, and CMake and make choose the
//! right library.
//!
//! Zephyr, ESP-IDF and Arduino are not installed. Their files are compared with their
//! documentation, and their CMake files run with stand-ins for the functions of the framework.

#![allow(clippy::expect_used, clippy::panic, reason = "a panic fails the test")]

#[path = "packages/choice.rs"]
mod choice;
#[path = "packages/federation.rs"]
mod federation;
#[path = "packages/layout.rs"]
mod layout;
#[path = "packages/programs.rs"]
mod programs;
#[path = "packages/sources.rs"]
mod sources;
#[path = "packages/tools.rs"]
mod tools;
