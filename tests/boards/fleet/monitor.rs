//! A board that uses its trained model. It prints the class of each window, even after resets at
//! any time, and its probabilities equal the output of `smolfed predict`.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use super::super::rounds::emulator;
use super::Running;
use crate::boards::{Board, CORTEX_M4F, firmware, firmware_with, named};
use crate::fleet::{assert_is_the_simulation, part_of, wait};
use crate::program::{Place, TIMEOUT};

const EXPERIMENT: &str = "method = \"dp-fed-ls\"\nrounds = 24\n\
    [data]\nsource = \"digits\"\ndevices = 54\nscale = { mean = 0, std = 1 }\n\
    [train]\nlearning_rate = 0.5\n[cohort]\nsampling = \"full\"\n\
    [privacy]\nnoise_multiplier = 0.5\nclip_norm = 1.0\n";

const RESETS: usize = 100;
const FEATURES: usize = 64;
const CLASSES: usize = 10;

/// Linear congruential generator (Numerical Recipes).
pub(super) struct Words(pub(super) u32);

impl Words {
    pub(super) const fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.0
    }
}

/// Returns the first windows of the board's simulated sensor (`firmware-example/src/sensor.rs`).
fn windows(count: usize) -> Vec<[f32; FEATURES]> {
    let mut words = Words(0);
    let window = |_| {
        let class = (words.next() >> 16) as usize % CLASSES;
        std::array::from_fn(|index| {
            let is_one = index / (FEATURES / CLASSES) == class;
            let level = if is_one { 1.0 } else { 0.0 };
            level + ((words.next() >> 8) as f32 / 33_554_432.0 - 0.25)
        })
    };
    (0..count).map(window).collect()
}

/// An output line about a window.
#[derive(Debug, PartialEq)]
struct Named {
    window: usize,
    class: u16,
    /// Bits of the probability.
    bits: u32,
    round: u32,
}

impl Named {
    fn parse(line: &str) -> Option<Self> {
        let (window, rest) = line.strip_prefix("window ")?.split_once(": class ")?;
        let (class, rest) = rest.split_once(", ")?;
        let (bits, round) = rest.split_once('(')?.1.split_once("), model of round ")?;
        Some(Self {
            window: window.parse().ok()?,
            class: class.parse().ok()?,
            bits: u32::from_str_radix(bits, 16).ok()?,
            round: round.parse().ok()?,
        })
    }
}

/// The board and its output.
struct Monitor {
    running: Running,
    lines: Receiver<String>,
}

impl Monitor {
    fn start(place: &Place, board: &Board, program: &Path) -> Self {
        let (running, lines) = watched(place, "fleet", board, program);
        Self { running, lines }
    }

    /// Returns the next window in the board's output.
    fn named(&self) -> Named {
        loop {
            let line = self.lines.recv_timeout(TIMEOUT).expect("a line");
            if let Some(named) = Named::parse(&line) {
                return named;
            }
        }
    }

    /// Returns the round of the model in flash at the start.
    fn restored(&self) -> u32 {
        let line = self.lines.recv_timeout(TIMEOUT).expect("a line");
        let round = line.strip_prefix("restored the model of round ");
        let round = round.and_then(|round| round.parse().ok());
        round.unwrap_or_else(|| panic!("{line}"))
    }
}

/// Starts device 0 of a folder on a board, and returns its output line by line.
pub(super) fn watched(
    place: &Place,
    folder: &str,
    board: &Board,
    program: &Path,
) -> (Running, Receiver<String>) {
    let line = format!("unix:{},server=on,wait=off", place.path("line-0").display());
    let (page, flash) = (
        place.path(format!("{folder}/device-0.bin")),
        place.path(format!("{folder}/device-0.ledger")),
    );
    let mut qemu = emulator(board, program, &page, &flash, &line);
    let mut qemu: Child = qemu.stdout(Stdio::piped()).spawn().expect("QEMU starts");
    let output = qemu.stdout.take().expect("QEMU's output");
    let (sender, lines) = channel();
    thread::spawn(move || {
        let lines = BufReader::new(output).lines().map_while(Result::ok);
        let _ = lines.map(|line| sender.send(line)).all(|sent| sent.is_ok());
    });
    (Running::of(qemu), lines)
}

