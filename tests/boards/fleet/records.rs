//! Boards whose records have unusable samples.

use super::refusal;
use crate::boards::{CORTEX_M4F, firmware, named};
use crate::program::Place;

/// Returns the output of the client for 64 features and ten classes with this experiment's record.
fn printed(settings: &str) -> Option<String> {
    let board = named(CORTEX_M4F);
    let (program, _) = firmware(board, "client")?;
    let place = Place::new();
    // 64 features, and twelve classes on each device.
    let columns: Vec<String> = (0..64).map(|column| format!("x{column}")).collect();
    let mut table = format!("device,{},class,value\n", columns.join(","));
    for row in 0..48 {
        let features = vec![if row % 3 == 0 { "0.5" } else { "0" }; 64].join(",");
        table += &format!("{},{features},c{},{row}.5\n", row / 12, row % 12);
    }
    place.write("table.csv", table);
    let call = format!("provision --devices 0..1 --out fleet --with-data --seed 7 {settings}");
    place.smolfed(&call).success();
    let [record, ledger] = ["bin", "ledger"].map(|end| place.path(format!("fleet/device-0.{end}")));
    Some(refusal(board, &program, &record, &ledger))
}

/// Returns the settings of an experiment on the table.
fn of_table(more: &str) -> String {
    format!(
        "--set data.source=csv --set data.path=table.csv --set data.device_column=device {more}"
    )
}

#[test]
fn a_board_names_the_samples_of_its_record_that_it_cannot_train_on() {
    let cases = [
        (
            "--set data.devices=20 --set data.samples_per_device=65".to_owned(),
            "refused: the record has more samples than this firmware has room for",
        ),
        (
            of_table("--set data.label=class --set data.ignore=[\"value\"]"),
            "refused: a sample of the record has a class that the model does not have",
        ),
        (
            of_table("--set data.label=class"),
            "refused: the record's samples are for another model",
        ),
        (
            of_table(
                "--set data.label=value --set data.task=regression --set model.kind=linear \
                 --set data.ignore=[\"class\"]",
            ),
            "refused: the record's samples are for another model",
        ),
    ];
    for (settings, expected) in cases {
        let Some(printed) = printed(&settings) else {
            return;
        };
        assert!(printed.contains(expected), "{settings}: {printed}");
    }
}
