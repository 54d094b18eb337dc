//! `cargo xtask load`: `smolfed serve` under the load of many devices on the same machine.
//!
//! The devices are processes of `smolfed device`, each with a share of the fleet. They run the
//! boards' client, with their own keys, ledgers and samples, over real sockets. They share the
//! processors with the coordinator, so the figures show one machine running both.
//!
//! | option | measurement |
//! | --- | --- |
//! | none | rounds, updates per second, processor time, memory |
//! | `--address mqtt:..` | the same over a broker, or at a socket |
//! | `--stalled N` | the same with devices that stop answering, with `--quorum SHARE` or without |
//! | `--silent N`, `--garbage MB` | the same with connections from strangers |
//! | `--kills N` | the records of a coordinator that is killed and resumed |
//! | `--x25519` | the same with X25519 handshakes |
//! | `--tls` | the same over TLS |
//! | `--smolfed PATH` | this program, instead of building one: to compare two versions |
//! | `--memory` | memory per connection with a session |

mod books;
mod disturbance;
mod fleet;
mod memory;
mod options;
mod process;

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Instant;

use serde_json::{Value, json};

use crate::federation::Running;
use disturbance::Disturbance;
use fleet::{Fleet, Shares};
use options::{INTERVAL, Options, PATIENCE};
use process::{Usage, lines, rounded};

/// Runs the command.
pub fn run(arguments: &[&str]) -> Result<(), Box<dyn Error>> {
    let options = Options::read(arguments)?;
    let measured = match (options.is_memory, options.kills) {
        (true, _) => memory::measure(&options)?,
        (false, 0) => measure(&options)?,
        (false, kills) => books::measure(&options, kills)?,
    };
    if options.is_json {
        println!("{measured}");
    } else if let Some(fields) = measured.as_object() {
        for (name, value) in fields {
            println!("{:28} {value}", name.replace('_', " "));
        }
    }
    Ok(())
}

fn measure(options: &Options) -> Result<Value, Box<dyn Error>> {
    let fleet = Fleet::provision(options, &options.experiment())?;
    let Shares { served, apart } = fleet.shares(options.devices, options.stalled)?;
    let mut more = vec!["--timeout", &options.timeout];
    if let Some(quorum) = &options.quorum {
        more.extend(["--quorum", quorum]);
    }
    let mut server = fleet.serve(&more)?;
    let disturbance = Disturbance::start(fleet.port, options.silent, options.garbage_mb)?;
    let clients: Result<Vec<Running>, _> = served.iter().map(|share| fleet.client(share)).collect();
    let stalled: Result<Vec<Running>, _> = apart.iter().map(|share| fleet.client(share)).collect();
    let (clients, stalled) = (clients?, stalled?);
    let usage = watch(&mut server, &fleet.run.join("metrics.jsonl"), &stalled)?;
    drop((clients, stalled));
    let mut measured = summary(options.devices, &fleet.run, &usage)?;
    if let Some(fields) = measured.as_object_mut() {
        fields.insert("stalled".to_owned(), options.stalled.into());
        fields.insert("quorum".to_owned(), json!(options.quorum));
        fields.insert("silent_connections".to_owned(), options.silent.into());
        fields.insert("garbage_mb".to_owned(), disturbance.sent_mb().into());
    }
    Ok(measured)
}

/// Waits for the coordinator to exit. Suspends the stalled devices after its first round.
fn watch(
    server: &mut Running,
    metrics: &Path,
    stalled: &[Running],
) -> Result<Usage, Box<dyn Error>> {
    let begun = Instant::now();
    let mut usage = Usage::default();
    let mut is_stalled = stalled.is_empty();
    loop {
        if let Some(status) = server.0.try_wait()? {
            return match status.success() {
                true => Ok(usage),
                false => Err(format!("smolfed serve: {status}").into()),
            };
        }
        let rounds = fs::read_to_string(metrics).map_or(0, |text| text.lines().count());
        usage.look_at(server.0.id(), rounds < 2);
        if rounds > 0 && !is_stalled {
            is_stalled = true;
            for device in stalled {
                let id = device.0.id().to_string();
                Command::new("kill").args(["-STOP", &id]).status()?;
            }
        }
        if begun.elapsed() > PATIENCE {
            return Err("the rounds took more than 15 minutes".into());
        }
        sleep(INTERVAL);
    }
}

fn summary(devices: u32, run: &Path, usage: &Usage) -> Result<Value, Box<dyn Error>> {
    let metrics = lines(&run.join("metrics.jsonl"))?;
    let seconds = metrics
        .iter()
        .skip(1)
        .filter_map(|round| round["seconds"].as_f64());
    let mut seconds: Vec<f64> = seconds.collect();
    let total: f64 = seconds.iter().sum();
    seconds.sort_by(f64::total_cmp);
    let median = seconds.get(seconds.len() / 2).copied().unwrap_or_default();
    let participation = lines(&run.join("participation.jsonl"))?;
    let count = |round: &Value| round["answered"].as_array().map_or(0, Vec::len);
    let answered: usize = participation.iter().skip(1).map(count).sum();
    let drawn = devices as usize * participation.len();
    let lost = drawn - participation.iter().map(count).sum::<usize>();
    let updates = answered.max(1) as f64;
    Ok(json!({
        "devices": devices,
        "rounds": seconds.len(),
        "round_seconds_median": rounded(median, 3),
        "round_seconds_longest": rounded(seconds.last().copied().unwrap_or_default(), 3),
        "updates_per_second": rounded(updates / total, 0),
        "server_cpu_ms_per_update": rounded((usage.all - usage.first) * 1e3 / updates, 3),
        "rss_mb": rounded(usage.resident as f64 / 1e6, 1),
        "lost": lost,
    }))
}
