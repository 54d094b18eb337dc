//! Connections from strangers: some are silent, and others send garbage and never read.

use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

/// Number of concurrent connections that send garbage.
const FLOODS: u64 = 50;

/// Interval for reopening closed connections.
const INTERVAL: Duration = Duration::from_millis(500);

/// Write timeout for a coordinator that has stopped reading.
const WRITE_TIMEOUT: Duration = Duration::from_millis(100);

/// Threads that disturb a coordinator until they are dropped.
pub(super) struct Disturbance {
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Disturbance {
    /// Connects as soon as the coordinator listens, before devices do.
    pub(super) fn start(port: u16, silent: u32, garbage_mb: u32) -> Result<Self, Box<dyn Error>> {
        let mut disturbance = Self {
            stop: Arc::default(),
            sent: Arc::default(),
            threads: Vec::new(),
        };
        if silent == 0 && garbage_mb == 0 {
            return Ok(disturbance);
        }
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if begun.elapsed() > Duration::from_secs(60) {
                return Err("the coordinator does not listen".into());
            }
            sleep(Duration::from_millis(5));
        }
        if silent > 0 {
            let stop = Arc::clone(&disturbance.stop);
            let thread = thread::spawn(move || stay_silent(port, silent, &stop));
            disturbance.threads.push(thread);
        }
        let limit = u64::from(garbage_mb) * 1_000_000 / FLOODS;
        for flood in (0..FLOODS).filter(|_| limit > 0) {
            let (stop, sent) = (Arc::clone(&disturbance.stop), Arc::clone(&disturbance.sent));
            let thread = thread::spawn(move || send_garbage(port, flood, limit, &stop, &sent));
            disturbance.threads.push(thread);
        }
        Ok(disturbance)
    }

    /// Returns the megabytes of garbage accepted by the system.
    pub(super) fn sent_mb(&self) -> u64 {
        self.sent.load(Ordering::Relaxed) / 1_000_000
    }
}

impl Drop for Disturbance {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Keeps connections open, and reopens connections closed by the coordinator.
fn stay_silent(port: u16, count: u32, stop: &AtomicBool) {
    let mut open: Vec<TcpStream> = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        open.retain_mut(is_open);
        while open.len() < count as usize {
            let Ok(stream) = TcpStream::connect(("127.0.0.1", port)) else {
                break;
            };
            if stream.set_nonblocking(true).is_ok() {
                open.push(stream);
            }
        }
        sleep(INTERVAL);
    }
}

fn is_open(stream: &mut TcpStream) -> bool {
    loop {
        match stream.read(&mut [0; 256]) {
            Ok(0) => return false,
            Ok(_) => {}
            Err(error) => return error.kind() == ErrorKind::WouldBlock,
        }
    }
}

/// Sends `limit` bytes of garbage, on a new connection whenever one is closed.
fn send_garbage(port: u16, seed: u64, limit: u64, stop: &AtomicBool, all: &AtomicU64) {
    let bytes = garbage(seed);
    let mut sent = 0;
    while sent < limit && !stop.load(Ordering::Relaxed) {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else {
            sleep(Duration::from_millis(10));
            continue;
        };
        if stream.set_write_timeout(Some(WRITE_TIMEOUT)).is_err() {
            continue;
        }
        while sent < limit && !stop.load(Ordering::Relaxed) {
            let Ok(count) = stream.write(&bytes) else {
                break;
            };
            sent += count as u64;
            all.fetch_add(count as u64, Ordering::Relaxed);
        }
    }
}

/// Returns 64 KiB of random bytes that include frame delimiters.
fn garbage(seed: u64) -> Vec<u8> {
    // xorshift64, Marsaglia 2003.
    let mut state = seed.wrapping_mul(2) + 1;
    let bytes = (0..1 << 16).map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    });
    bytes.collect()
}
