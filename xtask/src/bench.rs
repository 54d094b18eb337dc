//! Sizes and instruction counts of all targets: `docs/targets.md`, between its two marks.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::board::{BOARDS, Board};
use crate::demo::{Running, provisioned, serve, smolfed};
use crate::elf::Sizes;
use crate::toolchain::{Variant, firmware, root};

/// The bench, optimised for speed.
const FAST: Variant = Variant {
    folder: "firmware-fast",
    opt_level: Some("3"),
    features: &[],
    programs: &["bench"],
};

/// The same with the approximate `exp`.
const MICROMATH: Variant = Variant {
    folder: "firmware-micromath",
    opt_level: Some("3"),
    features: &["micromath"],
    programs: &["bench"],
};

/// How the bench was built.
const VARIANTS: [&str; 3] = [
    "opt-level 3",
    "opt-level \"s\"",
    "opt-level 3, with `micromath`",
];

/// Around the part of `docs/targets.md` that is written here.
const BEGIN: &str = "<!-- begin: cargo xtask bench-target -->\n";
const END: &str = "<!-- end -->\n";

/// What the bench prints, with a title and how many things it did.
const ROWS: [(&str, &str, u32); 10] = [
    ("gradient", "loss and gradient of one sample, 64 × 10", 1),
    ("step", "one step on one sample, with projection", 1),
    ("clip-650", "clip 650", 1),
    ("quantise-650", "quantise 650", 1),
    ("smooth-256", "smooth 256", 1),
    ("smooth-1024", "smooth 1,024", 1),
    ("noise-1000", "discrete Gaussian, a sample", 1_000),
    ("frame", "tag and frame of an update's chunk", 1),
    ("round-training", "a round: training, 50 samples, E = 5", 1),
    (
        "round-sending",
        "a round: quantise, noise, frames of 650",
        1,
    ),
];

/// Bytes of three vectors of 650 parameters: global model, local model, update.
const VECTORS: u64 = 3 * 650 * 4;

/// Bytes of what is there for the samples: windows of 64 values with their classes and how many were seen,
/// and the order of up to 64 samples in an epoch.
const fn samples(board: &Board) -> u64 {
    board.windows as u64 * (64 * 4 + 2) + 4 + 64 * 4
}

/// Instructions by name.
type Counts = BTreeMap<String, u32>;

/// What is measured on a board.
struct Target {
    board: Board,
    sizes: Sizes,
    /// Flash of a round without session, ledger and record.
    round: u64,
    stack: u64,
    /// In the order of [`VARIANTS`].
    counts: [Counts; 3],
}

pub fn run() -> Result<(), Box<dyn Error>> {
    let smolfed = smolfed()?;
    let mut targets = vec![];
    for board in BOARDS {
        eprintln!("{}", board.target);
        let programs = firmware(board.target, &Variant::AS_IT_IS)?;
        let fast = firmware(board.target, &FAST)?;
        let micromath = firmware(board.target, &MICROMATH)?;
        targets.push(Target {
            board,
            sizes: Sizes::read(&programs.join("bare"))?,
            round: Sizes::read(&programs.join("round"))?.flash(),
            stack: stack(&board, &programs.join("client"), &smolfed)?,
            counts: [
                counts(&board, &fast.join("bench"))?,
                counts(&board, &programs.join("bench"))?,
                counts(&board, &micromath.join("bench"))?,
            ],
        });
    }
    let tables = tables(&targets)?;
    print!("{tables}");
    let path = root().join("docs/targets.md");
    let page = std::fs::read_to_string(&path)?;
    let (before, rest) = page
        .split_once(BEGIN)
        .ok_or("docs/targets.md has no begin mark")?;
    let (_, after) = rest
        .split_once(END)
        .ok_or("docs/targets.md has no end mark")?;
    std::fs::write(path, format!("{before}{BEGIN}{tables}{END}{after}"))?;
    Ok(())
}

