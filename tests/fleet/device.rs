//! A real device: `smolfed device` as a process.

use std::ops::Range;
use std::process::{Child, Command, Stdio};

use crate::program::{Place, program};

/// A process that is killed at the end of the test.
pub(crate) struct Device(pub(crate) Child);

impl Device {
    /// Starts device `number` of the fleet, which connects to the socket `socket`.
    pub(crate) fn start(place: &Place, number: u32, socket: &str) -> Self {
        Self::start_at(place, number, &format!("--connect unix:{socket}"))
    }

    /// Starts several devices, which connect to `fleet.sock`.
    pub(crate) fn start_all(place: &Place, numbers: Range<u32>) -> Vec<Self> {
        numbers
            .map(|number| Self::start(place, number, "fleet.sock"))
            .collect()
    }

    pub(crate) fn start_at(place: &Place, number: u32, address: &str) -> Self {
        Self::start_with(place, number, &format!("--model softmax:64x10 {address}"))
    }

    /// Starts a device with more options.
    pub(crate) fn start_with(place: &Place, number: u32, options: &str) -> Self {
        let arguments = format!(
            "device --provision fleet/device-{number}.bin \
             --ledger fleet/device-{number}.ledger {options}"
        );
        let mut command = place.command(program());
        let child = command
            .args(arguments.split_whitespace())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Self(child.expect("a device starts"))
    }

    /// Sends a signal: `-STOP` suspends the process, `-CONT` resumes it.
    pub(crate) fn signal(&self, signal: &str) {
        send(&self.0, signal);
    }
}

/// Sends a signal to a process of this test.
pub(crate) fn send(child: &Child, signal: &str) {
    let id = child.id().to_string();
    let kill = Command::new("kill").args([signal, &id]).status();
    assert!(kill.expect("`kill` is there").success());
}

impl Drop for Device {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
