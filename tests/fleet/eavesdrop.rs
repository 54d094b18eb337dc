//! Information visible to an observer of the line: the greeting, and the time, size and direction
//! of messages. The test records all bytes between devices and their coordinator over whole rounds,
//! decrypts them with the devices' keys, and searches the recording for the plaintexts.
//!
//! Nothing here is seeded: keys and nonces come from the operating system. Therefore, each search
//! may match by chance, with the probabilities in the comments.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use smolfed_core::crypto::Key;
use smolfed_core::mask::{MaskKey, RoundKey};
use smolfed_core::wire::cobs::Decoder;
use smolfed_core::wire::frame::Frame;
use smolfed_core::wire::greeting::{Greeting, Hello, Name, Welcome, greeting};
use smolfed_core::wire::keys::{Chain, ChainKey, Fingerprint, SessionKey};
use smolfed_core::wire::message::{Invitation, Message, UpdatePart};
use smolfed_core::wire::pack;
use smolfed_core::wire::{Direction, VERSION};

use super::device::Device;
use super::masked::{Helper, bytes_of};
use super::proxy::Proxy;
use super::{FULL, part_of, wait};
use crate::program::Place;

/// Bytes compared at once. Two independent windows, one of them uniform, are equal with probability
/// 2^-64.
const WINDOW: usize = 8;

/// Unencrypted bytes of a session frame: version and sequence number.
const CLEAR: usize = 5;

/// Bytes of the checksum at the end, which anybody can compute.
const CHECKSUM: usize = 4;

/// A frame recorded on the line.
pub(super) struct Heard {
    device: u32,
    pub(super) to: Direction,
    /// Bytes on the line, before its end.
    line: Vec<u8>,
    /// The bytes without COBS.
    pub(super) raw: Vec<u8>,
}

/// A session frame and its plaintext.
struct Opened<'a> {
    frame: &'a Heard,
    /// Index of its session.
    session: usize,
    kind: u8,
    round: u32,
    body: Vec<u8>,
}

impl Heard {
    /// Returns the ciphertext and its tag.
    fn ciphertext(&self) -> &[u8] {
        &self.raw[CLEAR..self.raw.len() - CHECKSUM]
    }
}

impl Opened<'_> {
    /// Returns the plaintext.
    fn text(&self) -> Vec<u8> {
        [&[self.kind], &self.round.to_le_bytes()[..], &self.body].concat()
    }
}

/// Returns the complete frames in a recording of one direction.
pub(super) fn frames(device: u32, to: Direction, bytes: &[u8]) -> Vec<Heard> {
    let mut heard = vec![];
    // Bytes after the last zero were cut with the connection.
    let whole = bytes.iter().rposition(|byte| *byte == 0).unwrap_or(0);
    for line in bytes[..whole].split(|byte| *byte == 0) {
        // Further zeros between frames have no meaning.
        if line.is_empty() {
            continue;
        }
        let mut decoder = Decoder::new();
        let last = line.iter().chain(&[0]).map(|byte| {
            let decoded = decoder.push(*byte);
            decoded.map(|raw| raw.expect("COBS of honest peers").to_vec())
        });
        if let Some(raw) = last.last().flatten() {
            heard.push(Heard {
                device,
                to,
                line: line.to_vec(),
                raw,
            });
        }
    }
    heard
}

/// Returns the greeting in a frame, if it is one.
pub(super) fn greeting_of(frame: &Heard) -> Option<Greeting> {
    let mut raw = frame.raw.clone();
    let parsed = Frame::parse(&mut raw).expect("frames of honest peers");
    greeting(&parsed, frame.to).ok()
}

/// Everything recorded on the lines of a fleet.
struct Recording {
    greetings: Vec<(Greeting, Heard)>,
    sealed: Vec<Heard>,
}

