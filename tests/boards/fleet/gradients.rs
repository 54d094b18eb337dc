//! Boards that compute image gradients from their records and train on them, with simulated devices
//! that use the simulator's features of the same images.

use std::path::PathBuf;

use super::{Running, refusal};
use crate::boards::{CORTEX_M4F, firmware, named};
use crate::fleet::{assert_is_the_simulation, part_of, wait};
use crate::program::Place;

/// Returns an experiment on the built-in digits, five for each of four devices.
fn experiment(cell: usize, arithmetic: &str) -> String {
    format!(
        "method = \"dp-fed-ls\"\nrounds = 3\n\
         [data]\nsource = \"digits\"\ndevices = 4\nsamples_per_device = 5\n\
         [features]\nkind = \"gradients\"\ncell = {cell}\n\
         [simulation]\narithmetic = \"{arithmetic}\"\n\
         [train]\nepochs = 2\nbatch_size = 4\nlearning_rate = \"auto\"\n\
         [cohort]\nsampling = \"full\"\n\
         [privacy]\nnoise_multiplier = 0.5\nclip_norm = 1.0\n"
    )
}

/// Trains with two boards that run `program` and two simulated devices.
fn train(program: &str, arithmetic: &str) {
    let boards = [CORTEX_M4F, "riscv-virt-imc"].map(named);
    let programs = boards.map(|board| Some(firmware(board, program)?.0));
    let programs: Option<Vec<PathBuf>> = programs.into_iter().collect();
    let Some(programs) = programs else {
        return;
    };
    let place = Place::new();
    place.write("experiment.toml", experiment(2, arithmetic));
    let call = "provision experiment.toml --devices 0..2 --out fleet --with-data --raw --seed 7";
    place.smolfed(call).success();
    let _running: Vec<Running> = (0..2)
        .map(|n| Running::start(&place, n, boards[n], &programs[n]))
        .collect();
    let serve = "serve experiment.toml --keys fleet/keys.toml --device unix:line-0 \
                 --device unix:line-1 --simulated 2 --seed 7 --timeout 60s --out served --json";
    let outcome = wait(place.start(serve), serve).success();
    assert_eq!(outcome.json()["arithmetic"], arithmetic, "{outcome}");
    assert_is_the_simulation(&place, "served");
    for device in 0..2 {
        let (answered, missing) = part_of(&place, "served", device);
        assert_eq!((answered, missing), (vec![0, 1, 2], vec![]), "{device}");
    }
}

#[test]
fn boards_train_on_gradients_in_f32() {
    train("gradients", "f32");
}

#[test]
fn boards_train_on_gradients_in_integers() {
    train("gradients-integer", "integer");
}

/// Cells of 3 × 3 and of 4 × 4 give equally many features of 8 × 8 pixels, so the model's shape
/// does not reveal the difference.
#[test]
fn other_features_than_the_firmware_computes_are_refused_by_board_and_coordinator() {
    let board = named("microbit");
    let Some((program, _)) = firmware(board, "gradients") else {
        return;
    };
    let place = Place::new();
    place.write("experiment.toml", experiment(3, "f32"));
    let provision = "provision experiment.toml --devices 0..1 --seed 7";
    place.smolfed(&format!("{provision} --out fleet")).success();
    let _running = Running::start(&place, 0, board, &program);
    // Without another board the run waits, and gives up.
    let serve = "serve experiment.toml --keys fleet/keys.toml --device unix:line-0 --simulated 3 \
                 --seed 7 --timeout 3s --give-up-after 3s --out served";
    let outcome = wait(place.start(serve), serve);
    assert_eq!(outcome.code, Some(1), "{outcome}");
    let both = "(device: gradients of 8 × 8 pixels in cells of 4 × 4; experiment: gradients of 8 × \
                8 pixels in cells of 3 × 3)";
    assert!(outcome.stderr.contains(both), "{outcome}");
    // A record with the features of the experiment.
    place
        .smolfed(&format!("{provision} --out raw --raw"))
        .success();
    let page = place.path("raw/device-0.bin");
    let ledger = place.path("raw/device-0.ledger");
    let printed = refusal(board, &program, &page, &ledger);
    let expected = "refused: the record is for other features than this firmware's";
    assert!(printed.contains(expected), "{printed}");
}
