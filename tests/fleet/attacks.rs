//! Attackers on the network, without keys: silent connections, floods, and recorded greetings.
//! Every device takes part in every round, and the model is that of an undisturbed simulation.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use smolfed_core::crypto::Key;
use smolfed_core::wire::greeting::{Greeting, Hello, Name, Versions};
use smolfed_core::wire::keys::{Chain, ChainKey};

use super::device::Device;
use super::{FULL, assert_is_the_simulation, part_of, provision, wait};
use crate::program::{Outcome, Place, wait_until};

const ROUNDS: u64 = 5;

/// A coordinator at a TCP address. Attackers connect before the devices do.
struct Besieged {
    place: Place,
    address: String,
    arguments: String,
    coordinator: std::process::Child,
}

impl Besieged {
    fn start(options: &str) -> Self {
        let place = Place::new();
        let settings = format!("{FULL} --set rounds={ROUNDS}");
        provision(&place, &settings);
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap().to_string();
        drop(free);
        let arguments = format!(
            "serve --keys fleet/keys.toml --listen tcp:{address} --simulated 50 --seed 7 \
             --timeout 100s --out served --json {settings} {options}"
        );
        let coordinator = place.start(&arguments);
        wait_until(|| TcpStream::connect(&address).is_ok());
        Self {
            place,
            address,
            arguments,
            coordinator,
        }
    }

    /// Lets the devices join, and asserts that no round misses one.
    fn assert_serves_all(self) -> Outcome {
        let connect = format!("--connect tcp:{}", self.address);
        let devices = (0..4).map(|device| Device::start_at(&self.place, device, &connect));
        let devices: Vec<Device> = devices.collect();
        let outcome = wait(self.coordinator, &self.arguments).success();
        for device in 0..4 {
            let (answered, missing) = part_of(&self.place, "served", device);
            assert_eq!(missing, [""; 0], "device {device}: {outcome}");
            assert_eq!(answered.len() as u64, ROUNDS);
        }
        assert_is_the_simulation(&self.place, "served");
        drop(devices);
        outcome
    }
}

/// More silent connections than the limit, from the devices' own address.
#[test]
fn silent_connections_keep_no_device_out() {
    for options in ["", "--max-connections 100"] {
        let besieged = Besieged::start(options);
        let connect = |_| TcpStream::connect(&besieged.address).unwrap();
        let silent: Vec<TcpStream> = (0..400).map(connect).collect();
        besieged.assert_serves_all();
        drop(silent);
    }
}

/// Connections that repeat the same bytes and read no answer. Each reconnects when it is closed.
struct Flood {
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Flood {
    fn start(address: &str, payloads: &[Vec<u8>]) -> Self {
        let (stop, sent) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let threads = payloads.iter().map(|payload| {
            let (address, payload) = (address.to_owned(), payload.clone());
            let (stop, sent) = (Arc::clone(&stop), Arc::clone(&sent));
            thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let Ok(mut stream) = TcpStream::connect(&address) else {
                        // The coordinator has exited.
                        thread::sleep(Duration::from_millis(10));
                        continue;
                    };
                    let pause = Some(Duration::from_millis(50));
                    stream.set_write_timeout(pause).unwrap();
                    while !stop.load(Ordering::Relaxed) && stream.write_all(&payload).is_ok() {
                        sent.fetch_add(payload.len() as u64, Ordering::Relaxed);
                    }
                }
            })
        });
        let threads = threads.collect();
        Self {
            stop,
            sent,
            threads,
        }
    }

    /// Waits until this number of bytes has been sent.
    fn wait_for(&self, bytes: u64) {
        wait_until(|| self.sent.load(Ordering::Relaxed) >= bytes);
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Returns random bytes. Every seventh byte is the end of a frame if `is_framed`.
fn garbage(seed: u32, is_framed: bool) -> Vec<u8> {
    // xorshift32, Marsaglia 2003.
    let mut state = seed.wrapping_mul(2) + 1;
    let byte = |index: u32| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        match is_framed && index.is_multiple_of(7) {
            true => 0,
            false => (state >> 8) as u8 | 1,
        }
    };
    (0..8192).map(byte).collect()
}

#[test]
fn floods_that_read_nothing_delay_no_update() {
    let besieged = Besieged::start("");
    let payloads: Vec<Vec<u8>> = (0..50).map(|i| garbage(i, i.is_multiple_of(2))).collect();
    let flood = Flood::start(&besieged.address, &payloads);
    flood.wait_for(1 << 24);
    besieged.assert_serves_all();
    drop(flood);
}

/// Five recorded, valid Hellos of a device, on more connections than it may have greetings. They do
/// not read the Welcome.
#[test]
fn recorded_hellos_keep_no_device_out() {
    let besieged = Besieged::start("");
    let record = besieged.place.path("fleet/device-0.bin");
    let record = std::fs::read(record).unwrap();
    let chain = ChainKey::new(Key::from_secret(*record[8..].first_chunk().unwrap()));
    let hello = |recording: u8| {
        let name = Name::Number(0);
        let hello = Hello::new(&chain.greeting(), name, [recording; 16], Versions::OURS);
        Greeting::Hello(hello).encoded().as_slice().repeat(100)
    };
    let payloads: Vec<Vec<u8>> = (0..100).map(|connection| hello(connection % 5)).collect();
    let flood = Flood::start(&besieged.address, &payloads);
    flood.wait_for(1 << 22);
    besieged.assert_serves_all();
    drop(flood);
}

/// A device without a common protocol version is reported to the operator, with the side to update.
/// Only a device with a key can cause the report.
#[test]
fn a_device_of_another_version_is_reported_in_one_line() {
    let besieged = Besieged::start("");
    let record = besieged.place.path("fleet/device-0.bin");
    let record = std::fs::read(record).unwrap();
    let genuine = ChainKey::new(Key::from_secret(*record[8..].first_chunk().unwrap()));
    let forged = ChainKey::new(Key::from_secret([1; 32]));
    let send = |chain: &ChainKey, lowest, highest| {
        let versions = Versions { lowest, highest };
        let hello = Hello::new(&chain.greeting(), Name::Number(0), [highest; 16], versions);
        let mut stream = TcpStream::connect(&besieged.address).unwrap();
        let bytes = Greeting::Hello(hello).encoded();
        // Repeatedly, like a device that does not know why there is no answer.
        stream.write_all(&bytes.as_slice().repeat(20)).unwrap();
        // The response: a Call, and any answer to the Hello.
        let mut answer = vec![];
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        while answer.iter().filter(|byte| **byte == 0).count() < 4 {
            let mut bytes = [0; 256];
            let count = stream.read(&mut bytes).unwrap();
            answer.extend_from_slice(&bytes[..count]);
        }
    };
    send(&genuine, 1, 3);
    send(&genuine, 9, 9);
    send(&forged, 7, 8);
    let outcome = besieged.assert_serves_all();
    let lines = outcome
        .stderr
        .lines()
        .filter(|line| line.contains("of the protocol"));
    let lines: Vec<&str> = lines.collect();
    assert_eq!(lines.len(), 2, "{outcome}");
    for (line, said) in lines
        .iter()
        .zip(["speaks versions 1 to 3", "speaks version 9"])
    {
        assert!(line.contains(said) && line.contains("update the"), "{line}");
        assert!(!line.contains("device 0"), "{line}");
    }
}
