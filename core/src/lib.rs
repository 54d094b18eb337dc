//! What a device runs in differentially private federated learning: a small model, local training,
//! clipping, exact integer noise, Laplacian smoothing. No heap, no operating system, no `unsafe`.
//!
//! ```
//! use embedded_storage::nor_flash::NorFlash;
//! use smolfed_core::{
//!     Client, ClipNorm, Const, FixedModel, Grid, Identity, LearningRate, Ledger, LocalTraining,
//!     NoiseMultiplier, Release, SampleSlice, Softmax,
//!     ledger::{Budget, Limits, MaxJump, Separation},
//! };
//!
//! // Three features, two classes, up to eight samples; the model has the other sizes.
//! type Model = Softmax<Const<3>, Const<2>>;
//! type Device = Client<Model, { Model::PARAMETERS }, 8, { Model::SCRATCH }>;
//!
//! // What the device agrees to in all of its life. A wrong constant fails the build.
//! const LIMITS: Limits = Limits {
//!     budget: Budget(100),
//!     separation: Separation::NONE,
//!     max_jump: MaxJump::DEFAULT,
//! };
//! const NOISE: NoiseMultiplier = match NoiseMultiplier::new(10.0) {
//!     Ok(multiplier) => multiplier,
//!     Err(_) => panic!("NOISE must be finite and not negative"),
//! };
//!
//! /// Takes part in a round, for which the coordinator has sent a model.
//! fn take_part(
//!     device: &mut Device,
//!     ledger: &mut Ledger<impl NorFlash>,
//!     identity: &mut Identity,
//!     (round, global): (u32, &[f32; 8]),
//! ) -> Result<Vec<i64>, Box<dyn std::error::Error>> {
//!     let samples = SampleSlice::new(&[0.9, 0.1, 0.0, 0.2, 0.8, 1.0], &[0, 1], 3)?;
//!     let clip_norm = ClipNorm::new(0.3)?;
//!     let settings = LocalTraining::new(LearningRate::new(0.1)?, clip_norm).with_epochs(5);
//!
//!     // On flash, once: this round's randomness comes from it alone.
//!     let participation = ledger.begin(round, identity, &LIMITS)?;
//!     // Clipped, private, and without a getter.
//!     let trained = device.train(participation, &samples, global, &settings);
//!     // On the integer grid, where the bound holds exactly, under the device's own noise.
//!     let noised = trained.noise(&Grid::new(clip_norm, 16)?, NOISE)?;
//!     Ok(noised.values().collect())
//! }
//! ```
//!
//! `examples/` has whole programs; `firmware-example/` in the repository runs on microcontrollers.
//!
//! # Map
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`client`] | a model with the memory that its training needs, checked when it is compiled |
//! | [`model`] | linear, logistic and softmax regression and networks over flat parameters |
//! | [`samples`] | a device's local data |
//! | [`train`] | local SGD with projection onto the clip norm's ball |
//! | [`contrast`] | learning without labels, and correlation matrices with noise |
//! | [`clip`] | L2 clipping |
//! | [`quantize`] | the integer grid and its exact bound |
//! | [`pack`], [`crc32`] | integers of a few bits, and the checksum of frames |
//! | [`bit`] | whether an update was clipped, for an adaptive clip norm |
//! | [`release`] | the one path from an update to what may be sent |
//! | [`noise`] | the exact discrete Gaussian |
//! | [`smooth`] | in-place Laplacian smoothing |
//! | [`stream`] | named random streams |
//! | [`lanes`] | the loops that reduce over parameters, in one fixed order |
//! | [`math`] | elementary functions in software |
//! | [`personal`] | local training of personal models |
//! | [`params`] | numbers that are checked once |
//! | [`mask`] | masks of updates, for sums that nobody sees before the noise is in them |
//! | [`ledger`] | the device's record of its participations, on flash |
//! | [`identity`] | who a device is |
//! | [`secrets`] | where it has its root and its chain key: in RAM, or in a secure element |
//! | [`participation`] | a round that the ledger gives once, with its randomness |
//! | [`provision`] | who a device is and what it agrees to, in a page of flash |
//! | [`session`] | the device's side of the protocol: bytes in, bytes out |
//! | [`crypto`] | ChaCha20 and Poly1305, and keys |
//! | [`wire`] | messages and frames between device and coordinator |
//! | [`features`] | features of one image or number, in `f32` and in integers |
//! | [`window`] | features of a window of a sensor's samples, in `f32` and in integers |
//! | [`question`] | answers to questions about samples and a model, as short vectors |
//! | [`recipe`] | which features a device computes, for those who have to agree on it |
//!
//! What most programs name is re-exported here.
//!
//! # Same bits everywhere
//!
//! From the same model, data, settings and streams a Cortex-M0 and a desktop compute the same
//! update, bit for bit: `f32` with `libm` instead of the platform's functions, no fused
//! multiply-add, one order of every sum, integers from the grid on.
//!
//! # Features
//!
//! | feature | what it does | default |
//! | --- | --- | --- |
//! | `local-noise` | sessions with noise of the device's own; without it they decline | on |
//! | `gradient-smoothing` | sessions that smooth local gradients; without it they decline | on |
//! | `adaptive-bit` | sessions with an adaptive clip norm; without it they decline | on |
//! | `pseudonym` | sessions under a pseudonym; without it none that hides its number | on |
//! | `micromath` | a small approximate `exp` in the models: other bits, never in the noise | off |
//! | `x25519` | sessions with a Diffie-Hellman, whose keys nobody finds later | off |
//! | `masks` | sessions that mask updates for helpers; without it they decline | off |
//! | `int8` | predictions of trained networks in 8 bits: `quantised` | off |
//! | `questions` | sessions that answer questions, of devices provisioned to | off |
//! | `sleep` | sessions that decline rounds which take longer than the device is awake | off |
//! | `short` | sessions that take models in 16 bits, and as differences to the model before | off |
//! | `element` | devices whose secrets are in a secure element | off |
//! | `async` | sessions on streams of `embedded-io-async` | off |
//! | `rand_core_06`, `rand_core_09` | HALs' generators with older traits: `generator` | off |
//! | `serde` | settings, policies and limits as data | off |
//! | `defmt` | `defmt::Format` of errors, phases and settings | off |
//! | `hazmat` | for simulators and tests: streams, seeds, no noise, and `harness` | off |
//!
//! # Panics
//!
//! None at run time. Sizes that do not fit are errors, or do not compile.
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::float_cmp, reason = "tests compare exact results"))]