/// Runs the bench; a name and a count in each line.
fn counts(board: &Board, program: &Path) -> Result<Counts, Box<dyn Error>> {
    let shift = format!("shift={},sleep=off", board.instruction_shift);
    let printed = board.print(program, &["-monitor", "none", "-icount", &shift])?;
    let mut counts = BTreeMap::new();
    for line in printed.lines() {
        let (name, count) = line
            .split_once(' ')
            .ok_or("the bench prints names and counts")?;
        counts.insert(name.to_owned(), count.parse()?);
    }
    Ok(counts)
}

/// Bytes of the stack that the client used in a few rounds. The RAM of an emulated board begins as
/// zeros: what is no zero above the variables was stack at some time. (Zeros at the very end of the
/// deepest frame are missed.)
fn stack(board: &Board, client: &Path, smolfed: &Path) -> Result<u64, Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let monitor = dir.path().join("monitor");
    let socket = format!("unix:{},server=on,wait=off", monitor.display());
    let running = provisioned(board, client, smolfed, dir.path(), |command| {
        command.args(["-monitor", &socket]).stdout(Stdio::null());
    })?;
    serve(smolfed, dir.path(), Stdio::null())?;
    let (start, length) = board.ram;
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

/// Until the emulator has done what it was told and ended.
fn wait(mut running: Running) -> Result<(), Box<dyn Error>> {
    for _ in 0..100 {
        if running.0.try_wait()?.is_some() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Err("the emulator does not end".into())
}

fn tables(targets: &[Target]) -> Result<String, std::fmt::Error> {
    let mut page = String::new();
    writeln!(page, "\nThe client, 64 × 10, opt-level \"s\", bytes:\n")?;
    writeln!(
        page,
        "| target | processor | flash | a round alone: flash | RAM: variables | RAM: stack | RAM beside vectors and samples |"
    )?;
    writeln!(page, "| --- | --- | ---: | ---: | ---: | ---: | ---: |")?;
    for target in targets {
        let Board {
            target: name,
            processor,
            ..
        } = target.board;
        let flash = grouped(target.sizes.flash());
        let round = grouped(target.round);
        let variables = target.sizes.data + target.sizes.bss;
        let beside = variables + target.stack - VECTORS - samples(&target.board);
        let (variables, stack) = (grouped(variables), grouped(target.stack));
        let beside = grouped(beside);
        writeln!(
            page,
            "| `{name}` | {processor} | {flash} | {round} | {variables} | {stack} | {beside} |"
        )?;
    }
    for (variant, title) in VARIANTS.into_iter().enumerate() {
        writeln!(page, "\nInstructions, {title}:\n")?;
        let processors = targets.iter().map(|target| target.board.processor);
        let heads: Vec<&str> = processors.collect();
        writeln!(page, "| what | {} |", heads.join(" | "))?;
        writeln!(page, "| --- |{}", " ---: |".repeat(targets.len()))?;
        for (name, row, times) in ROWS {
            write!(page, "| {row} |")?;
            for target in targets {
                match target
                    .counts
                    .get(variant)
                    .and_then(|counts| counts.get(name))
                {
                    Some(count) => {
                        write!(page, " {} |", grouped(u64::from(count.div_ceil(times))))?
                    }
                    None => write!(page, " – |")?,
                }
            }
            writeln!(page)?;
        }
    }
    writeln!(
        page,
        "\nEstimated time of a round's work, opt-level 3, at a clock and with cycles an instruction"
    )?;
    writeln!(page, "that are assumed, not measured:\n")?;
    writeln!(
        page,
        "| processor | clock, MHz | cycles an instruction | ms |"
    )?;
    writeln!(page, "| --- | ---: | ---: | ---: |")?;
    for target in targets {
        let Board {
            processor,
            clock_mhz,
            cycles_per_instruction,
            ..
        } = target.board;
        let names = ["round-training", "round-sending"];
        let counts = names.iter().filter_map(|name| target.counts[0].get(*name));
        let instructions: u32 = counts.sum();
        let ms = f64::from(instructions) * cycles_per_instruction / f64::from(clock_mhz) / 1_000.0;
        writeln!(
            page,
            "| {processor} | {clock_mhz} | {cycles_per_instruction} | {ms:.0} |"
        )?;
    }
    writeln!(page)?;
    Ok(page)
}

/// 1,234,567
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
