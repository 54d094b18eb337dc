//! One round without session or ledger: train, clip, quantise, add noise, seal the frames of the
//! update. For use with another transport and protocol, and to measure its size: `docs/targets.md`.
//!
//! **Not a device.** It has no ledger, so that after a restart whoever writes to the line can ask
//! for a round again, and subtract two updates with the same noise; it trusts whoever writes to the
//! line, and numbers the frames of every round from 1. `client` is a device.
#![no_std]
#![no_main]

use core::num::NonZeroU32;

#[cfg(target_arch = "arm")]
use cortex_m_rt::entry;
use embedded_io::{Read, Write};
#[cfg(target_arch = "riscv32")]
use riscv_rt::entry;
use smolfed_core::{
    Client, ClipNorm, Const, DiscreteGaussian, FixedModel, Grid, LearningRate, LocalTraining,
    Purpose, Root, Softmax, StreamId,
    wire::{
        keys::SessionKey,
        link::{DeviceEnd, Link},
        message::{Message, Packed, UPDATE_CHUNK_BYTES, UpdateChunk},
        pack,
    },
};
use smolfed_firmware::{
    board,
    client::{CLASSES, FEATURES},
    link::Serial,
    local_data::WINDOWS,
    sensor::{Sense, Sensor, Windows},
};

type Model = Softmax<Const<FEATURES>, Const<CLASSES>>;
const PARAMETERS: usize = Model::PARAMETERS;

/// The device's number.
const DEVICE: u32 = 1;

/// What the device holds.
struct Device {
    client: Client<Model, PARAMETERS, WINDOWS, CLASSES>,
    global: [f32; PARAMETERS],
    windows: Windows<FEATURES, WINDOWS>,
    root: Root,
    key: SessionKey,
    /// The first round that it has not taken part in.
    next: u32,
}

/// Smallest noise multiplier, in units of 2⁻³².
const MIN_MULTIPLIER: u64 = 1 << 32;

#[entry]
fn main() -> ! {
    board::start();
    // Where the provisioning record of a client would be: the secret of its streams, and its key.
    let (secrets, _) = board::provisioning().as_chunks();
    let secret = |index: usize| secrets.get(index).copied().unwrap_or_default();
    let mut device = Device {
        client: Client::new(Softmax::new(Const, Const)),
        global: [0.0; PARAMETERS],
        windows: Windows::new(),
        root: Root::from_secret(secret(0)),
        key: SessionKey::from_secret(secret(1)),
        next: 0,
    };
    let mut sensor = Sensor::new(CLASSES as u16, DEVICE);
    loop {
        device.windows.measure(&mut sensor);
        // An invalid request gets no answer.
        let _ = take_part(&mut device);
    }
}

/// One round: its number, its settings and the model come in as words, the update goes out in
/// frames.
fn take_part(device: &mut Device) -> Option<()> {
    let number = word();
    let clip_norm = ClipNorm::new(number_of(word())).ok()?;
    let (epochs, batch_size) = (word(), NonZeroU32::new(word())?);
    let learning_rate = LearningRate::new(number_of(word())).ok()?;
    let settings = LocalTraining::new(learning_rate, clip_norm)
        .with_epochs(epochs)
        .with_batch_size(batch_size);
    let grid = Grid::new(clip_norm, word()).ok()?;
    let multiplier = u64::from(word()) | u64::from(word()) << 32;
    let noise = DiscreteGaussian::from_multiplier(multiplier, grid.bits()).ok()?;
    for parameter in &mut device.global {
        *parameter = number_of(word());
    }
    // The noise of a round is drawn once, and is never too small.
    if number < device.next || multiplier < MIN_MULTIPLIER {
        return None;
    }
    device.next = number.checked_add(1)?;

    let Device {
        client,
        global,
        windows,
        root,
        key,
        ..
    } = device;
    let stream = |purpose| {
        root.stream(StreamId {
            purpose,
            round: number,
            device: DEVICE,
        })
    };
    let order = &mut stream(Purpose::BatchShuffle);
    client.train(windows, global, &settings, order).ok()?;
    let quantizer = client.quantizer(&grid).ok()?;

    let mut link = Link::<DeviceEnd>::new(key.clone());
    let noises = &mut stream(Purpose::DeviceNoise);
    let width = pack::width(grid.bits(), Some(&noise));
    let count = pack::capacity(width, UPDATE_CHUNK_BYTES).max(1);
    for (index, part) in (0..).zip(client.update().chunks(count)) {
        let mut packed = [0; UPDATE_CHUNK_BYTES];
        let values = part
            .iter()
            .map(|x| i64::from(quantizer.get(*x)).wrapping_add(noise.sample(noises)));
        let length = pack::pack(values, width, &mut packed)?;
        let chunk = UpdateChunk {
            index,
            negated: false,
            more: false,
            packed: Packed::Bytes(packed.get(..length)?),
        };
        let Ok(_) = Serial.write(link.seal(number, &Message::UpdateChunk(chunk)).as_slice());
    }
    Some(())
}

/// The next four bytes of the line.
#[inline(never)]
fn word() -> u32 {
    let mut bytes = [0; 4];
    for byte in &mut bytes {
        let Ok(_) = Serial.read(core::slice::from_mut(byte));
    }
    u32::from_le_bytes(bytes)
}

/// The number with this pattern.
const fn number_of(word: u32) -> f32 {
    f32::from_bits(word)
}
