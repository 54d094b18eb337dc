//! Boards that train without labels, among real and simulated devices.

use super::Running;
use crate::boards::{CORTEX_M4F, firmware, named};
use crate::fleet::contrast::{FEDSC, start, without_matrix};
use crate::fleet::{FULL, assert_is_the_simulation, part_of, provision, serve, wait};
use crate::program::Place;

/// The smallest board has a smaller encoder.
#[test]
fn emulated_boards_learn_without_labels() {
    let wide = [CORTEX_M4F, "riscv-virt"];
    for (boards, width) in [(&wide[..], 16), (&["microbit"], 8)] {
        let boards: Vec<_> = boards.iter().map(|board| named(board)).collect();
        let programs = boards
            .iter()
            .map(|board| Some(firmware(board, "encoder")?.0));
        let Some(programs) = programs.collect::<Option<Vec<_>>>() else {
            return;
        };
        let place = Place::new();
        let variations = "--set contrast.augment={jitter=0.2,scaling=0.2}";
        let settings = format!("{FULL} {FEDSC} {variations} --set contrast.width={width}");
        provision(&place, &settings);
        let board = |n: usize| Running::start(&place, n, boards[n], &programs[n]);
        let _boards: Vec<_> = (0..boards.len()).map(board).collect();
        let _devices = start(&place, boards.len() as u32..4);
        let lines: Vec<_> = (0..boards.len())
            .map(|n| format!("--device unix:line-{n} "))
            .collect();
        let arguments = format!("{} {}", serve("60s", &settings), lines.concat());
        wait(place.start(&arguments), &arguments).success();
        for device in 0..4 {
            assert_eq!(part_of(&place, "served", device).0.len(), 3, "{device}");
        }
        assert_eq!(without_matrix(&place).concat(), []);
        assert_is_the_simulation(&place, "served");
    }
}
