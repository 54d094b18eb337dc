//! Counts the instructions of the client's parts, in QEMU with `-icount`: `cargo xtask
//! bench-target`.
//!
//! A line each: a name, and instructions.
#![no_std]
#![no_main]

mod counting;
mod integer;
mod window;

use core::cell::Cell;
use core::hint::black_box;
use core::num::NonZeroU32;

#[cfg(target_arch = "arm")]
use cortex_m_rt::entry;
#[cfg(target_arch = "riscv32")]
use riscv_rt::entry;
use semihosting::{println, process::ExitCode};
use smolfed_core::{
    clip::clip_l2,
    mask::{MaskRoot, Masking},
    model::{Const, Fixed, FixedModel, Model},
    noise::DiscreteGaussian,
    params::{ClipNorm, LearningRate, Penalty},
    quantize::Grid,
    samples::{SampleSlice, Samples},
    smooth::LaplacianSmoothing,
    stream::{Purpose, Root},
    train::{Clipping, LocalTraining, Workspace, local_update},
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

use counting::{Client, PARAMETERS, SAMPLES, count, print, stream};

const BITS: u32 = 20;

#[entry]
fn main() -> ! {
    board::start_counter();
    match run() {
        Some(()) => ExitCode::SUCCESS.exit_process(),
        None => host::give_up(c"a constant of the bench is wrong"),
    }
}

/// Counts what takes longer than the board's counter: it is looked at whenever a sample is.
struct Clock {
    last: Cell<u32>,
    total: Cell<u64>,
}

impl Clock {
    fn start() -> Self {
        Self {
            last: Cell::new(board::counter()),
            total: Cell::new(0),
        }
    }

    fn look(&self) {
        let now = board::counter();
        let since = u64::from(now.wrapping_sub(self.last.replace(now)));
        self.total.set(self.total.get() + since);
    }

    fn instructions(&self) -> u64 {
        self.look();
        self.total.get() * 1_000 / u64::from(board::COUNTS_PER_1000)
    }
}

/// Samples under a clock.
struct Counted<'a, S>(&'a S, Clock);

impl<S: Samples> Samples for Counted<'_, S> {
    type Target = S::Target;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn features(&self, index: usize) -> &[f32] {
        self.1.look();
        self.0.features(index)
    }

    fn target(&self, index: usize) -> S::Target {
        self.0.target(index)
    }
}

/// Samples that are computed: 50 rows of 64 values would leave no room on the smallest board.
struct Rows<const FEATURES: usize>([[f32; FEATURES]; 2]);

impl<const FEATURES: usize> Rows<FEATURES> {
    fn new() -> Self {
        Self([
            core::array::from_fn(|i| (i * 37 % 101) as f32 / 50.0 - 1.0),
            core::array::from_fn(|i| (i * 53 % 103) as f32 / 50.0 - 1.0),
        ])
    }
}

impl<const FEATURES: usize> Samples for Rows<FEATURES> {
    type Target = u16;

    fn len(&self) -> usize {
        SAMPLES
    }

    fn features(&self, index: usize) -> &[f32] {
        match &self.0 {
            [even, _] if index.is_multiple_of(2) => even,
            [_, odd] => odd,
        }
    }

    fn target(&self, index: usize) -> u16 {
        (index % 10) as u16
    }
}

fn run() -> Option<()> {
    integer::measure()?;
    clients()?;
    network::<SmallNetwork, 150, { SmallNetwork::PARAMETERS }, { SmallNetwork::SCRATCH }>(
        "network-small",
        Fixed::new(),
    )?;
    #[cfg(not(small_ram))]
    network::<Network, 300, { Network::PARAMETERS }, { Network::SCRATCH }>(
        "network",
        Fixed::new(),
    )?;
    Some(())
}

