//! A board that accepts models in 16 bits, and as differences from the previous model.

use super::Running;
use crate::boards::{CORTEX_M4F, firmware_with, named};
use crate::fleet::{FULL, assert_is_the_simulation, part_of, wait};
use crate::program::Place;

/// Coordinator and board have the same bits, in floating point and in integers.
#[test]
fn an_emulated_board_takes_short_models() {
    let board = named(CORTEX_M4F);
    for (client, arithmetic) in [("client", "f32"), ("integer", "integer")] {
        let Some((program, _)) = firmware_with(Some("short"), board, client) else {
            return;
        };
        let place = Place::new();
        let settings = format!(
            "{FULL} --set rounds=3 --set server.model_places=12 \
             --set simulation.arithmetic={arithmetic}"
        );
        let call = format!("provision --devices 0..1 --out fleet --with-data --seed 7 {settings}");
        place.smolfed(&call).success();
        let _board = Running::start(&place, 0, board, &program);
        let arguments = format!(
            "serve --keys fleet/keys.toml --device unix:line-0 --simulated 53 --seed 7 \
             --timeout 60s --out served --json {settings}"
        );
        wait(place.start(&arguments), &arguments).success();
        assert_is_the_simulation(&place, "served");
        assert_eq!(part_of(&place, "served", 0), (vec![0, 1, 2], vec![]));
    }
}
