//! Selection of a target's toolchain, and the firmware built with it.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// Debian packages: a compiler, its library sources, and a linker.
const PACKAGES: &str = "rustc-web cargo-web rust-web-src lld";

/// The target has no toolchain.
#[derive(Debug)]
pub struct Missing(String);

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self(target) = self;
        write!(
            f,
            "no library for {target}: rustup target add {target}, or apt-get install {PACKAGES}"
        )
    }
}

impl Error for Missing {}

/// A variant of the firmware build.
pub struct Variant<'a> {
    /// The folder of its workspace, relative to the repository root.
    pub workspace: &'a str,
    /// The folder in `target/` for its programs.
    pub folder: &'static str,
    /// Overrides the profile's "s".
    pub opt_level: Option<&'static str>,
    pub features: &'static [&'static str],
    /// Whether the default features are enabled.
    pub is_whole: bool,
    /// Programs to build, or all if empty.
    pub programs: &'static [&'static str],
    /// The public key of the publisher, in hexadecimal digits, for programs that only infer.
    pub publisher: Option<&'static str>,
}

impl Variant<'_> {
    /// The default build of users.
    pub const DEFAULT: Self = Self {
        workspace: "firmware-example",
        folder: "firmware",
        opt_level: None,
        features: &[],
        is_whole: true,
        programs: &[],
        publisher: None,
    };

    /// The self-tests and the bench, in addition to the users' programs.
    pub const TESTS: Self = Self {
        features: &["hazmat"],
        programs: &["selftest", "shapes", "bench"],
        ..Self::DEFAULT
    };

    /// The client with X25519 handshakes.
    pub const X25519: Self = Self {
        folder: "firmware-x25519",
        features: &["x25519"],
        programs: &["client"],
        ..Self::DEFAULT
    };

    /// The client with its secrets in a secure element.
    pub const ELEMENT: Self = Self {
        folder: "firmware-element",
        features: &["element"],
        programs: &["client"],
        ..Self::DEFAULT
    };

    /// The client in a product, with the losses and norms of its rounds.
    pub const REPORTS: Self = Self {
        folder: "firmware-reports",
        features: &["reports"],
        programs: &["monitor"],
        ..Self::DEFAULT
    };

    /// The client for rounds with central trust only.
    pub const CENTRAL: Self = Self {
        folder: "firmware-central",
        is_whole: false,
        programs: &["bare", "bare-integer", "client"],
        ..Self::DEFAULT
    };

    /// The client whose updates are unmasked by helpers.
    pub const MASKS: Self = Self {
        folder: "firmware-masks",
        features: &["masks"],
        programs: &["client"],
        ..Self::DEFAULT
    };

    /// The clients that answer questions.
    pub const QUESTIONS: Self = Self {
        folder: "firmware-questions",
        features: &["questions"],
        programs: &["client", "integer"],
        ..Self::DEFAULT
    };

    /// The clients that accept 16-bit models.
    pub const SHORT: Self = Self {
        folder: "firmware-short",
        features: &["short"],
        programs: &["client", "integer"],
        ..Self::DEFAULT
    };

    /// The program that only infers, for a publisher whose secret key is 32 bytes of 1: the tests'.
    pub const DELIVERY: Self = Self {
        folder: "firmware-delivery",
        features: &["delivery"],
        programs: &["infer"],
        publisher: Some("8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c"),
        ..Self::DEFAULT
    };

    /// Returns the Embassy client for one board, with the board's name as feature and program.
    pub const fn embassy(board: &'static [&'static str]) -> Self {
        Self {
            workspace: "firmware-example/embassy",
            folder: "firmware-embassy",
            features: board,
            programs: board,
            ..Self::DEFAULT
        }
    }
}

/// Returns the root of the workspace.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// Returns cargo's output folder.
pub fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root().join("target"), |dir| root().join(dir))
}

