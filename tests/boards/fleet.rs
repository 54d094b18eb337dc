//! Four emulated boards of different kinds and 50 simulated devices in one federation, and one
//! board on a serial line.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::Ordering;

use object::{Object, ObjectSection};

use super::rounds::{emulate, emulator, memory};
use super::{Board, CORTEX_M4F, firmware, named};
use crate::fleet::device::Device;
use crate::fleet::proxy::Proxy;
use crate::fleet::{FULL, assert_is_the_simulation, part_of, provision, wait};
use crate::program::{Place, wait_until};

mod backbone;
mod central;
mod contrast;
mod element;
mod features;
mod gradients;
mod handshake;
mod infer;
mod integers;
mod masked;
mod monitor;
mod networks;
mod questions;
mod radio;
mod records;
mod short;
mod template;

/// An emulated board that is killed at the end of the test.
struct Running(Child);

impl Running {
    /// Starts device `number` on `board`. Its line is the socket `line-<number>`.
    fn start(place: &Place, number: usize, board: &Board, program: &Path) -> Self {
        let page = place.path(format!("fleet/device-{number}.bin"));
        let ledger = place.path(format!("fleet/device-{number}.ledger"));
        let line = place.path(format!("line-{number}"));
        Self(emulate(board, program, &page, &ledger, &line))
    }

    /// Wraps a running board.
    const fn of(qemu: Child) -> Self {
        Self(qemu)
    }

