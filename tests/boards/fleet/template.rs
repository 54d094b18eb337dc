//! A project of `firmware-example/template/` with its own sensor, on an emulated Cortex-M4F, with
//! simulated devices. The recipe comes from `smolfed data recipe`. In integers, another board runs
//! firmware in C.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Running;
use crate::boards::{CORTEX_M4F, c, firmware, named};
use crate::fleet::{assert_is_the_simulation, part_of, wait};
use crate::program::Place;

const DEVICES: i32 = 3;
const CLASSES: i32 = 5;
/// Rows of a recording: three windows.
const ROWS: i32 = 64;

/// Units of 256 counts.
const EXPERIMENT: &str = "method = \"dp-fed-ls\"\nrounds = 3\n\
    [data]\nsource = \"csv\"\npath = \"motion.csv\"\nlabel = \"exercise\"\n\
    device_column = \"who\"\ntest = 0\nscale = { mean = [0, 0, -3], std = [1024, 1024, 3.2] }\n\
    [data.window]\nlength = 32\nstep = 16\nevery = 2\ncounts = [256]\n\
    features = [\"mean\", \"deviation\", \"zero-crossings\"]\nbands = [1, 3, 9]\n\
    [train]\nepochs = 2\nbatch_size = 4\n\
    [cohort]\nsampling = \"full\"\n\
    [privacy]\nnoise_multiplier = 0.5\nclip_norm = 1.0\n";

/// Returns the simulated counts of a sensor with three channels.
fn counts(device: i32, class: i32, row: i32) -> [i32; 3] {
    [0, 1, 2].map(|channel| {
        let at = (row * (3 + class) + channel * 17 + device * 11) % 97;
        at * 60 - 2_880
    })
}

/// Returns the counts in the experiment's unit, with one recording per class and device.
fn table() -> String {
    let mut rows = String::from("who,exercise,a,b,c\n");
    for device in 0..DEVICES {
        for class in 0..CLASSES {
            for row in 0..ROWS {
                let [a, b, c] = counts(device, class, row).map(|count| f64::from(count) / 256.0);
                let _ = writeln!(rows, "{device},{class},{a},{b},{c}");
            }
        }
    }
    rows
}

/// Returns the user-written function, which here replays the recordings of device 0 and ends.
fn sensor() -> String {
    let mut rows = String::new();
    for class in 0..CLASSES {
        for row in 0..ROWS {
            let _ = write!(rows, "({:?}, {class}), ", counts(0, class, row));
        }
    }
    format!(
        "    let mut ring = Ring::new();\n    \
         for (row, class) in [{rows}] {{\n        ring.push(row, class);\n    }}\n}}\n"
    )
}

/// Returns whether rustup has a library for the target. It has none if another toolchain built the
/// firmware.
fn has_library(target: &str) -> bool {
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output();
    let sysroot = String::from_utf8(sysroot.expect("rustc starts").stdout).expect("UTF-8");
    let libraries = Path::new(sysroot.trim()).join("lib/rustlib");
    let found = libraries.join(target).exists();
    if !found {
        let why = format!("rustup has no library for {target}");
        assert!(std::env::var_os("CI").is_none(), "{why}");
        eprintln!("SKIPPED: {why}");
    }
    found
}

/// Creates the project with recipe and sensor, and builds it. `None` without a library of rustup.
fn build(place: &Place, arithmetic: &str, recipe: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let board = named(CORTEX_M4F);
    if !has_library(board.target) {
        return None;
    }
    let project = place.path("project");
    let cargo = |folder: &Path, arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO"));
        // Host flags do not apply to the board.
        command
            .current_dir(folder)
            .env_remove("RUSTFLAGS")
            .args(arguments);
        let output = command.stdin(Stdio::null()).output().expect("cargo starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {errors}");
    };
    // Each has its own name: tests may be processes, and their programs share one folder.
    let name = format!("smolfed-client-{arithmetic}");
    let of_name = [
        format!("project-name={name}"),
        format!("arithmetic={arithmetic}"),
    ];
    let folder = project.to_str().expect("UTF-8");
    let mut template = vec![
        "xtask",
        "template",
        folder,
        "board=mps2-an386",
        "sensor=windows",
    ];
    template.extend(of_name.iter().map(String::as_str));
    cargo(&root, &template);
    let sources = project.join("src");
    fs::write(
        sources.join(format!("recipe/windows-{arithmetic}.rs")),
        recipe,
    )
    .unwrap();
    let path = sources.join("sensor/windows.rs");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once("pub async fn sample() {\n").unwrap();
    let (_, after) = rest.split_once("\n}\n").unwrap();
    let before = before.replace("use embassy_time::{Duration, Ticker};\n\n", "");
    let before = before.replace("CLASSES, ", "");
    let own = format!("{before}pub async fn sample() {{\n{}{after}", sensor());
    fs::write(path, own).unwrap();
    fs::copy(
        root.join("firmware-example/embassy/Cargo.lock"),
        project.join("Cargo.lock"),
    )
    .unwrap();
    let built = std::env::var("SMOLFED_FIRMWARE").map_or_else(
        |_| root.join("firmware-example/target/template"),
        |firmware| PathBuf::from(firmware + "-template"),
    );
    let built = built.to_str().expect("UTF-8");
    cargo(&project, &["build", "--release", "--target-dir", built]);
    let programs = Path::new(built).join(board.target).join("release");
    Some(programs.join(name))
}

