//! Boards that answer questions, among real and simulated devices.

use std::path::PathBuf;

use super::Running;
use crate::boards::{CORTEX_M4F, firmware_with, named};
use crate::fleet::device::Device;
use crate::fleet::questions::answers;
use crate::fleet::{FULL, wait};
use crate::program::Place;

/// Boards that train in integers answer from them.
#[test]
fn emulated_boards_answer_questions_in_integers() {
    let boards = [CORTEX_M4F, "riscv-virt"].map(named);
    let programs = boards.map(|board| Some(firmware_with(Some("questions"), board, "integer")?.0));
    let programs: Option<Vec<PathBuf>> = programs.into_iter().collect();
    let Some(programs) = programs else {
        return;
    };
    let place = Place::new();
    let settings = format!(
        "{FULL} --set rounds=2 --set simulation.arithmetic=integer --set \
         questions=[{{kind=\"evaluate\",every=1}},{{kind=\"moments\",feature=20,bounds=[0,1]}}]"
    );
    let call = format!(
        "provision --devices 0..2 --out fleet --with-data --seed 7 {settings} --answers all"
    );
    place.smolfed(&call).success();
    let _running: Vec<Running> = (0..2)
        .map(|n| Running::start(&place, n, boards[n], &programs[n]))
        .collect();
    let arguments = format!(
        "serve --keys fleet/keys.toml --device unix:line-0 --device unix:line-1 --simulated 52 \
         --seed 7 --timeout 20s --out served --json {settings}"
    );
    wait(place.start(&arguments), &arguments).success();
    let asked = crate::fleet::lines(&place.path("served/answers.jsonl"));
    assert_eq!(asked.len(), 3);
    for asked in asked {
        let answered = asked["answered"].as_array().unwrap();
        assert!((0..2).all(|n| answered.contains(&n.into())), "{asked}");
    }
    let simulated = format!("run --seed 7 --out simulated {settings}");
    place.smolfed(&simulated).success();
    assert_eq!(answers(&place, "served"), answers(&place, "simulated"));
}

/// A board's answer has the same bits as the simulator's, among fifty devices.
#[test]
fn emulated_boards_answer_questions_in_a_fleet_of_fifty() {
    let boards = [CORTEX_M4F, "riscv-virt"].map(named);
    let programs = boards.map(|board| Some(firmware_with(Some("questions"), board, "client")?.0));
    let programs: Option<Vec<PathBuf>> = programs.into_iter().collect();
    let Some(programs) = programs else {
        return;
    };
    let place = Place::new();
    let settings = format!(
        "{FULL} --set rounds=10 --set questions=[{{kind=\"evaluate\",every=5}},\
         {{kind=\"presence\"}}]"
    );
    let call = format!(
        "provision --devices 0..50 --out fleet --with-data --seed 7 {settings} --answers all"
    );
    place.smolfed(&call).success();
    let _running: Vec<Running> = (0..2)
        .map(|n| Running::start(&place, n, boards[n], &programs[n]))
        .collect();
    let _devices = Device::start_all(&place, 2..50);
    let arguments = format!(
        "serve --keys fleet/keys.toml --device unix:line-0 --device unix:line-1 \
         --listen unix:fleet.sock --simulated 4 --seed 7 --timeout 60s --out served --json \
         {settings}"
    );
    let outcome = wait(place.start(&arguments), &arguments).success();
    assert_eq!(outcome.json()["rounds"], 10, "{outcome}");
    let simulated = format!("run --seed 7 --out simulated {settings}");
    place.smolfed(&simulated).success();
    assert_eq!(answers(&place, "served"), answers(&place, "simulated"));
    let asked = crate::fleet::lines(&place.path("served/answers.jsonl"));
    assert_eq!(asked.len(), 3, "{outcome}");
    let all: Vec<u32> = (0..50).collect();
    for asked in asked {
        assert_eq!(asked["answered"], serde_json::json!(all), "{asked}");
    }
}
