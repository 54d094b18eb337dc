//! Firmware in C: the device of `c/examples/`, built as in docs/c.md.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use object::{Object, ObjectSymbol};

use super::rounds::{copied, emulator};
use super::{Board, named};
use crate::fleet::device::Device;
use crate::fleet::{assert_is_the_simulation, part_of, wait};
use crate::program::{Place, wait_until};

/// Boards of the example, each with its compiler.
const BOARDS: [(&str, &str); 3] = [
    ("mps2-an386", "arm-none-eabi-gcc"),
    ("microbit", "arm-none-eabi-gcc"),
    ("riscv-virt", "riscv64-unknown-elf-gcc"),
];

/// The board whose RAM is measured.
const MEASURED: &str = BOARDS[0].0;

/// Skips a test, or fails in CI.
fn skipped<T>(why: &str) -> Option<T> {
    assert!(std::env::var_os("CI").is_none(), "{why}");
    eprintln!("SKIPPED: {why}; ./test installs it");
    None
}

/// Returns the unpacked archive of a target from `cargo xtask c-library`.
pub(crate) fn archive(target: &str) -> Option<PathBuf> {
    let Some(folder) = std::env::var_os("SMOLFED_C") else {
        return skipped("SMOLFED_C names no folder of archives");
    };
    let name = format!("smolfed-c-{}-{target}", env!("CARGO_PKG_VERSION"));
    let archive = Path::new(&folder).join(name);
    match archive.exists() {
        true => Some(archive),
        false => skipped(&format!("there is no {}", archive.display())),
    }
}

/// Compiles the example for a board, after `change` has edited its files. Returns `None` if
/// something is missing.
pub(crate) fn compile(place: &Place, board: &str, change: impl FnOnce(&Path)) -> Option<PathBuf> {
    compile_with(place, board, &format!("@boards/{board}.txt"), change)
}

