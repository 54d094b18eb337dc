//! `cargo xtask load`: `smolfed serve` under the load of many devices on the same machine.
//!
//! The devices are processes of `smolfed device`, each with a share of the fleet: the client of
//! boards, with its own keys, ledgers and samples, over real sockets. They share the processors
//! with the coordinator, so that the figures are what a machine does for both.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::federation::{Running, smolfed};

/// Devices of a process at most: each takes two open files, of the 20,000 that systems often allow.
const DEVICES_A_PROCESS: u32 = 5_000;

/// Rounds that are measured. One more comes before, in which devices connect.
const ROUNDS: u32 = 5;

/// How often the processes are looked at.
const INTERVAL: Duration = Duration::from_millis(20);

/// How long a round may take, and all of it.
const TIMEOUT: &str = "120s";
const PATIENCE: Duration = Duration::from_secs(900);

/// Clock ticks of `/proc/PID/stat` in a second, which Linux has fixed for programs.
const TICKS: f64 = 100.0;

/// Runs the command: `--devices N`, `--rounds N`, `--json`.
pub fn run(arguments: &[&str]) -> Result<(), Box<dyn Error>> {
    let (mut devices, mut rounds, mut is_json) = (1_000, ROUNDS, false);
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match *word {
            "--devices" => devices = number(words.next())?,
            "--rounds" => rounds = number(words.next())?,
            "--json" => is_json = true,
            other => return Err(format!("{other}: {USAGE}").into()),
        }
    }
    let measured = measure(devices, rounds)?;
    if is_json {
        println!("{measured}");
    } else if let Some(fields) = measured.as_object() {
        for (name, value) in fields {
            println!("{:28} {value}", name.replace('_', " "));
        }
    }
    Ok(())
}

const USAGE: &str = "cargo xtask load [--devices N] [--rounds N] [--json]";

fn number(word: Option<&&str>) -> Result<u32, Box<dyn Error>> {
    let number = word.and_then(|word| word.parse().ok());
    let number = number.filter(|number| *number > 0);
    Ok(number.ok_or(USAGE)?)
}

fn measure(devices: u32, rounds: u32) -> Result<Value, Box<dyn Error>> {
    let smolfed = smolfed()?;
    let dir = folder()?;
    let experiment = dir.path().join("load.toml");
    fs::write(&experiment, text(devices, rounds + 1))?;
    let fleet = provision(&smolfed, &experiment, dir.path(), devices)?;
    let port = free_port()?;
    let address = format!("tcp:127.0.0.1:{port}");
    let run = dir.path().join("run");
    let mut command = Command::new(&smolfed);
    command
        .arg("serve")
        .arg(&experiment)
        .arg("--keys")
        .arg(fleet.join("keys.toml"));
    command.args([
        "--listen",
        &address,
        "--simulated",
        "0",
        "--timeout",
        TIMEOUT,
    ]);
    command
        .arg("--out")
        .arg(&run)
        .stdout(Stdio::null())
        .stderr(Stdio::inherit());
    let mut server = Running(command.spawn()?);
    let mut clients = Vec::new();
    for share in shares(&fleet, devices)? {
        let mut command = Command::new(&smolfed);
        command.args(["device", "--model", "softmax:64x10", "--connect", &address]);
        command.arg("--provision").arg(share);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        clients.push(Running(command.spawn()?));
    }
    let usage = watch(&mut server, &run.join("metrics.jsonl"))?;
    drop(clients);
    summary(devices, &run, &usage)
}

/// A folder in memory where there is one: the ledgers of all devices are synced in every round, and
/// a disk would be what is measured.
fn folder() -> Result<tempfile::TempDir, Box<dyn Error>> {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() {
        tempfile::tempdir_in(memory)
    } else {
        tempfile::tempdir()
    };
    Ok(folder?)
}

/// The experiment: 650 parameters, all devices in each round, an update of 20 bits a parameter.
fn text(devices: u32, rounds: u32) -> String {
    format!(
        "name = \"load\"\nmethod = \"dp-fed\"\nrounds = {rounds}\n[data]\nsource = \"synthetic\"\n\
         kind = \"tasks\"\ndevices = {devices}\nfeatures = 64\nclasses = 10\n\
         samples_per_device = 2\ntest = 200\n[cohort]\nsampling = \"full\"\n[train]\nepochs = 1\n\
         [privacy]\nnoise_multiplier = 1.0\nclip_norm = 0.3\n"
    )
}