/// Writes the C firmware's sensor, which replays the recordings of device 1.
fn sensor_in_c(examples: &Path, recipe: &str) {
    let windows = 3 * CLASSES;
    let header = format!(
        "#include <stdint.h>\n\
         enum {{ SENSOR_CHANNELS = 3, SENSOR_STRETCH = {ROWS}, SENSOR_WINDOWS = {windows} }};\n\
         typedef struct {{ uint32_t row; uint16_t activity; }} sensor;\n\
         sensor sensor_of(uint32_t number);\n\
         void sensor_read(sensor *sensor, int16_t row[SENSOR_CHANNELS]);\n"
    );
    let source = format!(
        "#include \"sensor.h\"\n\
         sensor sensor_of(uint32_t number) {{\n    (void)number;\n    \
         sensor made = {{UINT32_MAX, 0}};\n    return made;\n}}\n\
         void sensor_read(sensor *sensor, int16_t row[SENSOR_CHANNELS]) {{\n    \
         sensor->row++;\n    \
         sensor->activity = (uint16_t)(sensor->row / {ROWS} % {CLASSES});\n    \
         for (uint32_t channel = 0; channel < SENSOR_CHANNELS; channel++) {{\n        \
         uint32_t at = sensor->row % {ROWS} * (3u + sensor->activity);\n        \
         at = (at + channel * 17u + 11u) % 97u;\n        \
         row[channel] = (int16_t)((int)at * 60 - 2880);\n    }}\n}}\n"
    );
    for (name, text) in [
        ("sensor.h", header.as_str()),
        ("sensor.c", &source),
        ("recipe.h", recipe),
    ] {
        fs::write(examples.join(name), text).unwrap();
    }
}

/// Builds the C firmware for the second board, if the library exists.
fn build_in_c(place: &Place) -> Option<PathBuf> {
    let recipe = place.smolfed("data recipe experiment.toml --c").success();
    c::compile(place, CORTEX_M4F, |examples| {
        sensor_in_c(examples, &recipe.stdout);
    })
}

/// Trains with a board with the template's flash, with a C board for integers, and with simulated
/// devices.
fn train(arithmetic: &str) {
    let board = named(CORTEX_M4F);
    if firmware(board, "client").is_none() {
        return;
    }
    let place = Place::new();
    place.write("motion.csv", table());
    let experiment = format!("simulation.arithmetic = \"{arithmetic}\"\n{EXPERIMENT}");
    place.write("experiment.toml", experiment);
    let printed = place
        .smolfed("data recipe experiment.toml --rust")
        .success();
    let Some(program) = build(&place, arithmetic, &printed.stdout) else {
        return;
    };
    let in_c = (arithmetic == "integer")
        .then(|| build_in_c(&place))
        .flatten();
    let boards = 1 + u32::from(in_c.is_some());
    let call = format!("provision experiment.toml --devices 0..{boards} --out fleet --seed 7");
    place.smolfed(&call).success();
    let file = |name: &str, address: &str| {
        let path = place.path("fleet").join(name);
        format!("loader,file={},addr={address}", path.display())
    };
    let mut qemu = Command::new(board.qemu.expect("an emulated board").program);
    qemu.args([
        "-machine",
        "mps2-an386",
        "-display",
        "none",
        "-monitor",
        "none",
    ])
    .args(["-semihosting-config", "enable=on,target=native", "-serial"])
    .arg(format!(
        "unix:{},server=on,wait=off",
        place.path("line-0").display()
    ))
    .args(["-device", &file("device-0.bin", "0x300000")])
    .args(["-device", &file("device-0.ledger", "0x310000"), "-kernel"])
    .arg(program)
    .stdin(Stdio::null());
    let _running = Running::of(qemu.spawn().expect("QEMU starts"));
    let _second = in_c.map(|program| c::Running::start(&place, 1, board, &program));
    let lines: String = (0..boards)
        .map(|n| format!("--device unix:line-{n} "))
        .collect();
    let serve = format!(
        "serve experiment.toml --keys fleet/keys.toml {lines} --simulated {} --seed 7 \
         --timeout 60s --out served --json",
        3 - boards
    );
    let outcome = wait(place.start(&serve), &serve).success();
    assert_eq!(outcome.json()["arithmetic"], arithmetic, "{outcome}");
    assert_is_the_simulation(&place, "served");
    for device in 0..boards {
        let (answered, missing) = part_of(&place, "served", device);
        assert_eq!((answered, missing), (vec![0, 1, 2], vec![]), "{outcome}");
    }
}

#[test]
fn a_project_of_the_template_trains_on_windows_in_integers() {
    train("integer");
}

#[test]
fn a_project_of_the_template_trains_on_windows_in_f32() {
    train("f32");
}