    fn kill(&mut self) {
        self.0.kill().expect("QEMU is there");
        self.0.wait().expect("QEMU ends");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the output of a board that does not take part, until it ends.
fn refusal(board: &Board, program: &Path, record: &Path, ledger: &Path) -> String {
    let mut command = emulator(board, program, record, ledger, "null");
    let qemu = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut board = Running(qemu.expect("QEMU starts"));
    wait_until(|| board.0.try_wait().expect("QEMU's state").is_some());
    let mut text = String::new();
    let (output, errors) = (board.0.stdout.take(), board.0.stderr.take());
    let mut output = output
        .expect("QEMU's output")
        .chain(errors.expect("QEMU's errors"));
    output.read_to_string(&mut text).expect("text");
    text
}

/// Reads the terminal name that QEMU prints for a board's serial line.
fn terminal(qemu: &mut Child) -> String {
    let output = qemu.stdout.take().expect("QEMU's output");
    let mut lines = BufReader::new(output).lines().map_while(Result::ok);
    let line = lines.find_map(|line| Some(line.split_once("/dev/")?.1.to_owned()));
    let name = line
        .as_deref()
        .and_then(|line| line.split_whitespace().next());
    format!("/dev/{}", name.expect("QEMU names the terminal"))
}

/// As with a real board, the line is a terminal with a speed and modes instead of a socket. The
/// clip norm is adaptive.
#[test]
fn a_board_on_a_serial_line_takes_part() {
    let board = named(CORTEX_M4F);
    let Some((program, _)) = firmware(board, "client") else {
        return;
    };
    let place = Place::new();
    let call = format!(
        "provision --devices 0..1 --out fleet --with-data --seed 7 {FULL} --set rounds=3 \
         --set privacy.clip_norm=adaptive --budget 100"
    );
    place.smolfed(&call).success();
    let (page, ledger) = (
        place.path("fleet/device-0.bin"),
        place.path("fleet/device-0.ledger"),
    );
    let mut qemu = emulator(board, &program, &page, &ledger, "pty");
    let qemu = qemu.stdout(Stdio::piped()).spawn().expect("QEMU starts");
    let mut running = Running(qemu);
    let line = terminal(&mut running.0);
    let arguments = format!(
        "serve --keys fleet/keys.toml --device serial:{line} --simulated 53 --seed 7 --timeout 20s \
         --out served --json {FULL} --set rounds=3 --set privacy.clip_norm=adaptive"
    );
    let outcome = wait(place.start(&arguments), &arguments).success();
    assert_eq!(outcome.json()["rounds"], 3, "{outcome}");
    assert_is_the_simulation(&place, "served");
    let (answered, missing) = part_of(&place, "served", 0);
    assert_eq!((answered, missing), (vec![0, 1, 2], vec![]), "{outcome}");
}

#[test]
fn emulated_boards_break_and_restart_and_the_model_is_that_of_the_participation() {
    let boards = ["microbit", CORTEX_M4F, "mps2-an505", "riscv-virt"].map(named);
    let programs = boards.map(|board| Some(firmware(board, "client")?.0));
    let programs: Option<Vec<PathBuf>> = programs.into_iter().collect();
    let Some(programs) = programs else {
        return;
    };
    let place = Place::new();
    provision(&place, &format!("{FULL} --set rounds=12 --budget 100"));
    let start = |n: usize| Running::start(&place, n, boards[n], &programs[n]);
    let mut running: Vec<Running> = (0..4).map(start).collect();
    let first = Proxy::start(&place, "first.sock", "line-0", false);
    let second = Proxy::start(&place, "second.sock", "line-1", false);
    // During the second update of the Cortex-M0.
    first.hold_after.store(4_500, Ordering::Relaxed);
    second.damage_every.store(5_003, Ordering::Relaxed);
    second.cut_every.store(9_001, Ordering::Relaxed);
    let arguments = format!(
        "serve --keys fleet/keys.toml --device unix:first.sock --device unix:second.sock \
         --device unix:line-2 --device unix:line-3 --simulated 50 --seed 7 --timeout 60s \
         --out served --json {FULL} --set rounds=12"
    );
    let serve = place.start(&arguments);
    first.wait_until_held();
    running[0].kill();
    first.repair();
    running[0] = start(0);
    second.wait_until_bad();
    running[1].kill();
    second.repair();
    running[1] = start(1);
    let outcome = wait(serve, &arguments).success();
    assert_eq!(outcome.json()["rounds"], 12, "{outcome}");

    assert_is_the_simulation(&place, "served");
    for device in 0..4 {
        let (answered, missing) = part_of(&place, "served", device);
        assert_eq!(answered.len() + missing.len(), 12, "{device}: {missing:?}");
        match device {
            0 => assert_eq!(
                missing,
                ["the session was lost after the model was delivered"]
            ),
            1 => assert!(missing.len() <= 1, "{missing:?}"),
            _ => assert_eq!(missing, [""; 0], "{outcome}"),
        }
        let number = device as usize;
        let ledger = place.path(format!("fleet/device-{device}.ledger"));
        let bytes = ram_beside_vectors(boards[number], &programs[number], &ledger);
        assert!(bytes <= 2 << 10, "{}: {bytes} bytes", boards[number].name);
    }
}

/// Returns the bytes of RAM that a client of 64 × 10 has used besides three vectors, the sensor's
/// windows and the order of the samples. They are its variables and everything from the first
/// nonzero byte above them, which was stack at some time (`docs/targets.md`).
fn ram_beside_vectors(board: &Board, program: &Path, ledger: &Path) -> usize {
    let file = std::fs::read(program).expect("the client");
    let file = object::File::parse(file.as_slice()).expect("an ELF file");
    let [data, bss] = [".data", ".bss"].map(|name| {
        let section = file.section_by_name(name);
        section.map_or(0, |section| section.size() as usize)
    });
    let variables = data + bss;
    let ram = memory(board, ledger);
    let above = &ram[variables..];
    let used = variables + above.len() - above.iter().take_while(|byte| **byte == 0).count();
    let windows = usize::from(board.windows) * (64 * size_of::<f32>() + size_of::<u16>());
    let samples = windows + size_of::<u32>() + 64 * size_of::<u32>();
    used - 3 * 650 * size_of::<f32>() - samples
}

/// Even the smallest board can store a personal model in its flash.
#[test]
fn emulated_boards_keep_personal_models() {
    let boards = ["microbit", CORTEX_M4F].map(named);
    let programs = boards.map(|board| Some(firmware(board, "personal")?.0));
    let programs: Option<Vec<PathBuf>> = programs.into_iter().collect();
    let Some(programs) = programs else {
        return;
    };
    let place = Place::new();
    let settings = format!("{FULL} --set rounds=3 --set method=pmtl");
    provision(&place, &settings);
    let _running: Vec<Running> = (0..2)
        .map(|n| Running::start(&place, n, boards[n], &programs[n]))
        .collect();
    let _devices = Device::start_all(&place, 2..4);
    let arguments = format!(
        "serve --keys fleet/keys.toml --device unix:line-0 --device unix:line-1 \
         --listen unix:fleet.sock --simulated 50 --seed 7 --timeout 60s --out served --json \
         {settings}"
    );
    wait(place.start(&arguments), &arguments).success();
    assert_is_the_simulation(&place, "served");
    for device in 0..4 {
        let (answered, missing) = part_of(&place, "served", device);
        assert_eq!((answered, missing), (vec![0, 1, 2], vec![]), "{device}");
    }
}