/// [`compile`] with these options.
fn compile_with(
    place: &Place,
    board: &str,
    options: &str,
    change: impl FnOnce(&Path),
) -> Option<PathBuf> {
    let (_, compiler) = BOARDS.iter().find(|(name, _)| *name == board)?;
    let archive = archive(named(board).target)?;
    if Command::new(compiler).arg("--version").output().is_err() {
        return skipped(&format!("{compiler} is not installed"));
    }
    let folder = place.path(format!("c-{board}"));
    let copied = Command::new("cp")
        .arg("-r")
        .arg(archive)
        .arg(&folder)
        .status();
    assert!(copied.expect("cp").success());
    let examples = folder.join("examples");
    change(&examples);
    let program = folder.join("device.elf");
    let output = Command::new(compiler)
        .current_dir(&examples)
        .args(options.split_whitespace())
        .arg("-o")
        .arg(&program)
        .stdin(Stdio::null())
        .output()
        .expect("the compiler starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
    Some(program)
}

/// A running board and its output.
pub(crate) struct Running {
    qemu: std::process::Child,
    printed: PathBuf,
}

impl Running {
    pub(crate) fn start(place: &Place, number: usize, board: &Board, program: &Path) -> Self {
        let file = |ending: &str| place.path(format!("fleet/device-{number}.{ending}"));
        let printed = place.path(format!("printed-{number}"));
        let line = place.path(format!("line-{number}"));
        let line = format!("unix:{},server=on,wait=off", line.display());
        let output = std::fs::File::create(&printed).unwrap();
        let mut qemu = emulator(board, program, &file("bin"), &file("ledger"), &line);
        let qemu = qemu.stdout(output.try_clone().unwrap()).stderr(output);
        Self {
            qemu: qemu.spawn().expect("QEMU starts"),
            printed,
        }
    }

    /// Returns the versions with which a board that only infers has predicted, in order.
    fn versions(&self) -> Vec<u32> {
        let printed = self.printed();
        let versions = printed.lines().filter_map(|line| {
            let (version, _) = line.strip_prefix("version ")?.split_once(": activity ")?;
            version.parse().ok()
        });
        versions.collect()
    }

    fn printed(&self) -> String {
        std::fs::read_to_string(&self.printed).unwrap_or_default()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}

/// Asserts that a program does not allocate, print or unwind.
fn assert_is_bare(program: &Path) {
    let bytes = std::fs::read(program).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let names: Vec<&str> = file
        .symbols()
        .filter_map(|symbol| symbol.name().ok())
        .collect();
    assert!(names.contains(&"sf_open"), "{names:?}");
    for name in names {
        let words = [
            "malloc",
            "realloc",
            "calloc",
            "printf",
            "puts",
            "_Unwind",
            "__rust_alloc",
        ];
        assert!(!words.iter().any(|word| name.contains(word)), "{name}");
    }
}

/// Returns the commands of the section "Ten minutes" of docs/c.md.
fn commands() -> String {
    let page = include_str!("../../docs/c.md");
    let section = page
        .split("\n## ")
        .find(|part| part.starts_with("Ten minutes"));
    let section = section.expect("the section");
    let blocks = section.split("```console\n").skip(1);
    let blocks = blocks.filter_map(|block| block.split("```").next());
    blocks.map(|block| block.replace("$ ", "")).collect()
}

/// From an empty folder, an archive and a compiler to the same model as in the simulation.
#[test]
fn the_ten_minutes_of_the_page_work_word_for_word() {
    let (board, compiler) = BOARDS[0];
    let target = named(board).target;
    let Some(unpacked) = archive(target) else {
        return;
    };
    for program in [compiler, "cc", "qemu-system-arm"] {
        if Command::new(program).arg("--version").output().is_err() {
            return skipped(&format!("{program} is not installed")).unwrap_or(());
        }
    }
    let place = Place::new();
    let name = unpacked.file_name().unwrap().to_str().unwrap();
    let packed = format!("{}.tar.gz", unpacked.display());
    std::fs::copy(packed, place.path(format!("{name}.tar.gz"))).unwrap();
    let folder = crate::program::program().parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    // The page does not stop the emulator.
    let script = format!(
        "set -eu\ntrap 'kill $(jobs -p)' EXIT\n{}smolfed run motion.toml --seed 7 --out simulated\n\
         cmp served/model.safetensors simulated/model.safetensors\n",
        commands()
    );
    let output = place
        .command("bash")
        .env("PATH", path)
        .args(["-c", &script])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{errors}");
    assert!((said + errors).contains("model of round "), "no prediction");
}

/// Writes the example's experiment, with the sensor measurements of `devices` devices.
fn experiment(place: &Place, devices: u32) -> Option<()> {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../c/examples");
    let program = place.path("record");
    let compiled = Command::new("cc")
        .args(["record.c", "sensor.c", "-o"])
        .arg(&program)
        .current_dir(&examples)
        .status();
    match compiled {
        Ok(status) => assert!(status.success()),
        Err(_) => return skipped("there is no compiler for C"),
    }
    let recorded = Command::new(program).arg(devices.to_string()).output();
    place.write("motion.csv", recorded.unwrap().stdout);
    let text = std::fs::read(examples.join("motion.toml")).unwrap();
    place.write("motion.toml", text);
    let printed = place.smolfed("data recipe motion.toml --c").success();
    let kept = std::fs::read_to_string(examples.join("recipe.h")).unwrap();
    assert_eq!(printed.stdout, kept, "recipe.h is that of the experiment");
    Some(())
}

/// Three boards measure the values that the simulation reads from a table.
#[test]
fn boards_in_c_measure_and_give_the_model_of_the_simulation() {
    let place = Place::new();
    let Some(()) = experiment(&place, 12) else {
        return;
    };
    let programs = BOARDS.map(|(board, _)| {
        compile(&place, board, |examples| {
            if board == MEASURED {
                tell_memory(examples);
            }
        })
    });
    for program in programs.iter().flatten() {
        assert_is_bare(program);
    }
    let call = "provision motion.toml --devices 0..3 --out fleet --seed 7";
    place.smolfed(call).success();
    let boards = BOARDS.iter().zip(&programs).enumerate();
    let started = boards.map(|(number, ((board, _), program))| {
        Some(Running::start(
            &place,
            number,
            named(board),
            program.as_ref()?,
        ))
    });
    let Some(running) = started.collect::<Option<Vec<Running>>>() else {
        return;
    };
    let serve = "serve motion.toml --keys fleet/keys.toml --device unix:line-0 \
                 --device unix:line-1 --device unix:line-2 --simulated 9 --set rounds=4 \
                 --seed 7 --timeout 60s --out served --json";
    wait(place.start(serve), serve).success();
    assert_is_the_simulation(&place, "served");
    for device in 0..3 {
        let (answered, missing) = part_of(&place, "served", device);
        assert_eq!((answered, missing), (vec![0, 1, 2, 3], vec![]), "{device}");
    }
    // All boards took part, so a run without any board has the same model.
    let run = "run motion.toml --set rounds=4 --seed 7 --out simulated --json";
    place.smolfed(run).success();
    let model = |run| std::fs::read(place.path(run).join("model.safetensors")).unwrap();
    assert!(model("served") == model("simulated"), "the bits differ");
    for board in &running {
        wait_until(|| board.printed().contains("model of round "));
        assert!(!board.printed().contains("panic"), "{}", board.printed());
    }
    let (board, program) = (&running[0], programs[0].as_deref().unwrap());
    let bytes = ram_of_the_library(board, program, &place.path("fleet/device-0.ledger"));
    let rust = ram_of_the_client_in_rust();
    // An interrupt of the program may have come at the deepest call: its registers, with those of
    // the floating-point unit, and the frame of its handler.
    let interrupt = 104 + 8;
    assert!(
        bytes <= rust + 128 + interrupt,
        "{bytes} bytes, {rust} in Rust"
    );
}

/// Lets the example print the memory of its device, and the address of its stack.
fn tell_memory(examples: &Path) {
    const OPEN: &str = "    stop_unless(sf_open(";
    const TELL: &str = r#"
    uint32_t stack;
    __asm__ volatile("mov %0, sp" : "=r"(stack));
    port_print("memory ");
    print_number((uint32_t)sf_memory_bytes(&config));
    port_print("\nstack ");
    print_number(stack);
    port_print("\n");
"#;
    let path = examples.join("device.c");
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.matches(OPEN).count(), 1);
    std::fs::write(path, text.replace(OPEN, &format!("{TELL}{OPEN}"))).unwrap();
}

/// Returns the bytes of RAM that the library has used: the memory of the device, besides model
/// vectors, scratch and samples, and the stack below the frame that has called `sf_open`, down to
/// the first nonzero byte above the variables.
fn ram_of_the_library(board: &Running, program: &Path, ledger: &Path) -> usize {
    let printed = board.printed();
    let told = |name: &str| -> usize {
        let line = printed.lines().find_map(|line| line.strip_prefix(name));
        line.expect(name).parse().expect("a number")
    };
    let file = std::fs::read(program).unwrap();
    let file = object::File::parse(&*file).unwrap();
    let variables = file
        .symbol_by_name("bss_end")
        .expect("the variables")
        .address();
    let below = told("stack ") - variables as usize;
    let bytes = copied(u32::try_from(variables).unwrap(), below, ledger);
    let stack = below - bytes.iter().take_while(|byte| **byte == 0).count();
    let (features, classes, samples) = (18, 4, 16);
    let vectors = 3 * classes * (features + 1) + features + classes;
    let samples = samples * (features + size_of::<u16>() + size_of::<u32>());
    let memory = told("memory ") - vectors * size_of::<f32>() - samples;
    println!("a device takes {memory} bytes, and the library {stack} bytes of stack");
    memory + stack
}

/// Returns the bytes of RAM that the client in Rust takes on the same board, besides vectors,
/// scratch and samples: its variables and the frames of all its functions.
fn ram_of_the_client_in_rust() -> usize {
    let page = include_str!("../../docs/targets.md");
    let mut rows = page.lines();
    let row = rows.find(|line| line.starts_with("| `thumbv7em-none-eabihf` |"));
    let row = row.expect("a row").trim_end_matches(" |");
    let (_, bytes) = row.rsplit_once("| ").expect("cells");
    let bytes: usize = bytes.replace(',', "").parse().expect("a number of bytes");
    // Its scratch is the score of each of ten classes.
    bytes - 10 * size_of::<f32>()
}

/// Publishes, splits and rolls back, and resets the board. `c/tests/delivery.rs` compares the bits
/// of its predictions.
#[test]
fn a_board_in_c_that_only_infers_has_the_right_version_after_each_step() {
    let place = Place::new();
    let Some(()) = experiment(&place, 12) else {
        return;
    };
    let smolfed = |arguments: &str| place.smolfed(arguments).success();
    smolfed("run motion.toml --set rounds=2 --out first");
    smolfed("run motion.toml --set rounds=4 --out second");
    smolfed("models publish first --arithmetic integer");
    let (board, key) = (BOARDS[0].0, place.path("models/publisher.pub"));
    let key = std::fs::read_to_string(key).unwrap();
    let options = format!("-DPUBLISHER=\"{}\" @boards/{board}-infer.txt", key.trim());
    let Some(program) = compile_with(&place, board, &options, |_| ()) else {
        return;
    };
    smolfed("provision --infer --devices 0..1 --out fleet");
    let service = "deliver --keys fleet/keys.toml --device unix:line-0";
    let _service = Device(place.start(service));
    let start = || Running::start(&place, 0, named(board), &program);
    let mut running = start();
    wait_until(|| running.versions() == [1]);
    // Device 0 is among the 99.999 % of each step.
    smolfed("models publish second --arithmetic integer --share 0.001");
    smolfed("models split 1=0.001 2=99.999");
    wait_until(|| running.versions() == [1, 2]);
    smolfed("models roll-back");
    wait_until(|| running.versions() == [1, 2, 3]);
    let mut newest = 3;
    for reset in 0..6 {
        // The next reset may come during the transfer.
        if reset % 2 == 0 {
            smolfed("models publish second --arithmetic integer");
        }
        drop(running);
        running = start();
        wait_until(|| !running.versions().is_empty());
        let version = running.versions()[0];
        assert!(version >= newest, "{reset}: {version} after {newest}");
        newest = version;
    }
    wait_until(|| running.versions().last() == Some(&6));
    assert!(
        !running.printed().contains("panic"),
        "{}",
        running.printed()
    );
}
