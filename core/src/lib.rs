//! The device side of differentially private federated learning: a small model, local training,
//! clipping, exact integer noise and Laplacian smoothing. No heap, no operating system, no
//! `unsafe`.
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
//! `examples/` has complete programs. `firmware-example/` in the repository runs on
//! microcontrollers.
//!
//! # Map
//!
//! | module | contents |
//! | --- | --- |
//! | [`client`] | a model with its training memory, checked at compile time |
//! | [`model`] | linear, logistic and softmax regression and networks over flat parameters |
//! | [`samples`] | the local data of a device |
//! | [`train`] | local SGD with projection onto a ball whose radius is the clip norm |
//! | [`contrast`] | learning without labels, and correlation matrices with noise |
//! | [`clip`] | L2 clipping |
//! | [`quantize`] | the integer grid and its exact bound |
//! | [`pack`], [`crc32`] | packed integers of a few bits, and the checksum of frames |
//! | [`bit`] | the clipping indicator of an update, for an adaptive clip norm |
//! | [`release`] | the only path from an update to a message |
//! | [`noise`] | the exact discrete Gaussian |
//! | [`smooth`] | in-place Laplacian smoothing |
//! | [`stream`] | named random streams |
//! | [`lanes`] | reductions over parameters, in one fixed order |
//! | [`math`] | elementary functions in software |
//! | [`personal`] | local training of personal models |
//! | [`params`] | validated numbers |
//! | [`mask`] | masks of updates, which hide sums until the noise is added |
//! | [`ledger`] | the participations of the device, recorded on flash |
//! | [`identity`] | the identity of a device |
//! | [`secrets`] | the root and the chain key of a device, in RAM or in a secure element |
//! | [`participation`] | a one-time token from the ledger for a round and its randomness |
//! | [`provision`] | the identity and policy of a device, in a page of flash |
//! | `delivery` | finished models for devices that only infer: signed files, slots of flash |
//! | [`session`] | the device's side of the protocol: bytes in, bytes out |
//! | [`crypto`] | ChaCha20 and Poly1305, and keys |
//! | [`wire`] | messages and frames between device and coordinator |
//! | [`features`] | features of one image or number, in `f32` and in integers |
//! | [`window`] | features of a window of sensor samples, in `f32` and in integers |
//! | [`question`] | answers to questions about samples and a model, as short vectors |
//! | [`recipe`] | a shared description of the features that devices compute |
//!
//! The most used items are re-exported here.
//!
//! # Same bits everywhere
//!
//! Given the same model, data, settings and streams, a Cortex-M0 and a desktop compute the same
//! update, bit for bit: `f32` with `libm` instead of the platform's functions, no fused
//! multiply-add, one order of every sum, integers from the grid on.
//!
//! # Features
//!
//! | feature | effect | default |
//! | --- | --- | --- |
//! | `local-noise` | sessions with noise added on the device. Without it they decline | on |
//! | `gradient-smoothing` | sessions that smooth local gradients. Without it they decline | on |
//! | `adaptive-bit` | sessions with an adaptive clip norm. Without it they decline | on |
//! | `pseudonym` | sessions under a pseudonym. Without it a device cannot hide its number | on |
//! | `micromath` | a small approximate `exp` in models, never in noise: other bits | off |
//! | `x25519` | sessions with Diffie-Hellman: forward secrecy | off |
//! | `masks` | sessions that mask updates for helpers. Without it they decline | off |
//! | `int8` | predictions of trained networks in 8 bits: `quantised` | off |
//! | `questions` | sessions that answer questions, on devices provisioned for it | off |
//! | `sleep` | sessions that decline rounds longer than the device stays awake | off |
//! | `short` | sessions that accept models in 16 bits, or as differences to the last one | off |
//! | `delivery` | devices that only infer: signed model files | off |
//! | `element` | device secrets in a secure element | off |
//! | `async` | sessions on streams of `embedded-io-async` | off |
//! | `rand_core_06`, `rand_core_09` | generators of HALs with older traits: `generator` | off |
//! | `serde` | settings, policies and limits as data | off |
//! | `defmt` | `defmt::Format` of errors, phases and settings | off |
//! | `hazmat` | for simulators and tests: streams, seeds, no noise, and `harness` | off |
//!
//! # Panics
//!
//! This crate does not panic at run time. Wrong sizes are errors, or do not compile.
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
#[cfg(feature = "delivery")]
pub mod delivery;
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
