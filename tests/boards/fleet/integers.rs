//! Boards that train in integers, and simulated devices with the same integers.

use std::path::PathBuf;

use super::Running;
use crate::boards::{firmware, named};
use crate::fleet::{FULL, assert_is_the_simulation, part_of, provision, wait};
use crate::program::Place;

#[test]
fn boards_train_in_integers_and_the_model_is_that_of_the_participation() {
    let boards = ["microbit", "riscv-virt-imc"].map(named);
    let programs = boards.map(|board| Some(firmware(board, "integer")?.0));
    let programs: Option<Vec<PathBuf>> = programs.into_iter().collect();
    let Some(programs) = programs else {
        return;
    };
    let place = Place::new();
    let settings = format!("{FULL} --set rounds=3 --set simulation.arithmetic=integer");
    provision(&place, &settings);
    // The other two have keys, but do not answer.
    let _running: Vec<Running> = (0..2)
        .map(|n| Running::start(&place, n, boards[n], &programs[n]))
        .collect();
    let arguments = format!(
        "serve --keys fleet/keys.toml --device unix:line-0 --device unix:line-1 --simulated 50 \
         --seed 7 --timeout 20s --out served --json {settings}"
    );
    let outcome = wait(place.start(&arguments), &arguments).success();
    assert_eq!(outcome.json()["arithmetic"], "integer", "{outcome}");
    assert_is_the_simulation(&place, "served");
    for device in 0..2 {
        let (answered, missing) = part_of(&place, "served", device);
        assert_eq!((answered, missing), (vec![0, 1, 2], vec![]), "{device}");
    }
}
