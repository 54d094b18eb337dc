//! `cargo xtask bench-target`: writes sizes, instructions and modelled cycles of all targets to
//! `docs/targets.md`, between markers.

mod builds;
mod cycles;
mod tables;
mod trace;

use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tables::{CAMERAS, CameraSizes, Counts, Measurement, NetworkSizes, tables};

use crate::board::{BOARDS, Board, Region};
use crate::elf::Sizes;
use crate::federation::{Federation, Running, provisioned, serve, smolfed};
use crate::toolchain::{Variant, firmware, root};

/// The bench, optimised for speed.
pub const FAST: Variant<'_> = Variant {
    workspace: "firmware-example",
    folder: "firmware-fast",
    opt_level: Some("3"),
    features: &["hazmat"],
    is_whole: true,
    programs: &["bench"],
    publisher: None,
};

/// The bench with the approximate `exp`.
const MICROMATH: Variant<'_> = Variant {
    workspace: "firmware-example",
    folder: "firmware-micromath",
    opt_level: Some("3"),
    features: &["hazmat", "micromath"],
    is_whole: true,
    programs: &["bench"],
    publisher: None,
};

/// Markers around the measurements of boards in `docs/targets.md`.
const BEGIN: &str = "<!-- begin: cargo xtask bench-target -->\n";
const END: &str = "<!-- end -->\n";

pub fn run() -> Result<(), Box<dyn Error>> {
    let smolfed = smolfed(None)?;
    let mut boards = vec![];
    for board in BOARDS.iter().filter(|board| board.qemu.is_some()) {
        eprintln!("{}", board.target);
        firmware(board.target, &Variant::TESTS)?;
        let programs = firmware(board.target, &Variant::DEFAULT)?;
        let fast = firmware(board.target, &FAST)?;
        let micromath = firmware(board.target, &MICROMATH)?;
        let counts = [
            counts(board, &fast.join("bench"))?,
            counts(board, &programs.join("bench"))?,
            counts(board, &micromath.join("bench"))?,
        ];
        let [counts_fast, counts_small, _] = &counts;
        let cycles = [
            modelled(board, &fast.join("bench"), counts_fast)?,
            modelled(board, &programs.join("bench"), counts_small)?,
        ];
        boards.push(Measurement {
            board: *board,
            sizes: Sizes::read(&programs.join("bare"))?,
            round: Sizes::read(&programs.join("round"))?.flash(),
            stack: stack(board, &programs.join("client"), &smolfed, of_board)?,
            network: NetworkSizes {
                flash: Sizes::read(&programs.join("network"))?.flash(),
                client_flash: Sizes::read(&programs.join("client"))?.flash(),
                stack: stack(
                    board,
                    &programs.join("network"),
                    &smolfed,
                    Federation::of_network,
                )?,
            },
            cameras: cameras(board, &programs, &smolfed)?,
            counts,
            cycles,
        });
    }
    write(BEGIN, &tables(&boards)?)?;
    builds()
}

/// Runs `cargo xtask bench-target builds`: only the table of builds, in minutes.
pub fn builds() -> Result<(), Box<dyn Error>> {
    write(builds::BEGIN, &builds::table()?)
}

/// Prints tables, and writes them into the page, from a marker to the next end marker.
fn write(begin: &str, tables: &str) -> Result<(), Box<dyn Error>> {
    print!("{tables}");
    let path = root().join("docs/targets.md");
    let page = std::fs::read_to_string(&path)?;
    let (before, rest) = page
        .split_once(begin)
        .ok_or_else(|| format!("docs/targets.md has no mark {}", begin.trim()))?;
    let (_, after) = rest
        .split_once(END)
        .ok_or("docs/targets.md has no end mark")?;
    std::fs::write(path, format!("{before}{begin}{tables}{END}{after}"))?;
    Ok(())
}

/// Returns the built-in experiment.
fn of_board(_: &Board, _: &Path) -> Result<Federation, Box<dyn Error>> {
    Ok(Federation::built_in())
}

/// Measures the clients on image features from a camera.
fn cameras(
    board: &Board,
    programs: &Path,
    smolfed: &Path,
) -> Result<Vec<CameraSizes>, Box<dyn Error>> {
    let sizes = CAMERAS.into_iter().map(|(program, _)| {
        let path = programs.join(program);
        let federation = |board: &Board, _: &Path| Ok(Federation::of_camera(board, program));
        Ok(CameraSizes {
            program,
            flash: Sizes::read(&path)?.flash(),
            stack: stack(board, &path, smolfed, federation)?,
        })
    });
    sizes.collect()
}

