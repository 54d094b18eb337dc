//! Counts the instructions of the client's parts, in QEMU with `-icount`: `cargo xtask
//! bench-target`.
//!
//! Each line has a name and an instruction count.
#![no_std]
#![no_main]

#[cfg(not(all(small_ram, fast)))]
mod backbone;
mod counting;
mod data;
#[cfg(not(all(small_ram, fast)))]
mod gradients;
mod integer;
// It needs no `exp`, and does not fit a small board's flash next to the approximate `exp`.
#[cfg(not(all(small_ram, feature = "micromath")))]
mod masking;
mod network;
mod pieces;
#[cfg(not(all(small_ram, fast)))]
mod predictions;
#[cfg(not(all(small_ram, fast)))]
mod quantised;
mod window;

use core::hint::black_box;

#[cfg(target_arch = "arm")]
use cortex_m_rt::entry;
#[cfg(target_arch = "riscv32")]
use riscv_rt::entry;
use semihosting::process::ExitCode;
use smolfed_core::{
    clip::clip_l2,
    model::{Const, Fixed, FixedModel, Model},
    noise::DiscreteGaussian,
    params::ClipNorm,
    quantize::Grid,
    samples::SampleSlice,
    smooth::LaplacianSmoothing,
    stream::Purpose,
    train::{LocalTraining, Workspace, local_update},
    wire::{
        keys::SessionKey,
        link::{DeviceEnd, Link},
        message::{Message, Packed, UPDATE_CHUNK_BYTES, UpdateChunk},
        pack,
    },
};
#[cfg(not(small_ram))]
use smolfed_firmware::network::Network;
use smolfed_firmware::{board, host, network::SmallNetwork};

use counting::{BITS, Client, PARAMETERS, count, print, stream, training};
use data::{FEATURES, SAMPLES, samples, weight};

#[entry]
fn main() -> ! {
    board::start_counter();
    match run() {
        Some(()) => ExitCode::SUCCESS.exit_process(),
        None => host::give_up(c"a constant of the bench is wrong"),
    }
}

fn run() -> Option<()> {
    integer::measure()?;
    pieces::measure()?;
    clients()?;
    #[cfg(not(all(small_ram, fast)))]
    quantised::measure()?;
    network::measure::<SmallNetwork, 150, { SmallNetwork::PARAMETERS }, { SmallNetwork::SCRATCH }>(
        "network-small",
        Fixed::new(),
    )?;
    #[cfg(not(small_ram))]
    network::measure::<Network, 300, { Network::PARAMETERS }, { Network::SCRATCH }>(
        "network",
        Fixed::new(),
    )?;
    Some(())
}

/// Measures the client of `docs/targets.md`, part by part.
#[inline(never)]
fn clients() -> Option<()> {
    let mut global: [f32; PARAMETERS] = core::array::from_fn(weight);
    let mut local = global;
    let mut update = [0.0; PARAMETERS];
    gradient(&local, &mut update)?;
    step(&global, &mut local, &mut update)?;
    clipping(&mut update)?;
    smoothing(&mut global)?;
    noise()?;
    frames()?;
    #[cfg(not(all(small_ram, feature = "micromath")))]
    masking::measure(&global)?;
    window::measure()?;
    // Optimised for speed, it does not fit the flash of a small board.
    #[cfg(not(all(small_ram, fast)))]
    predictions::measure(&mut global)?;
    #[cfg(not(all(small_ram, fast)))]
    gradients::measure()?;
    // Optimised for speed, the rest fills the flash of a small board.
    #[cfg(not(all(small_ram, fast)))]
    backbone::measure();
    #[cfg(feature = "x25519")]
    handshake()?;
    global = core::array::from_fn(weight);
    round(&global, &mut local, &mut update)
}

/// Measures the device's side of a greeting with X25519.
#[cfg(feature = "x25519")]
#[inline(never)]
fn handshake() -> Option<()> {
    use smolfed_core::{
        crypto::Key,
        stream::Root,
        wire::{
            VERSION,
            greeting::{Hello, Name, Versions},
            handshake::Ephemeral,
            keys::{Chain, ChainKey},
        },
    };

    let chain = ChainKey::new(Key::from_secret([1; 32]));
    let stream = |device| {
        Root::from_seed(1).stream(smolfed_core::stream::StreamId {
            purpose: Purpose::SessionNonces,
            round: 0,
            device,
        })
    };
    let mut own = None;
    let instructions = count(|| own = Some(Ephemeral::generate(&mut stream(1))));
    print("handshake-key", instructions);
    let (own, mut hello) = (own?, None);
    let name = Name::Number(7);
    let instructions = count(|| {
        let (key, psk) = (chain.greeting(), chain.handshake(7));
        let versions = Versions::OURS;
        hello = Some(Hello::with_handshake(
            &key, &psk, name, [2; 16], versions, &own,
        ));
    });
    print("handshake-hello", instructions);
    let hello = hello?;
    let other = Ephemeral::generate(&mut stream(2));
    let admitted = hello.admit(&chain.handshake(7))?;
    let (second, key) = admitted.answer(&other, VERSION)?;
    black_box(key);
    let mut opened = None;
    let instructions = count(|| opened = second.open(&chain.handshake(7), &hello, &own));
    print("handshake-welcome", instructions);
    opened.map(|_| ())
}

/// Measures loss and gradient of one sample.
fn gradient(local: &[f32], update: &mut [f32]) -> Option<()> {
    let samples = samples(SAMPLES, FEATURES)?;
    let model = Client::new(Const, Const);
    let mut scratch = [0.0; 10];
    for name in ["gradient-first", "gradient"] {
        let mut loss = None;
        let instructions = count(|| {
            let batch = black_box(&[1]);
            loss = model
                .loss_and_gradient(local, &samples, batch, &mut scratch, update)
                .ok();
        });
        loss?;
        print(name, instructions);
    }
    Some(())
}

