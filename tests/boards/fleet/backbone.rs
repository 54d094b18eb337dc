//! Boards that run a frozen backbone on their records' images and train its head, with simulated
//! devices that use the features computed by the host from the same images.

use std::fmt::Write as _;
use std::path::PathBuf;

use super::Running;
use crate::boards::backbone::{self, frozen::PIXELS};
use crate::boards::{firmware, named};
use crate::fleet::{assert_is_the_simulation, part_of, wait};
use crate::program::Place;

/// Returns the same experiment on images and on features: only the file and the unit differ.
fn experiment(path: &str, unit: u32) -> String {
    format!(
        "method = \"dp-fed-ls\"\nrounds = 3\n\
         [data]\nsource = \"csv\"\npath = \"{path}\"\nlabel = \"digit\"\n\
         device_column = \"who\"\ntest = 0\nclasses = 10\n\
         scale = {{ mean = 0, std = {unit} }}\n\
         [simulation]\narithmetic = \"integer\"\n\
         [train]\nepochs = 2\nbatch_size = 4\nlearning_rate = 0.3\n\
         [cohort]\nsampling = \"full\"\n\
         [privacy]\nnoise_multiplier = 0.5\nclip_norm = 1.0\n"
    )
}

/// Returns simulated images: five for each of four devices, with a different bar for each class.
fn images() -> Vec<(usize, usize, Vec<i8>)> {
    let image = |device: usize, class: usize| {
        let pixel = |at: usize| {
            let bar = if at / 8 == class % 8 { 12 } else { 0 };
            bar + ((at * (7 + class) + device * 11) % 5) as i8
        };
        (device, class, (0..PIXELS).map(pixel).collect())
    };
    let devices = (0..4).flat_map(|device| (0..5).map(move |n| (device, 2 * n + device % 2)));
    devices
        .map(|(device, class)| image(device, class))
        .collect()
}

fn table(values: impl Fn(&[i8]) -> Vec<i8>) -> String {
    let columns: Vec<String> = (0..PIXELS).map(|at| format!("x{at}")).collect();
    let mut table = format!("who,digit,{}\n", columns.join(","));
    for (device, class, image) in images() {
        write!(table, "{device},{class}").unwrap();
        for value in values(&image) {
            write!(table, ",{value}").unwrap();
        }
        table.push('\n');
    }
    table
}

#[test]
fn boards_train_a_head_on_a_backbone_and_the_model_is_that_of_the_participation() {
    let boards = ["microbit", "riscv-virt-imc"].map(named);
    let programs = boards.map(|board| Some(firmware(board, "backbone")?.0));
    let programs: Option<Vec<PathBuf>> = programs.into_iter().collect();
    let Some(programs) = programs else {
        return;
    };
    let place = Place::new();
    place.write("pixels.csv", table(<[i8]>::to_vec));
    place.write("features.csv", table(backbone::features));
    place.write("pixels.toml", experiment("pixels.csv", 1));
    place.write("features.toml", experiment("features.csv", 64));
    // The boards have images and compute the features themselves.
    let call = "provision pixels.toml --devices 0..2 --out fleet --with-data --seed 7";
    place.smolfed(call).success();
    let _running: Vec<Running> = (0..2)
        .map(|n| Running::start(&place, n, boards[n], &programs[n]))
        .collect();
    let serve = "serve features.toml --keys fleet/keys.toml --device unix:line-0 \
                 --device unix:line-1 --simulated 2 --seed 7 --timeout 60s --out served --json";
    let outcome = wait(place.start(serve), serve).success();
    assert_eq!(outcome.json()["arithmetic"], "integer", "{outcome}");
    assert_is_the_simulation(&place, "served");
    for device in 0..2 {
        let (answered, missing) = part_of(&place, "served", device);
        assert_eq!((answered, missing), (vec![0, 1, 2], vec![]), "{device}");
    }
}
