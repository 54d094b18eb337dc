//! One round without a session: the ledger allows it once, then the device trains, clips,
//! quantises, adds noise and seals the frames of the update. Use it with another transport and
//! protocol, and to measure its size: `docs/targets.md`.
//!
//! **Not a whole device.** It trusts anyone who writes to the line, and the flash of its ledger is
//! volatile RAM. On your own board, use the flash of your HAL. `client` is a complete device.
#![no_std]
#![no_main]

use core::num::NonZeroU32;

#[cfg(target_arch = "arm")]
use cortex_m_rt::entry;
use embedded_io::{Read, Write};
#[cfg(target_arch = "riscv32")]
use riscv_rt::entry;
use smolfed_core::{
    Client, ClipNorm, Const, FixedModel, Grid, Identity, LearningRate, Ledger, LocalTraining,
    NoiseMultiplier, Release, Softmax,
    provision::Record,
    session::Policy,
    wire::{
        keys::Chain,
        link::{DeviceEnd, Link},
        message::Message,
    },
};
use smolfed_firmware::{
    board,
    client::{CLASSES, FEATURES},
    forgetful::Forgetful,
    link::Serial,
    local_data::WINDOWS,
    nonces,
    sensor::{Sense, Sensor, Windows},
};

type Model = Softmax<Const<FEATURES>, Const<CLASSES>>;
const PARAMETERS: usize = Model::PARAMETERS;

/// State of the device.
struct Device {
    client: Client<Model, PARAMETERS, WINDOWS, CLASSES>,
    global: [f32; PARAMETERS],
    windows: Windows<FEATURES, WINDOWS>,
    identity: Identity,
    policy: Policy,
    ledger: Ledger<Forgetful>,
}

#[entry]
fn main() -> ! {
    board::start();
    let mut line = line();
    let mut device = start();
    if let Some(device) = &mut device {
        let mut sensor = Sensor::new(CLASSES as u16, device.identity.device);
        loop {
            // Skip a window that training cannot use.
            let _left_out = device.windows.measure(&mut sensor);
            // An invalid request gets no answer.
            let _ = take_part(device, &mut line);
        }
    }
    loop {
        board::sleep_unless(|| false);
    }
}

/// Takes the serial line, for `main`.
#[expect(unsafe_code, reason = "the serial line has one owner")]
fn line() -> Serial {
    // SAFETY: called once in this program.
    unsafe { Serial::new() }
}

/// Starts the device from the provisioning record.
fn start() -> Option<Device> {
    let ledger = nonces::ledger(Forgetful::new()).ok()?;
    let record = Record::read(board::provisioning()).ok()?;
    Some(Device {
        client: Client::new(Softmax::new(Const, Const)),
        global: [0.0; PARAMETERS],
        windows: Windows::new(CLASSES as u16),
        identity: record.identity.clone(),
        policy: record.policy,
        ledger,
    })
}

/// Runs one round. Its number, its settings and the model arrive as words, and the update leaves in
/// frames.
fn take_part(device: &mut Device, line: &mut Serial) -> Option<()> {
    let number = word(line);
    let clip_norm = ClipNorm::new(number_of(word(line))).ok()?;
    let (epochs, batch_size) = (word(line), NonZeroU32::new(word(line))?);
    let learning_rate = LearningRate::new(number_of(word(line))).ok()?;
    let settings = LocalTraining::new(learning_rate, clip_norm)
        .with_epochs(epochs)
        .with_batch_size(batch_size);
    let grid = Grid::new(clip_norm, word(line)).ok()?;
    let multiplier = u64::from(word(line)) | u64::from(word(line)) << 32;
    let multiplier = NoiseMultiplier::from_units(multiplier);
    for parameter in &mut device.global {
        *parameter = number_of(word(line));
    }
    // The noise is never less than the device's minimum.
    if multiplier < device.policy.min_noise_multiplier || epochs > device.policy.max_epochs {
        return None;
    }
    let (ledger, limits) = (&mut device.ledger, &device.policy.limits);
    let participation = ledger.begin(number, &mut device.identity, limits).ok()?;
    let client = &mut device.client;
    let trained = client.train(
        participation,
        device.windows.samples(),
        &device.global,
        &settings,
    );
    let noised = trained.noise(&grid, multiplier).ok()?;

    // Each round has its own key, since the ledger allows each number once.
    let mut nonce = [0; 16];
    let [a, b, c, d, ..] = &mut nonce;
    [*a, *b, *c, *d] = number.to_le_bytes();
    let keys = ledger
        .chain()
        .session(device.identity.device, &nonce, &[0; 16]);
    let mut link = Link::<DeviceEnd>::new(keys.cipher());
    for chunk in noised.chunks() {
        let Ok(_) = line.write(link.seal(number, &Message::UpdateChunk(chunk)).as_slice());
    }
    Some(())
}

/// Reads the next four bytes from the line.
#[inline(never)]
fn word(line: &mut Serial) -> u32 {
    let mut bytes = [0; 4];
    for byte in &mut bytes {
        let Ok(_) = line.read(core::slice::from_mut(byte));
    }
    u32::from_le_bytes(bytes)
}

/// Returns the number with this bit pattern.
const fn number_of(word: u32) -> f32 {
    f32::from_bits(word)
}
