//! The `smolfed` command.
fn main() {}