/// Runs `cargo xtask cycles BOARD [3]`: the bench's counts on one board, at opt-level "s" or 3.
pub fn cycles(board: &Board, variant: &Variant<'_>) -> Result<(), Box<dyn Error>> {
    let program = firmware(board.target, variant)?.join("bench");
    let mut traced: Vec<_> = trace::traced(board, &program)?.into_iter().collect();
    traced.sort_by(|(one, _), (other, _)| one.cmp(other));
    for (
        name,
        trace::Cost {
            instructions,
            cycles,
        },
    ) in traced
    {
        println!("{name:24} {instructions:>12} {cycles:>12}");
    }
    Ok(())
}

/// Runs the bench, which prints a name and a count on each line.
fn counts(board: &Board, program: &Path) -> Result<Counts, Box<dyn Error>> {
    let shift = board.qemu.map_or(0, |qemu| qemu.instruction_shift);
    let shift = format!("shift={shift},sleep=off");
    let printed = board.print(program, &["-monitor", "none", "-icount", &shift])?;
    let mut counts = BTreeMap::new();
    for line in printed.lines() {
        let (name, count) = line
            .split_once(' ')
            .ok_or("the bench prints names and counts")?;
        counts.insert(name.to_owned(), count.parse()?);
    }
    // The counted piece is chosen by its number as the longest in cycles. It must also be almost
    // the longest in instructions.
    for (name, count) in &counts {
        let longest = counts.get(&format!("{name}-longest")).copied();
        if let Some(longest) = longest.filter(|longest| *longest > count + count / 10) {
            return Err(format!("{name}: {count} instructions, and the longest {longest}").into());
        }
    }
    Ok(counts)
}

/// Returns the modelled cycles of the bench's counts. The trace must have as many instructions.
fn modelled(board: &Board, program: &Path, counts: &Counts) -> Result<Counts, Box<dyn Error>> {
    let mut cycles = BTreeMap::new();
    for (name, cost) in trace::traced(board, program)? {
        let counted = counts.get(&name).copied().unwrap_or(0);
        // A timer with microsecond resolution is read before and after.
        if cost.instructions.abs_diff(counted) > 4 + counted / 1_000 {
            let traced = cost.instructions;
            return Err(format!("{name}: {counted} instructions, {traced} in the trace").into());
        }
        cycles.insert(name, cost.cycles);
    }
    Ok(cycles)
}

/// Returns the bytes of stack that the client used in a few rounds. The RAM of an emulated board is
/// initially zero, so a nonzero byte above the variables was stack at some time. (Zeros at the very
/// end of the deepest frame are missed.)
fn stack(
    board: &Board,
    client: &Path,
    smolfed: &Path,
    federation: impl FnOnce(&Board, &Path) -> Result<Federation, Box<dyn Error>>,
) -> Result<u64, Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let federation = &federation(board, dir.path())?;
    let monitor = dir.path().join("monitor");
    let socket = format!("unix:{},server=on,wait=off", monitor.display());
    let running = provisioned(federation, board, client, smolfed, dir.path(), |command| {
        command.args(["-monitor", &socket]).stdout(Stdio::null());
    })?;
    serve(federation, smolfed, dir.path(), Stdio::null())?;
    let Region { start, length } = board.ram;
    let image = dir.path().join("ram.bin");
    let mut monitor = UnixStream::connect(monitor)?;
    let file = image.display();
    writeln!(monitor, "memsave {start:#x} {length:#x} \"{file}\"\nquit")?;
    wait(running)?;
    let image = std::fs::read(image)?;
    let sizes = Sizes::read(client)?;
    let above = image
        .get(usize::try_from(sizes.data + sizes.bss)?..)
        .unwrap_or_default();
    let untouched = above.iter().take_while(|byte| **byte == 0).count();
    Ok((above.len() - untouched) as u64)
}

/// Waits until the emulator has exited.
fn wait(mut running: Running) -> Result<(), Box<dyn Error>> {
    for _ in 0..100 {
        if running.0.try_wait()?.is_some() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Err("the emulator does not exit".into())
}
