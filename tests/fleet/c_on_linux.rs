//! Devices in C and in C++ on Linux, linked with the library for C. The model equals a simulation
//! of the same participation.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::device::Device;
use super::questions::{OTHER, SPENT, answers, reasons};
use super::{assert_is_the_simulation, lines, part_of, wait};
use crate::program::{Place, wait_until};

/// The examples, relative to the repository root.
const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../c/examples");

/// Returns the library's folder for this machine, or `None` with the reason on standard error.
/// `SMOLFED_C` is the output folder of `cargo xtask c-library`.
fn library() -> Option<PathBuf> {
    let Some(folder) = std::env::var_os("SMOLFED_C") else {
        eprintln!("SKIPPED: SMOLFED_C names no libraries for C: cargo xtask c-library");
        return None;
    };
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let name = format!("smolfed-c-{}-{target}", env!("CARGO_PKG_VERSION"));
    let library = Path::new(&folder).join(name);
    if !library.is_dir() {
        let why = format!("no {}: cargo xtask c-library {target}", library.display());
        assert!(std::env::var_os("CI").is_none(), "{why}");
        eprintln!("SKIPPED: {why}");
        return None;
    }
    Some(library)
}

/// Compiles the Linux port, both examples with it, `device-c` and `device-cpp`, and the program
/// that prints their sensor data. The devices link this file of the library.
fn compile(place: &Place, library: &Path, file: &str) {
    let strict = [
        "-O1",
        "-Wall",
        "-Wextra",
        "-Wpedantic",
        "-Wconversion",
        "-Werror",
        "-I",
    ];
    let compile = |compiler: &str, arguments: &str, program: &str| {
        let mut command = place.command(compiler);
        command.args(strict).arg(library.join("include"));
        for argument in arguments.split_whitespace() {
            match argument.contains(['/', '.']) && !argument.ends_with(".o") {
                true => command.arg(Path::new(EXAMPLES).join(argument)),
                false => command.arg(argument),
            };
        }
        if program.starts_with("device-") {
            command.arg(library.join("lib").join(file));
        }
        let output = command.args(["-o", program]).output().expect("a compiler");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{compiler} {arguments}: {said}");
    };
    compile("cc", "-std=c11 -c linux/port.c", "port.o");
    compile("cc", "-std=c11 -c sensor.c", "sensor.o");
    compile("cc", "-std=c11 record.c sensor.o", "record");
    compile("cc", "-std=c11 device.c sensor.o port.o", "device-c");
    let cpp = "-std=c++17 -fno-exceptions -fno-rtti cpp/device.cpp sensor.o port.o";
    compile("c++", cpp, "device-cpp");
}

/// Four devices, the first two in C and the others in C++, and their coordinator.
struct Fleet {
    place: Place,
    port: u16,
    settings: String,
}

impl Fleet {
    /// Provisions a fleet, unless the library is missing.
    fn new(rounds: u32) -> Option<Self> {
        Self::linked_with("libsmolfed.a", &format!("--set rounds={rounds}"), "")
    }

    /// Provisions a fleet with these settings and flags, linked with this file of the library.
    fn linked_with(file: &str, settings: &str, flags: &str) -> Option<Self> {
        let library = library()?;
        let place = Place::new();
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = free.local_addr().expect("its address").port();
        compile(&place, &library, file);
        let data = place.command(place.path("record")).arg("20").output();
        place.write("motion.csv", data.expect("the data of the sensors").stdout);
        let experiment = std::fs::read(Path::new(EXAMPLES).join("motion.toml"));
        place.write("motion.toml", experiment.expect("the experiment"));
        let settings = format!("motion.toml {settings}");
        let call = format!("provision {settings} --devices 0..4 --out fleet --seed 7 {flags}");
        place.smolfed(&call).success();
        Some(Self {
            place,
            port,
            settings,
        })
    }

    fn device(&self, number: u32) -> Device {
        let language = if number < 2 { "c" } else { "cpp" };
        let program = self.place.path(format!("device-{language}"));
        let mut command: Command = self.place.command(program);
        let file = |end: &str| format!("fleet/device-{number}.{end}");
        command.args([
            file("bin"),
            file("ledger"),
            format!("localhost:{}", self.port),
        ]);
        Device(command.stdout(Stdio::null()).spawn().expect("a device"))
    }

    fn serve(&self) -> String {
        format!(
            "serve {} --keys fleet/keys.toml --listen tcp:127.0.0.1:{} --simulated 16 --seed 7 \
             --timeout 20s --out served --json",
            self.settings, self.port
        )
    }
}

