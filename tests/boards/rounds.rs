//! Emulated microcontrollers take part in rounds: the client of `firmware-example/` in QEMU, with
//! its serial line on a socket, and a test coordinator that follows `docs/protocol.md`.

use std::io::{ErrorKind, Read, Write};
use std::num::NonZeroU32;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use smolfed::device::flash::FileFlash;
use smolfed_core::bit::{BitRequest, clip_bit};
use smolfed_core::client::Client;
use smolfed_core::crypto::Key;
use smolfed_core::identity::Identity;
use smolfed_core::ledger::{Budget, Ledger, Limits, MaxJump, Separation};
use smolfed_core::mask::Tag;
use smolfed_core::model::{Const, ModelKind, Softmax};
use smolfed_core::noise::{DiscreteGaussian, Sigma};
use smolfed_core::params::{ClipNorm, LearningRate, NoiseMultiplier, Penalty};
use smolfed_core::provision::{self, Record};
use smolfed_core::quantize::Grid;
use smolfed_core::samples::SampleSlice;
use smolfed_core::session::Policy;
use smolfed_core::stream::{Purpose, Root, StreamId};
use smolfed_core::train::Clipping;
use smolfed_core::wire::Direction;
use smolfed_core::wire::cobs::Decoder;
use smolfed_core::wire::frame::{Encoded, Frame};
use smolfed_core::wire::greeting::{Greeting, Hello, Name, Welcome};
use smolfed_core::wire::keys::{Chain, ChainKey, SessionKey};
use smolfed_core::wire::link::{CoordinatorEnd, Link, read};
use smolfed_core::wire::message::{
    Decline, Invitation, MODEL_CHUNK, Message, ModelShape, PackedInvitation, UpdatePart, Values,
};
use smolfed_core::wire::refusal::{Refusal, Refusals};

use super::{Board, firmware, on_every_board};
use crate::program::{TIMEOUT, wait_until};

#[path = "../../core/src/session/tests/coordinator.rs"]
mod coordinator;

use coordinator::Coordinator;

const FEATURES: usize = 64;
const CLASSES: usize = 10;
const PARAMETERS: usize = (FEATURES + 1) * CLASSES;
const SAMPLES: usize = 20;
const DEVICE: u32 = 7;
const KEY: [u8; 32] = [9; 32];
const SEED: u64 = 2026;

/// A running board and its serial line.
struct Running {
    qemu: Child,
    line: UnixStream,
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}

/// Starts the client on a board. Its serial line is a listening socket.
pub(crate) fn emulate(
    board: &Board,
    program: &Path,
    page: &Path,
    ledger: &Path,
    line: &Path,
) -> Child {
    let line = format!("unix:{},server=on,wait=off", line.display());
    emulator(board, program, page, ledger, &line)
        .spawn()
        .expect("QEMU starts")
}

/// Returns QEMU with the client. `line` is the argument of its `-serial`.
pub(crate) fn emulator(
    board: &Board,
    program: &Path,
    page: &Path,
    ledger: &Path,
    line: &str,
) -> Command {
    let host = format!(
        "enable=on,target=native,arg=client,arg={}",
        ledger.display()
    );
    let start = board.provision.start;
    let loader = format!("loader,file={},addr={start:#x}", page.display());
    let qemu = board.qemu.expect("an emulated board");
    let mut command = Command::new(qemu.program);
    command
        .arg("-machine")
        .args(qemu.machine)
        .args(["-display", "none", "-serial", line, "-monitor"])
        .arg(format!(
            "unix:{},server=on,wait=off",
            monitor(ledger).display()
        ))
        .args(["-semihosting-config", &host, "-device", &loader])
        .arg("-kernel")
        .arg(program)
        .stdin(Stdio::null());
    command
}

/// Returns the socket of QEMU's monitor, next to the ledger.
fn monitor(ledger: &Path) -> PathBuf {
    ledger.with_extension("monitor")
}

/// Returns the memory that contains the record.
fn record_in_memory(board: &Board, dir: &Path) -> Vec<u8> {
    let length = std::fs::read(dir.join("device.bin")).unwrap().len();
    copied(board.provision.start, length, &dir.join("ledger.bin"))
}

