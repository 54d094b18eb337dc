//! A federation of one emulated board and simulated devices.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::board::Board;
use crate::toolchain::{plain_cargo, root};

/// Simulated devices of the built-in experiment: the board is number 0 of 100.
pub const SIMULATED: &str = "99";

/// Settings of a federation for a board.
pub struct Federation {
    /// The experiment's file. `None` selects the built-in experiment.
    file: Option<PathBuf>,
    settings: Vec<&'static str>,
    simulated: &'static str,
    /// Whether the board receives samples. Otherwise it uses its sensor's.
    has_data: bool,
}

impl Federation {
    /// Returns a short run of the built-in experiment.
    pub fn built_in() -> Self {
        Self {
            file: None,
            settings: vec![
                "name=board",
                "rounds=10",
                "cohort.sampling_rate=0.8",
                "privacy.epsilon=4",
                "data.devices=100",
            ],
            simulated: SIMULATED,
            has_data: true,
        }
    }

    /// Returns the built-in experiment with a board that computes image features of its own camera.
    pub fn of_camera(board: &Board, program: &str) -> Self {
        let mut federation = Self::built_in();
        federation.has_data = false;
        let settings = &mut federation.settings;
        if program != "gradients" {
            settings.push("simulation.arithmetic=integer");
        }
        // The backbone has as many features as an image has pixels.
        if program != "backbone" {
            let is_small = board.ram.length < SMALL_RAM;
            let cell = if is_small {
                "features.cell=4"
            } else {
                "features.cell=2"
            };
            settings.extend(["features.kind=gradients", cell]);
        }
        federation
    }

    /// Returns five rounds of this board's network of `firmware-example/src/network.rs`, with
    /// simulated windows, in a folder.
    pub fn of_network(board: &Board, dir: &Path) -> Result<Self, Box<dyn Error>> {
        let is_small = board.ram.length < SMALL_RAM;
        let (width, channels) = if is_small {
            (25, [4, 8])
        } else {
            (50, [8, 16])
        };
        let mut windows = "who,class".to_owned();
        for feature in 0..6 * width {
            write!(windows, ",f{feature}")?;
        }
        for (device, class) in (0..4).flat_map(|device| (0..7).map(move |class| (device, class))) {
            write!(windows, "\n{device},{class}")?;
            for feature in 0..6 * width {
                let at = (feature * (3 + class) + device * 11) % 97;
                write!(windows, ",{}", f64::from(at) / 50.0 - 1.0)?;
            }
        }
        std::fs::write(dir.join("windows.csv"), windows + "\n")?;
        let along_time = |channels| {
            format!("{{ type = \"convolution\", channels = {channels}, kernel = [1, 5] }}")
        };
        let [first, second] = channels.map(along_time);
        let file = dir.join("experiment.toml");
        let text = format!(
            "name = \"board\"\nmethod = \"dp-fed\"\nrounds = 5\n[data]\nsource = \"csv\"\n\
             path = \"windows.csv\"\nlabel = \"class\"\ndevice_column = \"who\"\ntest = 0\n\
             [model]\ninput = [6, 1, {width}]\nlayers = [{first}, {{ type = \"relu\" }}, \
             {{ type = \"max-pool\", size = [1, 2] }}, {second}, {{ type = \"relu\" }}, \
             {{ type = \"global-average\" }}]\n[train]\nepochs = 1\n\
             [cohort]\nsampling = \"full\"\n\
             [privacy]\nnoise_multiplier = 1.0\nclip_norm = 1.0\ntrust = \"local\"\n"
        );
        std::fs::write(&file, text)?;
        Ok(Self {
            file: Some(file),
            settings: Vec::new(),
            simulated: "3",
            has_data: true,
        })
    }

    /// Returns `smolfed SUBCOMMAND` for the experiment.
    fn command(&self, smolfed: &Path, subcommand: &str) -> Command {
        let mut command = Command::new(smolfed);
        command.arg(subcommand).args(&self.file);
        for setting in &self.settings {
            command.args(["--set", setting]);
        }
        command
    }
}

