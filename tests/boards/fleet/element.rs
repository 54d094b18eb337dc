//! Boards with their secrets in a secure element on their second serial line. A thread of the test
//! is the element. A fleet has both kinds of devices.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

use smolfed_core::crypto::Key;
use smolfed_core::crypto::kdf::{Kdf, expand};
use smolfed_core::wire::crc32::crc32;
use smolfed_core::wire::keys::ChainKey;

use super::Running;
use crate::boards::rounds::{emulator, memory};
use crate::boards::{Board, firmware, firmware_with, named};
use crate::fleet::{FULL, part_of, wait};
use crate::program::{Place, wait_until};

/// A secure element with three secrets that it never returns. It keeps them when its board
/// restarts.
#[derive(Clone)]
struct Chip(Arc<Mutex<[[u8; 32]; 3]>>);

impl Chip {
    /// Reads an element written by provisioning: root and first chain key.
    fn new(file: &Path) -> Self {
        let secrets = std::fs::read(file).unwrap();
        let (secrets, rest) = secrets.as_chunks();
        let [root, chain] = *secrets else {
            panic!("two secrets in {}", file.display());
        };
        assert!(rest.is_empty());
        Self(Arc::new(Mutex::new([root, chain, [0; 32]])))
    }

    /// Answers until the board is gone. `firmware-example/src/element.rs` defines the frames.
    fn serve(self, mut line: UnixStream) {
        let mut head = [0; 4];
        while line.read_exact(&mut head).is_ok() {
            let [number, from, to, length] = head;
            let mut rest = vec![0; usize::from(length) + 4];
            line.read_exact(&mut rest).unwrap();
            let (info, crc) = rest.split_last_chunk().expect("a checksum");
            assert_eq!(crc32(&[&head, info].concat()).to_le_bytes(), *crc);
            let mut slots = self.0.lock().unwrap();
            let secret = slots.get(usize::from(from)).expect("a slot");
            // This key type exposes its bytes.
            let key = ChainKey::new(expand(&Key::from_secret(*secret), info));
            let mut answer = vec![number];
            match slots.get_mut(usize::from(to)) {
                Some(slot) => *slot = *key.secret(),
                None => answer.extend(key.secret()),
            }
            drop(slots);
            let crc = crc32(&answer);
            answer.extend(crc.to_le_bytes());
            if line.write_all(&answer).is_err() {
                break;
            }
        }
    }
}

/// Starts device 0 of the fleet with an element that holds these secrets.
fn start(place: &Place, board: &Board, program: &Path, chip: Chip) -> Running {
    let [page, ledger] = ["bin", "ledger"].map(|end| place.path(format!("fleet/device-0.{end}")));
    let [line, bus] = ["line-0", "bus"].map(|name| place.path(name));
    // The board starts once its element is ready.
    let socket = |path: &Path, wait: &str| format!("unix:{},server=on,wait={wait}", path.display());
    let _ = std::fs::remove_file(&bus);
    let mut qemu = emulator(board, program, &page, &ledger, &socket(&line, "off"));
    let qemu = qemu.args(["-serial", &socket(&bus, "on")]).spawn();
    let running = Running::of(qemu.expect("QEMU starts"));
    let mut connected = None;
    wait_until(|| {
        connected = UnixStream::connect(&bus).ok();
        connected.is_some()
    });
    thread::spawn(move || chip.serve(connected.expect("a line")));
    running
}

fn has(bytes: &[u8], secret: &[u8; 32]) -> bool {
    bytes.windows(32).any(|window| window == secret)
}

/// Returns the first chain keys of a device.
fn chains(first: &ChainKey) -> Vec<[u8; 32]> {
    let chain = std::iter::successors(Some(first.clone()), |chain| Some(chain.next()));
    chain.take(8).map(|chain| *chain.secret()).collect()
}