impl Recording {
    fn of(lines: &[Arc<Proxy>]) -> Self {
        let (mut greetings, mut sealed) = (vec![], vec![]);
        for (device, line) in (0..).zip(lines) {
            for connection in line.recorded() {
                let up = frames(device, Direction::ToCoordinator, &connection.up);
                let down = frames(device, Direction::ToDevice, &connection.down);
                for frame in up.into_iter().chain(down) {
                    match greeting_of(&frame) {
                        Some(greeting) => greetings.push((greeting, frame)),
                        None => sealed.push(frame),
                    }
                }
            }
        }
        Self { greetings, sealed }
    }

    /// Iterates over the Hellos with their frames.
    fn hellos(&self) -> impl Iterator<Item = (Hello, &Heard)> {
        self.greetings
            .iter()
            .filter_map(|(greeting, frame)| match greeting {
                Greeting::Hello(hello) => Some((*hello, frame)),
                _ => None,
            })
    }

    /// Returns the windows of all ciphertexts, as sent and without COBS.
    fn windows(&self) -> HashSet<&[u8]> {
        // A COBS byte precedes the header.
        let parts = self
            .sealed
            .iter()
            .flat_map(|frame| [&frame.line[1 + CLEAR..], frame.ciphertext()]);
        parts.flat_map(|part| part.windows(WINDOW)).collect()
    }

    /// Opens all frames with the first chain keys of the devices.
    fn opened(&self, keys: &[ChainKey]) -> Vec<Opened<'_>> {
        let sessions = (0..)
            .zip(keys)
            .map(|(device, first)| self.sessions(device, first));
        let sessions: Vec<Vec<SessionKey>> = sessions.collect();
        let of_device = |frame: &Heard| &sessions[frame.device as usize];
        self.sealed
            .iter()
            .map(|frame| open(frame, of_device(frame)))
            .collect()
    }

    /// Returns the keys of the sessions opened by a device's greetings.
    fn sessions(&self, device: u32, first: &ChainKey) -> Vec<SessionKey> {
        let chain = std::iter::successors(Some(first.clone()), |key| Some(key.next()));
        let chain: Vec<ChainKey> = chain.take(8).collect();
        let welcomes = self
            .greetings
            .iter()
            .filter_map(|(greeting, frame)| match greeting {
                Greeting::Welcome(welcome) if frame.device == device => Some(*welcome),
                _ => None,
            });
        let session = |welcome: Welcome| {
            let of = |(hello, _): (Hello, &Heard)| {
                let keys = chain.iter();
                let mut keys = keys.map(|key| key.session(device, &hello.nonce, &welcome.nonce));
                keys.find(|keys| welcome.is_authentic(keys))
            };
            let keys = self.hellos().find_map(of).expect("a Hello it answers");
            keys.cipher()
        };
        welcomes.map(session).collect()
    }
}

/// Decrypts a frame: everything on the line is a greeting or under a key of its device.
fn open<'a>(frame: &'a Heard, sessions: &[SessionKey]) -> Opened<'a> {
    let mut raw = frame.raw.clone();
    for (session, key) in sessions.iter().enumerate() {
        let Ok(Frame::Sealed(mut sealed)) = Frame::parse(&mut raw) else {
            panic!("a frame of a session");
        };
        if sealed.open(key, frame.to) {
            let opened = sealed.opened();
            return Opened {
                kind: opened.kind,
                round: opened.round,
                body: opened.body.to_vec(),
                session,
                frame,
            };
        }
    }
    panic!("a frame on the line is under no key of the device");
}

/// Returns the first window of `secret` that is in `windows`.
fn found<'a>(secret: &'a [u8], windows: &HashSet<&[u8]>) -> Option<&'a [u8]> {
    secret.windows(WINDOW).find(|part| windows.contains(part))
}

/// Returns Pearson's statistic of byte frequencies, against equal ones.
fn chi_square(bytes: impl Iterator<Item = u8>) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in bytes {
        counts[usize::from(byte)] += 1;
    }
    let expected = f64::from(counts.iter().sum::<u32>()) / 256.0;
    assert!(expected > 100.0, "too few bytes for the approximation");
    let terms = counts.map(|count| (f64::from(count) - expected).powi(2) / expected);
    terms.iter().sum()
}