/// Bytes of RAM below which a board uses the smaller network, as in `firmware-example/build.rs`.
pub const SMALL_RAM: u32 = 32 << 10;

/// A process that is killed on drop.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Builds the program, with a cargo feature if needed, and returns its path.
pub fn smolfed(feature: Option<&str>) -> Result<PathBuf, Box<dyn Error>> {
    let mut command = plain_cargo();
    command
        .current_dir(root())
        .args(["build", "--release", "--locked", "-p", "smolfed"]);
    if let Some(feature) = feature {
        command.args(["--features", feature]);
    }
    succeed(&mut command)?;
    let dir = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    Ok(root().join(dir).join("release/smolfed"))
}

/// Returns the command line at `given`, which must have this version. Without `given`, builds it,
/// with a cargo feature if needed. Two checkouts may have the same version, so an existing program
/// must be named explicitly.
///
/// # Errors
/// If the program at `given` does not run or has another version, or if the build fails.
pub fn named_or_built(
    given: Option<&Path>,
    feature: Option<&str>,
) -> Result<PathBuf, Box<dyn Error>> {
    let Some(path) = given else {
        eprintln!(
            "xtask: building the command line, which takes minutes: --smolfed PATH names one"
        );
        return smolfed(feature);
    };
    let expected = concat!("smolfed ", env!("CARGO_PKG_VERSION"));
    let path = std::path::absolute(path)?;
    match version(&path) {
        Some(found) if found == expected => Ok(path),
        Some(found) => Err(format!("{} is {found}, not {expected}", path.display()).into()),
        None => Err(format!("{} --version does not run", path.display()).into()),
    }
}

/// Returns the first line of `PROGRAM --version`, if the program runs.
fn version(program: &Path) -> Option<String> {
    let output = Command::new(program).arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let line = text.lines().next()?.trim().to_owned();
    output.status.success().then_some(line)
}

/// Provisions the board as device 0, with its share of the data, and starts the client on it.
pub fn provisioned(
    federation: &Federation,
    board: &Board,
    client: &Path,
    smolfed: &Path,
    dir: &Path,
    more: impl FnOnce(&mut Command),
) -> Result<Running, Box<dyn Error>> {
    let mut command = federation.command(smolfed, "provision");
    command.args(["--devices", "0..1"]);
    if federation.has_data {
        command.arg("--with-data");
    }
    let fleet = dir.join("fleet");
    command.stdout(Stdio::null());
    succeed(command.arg("--out").arg(&fleet))?;
    let mut command = board.client(client, dir, &fleet.join("device-0"))?;
    more(&mut command);
    let running = command.spawn().map_err(|error| board.no_emulator(&error))?;
    Ok(Running(running))
}

/// Runs the rounds over the board's serial line.
pub fn serve(
    federation: &Federation,
    smolfed: &Path,
    dir: &Path,
    output: Stdio,
) -> Result<(), Box<dyn Error>> {
    let mut command = federation.command(smolfed, "serve");
    command.arg("--keys").arg(dir.join("fleet/keys.toml"));
    let line = format!("unix:{}", dir.join("line").display());
    command.args(["--device", &line, "--timeout", "60s"]);
    command.args(["--simulated", federation.simulated]);
    succeed(command.arg("--out").arg(dir.join("run")).stdout(output))
}

pub fn succeed(command: &mut Command) -> Result<(), Box<dyn Error>> {
    let status = command.status()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{}: {status}", command.get_program().display()).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_smolfed_is_refused_by_its_version() {
        let cargo = std::env::var_os("CARGO").unwrap();
        let error = named_or_built(Some(Path::new(&cargo)), None).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(" is cargo "), "{text}");
        assert!(
            text.ends_with(concat!("not smolfed ", env!("CARGO_PKG_VERSION"))),
            "{text}"
        );
    }

    #[test]
    fn a_missing_program_is_refused() {
        let error = named_or_built(Some(Path::new("/nowhere/smolfed")), None).unwrap_err();
        assert_eq!(error.to_string(), "/nowhere/smolfed --version does not run");
    }
}