/// Provisions device 0 with an element, and device 1 without one.
fn mixed_fleet() -> Place {
    let place = Place::new();
    for (devices, out, options) in [("0..1", "fleet", "--element"), ("1..2", "more", "")] {
        let call = format!(
            "provision --devices {devices} --out {out} --with-data --budget 100 {options} {FULL}"
        );
        place.smolfed(&call).success();
    }
    place
        .smolfed("keys add more/keys.toml --keys fleet/keys.toml")
        .success();
    let listed = place.smolfed("keys list --keys fleet/keys.toml").success();
    assert!(
        listed.stdout.contains("in secure elements: 1 (0)"),
        "{listed}"
    );
    for end in ["bin", "ledger"] {
        let to = place.path(format!("fleet/device-1.{end}"));
        std::fs::rename(place.path(format!("more/device-1.{end}")), to).unwrap();
    }
    place
}

#[test]
fn secrets_in_an_element_are_nowhere_on_the_board() {
    let board = named("mps2-an505");
    let programs = [
        firmware_with(Some("element"), board, "client"),
        firmware(board, "client"),
    ];
    let [Some((in_element, _)), Some((without, _))] = programs else {
        return;
    };
    let place = mixed_fleet();
    // Reveals the secrets of the devices.
    let file = place.path("fleet/device-0.element");
    let chip = Chip::new(&file);
    let [root, first, _] = *chip.0.lock().unwrap();
    let [record, other] = [0, 1].map(|n| {
        let record = place.path(format!("fleet/device-{n}.bin"));
        std::fs::read(record).unwrap()
    });
    let own = ChainKey::with_kdf(Key::from_secret(first), Kdf::HkdfSha256);
    let without_element = ChainKey::new(Key::from_secret(*other[8..].first_chunk().unwrap()));
    assert!(!has(&record, &root) && !has(&record, &first));

    let serve = |out: &str| {
        let arguments = format!(
            "serve --keys fleet/keys.toml --device unix:line-0 --device unix:line-1 \
             --simulated 52 --timeout 60s --out {out} --json {FULL} --set rounds=2"
        );
        wait(place.start(&arguments), &arguments).success();
        for device in 0..2 {
            let (answered, missing) = part_of(&place, out, device);
            assert_eq!((answered, missing), (vec![0, 1], vec![]), "{out}: {device}");
        }
    };
    for (out, again) in [("first", None), ("second", Some("third"))] {
        let with_element = start(&place, board, &in_element, chip.clone());
        let plain = Running::start(&place, 1, board, &without);
        serve(out);
        let ram = [0, 1].map(|n| memory(board, &place.path(format!("fleet/device-{n}.ledger"))));
        let mut secrets = chains(&own);
        secrets.push(root);
        // The values that give the noise of a finished round are not there either.
        let ledger = std::fs::read(place.path("fleet/device-0.ledger")).unwrap();
        let nonce = &ledger[48..56];
        secrets.extend((0..4u32).map(|round| {
            let info = [b"streams ", nonce, &round.to_le_bytes()].concat();
            *ChainKey::new(expand(&Key::from_secret(root), &info)).secret()
        }));
        for secret in &secrets {
            assert!(!has(&ram[0], secret), "{out}");
        }
        // The search finds existing keys: the chain key of a board without an element.
        let known = chains(&without_element);
        assert!(known.iter().any(|secret| has(&ram[1], secret)), "{out}");
        // After two sessions without a restart in between, RAM contains only the keys in flash, and
        // not the key from the start of the board.
        if let Some(again) = again {
            serve(again);
            let [ram, flash] = {
                let ledger = place.path("fleet/device-1.ledger");
                [memory(board, &ledger), std::fs::read(&ledger).unwrap()]
            };
            assert!(has(&flash, &known[3]));
            for secret in known.iter().take(2) {
                assert!(!has(&flash, secret) && !has(&ram, secret));
            }
            let ram = memory(board, &place.path("fleet/device-0.ledger"));
            assert!(secrets.iter().all(|secret| !has(&ram, secret)));
        }
        drop((with_element, plain));
        assert!(secrets.iter().all(|secret| !has(&ledger, secret)));
    }
    // One step in each of the three sessions, from slot to slot.
    let [_, even, odd] = *chip.0.lock().unwrap();
    assert_eq!([even, odd], [chains(&own)[2], chains(&own)[3]]);
}
