//! Same bits for random shapes: models, data and settings follow from a build seed
//! (`SMOLFED_SEED`), in both arithmetics.

use std::fmt::Write as _;

use super::{Board, firmware, on_every_board, run};

#[path = "../../firmware-example/src/shapes.rs"]
mod cases;

/// Returns the output of a program with this seed.
fn simulated(seed: u32) -> String {
    let mut text = format!("{seed}\n");
    for case in 0..cases::CASES {
        let [numbers, integers] = cases::checksums(seed, case).expect("an update");
        writeln!(text, "{numbers:08x} {integers:08x}").expect("a string");
    }
    text
}

fn same_bits(board: &Board) {
    let Some((program, qemu)) = firmware(board, "shapes") else {
        return;
    };
    let printed = run(&qemu, &program, &[]);
    let seed = printed.lines().next().and_then(|line| line.parse().ok());
    let seed = seed.expect("the seed of the build");
    assert_eq!(printed, simulated(seed), "{}", board.target);
}

#[test]
fn boards_have_the_bits_of_the_simulator_for_any_shape() {
    on_every_board(same_bits);
}

/// Other seeds give other devices.
#[test]
fn devices_follow_from_the_seed() {
    assert_ne!(simulated(1), simulated(2));
}