/// Builds the firmware. Returns the folder of its programs.
pub fn firmware(target: &str, variant: &Variant<'_>) -> Result<PathBuf, Box<dyn Error>> {
    let mut command = cargo(target, "build")?;
    command
        .current_dir(root().join(variant.workspace))
        .args(["--release", "--locked", "--target", target, "--target-dir"])
        // All variants share the compiled dependencies.
        .arg(target_dir().join("bare-metal").join(target))
        .args(["--message-format", "json-render-diagnostics"])
        .stdout(Stdio::piped())
        // Host flags do not apply to the board.
        .env_remove("RUSTFLAGS");
    if let Some(level) = variant.opt_level {
        command.args(["--config", &format!("profile.release.opt-level={level}")]);
    }
    if !variant.is_whole {
        command.arg("--no-default-features");
    }
    for feature in variant.features {
        command.args(["--features", feature]);
    }
    for program in variant.programs {
        command.args(["--bin", program]);
    }
    if let Some(key) = variant.publisher {
        command.env("SMOLFED_PUBLISHER", key);
    }
    let output = command.spawn()?.wait_with_output()?;
    if !output.status.success() {
        return Err(format!("the firmware for {target} was not built").into());
    }
    let folder = target_dir().join(variant.folder);
    let folder = folder.join(target).join("release");
    fs::create_dir_all(&folder)?;
    for program in programs(&output.stdout) {
        fs::copy(
            &program,
            folder.join(program.file_name().unwrap_or_default()),
        )?;
    }
    Ok(folder)
}

/// Returns the paths of the programs that cargo has built, from its messages.
fn programs(messages: &[u8]) -> Vec<PathBuf> {
    let messages = messages.split(|byte| *byte == b'\n');
    let messages = messages.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    messages
        .filter_map(|message| message["executable"].as_str().map(PathBuf::from))
        .collect()
}

/// Returns the targets that have a toolchain, possibly after its installation. Prints which ones
/// have none, and returns the last of them.
pub fn with_toolchains<'a>(targets: &[&'a str]) -> (Vec<&'a str>, Option<Missing>) {
    let (mut found, mut last) = (Vec::new(), None);
    for target in targets {
        match cargo(target, "build") {
            Ok(_) => found.push(*target),
            Err(missing) => {
                eprintln!("xtask: {missing}");
                last = Some(missing);
            }
        }
    }
    (found, last)
}

/// Returns cargo without the variables that `cargo run` sets for this program. Build scripts that
/// read them would run again, and cargo would compile their crates twice.
pub fn plain_cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// Returns `cargo build`, or another build command, with a toolchain that has the target's library
/// or can build it.
pub fn cargo(target: &str, subcommand: &str) -> Result<Command, Missing> {
    if installed(target) || added(target) {
        let mut command = plain_cargo();
        command.arg(subcommand);
        return Ok(command);
    }
    let debian = ["/usr/bin/rustc", "/usr/bin/cargo", "/usr/bin/ld.lld"];
    let sources = "/usr/lib/rustlib/src/rust/library/core";
    if !debian
        .into_iter()
        .chain([sources])
        .all(|path| Path::new(path).exists())
    {
        return Err(Missing(target.to_owned()));
    }
    eprintln!(
        "no library for {target} is installed; building it from Debian's sources (rust-web-src)"
    );
    let mut command = Command::new("/usr/bin/cargo");
    let linker = target.replace(['-', '.'], "_").to_uppercase();
    command
        .args([subcommand, "-Zbuild-std=core"])
        .env(format!("CARGO_TARGET_{linker}_LINKER"), "ld.lld")
        // The library's sources need the matching stable compiler, which refuses -Z without this
        // variable.
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTC", "/usr/bin/rustc")
        // Both select the toolchain that runs this program.
        .env_remove("RUSTUP_TOOLCHAIN")
        .env_remove("CARGO");
    Ok(command)
}

/// Returns whether the compiler has the target's library.
fn installed(target: &str) -> bool {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output();
    let Some(sysroot) = output
        .ok()
        .and_then(|output| String::from_utf8(output.stdout).ok())
    else {
        return false;
    };
    let library = Path::new(sysroot.trim())
        .join("lib/rustlib")
        .join(target)
        .join("lib");
    library.exists()
}

/// Returns whether rustup could install the library.
fn added(target: &str) -> bool {
    let status = Command::new("rustup")
        .args(["target", "add", target])
        .status();
    status.is_ok_and(|status| status.success()) && installed(target)
}
