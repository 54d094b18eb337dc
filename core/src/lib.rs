//! What a device runs in differentially private federated learning: a small model, local training,
//! clipping, exact integer noise, Laplacian smoothing. No heap, no operating system, no `unsafe`.
//!
//! ```
//! use core::num::NonZeroU32;
//! use smolfed_core::{
//!     client::Client, model::{Const, Softmax}, noise::DiscreteGaussian,
//!     params::{ClipNorm, LearningRate, Penalty}, quantize::Grid, samples::SampleSlice,
//!     stream::{Purpose, Root, StreamId}, train::{Clipping, LocalTraining},
//! };
//!
//! // A device with three features and two classes: (3 + 1) · 2 parameters, up to 8 samples.
//! let mut client: Client<_, 8, 8, 2> = Client::new(Softmax::new(Const::<3>, Const::<2>));
//! let features = [0.9, 0.1, 0.0, 0.2, 0.8, 1.0, 1.0, 0.3, 0.1];
//! let samples = SampleSlice::new(&features, &[0u16, 1, 0], 3)?;
//!
//! // What the coordinator asks for in round 7.
//! let (global, round, device) = ([0.0; 8], 7, 42);
//! let clip_norm = ClipNorm::new(0.3)?;
//! let settings = LocalTraining {
//!     epochs: 5,
//!     batch_size: NonZeroU32::MIN,
//!     learning_rate: LearningRate::new(0.1)?,
//!     weight_decay: Penalty::NONE,
//!     proximal: Penalty::NONE,
//!     clip_norm: Some(clip_norm),
//!     clipping: Clipping::EveryStep,
//!     gradient_smoothing: None,
//! };
//!
//! // 32 secret bytes from the hardware; every use of randomness has a stream of its own.
//! let root = Root::from_secret([0x5a; 32]);
//! let stream = |purpose| root.stream(StreamId { purpose, round, device });
//! client.train(&samples, &global, &settings, &mut stream(Purpose::BatchShuffle))?;
//!
//! // To the integer grid, where the bound holds exactly, and the device's own noise on it.
//! let quantizer = client.quantizer(&Grid::new(clip_norm, 16)?)?;
//! let mut message = client.update().map(|x| quantizer.get(x));
//! let noise = DiscreteGaussian::new(10 << 16, 1)?;
//! noise.add_to_i32(&mut message, &mut stream(Purpose::DeviceNoise))?;
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! # Map
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`client`] | a model with the memory that its training needs, checked when it is compiled |
//! | [`model`] | linear, logistic and softmax regression over flat parameters |
//! | [`samples`] | a device's local data |
//! | [`train`] | local SGD with projection onto the clip norm's ball |
//! | [`contrast`] | learning without labels, and correlation matrices with noise |
//! | [`clip`] | L2 clipping |
//! | [`quantize`] | the integer grid and its exact bound |
//! | [`noise`] | the exact discrete Gaussian |
//! | [`smooth`] | in-place Laplacian smoothing |
//! | [`stream`] | named random streams |
//! | [`lanes`] | the loops that reduce over parameters, in one fixed order |
//! | [`math`] | elementary functions in software |
//! | [`personal`] | local training of models of a device's own |
//! | [`params`] | numbers that are checked once |
//! | [`ledger`] | the device's own record of its participations, on flash |
//! | [`provision`] | who a device is and what it agrees to, in a flash page of its own |
//! | [`session`] | the device's side of the protocol: bytes in, bytes out |
//! | [`wire`] | messages and frames between device and coordinator |
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
//! | `micromath` | a small approximate `exp` in the models: other bits, never in the noise | off |
//!
//! # Panics
//!
//! None at run time. Sizes that do not fit are errors, or do not compile.
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::float_cmp, reason = "tests compare exact results"))]

#[cfg(test)]
extern crate std;

pub mod client;
pub mod clip;
pub mod contrast;
mod integer;
pub mod lanes;
pub mod ledger;
pub mod math;
pub mod model;
pub mod noise;
pub mod params;
pub mod personal;
pub mod provision;
pub mod quantize;
pub mod samples;
pub mod session;
pub mod smooth;
pub mod stream;
pub mod train;
pub mod wire;