/// The client of `docs/targets.md`, part by part.
#[inline(never)]
fn clients() -> Option<()> {
    let rows = Rows::new();
    let mut global = [0.01; PARAMETERS];
    let mut local = [0.01; PARAMETERS];
    let mut update = [0.0; PARAMETERS];
    gradient(&rows, &local, &mut update)?;
    step(&rows, &global, &mut local, &mut update)?;
    clipping(&mut update)?;
    smoothing(&mut global)?;
    noise()?;
    frames()?;
    masking(&global)?;
    window::measure()?;
    #[cfg(feature = "x25519")]
    handshake()?;
    global.fill(0.01);
    round(&rows, &global, &mut local, &mut update)
}

/// The device's side of a greeting with X25519.
#[cfg(feature = "x25519")]
#[inline(never)]
fn handshake() -> Option<()> {
    use smolfed_core::{
        crypto::Key,
        wire::{
            VERSION,
            greeting::{Hello, Name, Versions},
            handshake::Ephemeral,
            keys::ChainKey,
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
        let greeted = Hello::with_handshake(&chain, 7, name, [2; 16], Versions::OURS, &own);
        hello = Some(greeted);
    });
    print("handshake-hello", instructions);
    let hello = hello?;
    let other = Ephemeral::generate(&mut stream(2));
    let admitted = hello.admit(&chain.handshake(7))?;
    let (second, key) = admitted.answer(&other, VERSION)?;
    black_box(key);
    let mut opened = None;
    let instructions = count(|| opened = second.open(&chain, 7, &hello, &own));
    print("handshake-welcome", instructions);
    opened.map(|_| ())
}

/// Loss and gradient of one sample.
fn gradient(rows: &Rows<64>, local: &[f32], update: &mut [f32]) -> Option<()> {
    let model = Client::new(Const, Const);
    let mut scratch = [0.0; 10];
    for name in ["gradient-first", "gradient"] {
        let mut loss = None;
        let instructions = count(|| {
            let batch = black_box(&[1]);
            loss = model
                .loss_and_gradient(local, rows, batch, &mut scratch, update)
                .ok();
        });
        loss?;
        print(name, instructions);
    }
    Some(())
}

/// One step of the device's algorithm on one sample: training of three steps less one of two.
fn step(rows: &Rows<64>, global: &[f32], local: &mut [f32], update: &mut [f32]) -> Option<()> {
    let sample = SampleSlice::new(rows.features(0), &[3u16], 64).ok()?;
    let mut steps = |epochs| {
        let training = training(epochs)?;
        let mut trained = None;
        let instructions = count(|| trained = train(&sample, global, &training, local, update));
        trained.map(|()| instructions)
    };
    let (two, three) = (steps(2)?, steps(3)?);
    print("step", three - two);
    Some(())
}

fn training(epochs: u32) -> Option<LocalTraining> {
    Some(LocalTraining {
        epochs,
        batch_size: NonZeroU32::new(10)?,
        learning_rate: LearningRate::new(0.1).ok()?,
        weight_decay: Penalty::NONE,
        proximal: Penalty::NONE,
        clip_norm: ClipNorm::new(0.3).ok(),
        clipping: Clipping::EveryStep,
        gradient_smoothing: None,
    })
}

fn train<S: Samples<Target = u16>>(
    samples: &S,
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
    let mut quantizer = None;
    let mut sum = 0;
    let instructions = count(|| {
        quantizer = grid.quantizer(black_box(update)).ok();
        if let Some(quantizer) = &quantizer {
            sum = update.iter().fold(0, |sum, x| sum ^ quantizer.get(*x));
        }
    });
    quantizer?;
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
    // Too much for a small board, whose vectors are in use.
    #[cfg(not(small_ram))]
    {
        let mut vector = [0.5; 1_024];
        let vector = black_box(&mut vector);
        print("smooth-1024", count(|| smoothing.apply(vector)));
    }
    Some(())
}

/// 1,000 values with σ = 2^20.
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

/// Tag, checksum and stuffing of a full chunk of an update.
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