/// The board knows its own model, and the coordinator sends the name of the experiment's model.
#[test]
fn a_board_that_is_refused_names_the_model_of_the_experiment() {
    let board = named(CORTEX_M4F);
    let Some((program, _)) = firmware_with(Some("reports"), board, "monitor") else {
        return;
    };
    let place = Place::new();
    place.write("experiment.toml", EXPERIMENT);
    let call = "provision experiment.toml --devices 0..1 --out fleet --with-data --seed 7";
    place.smolfed(call).success();
    let monitor = Monitor::start(&place, board, &program);
    let arguments = "serve experiment.toml --set simulation.arithmetic=integer \
                     --set data.scale=none --keys fleet/keys.toml --device unix:line-0 \
                     --simulated 53 --seed 7 --timeout 1s --out served --json";
    let serve = Running::of(place.start(arguments));
    let mut said = monitor.lines.iter();
    said.find(|line| line == "refused by the coordinator: the federation trains another model");
    let experiment = "  the experiment has: softmax, 64 features, 10 outputs, i8 with 6 places";
    assert_eq!(said.next().as_deref(), Some(experiment));
    drop(serve);
}

#[test]
fn a_board_predicts_with_its_model_after_each_of_100_resets() {
    let board = named(CORTEX_M4F);
    let Some((program, _)) = firmware(board, "monitor") else {
        return;
    };
    let place = Place::new();
    place.write("experiment.toml", EXPERIMENT);
    let call = "provision experiment.toml --devices 0..1 --out fleet --with-data --seed 7";
    place.smolfed(call).success();
    let mut monitor = Monitor::start(&place, board, &program);
    let arguments = "serve experiment.toml --keys fleet/keys.toml --device unix:line-0 \
                     --simulated 53 --seed 7 --timeout 1s --out served --json";
    let serve = place.start(arguments);
    let mut newest = monitor.named().round;
    let mut pauses = Words(2_026);
    let mut rounds = std::collections::BTreeSet::new();
    for reset in 0..RESETS {
        // Up to 0.26 s. Every tenth time, a round has enough time to end.
        let rest = if reset % 10 == 9 { 1_500 } else { 0 };
        thread::sleep(Duration::from_micros((pauses.next() >> 14).into()));
        thread::sleep(Duration::from_millis(rest));
        monitor.running.kill();
        monitor = Monitor::start(&place, board, &program);
        let restored = monitor.restored();
        assert!(restored >= newest, "{reset}: {restored} after {newest}");
        let named = monitor.named();
        assert!(named.round >= restored, "{reset}: {named:?}");
        newest = named.round;
        rounds.insert(restored);
    }
    let outcome = wait(serve, arguments).success();
    // The number depends on the machine.
    assert!(rounds.len() > 1, "resets in rounds {rounds:?} only");
    assert!(!part_of(&place, "served", 0).0.is_empty(), "{outcome}");
    assert_is_the_simulation(&place, "served");

    monitor.running.kill();
    let monitor = Monitor::start(&place, board, &program);
    let round = monitor.restored();
    let named: Vec<Named> = (0..8).map(|_| monitor.named()).collect();
    assert!(named.iter().all(|named| named.round == round), "{named:?}");
    assert_eq!(named, predicted(&place, round));
}

/// Returns `smolfed predict`'s output for the first windows, with the round's initial model.
fn predicted(place: &Place, round: u32) -> Vec<Named> {
    let rounds = std::fs::read_to_string(place.path("served/participation.jsonl")).unwrap();
    let before: Vec<&str> = rounds.lines().take(round as usize).collect();
    place.write("before.jsonl", before.join("\n") + "\n");
    let call = format!(
        "run served/config.toml --set rounds={round} --participation before.jsonl --out before"
    );
    place.smolfed(&call).success();
    let name = |(window, (class, bits))| Named {
        window,
        class,
        bits,
        round,
    };
    let predicted = predictions(place, "before", 8);
    predicted.into_iter().enumerate().map(name).collect()
}

/// Returns the classes of the sensor's first windows, and the bits of their probabilities, by
/// `smolfed predict` with the model of a run whose features have no scale.
pub(super) fn predictions(place: &Place, run: &str, count: usize) -> Vec<(u16, u32)> {
    // Pixels have levels up to 16, which are the units of the scale: exact.
    let row = |window: &[f32; FEATURES]| window.map(|x| (16.0 * x).to_string()).join(",");
    let rows: Vec<String> = windows(count).iter().map(row).collect();
    let names: Vec<String> = (0..FEATURES).map(|pixel| format!("p{pixel}")).collect();
    let table = format!("{}\n{}\n", names.join(","), rows.join("\n"));
    place.write("windows.csv", table);
    let said = place.smolfed(&format!("predict {run} --data windows.csv --json"));
    let said = said.success().json();
    let rows = said["rows"].as_array().expect("rows");
    let named = |row: &serde_json::Value| {
        let class: u16 = row["prediction"].as_str().unwrap().parse().unwrap();
        let probability = row["probabilities"][usize::from(class)].as_f64().unwrap();
        (class, (probability as f32).to_bits())
    };
    rows.iter().map(named).collect()
}