#[test]
fn devices_in_c_and_cpp_have_the_bits_of_the_simulation() {
    let Some(fleet) = Fleet::new(3) else {
        return;
    };
    let place = &fleet.place;
    // Two devices create their ledgers.
    for device in [1, 3] {
        std::fs::remove_file(place.path(format!("fleet/device-{device}.ledger"))).unwrap();
    }
    let _devices: Vec<Device> = (0..4).map(|number| fleet.device(number)).collect();
    let arguments = fleet.serve();
    let outcome = wait(place.start(&arguments), &arguments).success();
    assert_eq!(outcome.json()["arithmetic"], "integer", "{outcome}");
    for device in 0..4 {
        let part = part_of(place, "served", device);
        assert_eq!(part, (vec![0, 1, 2], vec![]), "{device}");
    }
    assert_is_the_simulation(place, "served");
}

#[test]
fn devices_in_c_and_coordinators_die_and_the_model_is_that_of_the_participation() {
    let Some(fleet) = Fleet::new(30) else {
        return;
    };
    let place = &fleet.place;
    let mut devices: Vec<Device> = (0..4).map(|number| fleet.device(number)).collect();
    let arguments = fleet.serve();
    let mut coordinator = place.start(&arguments);
    let done = || lines(&place.path("served/metrics.jsonl")).len();
    wait_until(|| done() >= 3);
    for number in [0, 2] {
        let device = devices.get_mut(number).expect("a device");
        device.0.kill().unwrap();
        device.0.wait().unwrap();
        *device = fleet.device(number as u32);
    }
    wait_until(|| done() >= 8);
    coordinator.kill().unwrap();
    coordinator.wait().unwrap();
    let resume = "serve --resume served --json";
    let outcome = wait(place.start(resume), resume).success();
    assert_eq!(outcome.json()["rounds"], 30, "{outcome}");
    for device in 0..4 {
        let answered = part_of(place, "served", device).0;
        // They are back at the end, and each killed device misses at most one update.
        assert!(answered.ends_with(&[27, 28, 29]), "{device}: {answered:?}");
        assert!(answered.len() >= 25, "{device}: {answered:?}");
    }
    assert_is_the_simulation(place, "served");
}

/// The record of a device in C says which questions it answers, and how many.
#[test]
fn devices_in_c_answer_as_they_were_provisioned_to() {
    let asked =
        "--set rounds=3 --set questions=[{kind=\"evaluate\",every=1},{kind=\"count\",every=1}]";
    let flags = "--answers evaluate --max-answers 2 --budget 20";
    let Some(fleet) = Fleet::linked_with("libsmolfed_questions.a", asked, flags) else {
        return;
    };
    let _devices: Vec<Device> = (0..4).map(|number| fleet.device(number)).collect();
    let arguments = fleet.serve();
    wait(fleet.place.start(&arguments), &arguments).success();
    for device in 0..4 {
        let expected = ["answered", OTHER, "answered", OTHER, SPENT, OTHER];
        assert_eq!(reasons(&fleet.place, device), expected, "{device}");
    }
}

/// Devices in C answer from their integers.
#[test]
fn devices_in_c_and_cpp_answer_questions_with_the_bits_of_the_simulation() {
    let asked = "--set rounds=4 --set questions=[{kind=\"evaluate\",every=2},\
                 {kind=\"histogram\",feature=4,edges=[0,0.25]},{kind=\"moments\",feature=3,\
                 bounds=[-1,1]},{kind=\"presence\"},{kind=\"confusion\"}]";
    let flags = "--answers all --max-answers 20 --budget 20";
    let Some(fleet) = Fleet::linked_with("libsmolfed_questions.a", asked, flags) else {
        return;
    };
    let place = &fleet.place;
    let _devices: Vec<Device> = (0..4).map(|number| fleet.device(number)).collect();
    let arguments = fleet.serve();
    let outcome = wait(place.start(&arguments), &arguments).success();
    assert_eq!(outcome.json()["arithmetic"], "integer", "{outcome}");
    let simulated = format!("run {} --seed 7 --out simulated", fleet.settings);
    place.smolfed(&simulated).success();
    assert_eq!(answers(place, "served"), answers(place, "simulated"));
    // The same devices answer about the model that they have trained.
    place.write(
        "question.toml",
        "[cohort]\nsampling = \"full\"\n[privacy]\nepsilon = 6.0\n\
         [[questions]]\nkind = \"evaluate\"\n",
    );
    let ask = format!(
        "ask question.toml --run served --keys fleet/keys.toml --listen tcp:127.0.0.1:{} \
         --simulated 16 --seed 7 --timeout 20s --out asked --json",
        fleet.port
    );
    wait(place.start(&ask), &ask).success();
    for (out, count) in [("served", 6), ("asked", 1)] {
        let asked = lines(&place.path(out).join("answers.jsonl"));
        assert_eq!(asked.len(), count, "{out}");
        for asked in asked {
            let answered = asked["answered"].as_array().unwrap();
            assert!((0..4).all(|n| answered.contains(&n.into())), "{asked}");
        }
    }
}
