//! Devices with X25519 handshakes, together with devices without.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use smolfed_core::crypto::Key;
use smolfed_core::wire::Direction;
use smolfed_core::wire::frame::Frame;
use smolfed_core::wire::greeting::{Greeting, Hello, Welcome};
use smolfed_core::wire::keys::{Chain, ChainKey, SessionKey};

use super::device::Device;
use super::eavesdrop::{Heard, frames, greeting_of};
use super::proxy::Proxy;
use super::{FULL, assert_is_the_simulation, part_of, provision, serve, wait};
use crate::program::{Place, program};

/// Recording of a device's line.
struct Tape {
    greetings: Vec<Greeting>,
    sealed: Vec<Heard>,
}

impl Tape {
    fn of(device: u32, line: &Proxy) -> Self {
        let (mut greetings, mut sealed) = (vec![], vec![]);
        for connection in line.recorded() {
            let up = frames(device, Direction::ToCoordinator, &connection.up);
            let down = frames(device, Direction::ToDevice, &connection.down);
            for frame in up.into_iter().chain(down) {
                match greeting_of(&frame) {
                    Some(greeting) => greetings.push(greeting),
                    None => sealed.push(frame),
                }
            }
        }
        Self { greetings, sealed }
    }

    fn hellos(&self) -> Vec<Hello> {
        let found = self.greetings.iter().filter_map(|found| match found {
            Greeting::Hello(hello) => Some(*hello),
            _ => None,
        });
        found.collect()
    }

    fn welcomes(&self) -> Vec<Welcome> {
        let found = self.greetings.iter().filter_map(|found| match found {
            Greeting::Welcome(welcome) => Some(*welcome),
            _ => None,
        });
        found.collect()
    }

    /// Returns the keys derived from the device's chain keys and from the unencrypted greetings.
    fn keys(&self, device: u32, first: &ChainKey) -> Vec<SessionKey> {
        let chain = std::iter::successors(Some(first.clone()), |key| Some(key.next()));
        let nonces = self.welcomes().into_iter().map(|welcome| welcome.nonce);
        // Without a Welcome there is no coordinator nonce, so any value will do.
        let nonces: Vec<_> = nonces.chain([[0; 16]]).collect();
        let mut keys = vec![];
        for chain in chain.take(10) {
            for hello in self.hellos() {
                let of = |nonce| chain.session(device, &hello.nonce, nonce).cipher();
                keys.extend(nonces.iter().map(of));
            }
        }
        keys
    }

    /// Counts the frames that one of these keys decrypts.
    fn opened(&self, keys: &[SessionKey]) -> usize {
        let is_opened = |frame: &&Heard| {
            let mut raw = frame.raw.clone();
            match Frame::parse(&mut raw) {
                Ok(Frame::Sealed(mut sealed)) => keys.iter().any(|key| sealed.open(key, frame.to)),
                _ => false,
            }
        };
        self.sealed.iter().filter(is_opened).count()
    }
}

/// The model equals the simulation's. Anyone who records the lines and later obtains the devices'
/// provisioned keys can decrypt everything of a device without the handshake, and nothing of a
/// device with it.
#[test]
fn devices_with_and_without_the_handshake_take_part_and_keys_open_recordings_of_the_latter() {
    let place = Place::new();
    provision(&place, &format!("{FULL} --set rounds=4 --hide-number"));
    let key = |device| {
        let record = std::fs::read(place.path(format!("fleet/device-{device}.bin"))).unwrap();
        ChainKey::new(Key::from_secret(*record[8..].first_chunk().unwrap()))
    };
    let keys: Vec<ChainKey> = (0..4).map(key).collect();
    let has_handshake = |device| device < 2;
    let start = |device| {
        let line = format!("line-{device}.sock");
        let proxy = Proxy::start(&place, &line, "fleet.sock", true);
        let how = if has_handshake(device) {
            "--x25519"
        } else {
            ""
        };
        let options = format!("--connect unix:{line} {how}");
        (proxy, Device::start_at(&place, device, &options))
    };
    let (lines, devices): (Vec<_>, Vec<_>) = (0..4).map(start).unzip();
    let arguments = serve("30s", &format!("{FULL} --set rounds=4"));
    let outcome = wait(place.start(&arguments), &arguments).success();
    assert_eq!(outcome.json()["rounds"], 4, "{outcome}");
    assert_is_the_simulation(&place, "served");
    for (device, line) in (0..4).zip(&lines) {
        assert_eq!(part_of(&place, "served", device).0, [0, 1, 2, 3]);
        let tape = Tape::of(device, line);
        let hellos = tape.hellos();
        assert!(!hellos.is_empty());
        let is_as_asked = |hello: &Hello| hello.has_handshake() == has_handshake(device);
        assert!(hellos.iter().all(is_as_asked));
        assert_eq!(tape.welcomes().is_empty(), has_handshake(device));
        let opened = tape.opened(&tape.keys(device, &keys[device as usize]));
        let expected = if has_handshake(device) {
            0
        } else {
            tape.sealed.len()
        };
        assert!(tape.sealed.len() > 20);
        assert_eq!(opened, expected, "device {device}");
    }
    drop(devices);
}

#[test]
fn a_coordinator_that_requires_the_handshake_tells_devices_without_it() {
    let place = Place::new();
    provision(&place, &format!("{FULL} --set rounds=2"));
    let options = "--connect unix:fleet.sock --x25519";
    let _devices: Vec<_> = (1..4)
        .map(|device| Device::start_at(&place, device, options))
        .collect();
    let plain = "device --model softmax:64x10 --provision fleet/device-0.bin \
                 --ledger fleet/device-0.ledger --connect unix:fleet.sock";
    let mut command = place.command(program());
    let command = command.args(plain.split_whitespace());
    let command = command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut plain = Device(command.spawn().expect("a device starts"));
    let arguments = serve("4s", &format!("{FULL} --set rounds=2 --require-x25519"));
    wait(place.start(&arguments), &arguments).success();
    for device in 1..4 {
        assert_eq!(part_of(&place, "served", device).0, [0, 1]);
    }
    assert_eq!(part_of(&place, "served", 0).0, [0; 0]);
    assert_is_the_simulation(&place, "served");
    // A resumed run requires it too.
    let file = std::fs::read_to_string(place.path("served/fleet.toml")).unwrap();
    assert!(file.contains("require_x25519 = true"), "{file}");
    let table = std::fs::read_to_string(place.path("served/devices.json")).unwrap();
    let refused = "refused: the coordinator requires greetings with X25519";
    assert!(table.contains(refused), "{table}");
    plain.0.kill().unwrap();
    let lines = BufReader::new(plain.0.stderr.take().unwrap()).lines();
    let lines: Vec<String> = lines.map_while(Result::ok).collect();
    let expected = "device 0: refused by the coordinator: the coordinator requires greetings with \
                    X25519: start the device with `--x25519`";
    assert!(lines.iter().any(|line| line == expected), "{lines:?}");
}