fn provision(
    smolfed: &Path,
    experiment: &Path,
    dir: &Path,
    devices: u32,
) -> Result<PathBuf, Box<dyn Error>> {
    let fleet = dir.join("fleet");
    let mut command = Command::new(smolfed);
    command
        .arg("provision")
        .arg(experiment)
        .args(["--devices", &format!("0..{devices}")]);
    command
        .arg("--with-data")
        .arg("--out")
        .arg(&fleet)
        .stdout(Stdio::null());
    let status = command.status()?;
    if !status.success() {
        return Err(format!("smolfed provision: {status}").into());
    }
    Ok(fleet)
}

/// The files of the fleet in folders of one process each.
fn shares(fleet: &Path, devices: u32) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let processes = devices.div_ceil(DEVICES_A_PROCESS);
    let mut shares = Vec::new();
    for process in 0..processes {
        let share = fleet.join(format!("share-{process}"));
        fs::create_dir(&share)?;
        for device in (process..devices).step_by(processes as usize) {
            for ending in ["bin", "ledger"] {
                let name = format!("device-{device}.{ending}");
                fs::rename(fleet.join(&name), share.join(&name))?;
            }
        }
        shares.push(share);
    }
    Ok(shares)
}

fn free_port() -> Result<u16, Box<dyn Error>> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    Ok(listener.local_addr()?.port())
}

/// What the coordinator took while rounds were measured.
struct Usage {
    /// Seconds of processors, of the first round and of all.
    first: f64,
    all: f64,
    /// The largest resident set, in bytes.
    resident: u64,
}

/// Waits for the end of the coordinator.
fn watch(server: &mut Running, metrics: &Path) -> Result<Usage, Box<dyn Error>> {
    let process = PathBuf::from(format!("/proc/{}", server.0.id()));
    let begun = Instant::now();
    let mut usage = Usage {
        first: 0.0,
        all: 0.0,
        resident: 0,
    };
    loop {
        if let Some(status) = server.0.try_wait()? {
            return match status.success() {
                true => Ok(usage),
                false => Err(format!("smolfed serve: {status}").into()),
            };
        }
        if let Some(seconds) = processor_seconds(&process) {
            usage.all = seconds;
            let rounds = fs::read_to_string(metrics).map_or(0, |text| text.lines().count());
            if rounds < 2 {
                usage.first = seconds;
            }
        }
        usage.resident = resident(&process).unwrap_or(usage.resident);
        if begun.elapsed() > PATIENCE {
            return Err("the rounds took more than 15 minutes".into());
        }
        sleep(INTERVAL);
    }
}

/// Seconds of processors that a process has used, in user and in system mode.
fn processor_seconds(process: &Path) -> Option<f64> {
    let stat = fs::read_to_string(process.join("stat")).ok()?;
    // The name of the program, in parentheses, may contain blanks. After it comes field 3.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |field: usize| fields.get(field - 3)?.parse::<f64>().ok();
    Some((ticks(14)? + ticks(15)?) / TICKS)
}

/// The largest resident set so far, in bytes.
fn resident(process: &Path) -> Option<u64> {
    let status = fs::read_to_string(process.join("status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(1024 * kilobytes)
}

fn summary(devices: u32, run: &Path, usage: &Usage) -> Result<Value, Box<dyn Error>> {
    let lines = |name| -> Result<Vec<Value>, Box<dyn Error>> {
        let text = fs::read_to_string(run.join(name))?;
        Ok(text
            .lines()
            .map(serde_json::from_str)
            .collect::<Result<_, _>>()?)
    };
    let metrics = lines("metrics.jsonl")?;
    let seconds = metrics
        .iter()
        .skip(1)
        .filter_map(|round| round["seconds"].as_f64());
    let mut seconds: Vec<f64> = seconds.collect();
    let total: f64 = seconds.iter().sum();
    seconds.sort_by(f64::total_cmp);
    let median = seconds.get(seconds.len() / 2).copied().unwrap_or_default();
    let participation = lines("participation.jsonl")?;
    let count = |round: &Value| round["answered"].as_array().map_or(0, Vec::len);
    let answered: usize = participation.iter().skip(1).map(count).sum();
    let drawn = devices as usize * participation.len();
    let lost = drawn - participation.iter().map(count).sum::<usize>();
    let updates = answered.max(1) as f64;
    let rounded = |value: f64, digits: i32| {
        let scale = 10f64.powi(digits);
        (value * scale).round() / scale
    };
    Ok(json!({
        "devices": devices,
        "rounds": seconds.len(),
        "round_seconds_median": rounded(median, 3),
        "updates_per_second": rounded(updates / total, 0),
        "server_cpu_ms_per_update": rounded((usage.all - usage.first) * 1e3 / updates, 3),
        "rss_mb": rounded(usage.resident as f64 / 1e6, 1),
        "lost": lost,
    }))
}