#[cfg(test)]
extern crate std;

pub mod bit;
mod bytes;
pub mod client;
pub mod clip;
pub mod contrast;
pub mod crc32;
pub mod crypto;
#[cfg(feature = "element")]
pub mod element;
pub mod features;
pub mod fixed_point;
mod format;
#[cfg(any(feature = "rand_core_06", feature = "rand_core_09"))]
pub mod generator;
#[cfg(any(test, feature = "hazmat"))]
pub mod harness;
pub mod identity;
mod integer;
pub mod lanes;
pub mod ledger;
pub mod mask;
pub mod math;
pub mod model;
pub mod noise;
pub mod pack;
pub mod params;
pub mod participation;
pub mod personal;
pub mod predict;
mod progress;
pub mod provision;
#[cfg(any(test, feature = "int8"))]
pub mod quantised;
pub mod quantize;
pub mod question;
pub mod recipe;
pub mod release;
pub mod samples;
pub mod secrets;
#[cfg(feature = "serde")]
mod serial;
pub mod session;
pub mod smooth;
pub mod stream;
pub mod train;
pub mod window;
mod wipe;
pub mod wire;

pub use client::Client;
pub use clip::clip_l2;
pub use identity::Identity;
pub use ledger::Ledger;
pub use model::{
    Activation, Const, Dim, Encoder, FixedModel, Linear, Logistic, Model, Parametric, Softmax,
};
pub use noise::DiscreteGaussian;
pub use params::{ClipNorm, LearningRate, NoiseMultiplier, Penalty};
pub use participation::Participation;
pub use progress::Progress;
pub use quantize::Grid;
pub use release::{Release, TrustCoordinator};
pub use samples::{SampleSlice, Samples};
pub use session::{Phase, Session};
pub use smooth::LaplacianSmoothing;
pub use stream::{Purpose, Root, StreamId};
pub use train::{Clipping, LocalTraining};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
