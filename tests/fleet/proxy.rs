//! A proxy between a device and its coordinator that records, damages, cuts and holds traffic.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::program::{Place, wait_until};

/// A proxy between a device and its coordinator.
pub(crate) struct Proxy {
    /// Bytes received from the device.
    from_device: AtomicUsize,
    /// Once this many bytes were received from the device, the proxy holds all traffic.
    pub(crate) hold_after: AtomicUsize,
    is_held: AtomicBool,
    /// One byte in this many is damaged. 0 damages none.
    pub(crate) damage_every: AtomicUsize,
    /// The connection is cut after this many bytes each time. 0 never cuts it.
    pub(crate) cut_every: AtomicUsize,
    /// Bytes per second in each direction, with invisible queueing. 0 means no limit.
    pub(crate) rate: AtomicUsize,
    cuts: AtomicUsize,
    damages: AtomicUsize,
    /// Bytes received on each connection so far.
    recorded: Mutex<Vec<Recorded>>,
}

/// The bytes of one connection.
#[derive(Clone, Default)]
pub(crate) struct Recorded {
    /// From the device.
    pub(crate) up: Vec<u8>,
    /// To the device.
    pub(crate) down: Vec<u8>,
}

impl Proxy {
    /// Forwards connections at `from` to `to`. `device_dials` is true if the device connects.
    pub(crate) fn start(place: &Place, from: &str, to: &str, device_dials: bool) -> Arc<Self> {
        let proxy = Arc::new(Self {
            from_device: AtomicUsize::new(0),
            hold_after: AtomicUsize::new(usize::MAX),
            is_held: AtomicBool::new(false),
            damage_every: AtomicUsize::new(0),
            cut_every: AtomicUsize::new(0),
            rate: AtomicUsize::new(0),
            cuts: AtomicUsize::new(0),
            damages: AtomicUsize::new(0),
            recorded: Mutex::default(),
        });
        let listener = UnixListener::bind(place.path(from)).unwrap();
        let to = place.path(to);
        let shared = Arc::clone(&proxy);
        thread::spawn(move || shared.accept(&listener, &to, device_dials));
        proxy
    }

    fn accept(self: Arc<Self>, listener: &UnixListener, to: &Path, device_dials: bool) {
        for first in listener.incoming() {
            let (Ok(first), Ok(second)) = (first, UnixStream::connect(to)) else {
                continue;
            };
            let (device, server) = match device_dials {
                true => (first, second),
                false => (second, first),
            };
            let broken = Arc::new(AtomicBool::new(false));
            let connection = {
                let mut recorded = self.recorded.lock().unwrap();
                recorded.push(Recorded::default());
                recorded.len() - 1
            };
            for from_device in [true, false] {
                let streams = (device.try_clone().unwrap(), server.try_clone().unwrap());
                let (shared, broken) = (Arc::clone(&self), Arc::clone(&broken));
                thread::spawn(move || {
                    let (mut from, mut to) = match from_device {
                        true => streams,
                        false => (streams.1, streams.0),
                    };
                    shared.copy(&mut from, &mut to, (connection, from_device), &broken);
                    broken.store(true, Ordering::Relaxed);
                    let _ = from.shutdown(Shutdown::Both);
                    let _ = to.shutdown(Shutdown::Both);
                });
            }
        }
    }

    /// Forwards one direction of a connection.
    fn copy(
        &self,
        from: &mut UnixStream,
        to: &mut UnixStream,
        (connection, up): (usize, bool),
        broken: &AtomicBool,
    ) {
        let (mut passed, mut buffer) = (0, [0; 64]);
        from.set_read_timeout(Some(Duration::from_millis(20)))
            .unwrap();
        while !broken.load(Ordering::Relaxed) {
            let count = match from.read(&mut buffer) {
                Ok(0) => return,
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                Err(_) => return,
            };
            let bytes = &mut buffer[..count];
            self.record(connection, up, bytes);
            let all = if up {
                self.from_device.fetch_add(count, Ordering::Relaxed) + count
            } else {
                0
            };
            if all > self.hold_after.load(Ordering::Relaxed) {
                self.is_held.store(true, Ordering::Relaxed);
            }
            if self.is_held.load(Ordering::Relaxed) {
                continue;
            }
            let due = |every: usize| every > 0 && (passed + count) / every > passed / every;
            if due(self.damage_every.load(Ordering::Relaxed)) {
                bytes[count / 2] ^= 0x41;
                self.damages.fetch_add(1, Ordering::Relaxed);
            }
            if due(self.cut_every.load(Ordering::Relaxed)) {
                self.cuts.fetch_add(1, Ordering::Relaxed);
                return;
            }
            passed += count;
            let rate = self.rate.load(Ordering::Relaxed);
            if rate > 0 {
                thread::sleep(Duration::from_secs_f64(count as f64 / rate as f64));
            }
            if to.write_all(bytes).is_err() {
                return;
            }
        }
    }

    fn record(&self, connection: usize, up: bool, bytes: &[u8]) {
        let recorded = &mut self.recorded.lock().unwrap()[connection];
        let direction = if up {
            &mut recorded.up
        } else {
            &mut recorded.down
        };
        direction.extend_from_slice(bytes);
    }

    /// Returns the bytes of each connection so far, as received.
    pub(crate) fn recorded(&self) -> Vec<Recorded> {
        self.recorded.lock().unwrap().clone()
    }

    /// Waits until all traffic is held.
    pub(crate) fn wait_until_held(&self) {
        wait_until(|| self.is_held.load(Ordering::Relaxed));
    }

    /// Waits until the connection was damaged and cut more than once.
    pub(crate) fn wait_until_bad(&self) {
        let count = |of: &AtomicUsize| of.load(Ordering::Relaxed);
        wait_until(|| count(&self.cuts).min(count(&self.damages)) > 1);
    }

    /// Forwards everything unchanged from now on.
    pub(crate) fn repair(&self) {
        self.hold_after.store(usize::MAX, Ordering::Relaxed);
        self.is_held.store(false, Ordering::Relaxed);
        self.damage_every.store(0, Ordering::Relaxed);
        self.cut_every.store(0, Ordering::Relaxed);
    }
}
