//! A device for tests and its session. The tests of this crate, of the coordinator and the fuzz
//! targets share it. It needs the feature `hazmat`.
//!
//! The device trains softmax regression on ten synthetic samples, with its flash in memory.
//! [`simulated`] computes its messages without a session.

use core::num::NonZeroU32;

use crate::{
    bit::clip_bit,
    client::Client,
    ledger::Limits,
    model::{Const, ModelKind, Softmax},
    noise::{DiscreteGaussian, Sigma},
    params::{ClipNorm, LearningRate, NoiseMultiplier, Penalty},
    personal::store::PersonalStore,
    quantize::Grid,
    samples::SampleSlice,
    secrets::Secrets,
    session::{Greeter, Policy, Session, Trainable},
    stream::{Purpose, Root, Stream, StreamId},
    train::{Clipping, TrainReport},
    wire::message::{Invitation, ModelShape},
};

mod ram;

pub use ram::{Broken, Ram};

/// Features of a sample.
pub const FEATURES: usize = 20;
/// Classes.
pub const CLASSES: usize = 6;
/// Parameters of the model.
pub const PARAMETERS: usize = (FEATURES + 1) * CLASSES;
/// Samples of the device.
pub const SAMPLES: usize = 10;

// The compiler evaluates these constants, so no program contains their panics.

const LEARNING_RATE: LearningRate = match LearningRate::new(0.25) {
    Ok(rate) => rate,
    Err(_) => panic!("a valid rate"),
};

const CLIP_NORM: ClipNorm = match ClipNorm::new(0.5) {
    Ok(norm) => norm,
    Err(_) => panic!("a valid norm"),
};

const GRID: Grid = match Grid::new(CLIP_NORM, 20) {
    Ok(grid) => grid,
    Err(_) => panic!("a valid grid"),
};

const BATCH_SIZE: NonZeroU32 = NonZeroU32::MIN.saturating_add(3);

/// Returns a policy with these limits that accepts updates without noise.
pub const fn policy(limits: Limits) -> Policy {
    Policy {
        limits,
        min_noise_multiplier: NoiseMultiplier::NONE,
        min_matrix_noise_multiplier: NoiseMultiplier::NONE,
        max_epochs: 10,
        hides_number: false,
        helpers: 0,
    }
}

/// Returns the shape of the model.
pub const fn shape() -> ModelShape {
    ModelShape {
        kind: ModelKind::Softmax,
        features: FEATURES as u16,
        outputs: CLASSES as u16,
        network: None,
        integer: None,
    }
}

/// Returns an invitation accepted by [`policy`].
pub const fn invitation(noise: Option<Sigma>) -> Invitation {
    Invitation {
        shape: shape(),
        epochs: 2,
        batch_size: BATCH_SIZE,
        learning_rate: LEARNING_RATE,
        weight_decay: Penalty::NONE,
        proximal: Penalty::NONE,
        clipping: Clipping::EveryStep,
        gradient_smoothing: None,
        grid: GRID,
        noise,
        bit: None,
        masks: None,
        request: None,
    }
}

/// Returns the noise of an update, with a std of 1.5 · 2²⁰ on the grid, thus z = 1.5.
pub fn noise() -> Option<Sigma> {
    Sigma::new(3 << 20, 2).ok()
}

/// Returns the global model.
pub fn model() -> [f32; PARAMETERS] {
    core::array::from_fn(|i| (i % 7) as f32 * 0.01)
}

/// Returns the features and classes of the samples.
pub fn data() -> ([f32; FEATURES * SAMPLES], [u16; SAMPLES]) {
    let features = core::array::from_fn(|i| ((i * 37) % 101) as f32 / 50.0 - 1.0);
    (features, core::array::from_fn(|i| (i % CLASSES) as u16))
}

/// Returns the stream of a device in a round.
pub fn stream(root: &Root, purpose: Purpose, round: u32, device: u32) -> Stream {
    root.stream(StreamId {
        purpose,
        round,
        device,
    })
}

/// The messages of a device in a round.
#[derive(Debug)]
pub struct Simulated {
    /// The update on the grid, with its noise.
    pub update: [i64; PARAMETERS],
    /// The bit of adaptive clipping, with its noise.
    pub bit: Option<i64>,
    /// Report of training.
    pub report: TrainReport,
}

/// Returns the messages of the device with this root, as computed by a simulation, unless training
/// fails.
pub fn simulated(
    root: &Root,
    device: u32,
    round: u32,
    invitation: &Invitation,
    global: &[f32; PARAMETERS],
) -> Option<Simulated> {
    let (features, targets) = data();
    let samples = SampleSlice::new(&features, &targets, FEATURES).ok()?;
    let mut client: Client<_, PARAMETERS, SAMPLES, CLASSES> =
        Client::new(Softmax::new(Const::<FEATURES>, Const::<CLASSES>));
    let stream = |purpose| stream(root, purpose, round, device);
    let order = &mut stream(Purpose::BatchShuffle);
    let trained = client.train_unrecorded(&samples, global, &invitation.training(), order);
    let report = trained.ok()?;
    let (grid, mut integers) = (&invitation.grid, [0; PARAMETERS]);
    let quantized = grid.quantize_into(client.update(), &mut integers);
    quantized.ok()?;
    let mut update = integers.map(i64::from);
    if let Some(noise) = invitation.noise {
        DiscreteGaussian::of(noise).add_to(&mut update, &mut stream(Purpose::DeviceNoise));
    }
    let bit = invitation.bit.map(|request| {
        let mut bit = [clip_bit(grid, report.norm)];
        if let Some(noise) = request.noise {
            DiscreteGaussian::of(noise).add_to(&mut bit, &mut stream(Purpose::DeviceBitNoise));
        }
        bit[0]
    });
    Some(Simulated {
        update,
        bit,
        report,
    })
}

/// Takes all frames that the device sends before it waits for an answer.
pub fn transmit<M, F, R, K, V>(
    session: &mut Session<'_, M, F, R, K, V>,
    mut take: impl FnMut(&[u8]),
) where
    M: Trainable,
    R: Greeter,
    K: PersonalStore,
    V: Secrets,
{
    while !session.outgoing().is_empty() {
        take(session.outgoing());
        session.sent();
    }
}

/// Delivers these bytes to the device, and calls `after` after each frame.
///
/// # Panics
/// If the session accepts none of the bytes.
pub fn deliver<'a, M, F, R, K, V>(
    session: &mut Session<'a, M, F, R, K, V>,
    mut bytes: &[u8],
    mut after: impl FnMut(&mut Session<'a, M, F, R, K, V>),
) where
    M: Trainable,
    R: Greeter,
    K: PersonalStore,
    V: Secrets,
{
    while !bytes.is_empty() {
        let taken = session.receive(bytes);
        assert!(taken > 0, "no progress");
        bytes = bytes.get(taken..).unwrap_or_default();
        after(session);
    }
}
