//! The seeds of the fuzz target `c`, and inputs that once made it fail.

#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic fails the test"
)]

use std::path::Path;

#[path = "../../fuzz/c.rs"]
mod script;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/vectors/fuzz/c");

#[test]
fn every_kept_input_keeps_to_the_budget() {
    for input in std::fs::read_dir(FOLDER).expect("inputs") {
        let path = input.unwrap().path();
        println!("{}", path.display());
        script::c(&std::fs::read(path).unwrap());
    }
}

#[test]
fn the_seeds_get_through_rounds() {
    for (name, rounds) in [("two-rounds", 2), ("budget", 5)] {
        let seed = std::fs::read(Path::new(FOLDER).join(name)).unwrap();
        assert_eq!(script::participations(&seed), rounds, "{name}");
    }
}