/// With probability at most exp(-x) a chi-square variable of k degrees of freedom exceeds
/// k + 2 sqrt(kx) + 2x (Laurent and Massart 2000, "Adaptive estimation of a quadratic functional by
/// model selection", Lemma 1, equation 4.3). Here k = 255 and x = 14: 8.4e-7 for uniform bytes.
fn chi_square_limit() -> f64 {
    let (k, x) = (255_f64, 14_f64);
    k + 2.0 * (k * x).sqrt() + 2.0 * x
}

/// A fleet with recorded lines.
struct Tapped {
    place: Place,
    lines: Vec<Arc<Proxy>>,
    /// Provisioning records of the devices.
    records: Vec<Vec<u8>>,
    devices: Vec<Device>,
}

impl Tapped {
    /// Starts devices 0 to 3, each of which takes part four times in its life.
    fn start(options: &str) -> Self {
        let place = Place::new();
        let call = format!("provision --devices 0..4 --out fleet --with-data {FULL} --budget 4");
        place.smolfed(&format!("{call} {options}")).success();
        let record = |device| std::fs::read(place.path(format!("fleet/device-{device}.bin")));
        let records = (0..4).map(|device| record(device).unwrap()).collect();
        let line = |device| {
            let line = format!("line-{device}.sock");
            let proxy = Proxy::start(&place, &line, "fleet.sock", true);
            (proxy, Device::start(&place, device, &line))
        };
        let (lines, devices) = (0..4).map(line).unzip();
        Self {
            place,
            lines,
            records,
            devices,
        }
    }

    /// Runs an experiment with these devices.
    fn serve(&self, out: &str, options: &str) {
        let call = format!(
            "serve --keys fleet/keys.toml --listen unix:fleet.sock --simulated 50 --timeout 60s \
             --out {out} --json {FULL} {options}"
        );
        wait(self.place.start(&call), &call).success();
    }

    /// Returns the first chain keys of the devices.
    fn keys(&self) -> Vec<ChainKey> {
        let keys = self.records.iter().map(|record| {
            let key = record[8..].first_chunk().unwrap();
            ChainKey::new(Key::from_secret(*key))
        });
        keys.collect()
    }

    /// Returns devices' keys, roots, limits and samples, their ledgers' keys and roots, the model.
    fn secrets(&self) -> Vec<(String, Vec<u8>)> {
        let read = |name: &str| std::fs::read(self.place.path(name)).unwrap();
        let mut secrets = vec![(
            "the model".to_owned(),
            model(&read("first/model.safetensors")),
        )];
        for (device, record) in self.records.iter().enumerate() {
            secrets.push((format!("the record of device {device}"), record.clone()));
            let ledger = read(&format!("fleet/device-{device}.ledger"));
            secrets.push((format!("the ledger of device {device}"), ledger));
        }
        secrets
    }
}

/// Returns the parameters in a model file, after the length and the header.
fn model(file: &[u8]) -> Vec<u8> {
    let header = u64::from_le_bytes(*file.first_chunk().unwrap());
    file[8 + usize::try_from(header).unwrap()..].to_vec()
}

/// A run's rounds, two more that start with its final model, and one that each device declines
/// because its budget is spent.
#[test]
fn the_line_shows_nothing_but_lengths() {
    let fleet = Tapped::start("--hide-number");
    fleet.serve("first", "--set rounds=2");
    let again = "--set rounds=1 --set model.init=\"first/model.safetensors\"";
    for out in ["second", "third", "declined"] {
        fleet.serve(out, again);
    }
    for device in 0..4 {
        assert_eq!(part_of(&fleet.place, "third", device).0, [0]);
        let (_, why) = part_of(&fleet.place, "declined", device);
        assert_eq!(why, ["declined: the device's own budget is spent"]);
    }
    let recording = Recording::of(&fleet.lines);
    assert_hides_secrets(&fleet, &recording);
    let opened = recording.opened(&fleet.keys());
    assert_holds_everything(&fleet, &opened);
    assert_hides(&opened, &recording.windows());
    assert_is_uniform(&opened);
    assert_lengths_depend_on_the_kind(&opened);
    drop(fleet.devices);
}

