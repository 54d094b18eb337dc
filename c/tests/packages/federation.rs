//! The examples for frameworks in a federation: on Linux, with stand-ins for the functions of the
//! framework (`tests/stubs/`). Their model is that of the simulation, bit for bit.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::tools::{archive, file, place, printed, run, tool};

/// A process that ends with its test.
struct Process(Child);

impl Process {
    fn start(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped());
        Self(command.stderr(Stdio::piped()).spawn().expect("it starts"))
    }

    /// Kills it after a minute, and returns its messages if it failed.
    fn end(mut self) -> Result<(), String> {
        let start = Instant::now();
        while self.0.try_wait().expect("a process").is_none() {
            if start.elapsed() > Duration::from_secs(60) {
                self.0.kill().expect("a process");
            }
            sleep(Duration::from_millis(20));
        }
        let read = |stream: Option<&mut dyn std::io::Read>| {
            let mut text = String::new();
            stream.map(|stream| stream.read_to_string(&mut text));
            text
        };
        let said = read(self.0.stdout.as_mut().map(|stream| stream as _))
            + &read(self.0.stderr.as_mut().map(|stream| stream as _));
        let status = self.0.wait().expect("a process");
        match status.success() {
            true => Ok(()),
            false => Err(format!("{status}: {said}")),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The command line, in a folder.
fn smolfed(folder: &Path) -> Option<Command> {
    let Some(program) = std::env::var_os("SMOLFED_BIN") else {
        eprintln!("SKIPPED: SMOLFED_BIN names no program");
        return None;
    };
    let mut command = Command::new(program);
    command.current_dir(folder);
    Some(command)
}

/// A compiler with the headers of a framework.
fn compiler(name: &str, framework: &str) -> Option<Command> {
    let mut compiler = tool(name)?;
    compiler.args(["-Wall", "-Wextra", "-Werror", "-O1"]);
    for folder in ["include", "examples"] {
        compiler.arg("-I").arg(file(folder));
    }
    compiler.arg("-I").arg(file("tests/stubs").join(framework));
    Some(compiler)
}

/// Compiles a source, and returns the object.
fn compiled(framework: &str, folder: &Path, source: &str) -> Option<PathBuf> {
    let is_c = source.ends_with(".c");
    let mut compiler = compiler(if is_c { "gcc" } else { "g++" }, framework)?;
    match is_c {
        true => compiler.args(["-std=gnu11", "-c"]),
        false => compiler.args(["-std=gnu++17", "-include", "Arduino.h", "-x", "c++", "-c"]),
    };
    if source.ends_with("/device.c") {
        compiler.arg("-Dmain=device_main");
    }
    let name = source.replace('/', "-");
    let object = folder.join(format!("{name}.o"));
    run(compiler.arg(file(source)).arg("-o").arg(&object));
    Some(object)
}

/// A program of these sources and the library for Linux.
fn program(framework: &str, folder: &Path, sources: &[&str]) -> Option<PathBuf> {
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let library = archive(&target)?.join("lib/libsmolfed.a");
    let objects: Option<Vec<_>> = sources
        .iter()
        .map(|source| compiled(framework, folder, source))
        .collect();
    let program = folder.join("device");
    let mut linker = tool("g++")?;
    linker.args(objects?).arg(library);
    linker.args(["-lpthread", "-ldl", "-lm"]);
    run(linker.arg("-o").arg(&program));
    Some(program)
}

/// Trains with a device in this program and 19 simulated ones, and compares with the simulation.
fn federation(framework: &str, sources: &[&str]) -> Option<()> {
    let folder = place(&format!("federation-{framework}"));
    let device = program(framework, &folder, sources)?;
    let recorder = folder.join("record");
    let mut recording = tool("gcc")?;
    recording.args(["examples/record.c", "examples/sensor.c"].map(file));
    run(recording.arg("-o").arg(&recorder));
    let rows = run(Command::new(&recorder).arg("20"));
    std::fs::write(folder.join("motion.csv"), rows).expect("a table");
    std::fs::copy(file("examples/motion.toml"), folder.join("motion.toml")).expect("a copy");
    let seed = ["--seed", "7"];
    let provision = [
        "provision",
        "motion.toml",
        "--devices",
        "0..1",
        "--out",
        "fleet",
    ];
    run(smolfed(&folder)?.args(provision).args(seed));
    let device = Process::start(Command::new(device).current_dir(&folder));
    let line = folder.join("line");
    let start = Instant::now();
    while !line.exists() && start.elapsed() < Duration::from_secs(10) {
        sleep(Duration::from_millis(10));
    }
    let mut serve = smolfed(&folder)?;
    serve.args(["serve", "motion.toml", "--keys", "fleet/keys.toml"]);
    serve.args(["--device", "unix:line", "--simulated", "19"]);
    let served = Process::start(serve.args(["--out", "served"]).args(seed)).end();
    assert_eq!(served, Ok(()), "{framework}: {:?}", device.end());
    assert_eq!(device.end(), Ok(()), "{framework}");
    let mut simulate = smolfed(&folder)?;
    let simulate = simulate.args(["run", "motion.toml", "--out", "simulated"]);
    let output = simulate.args(seed).output().expect("it starts");
    assert!(output.status.success(), "{}", printed(&output));
    let model = |run: &str| std::fs::read(folder.join(run).join("model.safetensors"));
    let (served, simulated) = (model("served"), model("simulated"));
    assert!(served.expect("a model") == simulated.expect("a model"));
    Some(())
}

const DEVICE: [&str; 2] = ["examples/device.c", "examples/sensor.c"];

#[test]
fn the_sample_for_zephyr_takes_part_in_a_federation() {
    let port = "packages/zephyr/samples/uart/src/port.c";
    federation(
        "zephyr",
        &[DEVICE[0], DEVICE[1], port, "tests/stubs/zephyr/host.c"],
    );
}

#[test]
fn the_example_for_esp_idf_takes_part_in_a_federation() {
    let port = "packages/esp-idf/examples/uart/main/port.c";
    federation(
        "esp-idf",
        &[DEVICE[0], DEVICE[1], port, "tests/stubs/esp-idf/host.c"],
    );
}

#[test]
fn the_sketch_takes_part_in_a_federation() {
    let sketch = "packages/arduino/examples/uart/uart.ino";
    federation(
        "arduino",
        &[DEVICE[1], sketch, "tests/stubs/arduino/host.cpp"],
    );
}