/// Measures the device's algorithm on one sample, with two steps and with three.
fn step(global: &[f32], local: &mut [f32], update: &mut [f32]) -> Option<()> {
    let sample = samples(1, FEATURES)?;
    for (name, epochs) in [("step-2", 2), ("step-3", 3)] {
        let training = training(epochs)?;
        let mut trained = None;
        let instructions = count(|| trained = train(&sample, global, &training, local, update));
        trained?;
        print(name, instructions);
    }
    Some(())
}

/// Trains. Not inlined, so that it is in the flash once.
#[inline(never)]
fn train(
    samples: &SampleSlice<'_, u16>,
    global: &[f32],
    training: &LocalTraining,
    local: &mut [f32],
    update: &mut [f32],
) -> Option<()> {
    let work = Workspace {
        local,
        update,
        order: &mut [0; SAMPLES],
        scratch: &mut [0.0; 10],
    };
    let order = &mut stream(Purpose::BatchShuffle);
    let model = Client::new(Const, Const);
    local_update(&model, samples, global, training, order, work).ok()?;
    Some(())
}

fn clipping(update: &mut [f32]) -> Option<()> {
    update
        .iter_mut()
        .zip(0..)
        .for_each(|(x, i)| *x = (i % 7) as f32 * 0.01 - 0.03);
    let grid = Grid::new(ClipNorm::new(0.3).ok()?, BITS).ok()?;
    let mut norm = None;
    print(
        "clip-650",
        count(|| norm = clip_l2(black_box(update), 0.3).ok()),
    );
    norm?;
    let mut repair = None;
    let mut sum = 0;
    let instructions = count(|| {
        repair = grid.round_in_place(black_box(update)).ok();
        if let Some(repair) = repair {
            let rounded = update.iter().map(|x| x.to_bits() as i32);
            sum = rounded.fold(0, |sum, q| sum ^ repair.apply(q));
        }
    });
    repair?;
    black_box(sum);
    print("quantise-650", instructions);
    Some(())
}

fn smoothing(vector: &mut [f32; PARAMETERS]) -> Option<()> {
    let smoothing = LaplacianSmoothing::new(1.0).ok()?;
    for (name, length) in [("smooth-256", 256), ("smooth-640", 640)] {
        let vector = vector.get_mut(..length)?;
        print(name, count(|| smoothing.apply(black_box(vector))));
    }
    // Too large for a small board, whose vectors are in use.
    #[cfg(not(small_ram))]
    {
        let mut vector = [0.5; 1_024];
        let vector = black_box(&mut vector);
        print("smooth-1024", count(|| smoothing.apply(vector)));
    }
    Some(())
}

/// Measures 1,000 values with σ = 2^20.
fn noise() -> Option<()> {
    let noise = DiscreteGaussian::new(1 << BITS, 1).ok()?;
    let mut stream = stream(Purpose::DeviceNoise);
    let mut sum = 0;
    let instructions = count(|| {
        for _ in 0..1_000 {
            sum ^= noise.sample(&mut stream);
        }
    });
    black_box(sum);
    print("noise-1000", instructions);
    Some(())
}

/// Measures tag, checksum and stuffing of a full chunk of an update.
fn frames() -> Option<()> {
    let mut link = Link::<DeviceEnd>::new(SessionKey::from_secret([1; 32]));
    let packed = [0x5a; UPDATE_CHUNK_BYTES];
    let message = Message::UpdateChunk(UpdateChunk {
        index: 0,
        negated: false,
        more: false,
        packed: Packed::Bytes(&packed),
    });
    let instructions = count(|| {
        black_box(link.seal(1, black_box(&message)));
    });
    print("frame", instructions);
    Some(())
}

/// Measures a device's whole round with local trust: 50 samples, 5 epochs, batches of 10.
fn round(global: &[f32], local: &mut [f32], update: &mut [f32]) -> Option<()> {
    let samples = samples(SAMPLES, FEATURES)?;
    let training = training(5)?;
    let grid = Grid::new(ClipNorm::new(0.3).ok()?, BITS).ok()?;
    let noise = DiscreteGaussian::new(1 << BITS, 1).ok()?;
    let mut link = Link::<DeviceEnd>::new(SessionKey::from_secret([1; 32]));
    let mut trained = None;
    let instructions = count(|| trained = train(&samples, global, &training, local, update));
    trained?;
    print("round-training", instructions);
    let mut sent = None;
    let instructions = count(|| sent = send(&grid, &noise, &mut link, update));
    sent?;
    print("round-sending", instructions);
    Some(())
}

fn send(
    grid: &Grid,
    noise: &DiscreteGaussian,
    link: &mut Link<DeviceEnd>,
    update: &mut [f32],
) -> Option<()> {
    let repair = grid.round_in_place(update).ok()?;
    let mut stream = stream(Purpose::DeviceNoise);
    let width = pack::width(BITS, Some(noise.sigma()));
    let values = pack::capacity(width, UPDATE_CHUNK_BYTES);
    let mut packed = [0; UPDATE_CHUNK_BYTES];
    for (index, chunk) in (0..).zip(update.chunks(values)) {
        let noised = chunk
            .iter()
            .map(|x| i64::from(repair.apply(x.to_bits() as i32)))
            .map(|q| q.wrapping_add(noise.sample(&mut stream)));
        let length = pack::pack(noised, width, &mut packed)?;
        let message = Message::UpdateChunk(UpdateChunk {
            index,
            negated: false,
            more: false,
            packed: Packed::Bytes(packed.get(..length)?),
        });
        black_box(link.seal(1, &message));
    }
    Some(())
}
