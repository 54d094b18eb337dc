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
//! | [`config`], [`experiment`] | the experiment file, and what it means for a federation |
//! | [`data`] | sources, splits, partitions |
//! | [`sampling`], [`simulate`], [`server`], [`rounds`] | a round, from the cohort to the step |
//! | [`run`], [`run_dir`] | a run with its directory and checkpoints |
//! | [`coordinator`], [`serve`] | real devices over serial lines and sockets, among simulated ones |
//! | [`participation`] | who took part in each round, to be studied and repeated |
//! | [`device`] | a device as a process |
//! | [`personal`] | models of a device's own |
//! | [`contrast`] | encoders that are learned without labels |
//! | [`privacy`] | events, accountants, calibration, statements |
//! | [`representation`] | what the representations of an encoder are worth, and what they look like |
//! | [`report`] | the page about a run, and its plots |
//! | [`task`] | the model that is trained |
//! | [`cli`] | the command line |
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::float_cmp, reason = "tests compare exact results"))]

pub mod audit;
pub mod cli;
pub mod config;
pub mod contrast;
pub mod coordinator;
pub mod data;
pub mod device;
pub mod experiment;
pub mod number;
pub mod participation;
pub mod personal;
pub mod privacy;
pub mod report;
pub mod representation;
pub mod rounds;
pub mod run;
pub mod run_dir;
pub mod sampling;
pub mod serve;
pub mod server;
pub mod simulate;
pub mod sweep;
pub mod task;
