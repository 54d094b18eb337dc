//! Sizes and instruction counts on a Cortex-M4F must not grow. Both are deterministic for one
//! compiler. `docs/targets.md` has all targets, and counts of firmware optimised for speed.

use std::path::Path;
use std::process::Command;

use object::{Object, ObjectSection, SectionFlags, SectionKind, elf};

use super::{CENTRAL, CORTEX_M4F, firmware, firmware_with, named, run};

/// Instructions of the firmware's bench at opt-level "s", with rustup's stable 1.95: a count, less
/// another count.
const INSTRUCTIONS: [(&str, Option<&str>, u32); 18] = [
    ("gradient", None, 5_466),
    ("predict", None, 2_786),
    ("integer-predict", None, 2_699),
    ("step-3", Some("step-2"), 23_834),
    ("clip-650", None, 5_648),
    ("quantise-650", None, 24_787),
    ("smooth-256", None, 4_999),
    ("smooth-1024", None, 18_916),
    ("noise-1000", None, 392_165),
    ("frame", None, 22_148),
    ("piece", None, 33_948),
    ("integer-piece", None, 44_902),
    ("round-training", None, 2_193_714),
    ("round-sending", None, 533_520),
    ("network-predict", None, 170_019),
    ("int8-network-predict", None, 134_783),
    ("network-gradient", None, 543_071),
    ("network-training", None, 135_025_127),
];

/// Bytes in flash of the client without a host, in both arithmetics, of a round alone, and of the
/// client with a network, whose ledger uses the host's flash.
const FLASH: [(&str, u32); 4] = [
    ("bare", 26_400),
    ("bare-integer", 26_024),
    ("round", 15_972),
    ("network", 45_872),
];

/// Target limits in bytes, for the client and for a round alone.
const LIMITS: [(&str, u32); 2] = [("bare", 27_340), ("round", 16 << 10)];

/// Checks that a measured number is at most 5 % above the recorded one.
fn check(what: &str, recorded: u32, measured: u32) -> Result<(), String> {
    let max = u64::from(recorded) * 105 / 100;
    if u64::from(measured) <= max {
        Ok(())
    } else {
        Err(format!(
            "{what}: {measured}, where tests/boards/targets.rs records {recorded}\n"
        ))
    }
}

#[test]
fn a_cortex_m4f_needs_no_more_instructions() {
    let Some((program, qemu)) = firmware(named(CORTEX_M4F), "bench") else {
        return;
    };
    let printed = run(&qemu, &program, &["-icount", "shift=10,sleep=off"]);
    let mut complaints = String::new();
    let count = |name: &str| -> u32 {
        let of_name = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok();
        printed.lines().find_map(of_name).expect("a count")
    };
    for (name, less, recorded) in INSTRUCTIONS {
        let measured = count(name) - less.map_or(0, count);
        complaints += &check(name, recorded, measured).err().unwrap_or_default();
    }
    // The counted piece is the longest in cycles. It must be almost the longest in instructions,
    // too. The sample orders of the two rounds also differ.
    for piece in ["piece", "integer-piece"] {
        let (counted, longest) = (count(piece), count(&format!("{piece}-longest")));
        if longest > counted + counted / 10 {
            complaints += &format!("{piece}: {counted}, and the longest {longest}\n");
        }
    }
    assert!(
        complaints.is_empty(),
        "more than 5 % above the recorded counts:\n{complaints}all of them:\n{printed}"
    );
}

/// Training takes three vectors and little more memory than one sample's activations, a tenth of a
/// batch's.
#[test]
fn a_network_trains_in_three_vectors_and_the_activations_of_a_sample() {
    let Some((program, qemu)) = firmware(named(CORTEX_M4F), "bench") else {
        return;
    };
    let printed = run(&qemu, &program, &[]);
    let number = |name: &str| -> u64 {
        let of_name = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok();
        printed.lines().find_map(of_name).expect("a number")
    };
    for (name, parameters) in [("network", 1_023), ("network-small", 355)] {
        assert_eq!(number(&format!("{name}-parameters")), parameters);
        assert_eq!(number(&format!("{name}-vectors")), 3 * 4 * parameters);
        let activations = number(&format!("{name}-activations"));
        let scratch = number(&format!("{name}-scratch"));
        assert!(
            scratch * 100 <= activations * 110,
            "{scratch}, {activations}"
        );
    }
}

/// A model too large for the board does not compile, and the compiler says why.
#[test]
fn a_model_beyond_the_ram_of_a_board_does_not_compile() {
    let board = named("microbit");
    // Finds the toolchain like the other tests.
    if firmware(board, "bare").is_none() {
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    for (program, name, value) in [
        ("network", "SMOLFED_WIDTH", "50"),
        ("bare", "SMOLFED_FEATURES", "120"),
    ] {
        let mut command = Command::new(env!("CARGO"));
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../firmware-example");
        command
            .current_dir(folder)
            .args(["build", "--locked", "--target", board.target])
            .args(["--release", "--bin", program, "--target-dir"])
            .arg(dir.path())
            .env_remove("RUSTFLAGS")
            .env(name, value);
        let output = command.output().expect("cargo starts");
        let said = String::from_utf8_lossy(&output.stderr);
        if said.contains("can't find crate for `core`") {
            eprintln!("SKIPPED: no library for {}", board.target);
            return;
        }
        assert!(!output.status.success(), "{program} with {name}={value}");
        let why = "need more RAM than the board has";
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn the_programs_of_a_cortex_m4f_need_no_more_flash() {
    for (name, recorded) in FLASH {
        let Some((program, _)) = firmware(named(CORTEX_M4F), name) else {
            return;
        };
        let flash = flash(&program);
        println!("{name}: {flash} bytes");
        assert_eq!(check(name, recorded, flash), Ok(()));
        for (_, limit) in LIMITS.iter().filter(|(of, _)| *of == name) {
            assert!(flash <= *limit, "{name}: {flash} bytes, at most {limit}");
        }
    }
}

/// Flash limits of the client with central trust only: board, program, bytes.
const CENTRAL_LIMITS: [(&str, &str, u32); 3] = [
    (CORTEX_M4F, "bare", 20 << 10),
    (CORTEX_M4F, "bare-integer", 20 << 10),
    ("microbit", "bare-integer", 24 << 10),
];

#[test]
fn a_client_for_central_trust_alone_fits_into_its_flash() {
    for (board, name, limit) in CENTRAL_LIMITS {
        let Some((program, _)) = firmware_with(Some(CENTRAL), named(board), name) else {
            return;
        };
        let flash = flash(&program);
        println!("{name} on {board}: {flash} bytes");
        assert!(
            flash <= limit,
            "{name} on {board}: {flash}, at most {limit}"
        );
    }
}

/// Returns the bytes of a program in flash.
fn flash(program: &Path) -> u32 {
    let bytes = std::fs::read(program).expect("the client");
    let file = object::File::parse(bytes.as_slice()).expect("an ELF file");
    let in_flash = |section: &object::Section<'_, '_>| {
        let SectionFlags::Elf { sh_flags } = section.flags() else {
            return false;
        };
        let loaded = sh_flags & u64::from(elf::SHF_ALLOC) != 0;
        loaded && section.kind() != SectionKind::UninitializedData
    };
    let flash: u64 = file
        .sections()
        .filter(in_flash)
        .map(|section| section.size())
        .sum();
    u32::try_from(flash).expect("a size")
}