/// Returns the RAM of the board with this ledger.
pub(crate) fn memory(board: &Board, ledger: &Path) -> Vec<u8> {
    copied(board.ram.start, board.ram.length as usize, ledger)
}

/// Copies a piece of memory of the board with this ledger, using QEMU's monitor.
pub(crate) fn copied(start: u32, length: usize, ledger: &Path) -> Vec<u8> {
    let copy = ledger.with_extension("copy");
    let _ = std::fs::remove_file(&copy);
    let mut monitor = UnixStream::connect(monitor(ledger)).unwrap();
    let command = format!("memsave {start:#x} {length} \"{}\"\n", copy.display());
    monitor.write_all(command.as_bytes()).unwrap();
    let bytes = || std::fs::read(&copy).unwrap_or_default();
    wait_until(|| bytes().len() == length);
    bytes()
}

/// Asserts that the board's flash no longer has the first key once the ledger exists.
fn has_forgotten_its_first_key(board: &Board, dir: &Path) {
    let written = std::fs::read(dir.join("device.bin")).unwrap();
    assert!(Record::read(&written).unwrap().key.is_some());
    let mut forgotten = written;
    forgotten[provision::KEY].fill(0);
    let found = record_in_memory(board, dir);
    assert!(found == forgotten, "{}: the record", board.name);
    assert!(Record::read(&found).unwrap().key.is_none());
}