/// What a round with one helper adds: the masks of all entries, and the tag.
fn masking(global: &[f32]) -> Option<()> {
    let root = MaskRoot::new(&Root::from_seed(1), 0);
    let (round, ledger) = (0, [7; 8]);
    let terms = Masking::new(1, 19)?.terms(&Grid::new(ClipNorm::new(0.3).ok()?, 8).ok()?);
    // 650 entries, in the memory of 65.
    let (mut low, mut high) = ([1; PARAMETERS / 10], [0; PARAMETERS / 10]);
    let instructions = count(|| {
        let key = root.helper(0).round(round, &ledger);
        let mut masks = key.masks(terms.width.into());
        for _ in 0..10 {
            masks.add_to(black_box(&mut low), black_box(&mut high));
        }
    });
    print("mask-650", instructions);
    // As many bytes as an invitation to train a model that is no network.
    let invitation = [0x5a; 70];
    let instructions = count(|| {
        let key = root.helper(0).round(round, &ledger);
        black_box(key.tag(&terms, black_box(&invitation), black_box(global)));
    });
    print("mask-tag", instructions);
    Some(())
}

/// All that the device computes in a round of local trust: 50 samples, 5 epochs, batches of 10.
fn round(rows: &Rows<64>, global: &[f32], local: &mut [f32], update: &mut [f32]) -> Option<()> {
    let training = training(5)?;
    let grid = Grid::new(ClipNorm::new(0.3).ok()?, BITS).ok()?;
    let noise = DiscreteGaussian::new(1 << BITS, 1).ok()?;
    let mut link = Link::<DeviceEnd>::new(SessionKey::from_secret([1; 32]));
    let mut trained = None;
    let instructions = count(|| trained = train(rows, global, &training, local, update));
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
    update: &[f32],
) -> Option<()> {
    let quantizer = grid.quantizer(update).ok()?;
    let mut stream = stream(Purpose::DeviceNoise);
    let width = pack::width(BITS, Some(noise));
    let values = pack::capacity(width, UPDATE_CHUNK_BYTES);
    let mut packed = [0; UPDATE_CHUNK_BYTES];
    for (index, chunk) in (0..).zip(update.chunks(values)) {
        let noised = chunk
            .iter()
            .map(|x| i64::from(quantizer.get(*x)).wrapping_add(noise.sample(&mut stream)));
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

/// A network: loss and gradient of one sample, and the training of a round as above.
#[inline(never)]
fn network<M, const FEATURES: usize, const P: usize, const B: usize>(
    name: &str,
    model: M,
) -> Option<()>
where
    M: FixedModel<Target = u16>,
{
    println!("{name}-parameters {P}");
    println!("{name}-vectors {}", 3 * P * size_of::<f32>());
    println!("{name}-scratch {}", B * size_of::<f32>());
    let activations = model.network()?.activation_count();
    println!("{name}-activations {}", activations * size_of::<f32>());

    let rows = Rows::<FEATURES>::new();
    let global: [f32; P] = core::array::from_fn(|i| (i * 31 % 29) as f32 / 113.0 - 0.1);
    let (mut local, mut update, mut scratch) = ([0.0; P], [0.0; P], [0.0; B]);
    let samples = Counted(&rows, Clock::start());
    let batch = black_box(&[1]);
    model
        .loss_and_gradient(&global, &samples, batch, &mut scratch, &mut update)
        .ok()?;
    println!("{name}-gradient {}", samples.1.instructions());

    let samples = Counted(&rows, Clock::start());
    let work = Workspace {
        local: &mut local,
        update: &mut update,
        order: &mut [0; SAMPLES],
        scratch: &mut scratch,
    };
    let order = &mut stream(Purpose::BatchShuffle);
    local_update(&model, &samples, &global, &training(5)?, order, work).ok()?;
    println!("{name}-training {}", samples.1.instructions());
    Some(())
}
