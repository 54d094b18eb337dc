//! Differential privacy accounting: the ε of composed Gaussian and subsampled Gaussian mechanisms,
//! the noise for a target ε, and trade-off curves.
//!
//! A list of [`PrivacyEvent`]s describes the releases. An [`Accountant`] turns it into an
//! [`Estimate`] of ε at a δ, which states whether it is a proved bound, or refuses. A
//! [`CalibrationProblem`] inverts this: it finds the noise, the rounds or the cohort for a target
//! ε. A [`TradeOff`] translates an ε into the power of an attacker.
//!
//! ```
//! use smolfed_accounting::{
//!     Accountant, Delta, Mechanism, NoiseMultiplier, PrivacyEvent, Sampling, TradeOff,
//! };
//!
//! // One Gaussian release with a standard deviation of 4 clip norms, a device added or removed.
//! let noise_multiplier = NoiseMultiplier::new(4.0)?;
//! let mechanism = Mechanism::Gaussian { noise_multiplier };
//! let event = PrivacyEvent::new(mechanism, Sampling::full(100)?, 1);
//! let estimate = Accountant::Pld.epsilon(&[event], Delta::new(1e-5)?)?;
//! assert!(estimate.is_upper_bound());
//! assert_eq!(format!("{:.4}", estimate.epsilon), "0.9263");
//!
//! // No membership test gains more than this over guessing.
//! let advantage = TradeOff::of_events(&estimate, &[event]).advantage();
//! assert_eq!(format!("{advantage:.4}"), "0.0995");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | question | module |
//! | --- | --- |
//! | what is a noise multiplier, a δ, a sampling rate? | [`params`] |
//! | what was released, to whom, under which neighbouring relation? | [`event`] |
//! | what does it cost? | [`accountant`] |
//! | how much noise, how many rounds, how large a cohort? | [`calibrate`] |
//! | what do several accountants say? | [`comparison`] |
//! | what does an ε mean for an attacker? | [`trade_off`] |
//! | what does the best of many private trials cost? | [`selection`] |
//! | what if devices cannot be drawn at random? | [`correlated`] |
//! | what if several parties add noise, and some of them collude? | [`distributed`] |
//! | what holds if rounds are chosen, or stopped, based on earlier ones? | [`adaptive`] |
//!
//! The theory behind the accountants, each module with its theorems and sources:
//!
//! | module | claim |
//! | --- | --- |
//! | [`pld`]: privacy loss distributions | upper and lower bounds, with Poisson sampling or none |
//! | [`uniform_profile`]: sampling without replacement | upper and lower bounds |
//! | [`rdp`]: Rényi differential privacy | upper bounds, for every sampling scheme |
//! | [`gdp`]: Gaussian differential privacy | exact without sampling, else an approximation |
//! | [`analytic_gaussian`]: one Gaussian release | exact |
//! | [`theorem`], [`published`]: closed forms of papers | as published |
//!
//! All results are deterministic: the same bits for the same input on one machine. Logarithms and
//! exponentials are the standard library's, so another platform may differ in the last digits.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::float_cmp, reason = "tests compare exact results"))]

mod log_space;
mod normal;

pub mod accountant;
pub mod adaptive;
mod adjacency;
pub mod analytic_gaussian;
pub mod calibrate;
pub mod comparison;
pub mod correlated;
pub mod distributed;
pub mod event;
pub mod fourier;
pub mod gdp;
pub mod params;
pub mod pld;
pub mod published;
pub mod rdp;
mod sampling;
pub mod selection;
pub mod theorem;
pub mod trade_off;
pub mod uniform_profile;

pub use accountant::{Accountant, AccountingError, Estimate, EstimateKind};
pub use adaptive::{FilterError, Odometer, RenyiFilter};
pub use calibrate::{Calibrated, CalibrationError, CalibrationProblem};
pub use comparison::Comparison;
pub use distributed::Parties;
pub use event::{Adjacency, Exposure, Mechanism, PrivacyEvent, PrivacyUnit, Sampling, TrustModel};
pub use params::{
    ClipNorm, Delta, DeltaSpec, Epsilon, NoiseMultiplier, ParamError, SamplingRate, Sensitivity,
};
pub use pld::PrivacyLoss;
pub use trade_off::TradeOff;

#[cfg(test)]
mod golden;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
