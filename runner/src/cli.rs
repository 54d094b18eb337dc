//! The command line: one file a subcommand, thin over the library.

pub mod data;
