//! Boards that train on window features, with simulated devices that use the simulator's features
//! of the same raw rows.

use std::path::PathBuf;

use super::Running;
use crate::boards::{CORTEX_M4F, firmware, named};
use crate::fleet::{assert_is_the_simulation, part_of, wait};
use crate::program::Place;

/// The recipe of `firmware-example/src/features.rs`.
const EXPERIMENT: &str = "method = \"dp-fed-ls\"\nrounds = 3\n\
    [data]\nsource = \"csv\"\npath = \"motion.csv\"\nlabel = \"exercise\"\n\
    device_column = \"who\"\nseries_column = \"series\"\ntest = 0\n\
    scale = { mean = 0, std = 4096 }\n\
    [data.window]\nlength = 64\nstep = 32\n\
    features = [\"mean\", \"deviation\", \"minimum\", \"maximum\"]\nbands = [1, 3, 8, 33]\n\
    [train]\nepochs = 2\nbatch_size = 4\n\
    [cohort]\nsampling = \"full\"\n\
    [privacy]\nnoise_multiplier = 0.5\nclip_norm = 1.0\n";

/// Returns simulated recordings of six channels: seven for each of four devices, one per class,
/// each as long as one window.
fn recordings() -> String {
    let mut rows = String::from("who,series,exercise,a,b,c,d,e,f\n");
    for device in 0..4 {
        for class in 0..7 {
            for sample in 0..64 {
                rows += &format!("{device},{},{class}", 7 * device + class);
                for channel in 0..6 {
                    let at = (sample * (3 + class) + channel * 17 + device * 11) % 97;
                    rows += &format!(",{}", at * 60 - 2_880);
                }
                rows.push('\n');
            }
        }
    }
    rows
}

#[test]
fn boards_train_on_features_and_the_model_is_that_of_the_participation() {
    let boards = ["microbit", CORTEX_M4F].map(named);
    let programs = boards.map(|board| Some(firmware(board, "features")?.0));
    let programs: Option<Vec<PathBuf>> = programs.into_iter().collect();
    let Some(programs) = programs else {
        return;
    };
    let place = Place::new();
    place.write("motion.csv", recordings());
    place.write("experiment.toml", EXPERIMENT);
    let call = "provision experiment.toml --devices 0..2 --out fleet --with-data --seed 7";
    place.smolfed(call).success();
    let _running: Vec<Running> = (0..2)
        .map(|n| Running::start(&place, n, boards[n], &programs[n]))
        .collect();
    let serve = "serve experiment.toml --keys fleet/keys.toml --device unix:line-0 \
                 --device unix:line-1 --simulated 2 --seed 7 --timeout 60s --out served --json";
    let outcome = wait(place.start(serve), serve).success();
    assert_eq!(outcome.json()["rounds"], 3, "{outcome}");
    assert_is_the_simulation(&place, "served");
    for device in 0..2 {
        let (answered, missing) = part_of(&place, "served", device);
        assert_eq!((answered, missing), (vec![0, 1, 2], vec![]), "{device}");
    }
}
