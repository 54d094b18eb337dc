//! Memory of a connection with an idle session, for devices outside the cohort.

use std::error::Error;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::fleet::{Fleet, Shares, free_port};
use super::options::{INTERVAL, Options, PATIENCE, experiment};
use super::process::{resident, rounded};

/// Enough rounds that the run does not end during the measurement.
const ROUNDS: u32 = 1_000_000;

/// Time after which the allocator has released the memory used for connecting.
const PAUSE: Duration = Duration::from_secs(3);

/// Measures memory with half of the devices connected, and with all of them. Their keys and records
/// are loaded before, so the difference is the memory of connections and sessions.
pub(super) fn measure(options: &Options) -> Result<Value, Box<dyn Error>> {
    // One device per round, out of all: nearly all sessions are idle.
    let cohort = "sampling = \"uniform\"\ncohort_size = 1";
    let fleet = Fleet::provision(options, &experiment(options.devices, ROUNDS, cohort))?;
    let half = options.devices / 2;
    let Shares { served, apart } = fleet.shares(options.devices, options.devices - half)?;
    let page = free_port()?;
    let address = format!("127.0.0.1:{page}");
    let server = fleet.serve(&["--timeout", &options.timeout, "--http", &address])?;
    let mut clients = Vec::new();
    let mut residents = Vec::new();
    for (shares, connected) in [(served, half), (apart, options.devices)] {
        for share in &shares {
            clients.push(fleet.client(share)?);
        }
        wait_for(page, connected)?;
        sleep(PAUSE);
        residents.push(resident(server.0.id(), "VmRSS:").ok_or("no /proc")? as f64);
    }
    drop(clients);
    let connections = f64::from(options.devices - half);
    let bytes = (residents[1] - residents[0]) / connections;
    Ok(json!({
        "devices": options.devices,
        "rss_mb_half_connected": rounded(residents[0] / 1e6, 1),
        "rss_mb_all_connected": rounded(residents[1] / 1e6, 1),
        "bytes_per_connection": rounded(bytes, 0),
    }))
}

/// Waits until `devices` devices have a session.
fn wait_for(page: u16, devices: u32) -> Result<(), Box<dyn Error>> {
    let begun = Instant::now();
    while connected(page).is_none_or(|connected| connected < f64::from(devices)) {
        if begun.elapsed() > PATIENCE {
            return Err("the devices did not connect".into());
        }
        sleep(INTERVAL);
    }
    Ok(())
}

/// Returns the number of devices with a session, as counted by `/metrics`.
fn connected(page: u16) -> Option<f64> {
    let mut stream = TcpStream::connect(("127.0.0.1", page)).ok()?;
    let host = format!("Host: 127.0.0.1:{page}");
    write!(
        stream,
        "GET /metrics HTTP/1.1\r\n{host}\r\nConnection: close\r\n\r\n"
    )
    .ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let figure = text
        .lines()
        .find_map(|line| line.strip_prefix("smolfed_devices_connected "));
    figure?.trim().parse().ok()
}
