//! Fleet of a measurement: its files, its coordinator, and its devices as processes.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::options::Options;
use crate::federation::{Running, named_or_built};

/// Maximum devices per process. Each takes two open files, and systems often allow 20,000.
const DEVICES_A_PROCESS: u32 = 5_000;

/// Certificate and key of a coordinator that listens with TLS.
const CERTIFICATE: &str = "site.pem";
const KEY: &str = "site.key";

/// A fleet in a temporary folder that is removed on drop.
pub(super) struct Fleet {
    smolfed: PathBuf,
    dir: tempfile::TempDir,
    fleet: PathBuf,
    /// The run directory.
    pub(super) run: PathBuf,
    /// Port of the coordinator, unless it uses another address.
    pub(super) port: u16,
    address: Option<String>,
    has_x25519: bool,
    has_tls: bool,
}

/// Folders of devices, one for each process.
pub(super) struct Shares {
    pub(super) served: Vec<PathBuf>,
    /// The last devices, in a separate process.
    pub(super) apart: Vec<PathBuf>,
}

impl Fleet {
    /// Provisions the devices of an experiment.
    pub(super) fn provision(options: &Options, experiment: &str) -> Result<Self, Box<dyn Error>> {
        let smolfed = named_or_built(options.smolfed.as_deref(), options.feature())?;
        let dir = folder()?;
        fs::write(dir.path().join("load.toml"), experiment)?;
        let fleet = dir.path().join("fleet");
        let mut command = Command::new(&smolfed);
        command
            .arg("provision")
            .arg(dir.path().join("load.toml"))
            .args(["--devices", &format!("0..{}", options.devices)]);
        // Burned rounds count as well.
        let budget = options.all_rounds() + options.kills;
        command.args(["--budget", &budget.to_string(), "--with-data", "--out"]);
        let status = command.arg(&fleet).stdout(Stdio::null()).status()?;
        if !status.success() {
            return Err(format!("smolfed provision: {status}").into());
        }
        if options.has_tls {
            certify(dir.path())?;
        }
        Ok(Self {
            smolfed,
            run: dir.path().join("run"),
            dir,
            fleet,
            port: free_port()?,
            address: options.address.clone(),
            has_x25519: options.has_x25519,
            has_tls: options.has_tls,
        })
    }

    /// Returns the file next to the keys with this extension.
    pub(super) fn beside_keys(&self, ending: &str) -> PathBuf {
        self.fleet.join(format!("keys.toml{ending}"))
    }

    /// Returns a command for the program.
    pub(super) fn smolfed(&self) -> Command {
        Command::new(&self.smolfed)
    }

    fn address(&self) -> String {
        let here = || match self.has_tls {
            true => format!("tls:localhost:{}", self.port),
            false => format!("tcp:127.0.0.1:{}", self.port),
        };
        self.address.clone().unwrap_or_else(here)
    }

    /// Adds options, each with a certificate file.
    fn with_certificate(&self, command: &mut Command, files: &[(&str, &str)]) {
        for (option, file) in files.iter().filter(|_| self.has_tls) {
            command.arg(option).arg(self.dir.path().join(file));
        }
    }

    /// Starts the coordinator.
    pub(super) fn serve(&self, more: &[&str]) -> Result<Running, Box<dyn Error>> {
        let mut command = self.smolfed();
        command.arg("serve").arg(self.dir.path().join("load.toml"));
        command.arg("--keys").arg(self.beside_keys(""));
        command.args(["--listen", &self.address(), "--simulated", "0"]);
        let files = [("--tls-certificate", CERTIFICATE), ("--tls-key", KEY)];
        self.with_certificate(&mut command, &files);
        command.args(more).arg("--out").arg(&self.run);
        command.stdout(Stdio::null());
        Ok(Running(command.spawn()?))
    }

    /// Restarts the coordinator after it was killed.
    pub(super) fn resume(&self) -> Result<Running, Box<dyn Error>> {
        let mut command = self.smolfed();
        command.args(["serve", "--resume"]).arg(&self.run);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Running(command.spawn()?))
    }

    /// Starts a process with the devices of a folder.
    pub(super) fn client(&self, share: &Path) -> Result<Running, Box<dyn Error>> {
        let mut command = self.smolfed();
        command.args(["device", "--model", "softmax:64x10"]);
        self.with_certificate(&mut command, &[("--tls-ca", CERTIFICATE)]);
        command.args(["--connect", &self.address(), "--provision"]);
        command
            .arg(share)
            .args(self.has_x25519.then_some("--x25519"))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Ok(Running(command.spawn()?))
    }

    /// Moves the device files to one folder per process. The last `apart` devices are separate.
    pub(super) fn shares(&self, devices: u32, apart: u32) -> Result<Shares, Box<dyn Error>> {
        let served = devices - apart;
        let processes = served.div_ceil(DEVICES_A_PROCESS);
        let shares = (0..processes).map(|process| {
            let numbers = (process..served).step_by(processes as usize);
            self.share(&process.to_string(), numbers)
        });
        let last = (apart > 0).then(|| self.share("apart", served..devices));
        Ok(Shares {
            served: shares.collect::<Result<_, _>>()?,
            apart: last.into_iter().collect::<Result<_, _>>()?,
        })
    }

    fn share(
        &self,
        name: &str,
        devices: impl Iterator<Item = u32>,
    ) -> Result<PathBuf, Box<dyn Error>> {
        let share = self.fleet.join(format!("share-{name}"));
        fs::create_dir(&share)?;
        for device in devices {
            for ending in ["bin", "ledger"] {
                let name = format!("device-{device}.{ending}");
                fs::rename(self.fleet.join(&name), share.join(&name))?;
            }
        }
        Ok(share)
    }
}

/// Creates a self-signed certificate for this machine.
fn certify(dir: &Path) -> Result<(), Box<dyn Error>> {
    let options = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \
                   -subj /CN=localhost -addext subjectAltName=DNS:localhost \
                   -addext basicConstraints=critical,CA:FALSE -keyout";
    let mut command = Command::new("openssl");
    command.args(options.split_whitespace()).arg(dir.join(KEY));
    command.arg("-out").arg(dir.join(CERTIFICATE));
    let output = command
        .output()
        .map_err(|error| format!("openssl (apt-get install openssl): {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("openssl: {}", String::from_utf8_lossy(&output.stderr)).into()),
    }
}

/// Returns a folder in memory if possible. The ledgers of all devices are synced in every round, so
/// a disk would dominate the measurement.
fn folder() -> Result<tempfile::TempDir, Box<dyn Error>> {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() {
        tempfile::tempdir_in(memory)
    } else {
        tempfile::tempdir()
    };
    Ok(folder?)
}

/// Returns a port that is currently free.
pub(super) fn free_port() -> Result<u16, Box<dyn Error>> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    Ok(listener.local_addr()?.port())
}