/// Starts the client on a board with its record and ledger in `dir`.
fn start(board: &Board, program: &Path, dir: &Path) -> Running {
    let socket = dir.join("line");
    let _ = std::fs::remove_file(&socket);
    let (page, ledger) = (dir.join("device.bin"), dir.join("ledger.bin"));
    let qemu = emulate(board, program, &page, &ledger, &socket);
    let begun = Instant::now();
    let line = loop {
        match UnixStream::connect(&socket) {
            Ok(line) => break line,
            Err(error) => assert!(begun.elapsed() < TIMEOUT, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    line.set_read_timeout(Some(Duration::from_millis(200)))
        .and_then(|()| line.set_write_timeout(Some(TIMEOUT)))
        .expect("time-outs");
    Running { qemu, line }
}

fn data() -> (Vec<f32>, Vec<u16>) {
    let value = |i: usize| ((i * 37) % 101) as f32 / 50.0 - 1.0;
    let features = (0..FEATURES * SAMPLES).map(value).collect();
    (
        features,
        (0..SAMPLES as u16).map(|i| i % CLASSES as u16).collect(),
    )
}

/// Writes the device's record.
fn provision(dir: &Path, budget: u32, separation: u32) {
    let identity = Identity {
        device: DEVICE,
        root: Root::from_seed(SEED),
    };
    let policy = Policy {
        limits: Limits {
            budget: Budget(budget),
            separation: Separation(separation),
            max_jump: MaxJump::DEFAULT,
        },
        min_noise_multiplier: NoiseMultiplier::NONE,
        min_matrix_noise_multiplier: NoiseMultiplier::NONE,
        max_epochs: 10,
        hides_number: false,
        helpers: 0,
    };
    let (features, targets) = data();
    let samples = SampleSlice::new(&features, &targets, FEATURES).unwrap();
    let mut page = vec![0; provision::record_bytes(FEATURES, SAMPLES).unwrap()];
    provision::write(
        &identity,
        &Key::from_secret(KEY),
        &policy,
        Some(&samples),
        &mut page,
    )
    .unwrap();
    std::fs::write(dir.join("device.bin"), page).unwrap();
}

fn coordinator(round: u32, noise: Option<Sigma>) -> Coordinator {
    let invitation = Invitation {
        shape: ModelShape {
            kind: ModelKind::Softmax,
            features: FEATURES as u16,
            outputs: CLASSES as u16,
            network: None,
            integer: None,
        },
        epochs: 2,
        batch_size: NonZeroU32::new(5).unwrap(),
        learning_rate: LearningRate::new(0.1).unwrap(),
        weight_decay: Penalty::NONE,
        proximal: Penalty::NONE,
        clipping: Clipping::EveryStep,
        gradient_smoothing: None,
        grid: Grid::new(ClipNorm::new(0.3).unwrap(), 16).unwrap(),
        noise,
        // The first round has a fixed clip norm, and the others adapt theirs.
        bit: (round > 3).then_some(BitRequest { noise }),
        masks: None,
        request: None,
    };
    let model = (0..PARAMETERS).map(|i| (i % 7) as f32 * 0.01).collect();
    // Nonces of a coordinator started for this round.
    Coordinator::new(
        ChainKey::new(Key::from_secret(KEY)),
        round,
        invitation,
        model,
    )
}

/// Returns the simulator's result: the update, and its bit if requested.
fn expected(other: &Coordinator) -> (Vec<i64>, Option<i64>) {
    let stream = |purpose| {
        Root::from_seed(SEED).stream(StreamId {
            purpose,
            round: other.round,
            device: DEVICE,
        })
    };
    let (features, targets) = data();
    let samples = SampleSlice::new(&features, &targets, FEATURES).unwrap();
    let model = Softmax::new(Const::<FEATURES>, Const::<CLASSES>);
    let mut client: Client<_, PARAMETERS, SAMPLES, CLASSES> = Client::new(model);
    let global = other.model.clone().try_into().unwrap();
    let order = &mut stream(Purpose::BatchShuffle);
    let training = other.invitation.training();
    let report = client
        .train_unrecorded(&samples, &global, &training, order)
        .unwrap();
    let quantizer = client.quantizer(&other.invitation.grid).unwrap();
    let mut sum = client.update().map(|x| i64::from(quantizer.get(x)));
    if let Some(noise) = other.invitation.noise {
        DiscreteGaussian::of(noise).add_to(&mut sum, &mut stream(Purpose::DeviceNoise));
    }
    let bit = other.invitation.bit.map(|request| {
        let mut bit = [clip_bit(&other.invitation.grid, report.norm)];
        if let Some(noise) = request.noise {
            DiscreteGaussian::of(noise).add_to(&mut bit, &mut stream(Purpose::DeviceBitNoise));
        }
        bit[0]
    });
    (sum.to_vec(), bit)
}

/// Runs a round until it is done or declined, or until `stop` returns true for the board's output.
///
/// `damage` may change the bytes sent to the board.
fn play(
    running: &mut Running,
    other: &mut Coordinator,
    mut damage: impl FnMut(&mut Vec<u8>),
    mut stop: impl FnMut(&[u8]) -> bool,
) {
    let begun = Instant::now();
    let mut buffer = [0; 512];
    let call = Greeting::Call.encoded();
    other.outgoing.push(call.as_slice().to_vec());
    while !other.done && other.declined.is_none() {
        assert!(begun.elapsed() < TIMEOUT, "no end: {:?}", other.refusals);
        for mut bytes in std::mem::take(&mut other.outgoing) {
            damage(&mut bytes);
            running.line.write_all(&bytes).expect("the board's line");
        }
        match running.line.read(&mut buffer) {
            Ok(0) => panic!("the board's line has ended"),
            Ok(count) => {
                other.receive(&buffer[..count]);
                if stop(&buffer[..count]) {
                    return;
                }
            }
            // Nothing received, at the start of a session and after losses.
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                if other.connected() {
                    other.invite();
                }
            }
            Err(error) => panic!("the board's line: {error}"),
        }
    }
    for bytes in std::mem::take(&mut other.outgoing) {
        running.line.write_all(&bytes).expect("the board's line");
    }
}

fn noise() -> Option<Sigma> {
    Sigma::new(3 << 16, 2).ok()
}

/// Runs a round to its end over an undisturbed line.
fn undisturbed(running: &mut Running, other: &mut Coordinator) {
    play(running, other, |_| {}, |_| false);
}

fn assert_update(board: &Board, other: &Coordinator, what: &str) {
    let (update, bit) = expected(other);
    let is_right = other.integers == update && other.bit == bit;
    assert!(is_right, "{}: {what}: round {}", board.target, other.round);
}

/// Runs two rounds, under central and under local trust, one over a bad line, and a power failure.
fn takes_part(board: &Board) {
    let Some((program, _)) = firmware(board, "client") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    provision(dir.path(), 4, 1);
    if !board.has_random_numbers {
        refuses_blank_flash(board, &program, dir.path());
        // As written once by provisioning.
        let ledger = FileFlash::create(&dir.path().join("ledger.bin")).unwrap();
        Ledger::create(ledger, [4; 8], Key::from_secret(KEY)).unwrap();
    }
    let mut running = start(board, &program, dir.path());
    for (round, noise) in [(3, None), (4, noise())] {
        let mut other = coordinator(round, noise);
        undisturbed(&mut running, &mut other);
        assert_eq!(other.declined, None);
        assert_update(board, &other, "undisturbed");
        // An emulator on a busy machine occasionally loses bytes of its line, and the protocol
        // repeats those frames. Any other refusal would be an error of the board.
        let lost = [Refusal::Stuffing, Refusal::TooShort, Refusal::Checksum];
        let lost: u32 = lost.map(|refusal| other.refusals.get(refusal)).iter().sum();
        assert_eq!(other.refusals.total(), lost, "{:?}", other.refusals);
    }
    has_forgotten_its_first_key(board, dir.path());
    bad_line(board, &mut running);
    power_failure(board, running, &program, dir.path());
}

/// Checks that an erased device without entropy refuses to start.
fn refuses_blank_flash(board: &Board, program: &Path, dir: &Path) {
    let (page, ledger) = (dir.join("device.bin"), dir.join("blank.bin"));
    let output = emulator(board, program, &page, &ledger, "none").output();
    let output = output.expect("QEMU starts");
    let printed = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8_lossy(&printed);
    assert!(!output.status.success(), "{}: {printed}", board.target);
    let why = "refused: there is no valid ledger";
    assert!(printed.contains(why), "{}: {printed}", board.target);
}

/// Damages every seventh frame, drops every eleventh, and truncates every fifth.
fn bad_line(board: &Board, running: &mut Running) {
    let mut other = coordinator(5, noise());
    let mut number = 0;
    let damage = |bytes: &mut Vec<u8>| {
        number += 1;
        let middle = bytes.len() / 2;
        if number % 7 == 0 {
            bytes[middle] ^= 0x55;
        } else if number % 11 == 0 {
            bytes.clear();
        } else if number % 5 == 0 {
            bytes.truncate(middle);
        }
    };
    play(running, &mut other, damage, |_| false);
    assert_update(board, &other, "damaged");
}

/// Cuts the power during the update. The ledger knows the round after the restart.
fn power_failure(board: &Board, mut running: Running, program: &Path, dir: &Path) {
    let mut other = coordinator(6, noise());
    let mut received = 0;
    let fails = |bytes: &[u8]| {
        received += bytes.len();
        // Greeting and model requests are far shorter.
        received > 1_000
    };
    play(&mut running, &mut other, |_| {}, fails);
    assert!(!other.done);
    drop(running);

    let mut running = start(board, program, dir);
    let mut again = coordinator(6, noise());
    undisturbed(&mut running, &mut again);
    let declined = again.declined;
    assert_eq!(declined, Some(Decline::Budget), "four participations");
    drop(running);

    provision(dir, 9, 2);
    let mut running = start(board, program, dir);
    let mut again = coordinator(6, noise());
    undisturbed(&mut running, &mut again);
    let declined = again.declined;
    assert_eq!(declined, Some(Decline::RoundUsed), "its noise was used");
    let mut soon = coordinator(7, noise());
    undisturbed(&mut running, &mut soon);
    let declined = soon.declined;
    assert_eq!(declined, Some(Decline::TooSoon), "two after round 6");
    let mut other = coordinator(8, noise());
    undisturbed(&mut running, &mut other);
    assert_update(board, &other, "restarted");
}

#[test]
fn every_board_takes_part() {
    on_every_board(takes_part);
}