/// The coordinator receives uniform values. With the helper's keys, they equal the devices'
/// updates. No plaintext is sent alongside.
#[test]
fn masked_updates_are_uniform_without_the_keys_of_the_helper() {
    let settings = "--set privacy.trust=distributed --set rounds=4";
    let fleet = Tapped::start(settings);
    let _helper = Helper::start(&fleet.place, 0);
    let options = format!("{settings} --helper unix:helper-0.sock");
    fleet.serve("first", &options);
    let recording = Recording::of(&fleet.lines);
    let opened = recording.opened(&fleet.keys());
    let invitation = opened.iter().find(|frame| frame.kind == 17).unwrap();
    let invitation = Message::parse(17, &invitation.body, Direction::ToDevice).unwrap();
    let Message::Invitation(invitation) = invitation else {
        panic!("{invitation:?}");
    };
    let invitation = invitation.unpack().unwrap();
    let width = invitation.width();
    for round in 0..4 {
        for device in 0..4 {
            let chunks = opened.iter().filter(|frame| {
                (frame.kind, frame.round, frame.frame.device) == (20, round, device)
            });
            // Repeated chunks are the same.
            let chunks: BTreeMap<u16, &[u8]> = chunks
                .map(|frame| {
                    (
                        u16::from_le_bytes([frame.body[0], frame.body[1]]),
                        &frame.body[3..],
                    )
                })
                .collect();
            let mut masked = vec![0; invitation.update_length()];
            for (index, chunk) in &chunks {
                match invitation.update_part(usize::from(*index)).unwrap() {
                    UpdatePart::Entries(range) => {
                        pack::unpack(chunk, width, &mut masked[range]).unwrap();
                    }
                    UpdatePart::Tag(0) => assert_eq!(chunk.len(), 16),
                    other => panic!("{other:?}"),
                }
            }
            assert_eq!(chunks.len(), invitation.update_chunks());
            let key = helper_key(&fleet.place, device).round(round, &ledger(&fleet, device));
            let update = unmasked(&masked, &key, width);
            let bound = 1_i128 << (2 * invitation.grid.bits());
            let norm = |x: &[i64]| x.iter().map(|x| i128::from(*x).pow(2)).sum::<i128>();
            assert!(norm(&update) <= bound, "an update of norm at most L");
            assert!(norm(&masked) > bound, "and that is masked");
        }
    }
    let statistic = chi_square(packed_entries(&opened, &invitation).into_iter());
    assert!(statistic < chi_square_limit(), "{statistic}");
    drop(fleet.devices);
}

