//! Simulator and privacy accountant of smolfed: differentially private federated learning with the
//! code that microcontrollers run ([`smolfed_core`]).
//!
//! The command `smolfed` is thin over this library. A run in a few lines:
//!
//! ```
//! use std::{sync::atomic::AtomicBool, time::Duration};
//! use smolfed::{config::{Config, DEFAULT}, data::DataFolders, run::{self, Control}};
//!
//! let overrides = ["rounds=5".parse()?, "privacy.epsilon=2".parse()?];
//! let config = Config::parse(DEFAULT, "the built-in experiment", &overrides)?;
//! let (experiment, federation) = run::prepare(config, &DataFolders::of_experiment(None))?;
//! let control = Control {
//!     stop: &AtomicBool::new(false),
//!     checkpoint_every: Duration::MAX,
//!     on_round: &mut |record| println!("round {}", record.round),
//! };
//! let result = run::execute(&experiment, &federation, None, control)?;
//! println!("{}", result.statements[0].in_words());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`config`], [`experiment`] | the experiment file, and its validation for a federation |
//! | [`data`] | sources, splits, partitions |
//! | [`method`] | what devices train, and how updates are used: one file per method |
//! | [`arithmetic`] | how simulated devices calculate |
//! | [`source`] | where devices are: simulated, on other ranks, a fleet, a recorded participation |
//! | [`ranks`] | processes that share a run, and what they exchange |
//! | [`release`] | the privacy path, from a device's update to a released sum |
//! | [`server`] | the server's step on what was released |
//! | [`round`] | a round: draw, train, release, apply, evaluate |
//! | [`run`] | a run with its directory and checkpoints |
//! | [`runs`] | finished runs: listed, compared, exported |
//! | [`privacy`] | plans, the ledger, statements, over [`smolfed_accounting`] |
//! | [`audit`] | attacks on the real round |
//! | [`fleet`], [`device`] | the coordinator of real devices, and a device as a process |
//! | [`helper`] | a helper of a fleet as a process |
//! | [`durable`], [`entropy`] | files that survive a crash; secret random bytes |
//! | [`inference`] | models in use: predictions, and exports to other programs |
//! | [`evaluation`], [`representation`] | how good models and encoders are |
//! | [`report`], [`sweep`] | the page about a run, and many runs |
//! | [`starter`] | an experiment file for some data |
//! | [`spelling`] | names that were probably meant |
//! | [`task`] | the model that is trained |
//! | [`cli`] | the command line |
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::float_cmp, reason = "tests compare exact results"))]

pub mod arithmetic;
pub mod audit;
pub mod cli;
pub mod config;
pub mod data;
pub mod device;
pub mod durable;
pub mod entropy;
pub mod evaluation;
pub mod experiment;
pub mod fleet;
pub mod helper;
pub mod inference;
pub mod method;
pub mod number;
pub mod privacy;
pub mod ranks;
pub mod release;
pub mod report;
pub mod representation;
pub mod round;
pub mod run;
pub mod runs;
pub mod server;
pub mod source;
pub mod spelling;
pub mod starter;
pub mod sweep;
pub mod task;