/// Returns the packed entries of all updates, except for the padded last byte of a chunk.
fn packed_entries(opened: &[Opened<'_>], invitation: &Invitation) -> Vec<u8> {
    let is_entries = |index: u16| {
        matches!(
            invitation.update_part(usize::from(index)),
            Some(UpdatePart::Entries(_))
        )
    };
    let chunks = opened.iter().filter(|frame| frame.kind == 20);
    let chunks =
        chunks.filter(|frame| is_entries(u16::from_le_bytes([frame.body[0], frame.body[1]])));
    let packed = chunks.flat_map(|frame| {
        let packed = &frame.body[3..];
        packed[..packed.len() - 1].to_vec()
    });
    packed.collect()
}

fn unmasked(masked: &[i64], key: &RoundKey, width: u32) -> Vec<i64> {
    let mut masks = key.masks(width);
    let unused = 64 - width;
    let entries = masked.iter().map(|x| {
        let update = x.wrapping_sub(masks.next_mask().cast_signed());
        update << unused >> unused
    });
    entries.collect()
}

/// Returns the mask key of a device in the file of helper 0.
fn helper_key(place: &Place, device: u32) -> MaskKey {
    let text = std::fs::read_to_string(place.path("fleet/helper-0.toml")).unwrap();
    let masks = text
        .lines()
        .filter_map(|line| line.strip_prefix("mask = \""));
    let digits = masks.map(|line| line.trim_end_matches('"'));
    let digits = digits.collect::<Vec<_>>()[device as usize];
    MaskKey::from_secret(bytes_of(digits).try_into().unwrap())
}

/// Returns the fingerprint of a device's ledger, as recorded by the helper.
fn ledger(fleet: &Tapped, device: u32) -> Fingerprint {
    let path = fleet.place.path("fleet/helper-0.toml.ledger");
    let text = std::fs::read_to_string(path).unwrap();
    let last = text.lines().last().unwrap().split_once(' ').unwrap().1;
    let last: serde_json::Value = serde_json::from_str(last).unwrap();
    let digits = last["answer"]["devices"][device as usize][1]
        .as_str()
        .unwrap();
    bytes_of(digits).try_into().unwrap()
}

/// Asserts that data secret in any protocol are hidden. About 2^19 windows are compared with as
/// many others: a chance match has probability 2^-26.
fn assert_hides_secrets(fleet: &Tapped, recording: &Recording) {
    let frames = recording.windows();
    let hellos = recording.hellos();
    let hellos: HashSet<&[u8]> = hellos
        .flat_map(|(_, hello)| hello.raw.windows(WINDOW))
        .collect();
    for (what, secret) in fleet.secrets() {
        assert_eq!(found(&secret, &frames), None, "{what}");
        assert_eq!(found(&secret, &hellos), None, "{what}");
    }
    for device in 0..4_u64 {
        assert_eq!(found(&device.to_le_bytes(), &frames), None, "{device}");
        assert_eq!(found(&device.to_le_bytes(), &hellos), None, "{device}");
    }
    for (hello, _) in recording.hellos() {
        assert!(matches!(hello.name, Name::Pseudonym(_)), "{:?}", hello.name);
    }
    // The search finds existing data: two parameters in the middle of a frame.
    let (_, model) = &fleet.secrets()[0];
    let mut frame = recording.sealed[0].raw.clone();
    let middle = frame.len() / 2;
    frame[middle..middle + WINDOW].copy_from_slice(&model[100..100 + WINDOW]);
    let injected = frame.windows(WINDOW).collect();
    assert_eq!(found(model, &injected), Some(&model[100..100 + WINDOW]));
}

/// Asserts that the searched data are there, under encryption.
fn assert_holds_everything(fleet: &Tapped, opened: &[Opened<'_>]) {
    // All message kinds of a round, and Decline and Wait.
    let kinds: BTreeSet<u8> = opened.iter().map(|frame| frame.kind).collect();
    let expected = BTreeSet::from([16, 17, 19, 20, 22, 23, 27]);
    assert!(kinds.is_superset(&expected), "{kinds:?}");
    // The same, known model in rounds 2 and 3, and another one in round 1.
    let model = model(&std::fs::read(fleet.place.path("first/model.safetensors")).unwrap());
    let first_chunk = |round: u32| {
        let chunks = opened.iter().filter(|frame| frame.kind == 19);
        let mut of_round = chunks.filter(|frame| frame.round == round);
        let chunk = of_round.find(|frame| frame.body.starts_with(&[0, 0]));
        let parameters = &chunk.expect("the model in each round").body[2..];
        model
            .windows(parameters.len())
            .any(|part| part == parameters)
    };
    assert_eq!([1, 2, 3].map(first_chunk), [false, true, true]);
    // Samples and keys are never sent. Zeros are sent, and are not secret.
    let in_clear: Vec<Vec<u8>> = opened.iter().map(Opened::text).collect();
    let windows = in_clear.iter().flat_map(|text| text.windows(WINDOW));
    let windows: HashSet<&[u8]> = windows.collect();
    for (device, record) in fleet.records.iter().enumerate() {
        for (what, part) in [
            ("key", &record[8..40]),
            ("root", &record[52..84]),
            ("samples", &record[116..]),
        ] {
            let is_found = part.windows(WINDOW).find(|part| {
                let different: BTreeSet<&u8> = part.iter().collect();
                different.len() > 3 && windows.contains(part)
            });
            assert_eq!(is_found, None, "the {what} of device {device}");
        }
    }
}

/// Asserts that no plaintext is on the line: 2^-27, as above.
fn assert_hides(opened: &[Opened<'_>], windows: &HashSet<&[u8]>) {
    for frame in opened {
        let what = (frame.kind, frame.round, frame.frame.device);
        assert_eq!(found(&frame.text(), windows), None, "{what:?}");
    }
}

/// Asserts that no two ciphertexts share a window, though the same model is sent to all devices in
/// several rounds, and that bytes are equally frequent, unlike in the plaintext.
fn assert_is_uniform(opened: &[Opened<'_>]) {
    let mut seen = HashSet::new();
    for frame in opened {
        for part in frame.frame.ciphertext().windows(WINDOW) {
            // A chance match has probability 2^-31, for 2^17 windows.
            assert!(seen.insert(part), "{part:?} is there twice");
        }
    }
    let (encrypted, in_clear): (Vec<&[u8]>, Vec<Vec<u8>>) = opened
        .iter()
        .map(|frame| (frame.frame.ciphertext(), frame.text()))
        .unzip();
    let of_the_line = chi_square(encrypted.concat().into_iter());
    assert!(of_the_line < chi_square_limit(), "{of_the_line}");
    let of_texts = chi_square(in_clear.concat().into_iter());
    assert!(of_texts > 10.0 * chi_square_limit(), "{of_texts}");
}

/// Asserts that frame lengths depend only on kind and chunk, and that numbers count up.
fn assert_lengths_depend_on_the_kind(opened: &[Opened<'_>]) {
    let mut lengths = BTreeMap::new();
    let mut sequences = BTreeMap::new();
    for frame in opened {
        let chunk = match (frame.kind, &frame.body[..]) {
            (19 | 20, [low, high, ..]) => u16::from_le_bytes([*low, *high]),
            _ => 0,
        };
        let length = frame.frame.line.len();
        let first = *lengths.entry((frame.kind, chunk)).or_insert(length);
        assert_eq!(length, first, "kind {}, chunk {chunk}", frame.kind);

        let [version, sequence @ ..] = frame.frame.raw.first_chunk::<CLEAR>().unwrap();
        let direction = frame.frame.to as u8;
        let session = (frame.frame.device, frame.session, direction);
        let before = sequences.entry(session).or_insert(0);
        let sequence = u32::from_le_bytes(*sequence);
        assert!(*version == VERSION && sequence > *before);
        *before = sequence;
    }
    // Devices differ in their data, but not in their visible traffic.
    let shapes = |device| {
        let of_device = opened.iter().filter(move |x| x.frame.device == device);
        let mut shapes: BTreeMap<_, usize> = BTreeMap::new();
        for frame in of_device.filter(|frame| frame.kind == 20) {
            *shapes.entry(frame.frame.line.len()).or_default() += 1;
        }
        shapes
    };
    for device in 1..4 {
        assert_eq!(shapes(device), shapes(0));
    }
}

/// Without `--hide-number`, the same search finds the number, only in the greeting.
#[test]
fn a_greeting_names_the_device_unless_it_hides() {
    let fleet = Tapped::start("");
    fleet.serve("first", "--set rounds=1");
    let recording = Recording::of(&fleet.lines);
    let frames = recording.windows();
    let mut devices = BTreeSet::new();
    for (_, hello) in recording.hellos() {
        let number = u64::from(hello.device).to_le_bytes();
        let windows = hello.raw.windows(WINDOW).collect();
        assert_eq!(found(&number, &windows), Some(&number[..]));
        assert_eq!(found(&number, &frames), None);
        devices.insert(hello.device);
    }
    assert_eq!(devices.len(), 4);
    drop(fleet.devices);
}
